"""TiledArray: a flat buffer and the shape that says what lives where in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from codegen import CopyProgram, Element, LayoutError, thread_count, window_map
from tilejit.arrays.basic_index import box_of_key, is_element
from tilejit.arrays.memory import Array, address, bytes_map, empty
from tilejit.arrays.values import broadcast, elements
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import access_map, linear_index, shape_name
from tilejit.layout.shape import Shape
from tilejit.programs.compiled import compiled
from tilejit.support.notebook import notebook_html
from tilejit.tiled.buffers import check_size, checked_buffer, flat_bytes


class TiledArray:
    """An array in a tiled buffer.

    >>> t = tilejit.pack(x, "{1,0:T(8,128)}")
    >>> t[5, 7], t[2:9, ::2], t.numpy()

    `buffer` is 1-D: of the element dtype, or uint8 when elements are packed into bytes. Indexing reads and
    writes in place, element by element or slice by slice, without unpacking the rest; slices are copies.

    Raises:
        LayoutError: at construction, where the buffer does not hold the shape, or the shape cannot be packed.
        TypeError: at construction, where the buffer is not an array or the shape is not a Shape.
    """

    __slots__ = ("_buffer", "_spec")

    def __init__(self, buffer: Array, spec: Spec) -> None:
        if not isinstance(spec, Shape | CuteShape):
            raise TypeError(
                f"spec is a Shape, not {type(spec).__name__}\n  TiledArray.from_buffer reads texts, too"
            )
        self._buffer = checked_buffer(buffer, spec, "the buffer")
        self._spec = spec

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._buffer, self._spec)

    @classmethod
    def from_buffer(cls, buffer: Any, /, obj: Any, **parameters: Any) -> TiledArray:
        """A TiledArray over memory that is there already; nothing is copied.

        >>> TiledArray.from_buffer(file.read(), "f32[1000,300]{1,0:T(8,128)}")
        >>> TiledArray.from_buffer(file.read(), "blis-a", dims=(1000, 300), dtype="f32", mr=8)

        obj, parameters: whatever `as_layout` reads, with dims, dtype and the keywords of a format or a
        pattern where they are needed.

        Raises:
            LayoutError: the buffer has not the shape's size in bytes, or the shape cannot be packed.
            TypeError: the buffer is not bytes-like, or a parameter is not the layout's.
        """
        spec = as_layout(obj, **parameters)
        data = checked_buffer(flat_bytes(buffer), spec, "the buffer")
        return cls(data if spec.packed else data.view(spec.dtype), spec)

    @property
    def buffer(self) -> Array:
        """The flat memory: of the element dtype, or uint8."""
        return self._buffer

    def writeable_buffer(self) -> Array:
        """The buffer, where elements can be written to it.

        >>> t.writeable_buffer()[:] = 0     # all elements, and the padding

        Raises:
            LayoutError: it is read-only, or the layout has two elements in one slot.
        """
        if not self._buffer.flags.writeable:
            raise LayoutError("the buffer of this tiled array is read-only\n  copy it first")
        refuse_overlaps(self._spec)
        return self._buffer

    @property
    def spec(self) -> Spec:
        """The shape and its layout."""
        return self._spec

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical dimensions."""
        return self.spec.dimensions

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype, as `numpy()` gives them."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """The number of logical dimensions."""
        return len(self.spec.dimensions)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer, padding included."""
        return int(self.buffer.nbytes)

    def numpy(self) -> Array:
        """The whole array, unpacked, in C order."""
        whole: Array = self[...]
        return whole

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a tiled array has to be unpacked; there is no view without a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tiled array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"TiledArray({shape_name(self.spec)}, {self.nbytes} bytes)"

    def _repr_html_(self) -> str | None:
        """The picture of its layout that notebooks show."""
        return notebook_html("layout_html", self.spec, repr(self))

    def __getitem__(self, key: Any) -> Any:
        """An element as a scalar, or a slice as a new array in C order.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the buffer has been resized.
            TypeError: the key holds anything but integers, slices, `...` and None.
        """
        starts, steps, extents, kept = box_of_key(key, self.shape)
        memory = address_of(self)
        if is_element(key, self.shape):
            return self._element(starts)
        out = empty(extents, self.dtype)
        if out.size:
            threads = thread_count(None, 2 * out.nbytes)
            program = _window_program(self._spec, starts, steps, extents, out.strides, False, threads)
            program.run(memory, address(out), threads, alive=(self, out))
        return out.reshape(kept)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write an element or a slice in place; the value broadcasts and converts as NumPy assigns.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the value does not broadcast, an element cannot hold it, or the buffer is read-only.
            TypeError: the key holds anything but integers, slices, `...` and None, or the value no numbers.
        """
        starts, steps, extents, kept = box_of_key(key, self.shape)
        memory = address_of(self)
        buffer = self.writeable_buffer()
        own = elements(value, self._spec.element)
        if np.may_share_memory(own, buffer):
            own = own.copy()
        values = broadcast(own, kept).reshape(extents)
        if is_element(key, self.shape):
            self._write_element(starts, values)
        elif values.size:
            threads = thread_count(None, 2 * values.nbytes)
            program = _window_program(self._spec, starts, steps, extents, values.strides, True, threads)
            program.run(address(values), memory, threads, alive=(self, values))

    def _element(self, index: tuple[int, ...]) -> Any:
        slot = linear_index(self._spec, index)
        if not self._spec.packed:
            return self._buffer.view(self.dtype)[slot]
        bits = self._spec.bits
        at, shift = divmod(slot * bits, 8)
        value = int(self._buffer[at]) >> shift & ((1 << bits) - 1)
        return np.array([value], np.uint8).view(self.dtype)[0]

    def _write_element(self, index: tuple[int, ...], value: Array) -> None:
        slot = linear_index(self._spec, index)
        data, raw = self._buffer.view(np.uint8), value.reshape(1).view(np.uint8)
        if not self._spec.packed:
            data[slot * raw.size : (slot + 1) * raw.size] = raw
            return
        bits = self._spec.bits
        at, shift = divmod(slot * bits, 8)
        mask = (1 << bits) - 1
        data[at] = int(data[at]) & ~(mask << shift) | (int(raw[0]) & mask) << shift


def address_of(tiled: TiledArray) -> int:
    """The address of a tiled array's buffer.

    Raises:
        LayoutError: the buffer has been resized since.
    """
    check_size(tiled.buffer, tiled.spec, "the buffer")
    return address(tiled.buffer)


@lru_cache(maxsize=256)
def _window_program(
    spec: Spec,
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    extents: tuple[int, ...],
    strides: tuple[int, ...],
    writes: bool,
    threads: int,
) -> CopyProgram:
    """The copy between a box of the tiled array and an array of those strides, in bytes."""
    window = window_map(access_map(spec), starts, steps, extents)
    array = bytes_map(extents, strides, spec.dtype.itemsize)
    stored = Element(spec.primitive_type, spec.bits)
    loose = Element(spec.primitive_type, 8 * spec.dtype.itemsize)
    if writes:
        return compiled(array, window, loose, stored, threads=threads)
    return compiled(window, array, stored, loose, threads=threads)
