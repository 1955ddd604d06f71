"""Buffers that are too large to create at once, created piece by piece in byte order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    AccessMap,
    BlockGrid,
    CopyProgram,
    Element,
    cached,
    dataclass,
    grains,
    map_offset,
    map_range,
    thread_count,
    window_map,
)
from tilejit.arrays.memory import Array, address, bytes_map, empty
from tilejit.arrays.values import check_range
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element, compiled
from tilejit.tiled.outputs import padding_of

MOST_BYTES = 32 << 20
"""Buffers up to this size in bytes are created at once; larger ones in pieces of about this size."""

SCATTERED_BYTES = 3 * MOST_BYTES
"""The size in bytes of pieces whose elements are spread over the source: fewer passes, in 256 MiB."""

Dims: TypeAlias = tuple[int, ...]
Box: TypeAlias = tuple[slice, ...]
Read: TypeAlias = Callable[[Box], Array]
"""The elements of a box of the logical array."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A buffer cut into byte ranges, each of which holds one box of the array.

    grid     the blocks of the array; a box holds one or more of them
    steps    bytes from one block to the next, along each dimension
    order    the dimensions that are cut, the most major first
    at_once  blocks of a piece along the last of these dimensions; a piece has one block along the others
    """

    spec: Spec
    grid: BlockGrid
    steps: Dims
    order: Dims
    at_once: int

    def pieces(self) -> Iterator[tuple[int, int, Box]]:
        """The start and end of each piece in the buffer, and its box, in ascending order."""
        *outer, last = (self.grid.counts[d] for d in self.order)
        starts = (*map(range, outer), range(0, last, self.at_once))
        begin, before = 0, None
        for place in product(*starts):
            if before is not None:
                at = sum(k * self.steps[d] for k, d in zip(place, self.order, strict=True))
                yield begin, at, self._box(before)
                begin = at
            before = place
        assert before is not None
        yield begin, self.spec.size_in_bytes, self._box(before)

    def _box(self, place: Dims) -> Box:
        box = [slice(0, n) for n in self.grid.dims]
        for d, k in zip(self.order, place, strict=True):
            many = self.at_once if d == self.order[-1] else 1
            n, extent = self.grid.dims[d], self.grid.extents[d]
            box[d] = slice(k * extent, min(n, (k + many) * extent))
        return tuple(box)


@cached(256)
def cut(spec: Spec, most_bytes: int) -> Cut | None:
    """Cut a buffer into pieces of at most about that many bytes each.

    f32[4096,1024]{1,0:T(8,128)}, 1 MiB -> 16 pieces of 256 rows

    Returns:
        The cut buffer. None if the layout does not repeat block by block along any dimension, like swizzles
        across the whole buffer, or if whole bytes do not hold whole blocks.
    """
    access = access_map(spec)
    repeats = None if 0 in spec.dimensions else grains(access)
    if repeats is None:
        return None
    extents = tuple(map(min, spec.dimensions, repeats))
    grid = BlockGrid(spec.dimensions, extents)
    steps = grid.steps(access)
    if steps is None:
        return None
    order: list[int] = []
    kept = list(spec.dimensions)
    for d in sorted(range(spec.rank), key=lambda d: -steps[d]):
        if grid.counts[d] == 1:
            continue
        kept[d] = extents[d]
        if not _within(access, tuple(kept), steps[d]):
            kept[d] = spec.dimensions[d]
            break
        order.append(d)
        if steps[d] <= most_bytes:
            break
    if not order:
        return None
    return Cut(spec, grid, steps, tuple(order), max(1, most_bytes // steps[order[-1]]))


def _within(access: AccessMap, extents: Dims, step: int) -> bool:
    """Whether the first box of those extents ends before the next one begins, `step` bytes later."""
    low, high = map_range(_box_map(access, extents))
    return low >= 0 and (high + access.width) * access.unit_bits <= 8 * step


def _box_map(access: AccessMap, extents: Dims) -> AccessMap:
    return window_map(access, (0,) * len(extents), (1,) * len(extents), extents)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The buffer of a layout, created from boxes that `read` returns."""

    cut: Cut
    read: Read
    threads: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the whole buffer."""
        return self.cut.spec.size_in_bytes

    def after(self, done: int) -> Iterator[Array]:
        """The bytes from a position on, piece by piece; each is released when the next is created.

        Raises:
            LayoutError: a value does not fit the packed dtype.
        """
        spec = self.cut.spec
        room = empty((max(end - begin for begin, end, _ in self.cut.pieces()),), np.uint8)
        for begin, end, box in self.cut.pieces():
            if end <= done:
                continue
            buffer = room[: end - begin]
            values = self.read(box)
            count = thread_count(self.threads, values.nbytes + buffer.nbytes)
            _make_piece(spec, values, buffer, count)
            del values
            yield buffer[max(0, done - begin) :]


def piece_buffer(spec: Spec, values: Array, nbytes: int, threads: int) -> Array:
    """The bytes of a piece of `cut`, from the elements of its box.

    Raises:
        LayoutError: a value does not fit the packed dtype.
    """
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    if native.dtype != spec.dtype:
        check_range(native, spec.element, located=False)
    buffer = empty((nbytes,), np.uint8)
    _make_piece(spec, native, buffer, threads)
    return buffer


def _make_piece(spec: Spec, values: Array, buffer: Array, threads: int) -> None:
    fill = _fill(spec)
    if fill is not None:
        whole = len(buffer) // len(fill) * len(fill)
        buffer[:whole].reshape(-1, len(fill))[:] = fill
        buffer[whole:] = fill[: len(buffer) - whole]
    program = _program(spec, values.shape, values.strides, buffer.nbytes, threads)
    program.run(address(values), address(buffer), threads, alive=(values, buffer))


def in_pieces(spec: Spec, read: Read, steps: Dims, threads: int | None = None) -> Pieces | None:
    """The buffer of a layout in pieces, if it is large and can be cut.

    Args:
        spec: the layout.
        read: returns the elements of a box, in the layout's dtype or as the same bytes.
        steps: distances in the source along each dimension, from `far_apart`.
        threads: the number of threads; None chooses it from the size.
    """
    if spec.size_in_bytes <= MOST_BYTES:
        return None
    found = cut(spec, MOST_BYTES)
    if found is not None and steps[found.order[0]] != max(steps):
        found = cut(spec, SCATTERED_BYTES)
    return None if found is None else Pieces(found, read, threads)


def has_padding(spec: Spec) -> bool:
    """Whether some bits of the buffer hold no element."""
    return _fill(spec) is not None


def far_apart(spec: Spec) -> Dims:
    """The distance in a buffer between the first element and the middle one, along each dimension."""
    access, zero = access_map(spec), (0,) * spec.rank
    first = map_offset(access, zero)
    middles = ((*zero[:d], n // 2, *zero[d + 1 :]) for d, n in enumerate(spec.dimensions))
    return tuple(abs(int(map_offset(access, index) - first)) for index in middles)


def _fill(spec: Spec) -> Array | None:
    """Bytes to repeat before elements are written, or None if elements cover everything."""
    if spec.physical_size == prod(spec.dimensions) and spec.physical_size * spec.bits % 8 == 0:
        return None
    element = padding_of(None, spec, None)
    assert element is not None
    if spec.packed:
        bits = element[0] & ((1 << spec.bits) - 1)
        element = bytes([sum(bits << k for k in range(0, 8, spec.bits))])
    return np.frombuffer(element, np.uint8)


@cached(64)
def _program(spec: Spec, extents: Dims, strides: Dims, size: int, threads: int) -> CopyProgram:
    """The program that copies a box's elements to a piece of the buffer, shared by boxes of those extents."""
    access = access_map(spec)
    target = replace(_box_map(access, extents), bounds=(0, 8 * size // access.unit_bits))
    itemsize = spec.dtype.itemsize
    element = Element(spec.primitive_type, 8 * itemsize)
    array: Any = bytes_map(extents, strides, itemsize)
    return compiled(array, target, element, buffer_element(spec), threads=threads)
