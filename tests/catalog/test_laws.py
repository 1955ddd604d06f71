"""Laws of every format: planes come back, descriptions are complete, wrong planes are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import lcm, prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, mix
from tilejit.catalog.packing import Plane, extents
from tilejit.layout.dtypes import lookup
from tilejit.layout.formats.examples import example_packing, free_element
from tilejit.layout.formats.examples import example_planes as planes_of_example
from tilejit.layout.formats.registry import find_format

FORMATS = {
    name: packing for name in tj.formats() if (packing := example_packing(find_format(name))) is not None
}


def example_planes(name: str, dims: tuple[int, ...] | None = None) -> Array | dict[str, Array]:
    """Planes that cover the ranges of their values; an array if there is one."""
    found, packing = find_format(name), FORMATS[name]
    assert found.example is not None
    sizes = packing.sizes(dims or found.example[0], name)
    planes = planes_of_example(packing, sizes, free_element(found, packing), mix)
    if packing.rounds:
        planes = {name: (array - 128) / np.float32(8) for name, array in planes.items()}
    return planes if len(planes) > 1 else planes[packing.main.name]


def fixed_planes(name: str, planes: Array | dict[str, Array]) -> Any:
    """The planes, rounded first if the format rounds."""
    return tj.pack(planes, name).unpack() if FORMATS[name].rounds else planes


def bytes_of(packed: Any) -> dict[str, bytes]:
    """The bytes of each buffer."""
    buffers = packed.buffers if isinstance(packed, tj.PackedPlanes) else {"buffer": packed.buffer}
    return {key: buffer.tobytes() for key, buffer in buffers.items()}


def assert_same(found: Any, planes: Array | dict[str, Array]) -> None:
    """Compare planes bit by bit; codes of an array may have come back in a narrow dtype."""
    if not isinstance(planes, dict):
        found, planes = {"values": np.asarray(found).astype(planes.dtype)}, {"values": planes}
    assert list(found) == list(planes)
    for name, values in planes.items():
        assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape), name
        assert found[name].tobytes() == values.tobytes(), name


@pytest.mark.parametrize("name", FORMATS)
def test_planes_come_back(name: str) -> None:
    planes = fixed_planes(name, example_planes(name))
    packed = tj.pack(planes, name)
    assert_same(packed.unpack(), planes)
    main = next(iter(planes.values())) if isinstance(planes, dict) else planes
    if isinstance(packed, tj.PackedPlanes):
        again = tj.unpack(
            dict(packed.buffers), name, dims=main.shape, dtype=lookup(packed.dtype) if packed.dtype else None
        )
        assert_same(again, planes)
        out = {key: np.zeros_like(buffer) for key, buffer in packed.buffers.items()}
        tj.pack(planes, name, out=out)
        assert all(np.array_equal(out[key], buffer) for key, buffer in packed.buffers.items())


def test_codes_of_more_than_a_byte_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="plane scales: expected 0 to 8 bits, got 16"):
        Plane("scales", "N", 16)


CODECS = [name for name, p in FORMATS.items() if p.steps or any(field.codec for field in p.fields)]


@pytest.mark.parametrize("name", CODECS)
def test_arrays_without_elements_come_back(name: str) -> None:
    found = find_format(name)
    assert found.example is not None
    dims, _ = found.example
    for axis in range(len(dims)):
        planes = fixed_planes(name, example_planes(name, (*dims[:axis], 0, *dims[axis + 1 :])))
        assert_same(tj.pack(planes, name).unpack(), planes)


@pytest.mark.parametrize("name", FORMATS)
def test_other_dimensions_are_refused_or_come_back(name: str) -> None:
    """Sizes that are no multiple are padded, or refused before anything is written."""
    found, packing = find_format(name), FORMATS[name]
    assert found.example is not None
    dims = tuple(size + 1 + k for k, size in enumerate(found.example[0]))
    sizes = zip(packing.axes, dims[len(dims) - len(packing.axes) :], strict=True)
    bad = [axis for axis, size in sizes if size % packing.multiples.get(axis, 1)]
    if bad:
        fitting = example_planes(name)
        main = next(iter(fitting.values())) if isinstance(fitting, dict) else fitting
        odd = np.zeros(dims, main.dtype)
        with pytest.raises(tj.LayoutError, match=rf"multiple of .* as {bad[0]}, got \d+\n  pad {bad[0]} to"):
            tj.pack({**fitting, packing.main.name: odd} if isinstance(fitting, dict) else odd, name)
        return
    planes = fixed_planes(name, example_planes(name, dims))
    assert_same(tj.pack(planes, name).unpack(), planes)


@pytest.mark.parametrize("name", [name for name, packing in FORMATS.items() if len(packing.planes) > 1])
def test_wrong_planes_are_refused(name: str) -> None:
    planes = example_planes(name)
    assert isinstance(planes, dict)
    first, last = next(iter(planes)), list(planes)[-1]
    with pytest.raises(tj.LayoutError, match="has no plane 'extra'"):
        tj.pack({**planes, "extra": planes[first]}, name)
    with pytest.raises(tj.LayoutError, match=f"lacks its plane '{first}'"):
        tj.pack({last: planes[last]}, name)
    with pytest.raises(tj.LayoutError, match=f"{last}: expected an array of"):
        tj.pack({**planes, last: planes[last][..., None]}, name)


NARROW = [name for name, p in FORMATS.items() if 0 < p.main.bits < 8 and not p.is_layout]


@pytest.mark.parametrize("name", NARROW)
def test_codes_out_of_range_are_refused(name: str) -> None:
    planes, packing = example_planes(name), FORMATS[name]
    codes = (planes[packing.main.name] if isinstance(planes, dict) else planes).astype(np.int16)
    low, high = packing.main.code_range
    codes.flat[codes.size // 2] = high + 1
    with pytest.raises(tj.LayoutError, match=f"is {high + 1}, but codes are {low} to {high}"):
        tj.pack({**planes, packing.main.name: codes} if isinstance(planes, dict) else codes, name)


def common_dims(first: str, second: str) -> tuple[int, ...]:
    """The least dimensions that both formats take, at least 2 each."""
    own, other = FORMATS[first], FORMATS[second]
    axes = zip(own.axes or ("",), other.axes or ("",), strict=True)
    return tuple(lcm(2, own.multiples.get(a, 1), other.multiples.get(b, 1)) for a, b in axes)


def planes_of(name: str, dims: tuple[int, ...]) -> tuple[Any, ...]:
    """What tells the planes of a format from others."""
    packing, example = FORMATS[name], find_format(name).example
    sizes, free = packing.sizes(dims, name), packing.main.is_free and example and example[1]
    planes = ((replace(p, axes=""), extents(p.axes, sizes)) for p in packing.planes)
    return free, packing.rounds, *planes


def partners(first: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The formats after one, in a ring, that take the same planes, and dimensions that both take."""
    names, own = [*FORMATS], FORMATS[first].axes
    at = names.index(first)
    for second in names[at + 1 :] + names[:at]:
        if own and len(own) == len(FORMATS[second].axes):
            dims = common_dims(first, second)
            if prod(dims) <= 1 << 16 and planes_of(first, dims) == planes_of(second, dims):
                yield second, dims


@pytest.mark.full
@pytest.mark.parametrize("first", FORMATS)
def test_formats_with_equal_planes_convert_into_each_other(first: str) -> None:
    chosen = [*islice(partners(first), 3 if len(FORMATS[first].planes) == 1 else None)]
    if not chosen:
        pytest.skip("no other format takes its planes")
    for second, dims in chosen:
        planes = fixed_planes(first, example_planes(first, dims))
        want = tj.pack(planes, second)
        found = tj.relayout(tj.pack(planes, first), second)
        assert bytes_of(found) == bytes_of(want), f"{first} -> {second}"


@pytest.mark.parametrize("name", FORMATS)
def test_names_of_the_same_bytes_pack_the_same(name: str) -> None:
    for other in tj.describe_format(name).same_as:
        assert name in tj.describe_format(other).same_as
        dims = common_dims(name, other)
        planes = example_planes(max(name, other, key=lambda one: FORMATS[one].main.bits), dims)
        assert bytes_of(tj.pack(planes, name)) == bytes_of(tj.pack(planes, other)), other
