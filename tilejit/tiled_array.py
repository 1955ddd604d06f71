"""TiledArray: a flat buffer and the shape that says what lives where in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.access import window_map
from codegen.errors import LayoutError, LayoutIndexError
from codegen.ir import Element
from codegen.pipeline import compile_copy
from codegen.threads import thread_count
from tilejit.layout.as_layout import as_layout
from tilejit.layout.indexing import access_map, linear_index, shape_name
from tilejit.layout.shape import Shape
from tilejit.memory import Array, address, array_map, empty


class TiledArray:
    """An array in a tiled buffer.

    >>> t = tilejit.pack(x, "{1,0:T(8,128)}")
    >>> t[5, 7], t[2:9, ::2], t.numpy()

    `buffer` is 1-D: of the element dtype, or uint8 when elements are packed into bytes. Indexing reads and
    writes in place, element by element or slice by slice, without unpacking the rest; slices are copies.
    """

    __slots__ = ("buffer", "spec")

    def __init__(self, buffer: Array, spec: Shape) -> None:
        self.buffer = buffer
        self.spec = spec

    @classmethod
    def from_buffer(cls, buffer: Any, obj: Any) -> TiledArray:
        """A TiledArray over memory that is there already; nothing is copied.

        >>> TiledArray.from_buffer(file.read(), "f32[1000,300]{1,0:T(8,128)}")

        Raises:
            LayoutError: the buffer has not the shape's size in bytes, or the shape cannot be packed.
            TypeError: the buffer is not bytes-like.
        """
        spec = as_layout(obj)
        check_packable(spec)
        data = flat_bytes(buffer)
        if data.nbytes != spec.size_in_bytes:
            raise LayoutError(
                f"the buffer has {data.nbytes} bytes, but {shape_name(spec)} takes {spec.size_in_bytes}"
            )
        return cls(data if spec.packed else data.view(spec.dtype), spec)

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

    def __repr__(self) -> str:
        return f"TiledArray({shape_name(self.spec)}, {self.nbytes} bytes)"

    def __getitem__(self, key: Any) -> Any:
        """An element as a scalar, or a slice as a new array in C order.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            TypeError: the key holds anything but integers, slices, `...` and None.
        """
        starts, steps, extents, kept = box_of_key(key, self.shape)
        if _is_element(key, self.shape):
            return self._element(starts)
        out = empty(extents, self.dtype)
        if out.size:
            source = window_map(access_map(self.spec), starts, steps, extents)
            target = Element(self.spec.primitive_type, 8 * self.dtype.itemsize)
            threads = thread_count(None, 2 * out.nbytes)
            program = compile_copy(source, array_map(out), self._stored(), target, threads=threads)
            program.run(address(self.buffer), address(out), threads)
        return out.reshape(kept)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write an element or a slice in place; the value broadcasts and converts as NumPy assigns.

        Raises:
            LayoutIndexError: the key is out of bounds or has too many parts.
            LayoutError: the value does not broadcast or convert, or the buffer is read-only.
            TypeError: the key holds anything but integers, slices, `...` and None.
        """
        starts, steps, extents, kept = box_of_key(key, self.shape)
        if not self.buffer.flags.writeable:
            raise LayoutError("the buffer of this tiled array is read-only\n  copy it first")
        values = self._values(value, kept).reshape(extents)
        if not values.size:
            return
        if np.may_share_memory(values, self.buffer):
            values = values.copy()
        target = window_map(access_map(self.spec), starts, steps, extents)
        source = Element(self.spec.primitive_type, 8 * self.dtype.itemsize)
        threads = thread_count(None, 2 * values.nbytes)
        program = compile_copy(array_map(values), target, source, self._stored(), threads=threads)
        program.run(address(values), address(self.buffer), threads)

    def _stored(self) -> Element:
        return Element(self.spec.primitive_type, self.spec.bits)

    def _element(self, index: tuple[int, ...]) -> Any:
        slot = linear_index(self.spec, index)
        bits = self.spec.bits
        if not self.spec.packed:
            return self.buffer.view(self.dtype)[slot]
        value = int(self.buffer[slot * bits // 8]) >> (slot * bits % 8) & ((1 << bits) - 1)
        return np.array([value], np.uint8).view(self.dtype)[0]

    def _values(self, value: Any, shape: tuple[int, ...]) -> Array:
        try:
            array = np.asarray(value)
            if array.dtype != self.dtype:
                check = self.spec.primitive_type
                array = _narrowed(array, check, self.dtype)
            return np.broadcast_to(array, shape)
        except (ValueError, OverflowError, TypeError) as error:
            if isinstance(error, TypeError) and not isinstance(error, LayoutError):
                raise TypeError(f"no value for {self.spec.primitive_type}: {error}") from error
            raise LayoutError(f"the value does not fit here: {error}") from error


def _narrowed(array: Array, primitive_type: str, dtype: np.dtype[Any]) -> Array:
    """The values as the stored dtype; integers must fit where elements are narrower than a byte."""
    if primitive_type in ("s1", "s2", "s4", "u1", "u2", "u4") and array.dtype.kind in "iu" and array.size:
        bits, signed = int(primitive_type[1:]), primitive_type[0] == "s"
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        if int(array.min()) < low or int(array.max()) > high:
            raise ValueError(f"{int(array.min())} to {int(array.max())} is beyond {primitive_type}")
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _is_element(key: Any, shape: tuple[int, ...]) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return len(parts) == len(shape) and all(hasattr(p, "__index__") for p in parts)


def box_of_key(
    key: Any, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(starts, steps, extents, shape of the result) of a NumPy basic index."""
    parts = list(key) if isinstance(key, tuple) else [key]
    ellipses = [k for k, p in enumerate(parts) if p is Ellipsis]
    given = sum(p is not None and p is not Ellipsis for p in parts)
    if len(ellipses) > 1:
        raise LayoutIndexError("an index has at most one ellipsis")
    if given > len(shape):
        raise LayoutIndexError(f"{given} indices for an array of {len(shape)} dimensions")
    missing = [slice(None)] * (len(shape) - given)
    at = ellipses[0] if ellipses else len(parts)
    parts = parts[:at] + missing + parts[at + 1 :]
    starts: list[int] = []
    steps: list[int] = []
    extents: list[int] = []
    kept: list[int] = []
    for part in parts:
        if part is None:
            kept.append(1)
            continue
        size = shape[len(starts)]
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(size)
            except ValueError as error:
                raise LayoutIndexError(f"the slice {part}: {error}") from error
            count = len(range(start, stop, step))
            kept.append(count)
        else:
            start, step, count = _whole_number(part, size, len(starts)), 1, 1
        starts.append(start if count else 0)
        steps.append(step)
        extents.append(count)
    return tuple(starts), tuple(steps), tuple(extents), tuple(kept)


def _whole_number(part: Any, size: int, dimension: int) -> int:
    if isinstance(part, bool | np.bool_) or not hasattr(part, "__index__"):
        raise TypeError(f"a tiled array is indexed with integers and slices, not {type(part).__name__}")
    try:
        index = int(part.__index__())
    except TypeError as error:
        raise TypeError(f"a tiled array is indexed with integers and slices: {error}") from error
    if not -size <= index < size:
        raise LayoutIndexError(f"index {index} lies outside dimension {dimension}, which has {size} elements")
    return index % size


def flat_bytes(buffer: Any) -> Array:
    """The bytes of a contiguous array or bytes-like object, without a copy.

    Raises:
        TypeError: it has no bytes to show.
        LayoutError: they do not lie side by side.
    """
    if isinstance(buffer, np.ndarray):
        if not buffer.flags.c_contiguous:
            raise LayoutError(f"the buffer is not contiguous: strides {buffer.strides}")
        return buffer.reshape(-1).view(np.uint8)
    try:
        view = memoryview(buffer)
    except TypeError as error:
        raise TypeError(f"a buffer is bytes-like, not {type(buffer).__name__}") from error
    if not view.c_contiguous:
        raise LayoutError("the buffer is not contiguous")
    return np.frombuffer(view.cast("B"), np.uint8) if view.nbytes else np.empty(0, np.uint8)


def check_packable(spec: Shape) -> None:
    """Refuse shapes that have no buffer of elements that NumPy knows.

    Raises:
        LayoutError: an unknown size, an element width that is not the dtype's, or no NumPy dtype.
    """
    _ = spec.dtype, spec.size_in_bytes
    own, stored = spec.element.bits, 8 * spec.dtype.itemsize
    if spec.bits not in (own, stored) or spec.bits not in (1, 2, 4, 8, 16, 32, 64, 128):
        raise LayoutError(
            f"E({spec.bits}) is not how {spec.primitive_type} is stored\n  write E({own}) or leave it out"
            if own in (1, 2, 4, 8, 16, 32, 64, 128)
            else f"elements of {spec.bits} bits cannot be packed; leave E out to store one a byte"
        )
