"""Arrays in files, mapped into memory window by window, because a file may exceed the address space.

`ulimit -v` limits the address space of a process, as do batch systems and 32-bit platforms.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    AccessMap,
    CopyProgram,
    LayoutError,
    OutOfMemoryError,
    cached,
    dataclass,
    moved_map,
    thread_count,
    tight_map,
    window_map,
)
from tilejit.arrays.memory import Array, address, bytes_map, empty
from tilejit.arrays.strided import c_strides
from tilejit.files.pieces import Box, Dims, far_apart
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import array_element, buffer_element, compiled
from tilejit.tiled.tiled_array import TiledArray

WINDOW_BYTES = 256 << 20
"""The most bytes of a file to map at once, unless a single box of a layout is spread over more."""

Span: TypeAlias = tuple[int, int]
"""The first byte, and the one after the last."""


class FileBytes:
    """A range of bytes of an open file, which stays open as long as this object exists."""

    __slots__ = ("_file", "begin", "nbytes")

    def __init__(self, file: _OpenFile, begin: int, nbytes: int) -> None:
        self._file, self.begin, self.nbytes = file, begin, nbytes

    @classmethod
    def of(cls, handle: int, path: str, begin: int, nbytes: int) -> FileBytes:
        """The bytes of an open file; the caller may close its handle."""
        return cls(_OpenFile(handle, path), begin, nbytes)

    def part(self, begin: int, end: int) -> FileBytes:
        """The bytes [begin, end), counted from the first byte of this range."""
        return FileBytes(self._file, self.begin + begin, end - begin)

    def map(self, begin: int, end: int) -> Array:
        """Map the bytes [begin, end); the mapping ends with the array.

        Raises:
            LayoutError: the file has become shorter.
            OutOfMemoryError: there is no address space for them.
        """
        if begin == end:
            return np.empty(0, np.uint8)
        at = self.begin + begin
        before = at % mmap.ALLOCATIONGRANULARITY
        size = before + end - begin
        try:
            memory = mmap.mmap(self._file.handle, size, access=mmap.ACCESS_READ, offset=at - before)
        except ValueError as error:
            raise LayoutError(
                f"{self._file.path!r} became shorter while it was read\n  wait until it is written"
            ) from error
        except OSError as error:
            why = (
                "the layout spreads neighbors over them, so that smaller parts cannot be converted"
                if end - begin > WINDOW_BYTES
                else f"TileJIT maps up to {WINDOW_BYTES >> 20} MiB at a time"
            )
            raise OutOfMemoryError(
                f"no memory to map {size} bytes of {self._file.path!r}\n"
                f"  {why}; raise the limit, e.g. of ulimit -v"
            ) from error
        return np.frombuffer(memory, np.uint8, offset=before)


class _OpenFile:
    """A handle of a file, closed with this object, and the path for messages."""

    __slots__ = ("handle", "path")

    def __init__(self, handle: int, path: str) -> None:
        self.path, self.handle = path, os.dup(handle)

    def __del__(self) -> None:
        if hasattr(self, "handle"):  # otherwise `dup` has failed
            os.close(self.handle)


@dataclass(frozen=True, slots=True)
class FileArray:
    """A row-major or column-major array in a file."""

    data: FileBytes
    dtype: np.dtype[Any]
    shape: Dims
    by_columns: bool = False

    @property
    def steps(self) -> Dims:
        """The distance in bytes between the first element and the middle one, along each dimension."""
        return tuple(step * (n // 2) for step, n in zip(self._strides, self.shape, strict=True))

    def __getitem__(self, box: Box) -> Array:
        """The elements of a box."""
        return _gathered(box, self.dtype, self._span, self._mapped)

    def whole(self) -> Array:
        """The array, mapped at once."""
        order: Any = "F" if self.by_columns else "C"
        return self.data.map(0, self.data.nbytes).view(self.dtype).reshape(self.shape, order=order)

    def view(self, dtype: np.dtype[Any]) -> FileArray:
        """The same bytes as elements of another dtype of the same size."""
        return replace(self, dtype=dtype)

    @property
    def _strides(self) -> Dims:
        size = self.dtype.itemsize
        return c_strides(self.shape[::-1], size)[::-1] if self.by_columns else c_strides(self.shape, size)

    def _span(self, box: Box) -> Span:
        steps = self._strides
        first = sum(step * part.start for step, part in zip(steps, box, strict=True))
        last = sum(step * (part.stop - 1) for step, part in zip(steps, box, strict=True))
        return first, last + self.dtype.itemsize

    def _mapped(self, box: Box) -> Array:
        return np.ndarray(_extents(box), self.dtype, self.data.map(*self._span(box)), 0, self._strides)


@dataclass(frozen=True, slots=True)
class FileTiles:
    """A packed array in a file: the bytes of its buffer, and their layout."""

    data: FileBytes
    layout: Spec

    @property
    def steps(self) -> Dims:
        """The distance in the buffer between the first element and the middle one, along each dimension."""
        return far_apart(self.layout)

    def __getitem__(self, box: Box) -> Array:
        """The elements of a box, in C order."""
        return _gathered(box, self.layout.dtype, self._span, self._unpacked)

    def whole(self) -> TiledArray:
        """The tiled array, mapped at once."""
        return TiledArray.from_buffer(self.data.map(0, self.data.nbytes), self.layout)

    def _map(self, box: Box) -> AccessMap:
        """The map of a box, whose bounds are its own bytes."""
        extents = _extents(box)
        starts = tuple(part.start for part in box)
        return tight_map(window_map(access_map(self.layout), starts, (1,) * len(box), extents))

    def _span(self, box: Box) -> Span:
        return self._map(box).byte_bounds

    def _unpacked(self, box: Box) -> Array:
        access = self._map(box)
        begin, end = access.byte_bounds
        memory, out = self.data.map(begin, end), empty(_extents(box), self.layout.dtype)
        threads = thread_count(None, 2 * out.nbytes)
        inside = moved_map(access, -(8 * begin // access.unit_bits))
        program = _program(self.layout, inside, threads)
        program.run(address(memory), address(out), threads, alive=(memory, out))
        return out


class UnpackedBytes(FileBytes):
    """The bytes of an array that is packed in a file: a buffer that was packed again."""

    __slots__ = ("_outer",)

    def __init__(self, outer: FileTiles) -> None:
        super().__init__(
            outer.data._file, outer.data.begin, prod(outer.layout.dimensions) * outer.layout.dtype.itemsize
        )
        self._outer = outer

    def map(self, begin: int, end: int) -> Array:
        """The bytes [begin, end), unpacked.

        Raises:
            LayoutError: the file has become shorter.
            OutOfMemoryError: there is no address space for them.
        """
        if begin == end:
            return np.empty(0, np.uint8)
        spec = self._outer.layout
        row = prod(spec.dimensions[1:]) * spec.dtype.itemsize
        first, last = begin // row, -(-end // row)
        elements = self._outer[(slice(first, last), *(slice(0, n) for n in spec.dimensions[1:]))]
        flat = np.ascontiguousarray(elements).reshape(-1).view(np.uint8)
        return np.asarray(flat[begin - first * row : end - first * row])


@cached(64)
def _program(spec: Spec, source: AccessMap, threads: int) -> CopyProgram:
    """The copy of a box of a buffer to an array in C order."""
    itemsize = spec.dtype.itemsize
    array = bytes_map(source.dims, c_strides(source.dims, itemsize), itemsize)
    return compiled(source, array, buffer_element(spec), array_element(spec), threads=threads)


def _gathered(
    box: Box, dtype: np.dtype[Any], span: Callable[[Box], Span], read: Callable[[Box], Array]
) -> Array:
    """The elements of a box, read from one window, or from several into a new array."""
    parts = list(_parts(box, span))
    if len(parts) == 1:
        return read(box)
    out = empty(_extents(box), dtype)
    for part in parts:
        inside = zip(part, box, strict=True)
        out[tuple(slice(p.start - b.start, p.stop - b.start) for p, b in inside)] = read(part)
    return out


def _parts(box: Box, span: Callable[[Box], Span]) -> Iterator[Box]:
    """A box cut into boxes that lie within a window each, as far as cuts bring elements closer together."""
    size = _distance(span(box))
    if size > WINDOW_BYTES:
        halves = [_halves(box, d) for d, part in enumerate(box) if part.stop - part.start > 1]
        best = min(halves, key=lambda pair: max(_distance(span(half)) for half in pair), default=())
        if best and max(_distance(span(half)) for half in best) <= 3 * size // 4:
            for half in best:
                yield from _parts(half, span)
            return
    yield box


def _halves(box: Box, d: int) -> tuple[Box, Box]:
    middle = (box[d].start + box[d].stop) // 2
    first, second = slice(box[d].start, middle), slice(middle, box[d].stop)
    return (*box[:d], first, *box[d + 1 :]), (*box[:d], second, *box[d + 1 :])


def _distance(span: Span) -> int:
    return span[1] - span[0]


def _extents(box: Box) -> Dims:
    return tuple(part.stop - part.start for part in box)
