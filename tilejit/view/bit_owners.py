"""The element that owns each bit of a packed buffer, found by packing probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing, Plane, extents, rounded_up
from tilejit.copies.planes import pack_planes
from tilejit.layout.dtypes import PrimitiveType, lookup
from tilejit.layout.formats.examples import free_element
from tilejit.layout.formats.packings import find_packing
from tilejit.layout.formats.registry import find_format

CONSTANT, COMPUTED = -1, -2
"""Stand for the element of bits that no value changes, and of bits that several elements change."""
MOST_ELEMENTS = 1 << 16
"""The most elements of an array that is probed."""
Bits = Mapping[str, Array]
"""The bits of each buffer, the lowest of each byte first."""


class Run(NamedTuple):
    """Bits low to high of a byte that belong to one element of a plane; no plane if none owns them."""

    low: int
    high: int
    plane: str
    element: int


@dataclass(frozen=True, slots=True)
class ByteOwners:
    """The owners of all bits in the buffers of a format, for one array.

    Attributes:
        dims: the dimensions of the main plane.
        shapes: the dimensions of each plane.
        buffers: for each buffer the runs of bits of each byte.
        rounds: whether the format rounds values, so that their bits depend on each other.
    """

    dims: tuple[int, ...]
    shapes: Mapping[str, tuple[int, ...]]
    buffers: Mapping[str, list[tuple[Run, ...]]]
    rounds: bool


def owners(text: str, dims: tuple[int, ...] | None = None, **parameters: Any) -> ByteOwners:
    """Find the owner of each bit.

    ggml-q4_0 of [1,32] -> "buffer": (Run(0, 7, "d", 0),), (Run(0, 7, "d", 0),), (Run(0, 3, "codes", 0),
        Run(4, 7, "codes", 16)), ...

    Args:
        text: the name of a format of planes.
        dims: the dimensions of its main plane; None takes one record, or the format's example.
        parameters: the parameters of the format.

    Raises:
        LayoutError: the format is not of planes, or the array has too many elements.
    """
    name, own, packing = find_packing(text, parameters)
    dims = dims or _small_dims(name, packing)
    if prod(dims) > MOST_ELEMENTS:
        raise LayoutError(
            f"expected an array of at most {MOST_ELEMENTS} elements to show bytes of, got {list(dims)}\n"
            "  pass smaller dimensions, or omit them"
        )
    sizes = packing.sizes(dims, f"the format {name!r}")
    shapes = {plane.name: extents(plane.axes, sizes) for plane in packing.planes}
    free = free_element(find_format(name), packing)
    lowest = {plane.name: _filled(plane, shapes[plane.name], 0, free) for plane in packing.planes}

    def packed(planes: Mapping[str, Array]) -> Bits:
        buffers = pack_planes(planes, name, own).buffers
        return {key: np.unpackbits(_bytes(data), bitorder="little") for key, data in buffers.items()}

    base = packed(lowest)
    found = {key: np.full(bits.size, CONSTANT, np.int64) for key, bits in base.items()}
    starts = [0]
    for plane in packing.planes:
        shape = shapes[plane.name]
        for step in _steps(plane):
            high = _filled(plane, shape, step, free)

            def changes(chosen: Array, plane: Plane = plane, high: Array = high) -> Bits:
                mixed = np.where(chosen.reshape(high.shape), high, lowest[plane.name])
                bits = packed({**lowest, plane.name: mixed})
                return {key: bits[key] ^ base[key] for key in base}

            _add(found, _owners_in_plane(changes, prod(shape)), starts[-1])
        starts.append(starts[-1] + prod(shape))
    rows = {key: [*_runs(_of_bytes(numbers), [*shapes], starts)] for key, numbers in found.items()}
    return ByteOwners(dims, shapes, rows, packing.rounds)


def _small_dims(name: str, packing: Packing) -> tuple[int, ...]:
    """The dimensions of one record; for buffers without records, and axes within records, of the example."""
    example = find_format(name).example
    assert example is not None
    axes = packing.axes
    sizes = dict(zip(axes, example[0][len(example[0]) - len(axes) :], strict=True))
    sizes |= {axis: int(divisor or 1) for axis, _, divisor in _parts(packing.records) if axis in sizes}
    multiples = packing.multiples
    return tuple(
        lcm(size, multiples.get(axis, 1)) if packing.records else rounded_up(size, multiples.get(axis, 1))
        for axis, size in sizes.items()
    )


def _parts(records: str) -> Iterator[tuple[str, str, str]]:
    """The axes of records: "R C/32" -> ("R", "", ""), ("C", "/", "32")."""
    return (word.partition("/") for word in records.split())


def _steps(plane: Plane) -> list[int]:
    """Numbers that, added to the least code, together change all bits."""
    if not plane.levels:
        return [(1 << plane.bits) - 1 or 1]
    powers = [1 << bit for bit in range(plane.bits) if 1 << bit < plane.levels]
    return sorted({*powers, *(plane.levels - power for power in powers)})


def _filled(plane: Plane, shape: tuple[int, ...], step: int, free: PrimitiveType) -> Array:
    """A plane of its least code plus a number; or of zeros, and with a number of set bits."""
    if plane.bits:
        return np.full(shape, plane.code_range[0] + step, plane.array_dtype)
    numpy = (free if plane.is_free else lookup(plane.dtype)).numpy
    assert numpy is not None
    return np.full((*shape, numpy.itemsize), 0xFF if step else 0, np.uint8).view(numpy)[..., 0]


def _bytes(data: Array) -> Array:
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


def _owners_in_plane(changes: Callable[[Array], Bits], count: int) -> dict[str, Array]:
    """The number of the element that changes each bit.

    Probe k changes the elements whose number has bit k, and a second probe all others. A bit that follows
    both for all k belongs to the element with that number; other bits that change are COMPUTED.
    """
    numbers = np.arange(count)
    every = changes(numbers >= 0)
    found = {key: np.zeros(bits.size, np.int64) for key, bits in every.items()}
    simple = {key: bits == 1 for key, bits in every.items()}
    touched = dict(simple)
    for k in range((count - 1).bit_length()):
        has = (numbers >> k & 1).astype(bool)
        with_bit, without = changes(has), changes(~has)
        for key, bits in with_bit.items():
            found[key] |= bits.astype(np.int64) << k
            simple[key] = simple[key] & (bits != without[key])
            touched[key] = touched[key] | (bits | without[key]).astype(bool)
    return {
        key: np.where(simple[key], own, np.where(touched[key], COMPUTED, CONSTANT))
        for key, own in found.items()
    }


def _add(found: dict[str, Array], more: Mapping[str, Array], start: int) -> None:
    """Add the owners from one plane, whose elements are counted from `start`; two owners make COMPUTED."""
    for key, numbers in more.items():
        own = np.where(numbers >= 0, numbers + start, numbers)
        both = np.where(found[key] == own, own, COMPUTED)
        found[key] = np.where(own == CONSTANT, found[key], np.where(found[key] == CONSTANT, own, both))


def _of_bytes(numbers: Array) -> Array:
    """The owners by byte; a byte with a bit that several elements change is computed from them."""
    rows = numbers.reshape(-1, 8)
    computed = (rows == COMPUTED).any(axis=1, keepdims=True)
    return np.where(computed, COMPUTED, rows)


def _runs(numbers: Array, planes: list[str], starts: list[int]) -> Iterator[tuple[Run, ...]]:
    """The runs of each byte."""
    at = np.searchsorted(starts, numbers, "right") - 1
    for row, where in zip(numbers.tolist(), at.tolist(), strict=True):
        runs: list[Run] = []
        for bit, (number, plane) in enumerate(zip(row, where, strict=True)):
            own = (planes[plane], number - starts[plane]) if number >= 0 else ("", number)
            if runs and runs[-1][2:] == own:
                runs[-1] = runs[-1]._replace(high=bit)
            else:
                runs.append(Run(bit, bit, *own))
        yield tuple(runs)
