"""Laws of every format: planes come back, descriptions are complete, wrong planes are refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import mix
from tests.tools.extent import few_by_default
from tilejit.catalog.packing import Packing, Plane, extents
from tilejit.layout.dtypes import lookup, primitive_type
from tilejit.layout.formats.registry import find_format

Array = np.ndarray[Any, np.dtype[Any]]


def packing_of(name: str) -> Packing | None:
    """The packing of a format at its example; None if a rule decides the layout."""
    found = find_format(name)
    assert found.example is not None
    dims, dtype = found.example
    built = found.layout(primitive_type(dtype), dims, {})
    return built if isinstance(built, Packing) else None


FORMATS = {name: packing for name in tj.formats() if (packing := packing_of(name)) is not None}


def plane_values(plane: Plane, dims: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Values of a plane that cover its range."""
    if plane.bits:
        low, high = plane.code_range
        kind = np.int8 if low < 0 else np.uint8
        return (low + mix(dims, high - low + 1, seed)).astype(kind)
    element = lookup(plane.dtype) if plane.dtype else primitive_type(dtype)
    numpy = element.numpy
    assert numpy is not None
    if element.kind == "float" and element.bits >= 16:
        return ((mix(dims, 511, seed) - 255) / 8).astype(numpy)
    values = mix(dims, 256, seed).astype(np.uint8)
    return values.view(numpy) if element.bits == 8 else values.astype(numpy)


def example_planes(name: str, dims: tuple[int, ...] | None = None) -> Array | dict[str, Array]:
    found, packing = find_format(name), FORMATS[name]
    assert found.example is not None
    own, dtype = found.example
    if packing.main.bits:
        dtype = "float16"
    sizes = packing.sizes(dims or own, name)
    planes = {
        plane.name: plane_values(plane, extents(plane.axes, sizes), dtype, 7 * k)
        for k, plane in enumerate(packing.planes)
    }
    return planes if len(planes) > 1 else planes[packing.main.name]


def fixed_planes(name: str, planes: Array | dict[str, Array]) -> Any:
    """The planes, rounded first if the format rounds."""
    return tj.pack(planes, name).unpack() if FORMATS[name].rounds else planes


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


@pytest.mark.parametrize("name", FORMATS)
def test_a_description_states_the_planes(name: str) -> None:
    text = " ".join(str(tj.describe_format(name)).split())
    packing = FORMATS[name]
    if not packing.is_layout or packing.main.bits:
        assert all(f"{plane.name} [" in text for plane in packing.planes)


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
def test_other_dimensions_come_back_or_are_refused(name: str) -> None:
    """Sizes that are no multiple are padded, or refused before anything is written."""
    found, packing = find_format(name), FORMATS[name]
    assert found.example is not None
    dims = tuple(size + 1 + k for k, size in enumerate(found.example[0]))
    own = packing.main.axes.split()
    names = own[own[0] == "..." :]
    multiples = packing.multiples or {}
    sizes = zip(names, dims[len(dims) - len(names) :], strict=True)
    bad = [axis for axis, size in sizes if size % multiples.get(axis, 1)]
    if bad:
        fitting = example_planes(name)
        main = next(iter(fitting.values())) if isinstance(fitting, dict) else fitting
        odd = np.zeros(dims, main.dtype)
        with pytest.raises(tj.LayoutError, match=f"multiple of .* as {bad[0]}"):
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


def pairs() -> list[tuple[str, str]]:
    """Ordered pairs of formats with the same planes, whose examples fit each other's multiples."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name, packing in FORMATS.items():
        key = tuple((p.name, p.bits, p.dtype, p.low, p.signed, len(p.axes.split())) for p in packing.planes)
        groups.setdefault(key, []).append(name)
    return [(a, b) for own in groups.values() for a in own for b in own if a != b]


def common_dims(first: str, second: str) -> tuple[int, ...] | None:
    """Dimensions that both formats take; None if one multiple exceeds a small array."""
    own, other = FORMATS[first], FORMATS[second]
    rank = len([axis for axis in own.main.axes.split() if axis != "..."])
    dims = []
    for k in range(1, rank + 1):
        sizes = [(p.multiples or {}).get(p.main.axes.split()[-k], 1) for p in (own, other)]
        dims.append(int(np.lcm(*sizes)))
    return tuple(reversed(dims)) if np.prod(dims) <= 1 << 16 else None


@pytest.mark.full
@pytest.mark.parametrize("seed", few_by_default(range(40), 3))
def test_formats_with_equal_planes_convert_into_each_other(seed: int) -> None:
    chosen = random.Random(seed)
    for first, second in chosen.sample(pairs(), min(10, len(pairs()))):
        dims = common_dims(first, second)
        if dims is None:
            continue
        try:
            planes = fixed_planes(first, example_planes(first, dims))
            want = tj.pack(planes, second)
        except tj.LayoutError:
            continue
        found = tj.relayout(tj.pack(planes, first), second)
        buffers = want.buffers if isinstance(want, tj.PackedPlanes) else {"buffer": want.buffer}
        own = found.buffers if isinstance(found, tj.PackedPlanes) else {"buffer": found.buffer}
        for key, buffer in buffers.items():
            assert own[key].tobytes() == buffer.tobytes(), f"{first} -> {second}"
