"""Check that memory fits a layout: it must be flat, have its dtype or uint8, and have the right size."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError, cached
from tilejit.arrays.memory import MAX_RANK, Array
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import shape_name


def writable_layout(spec: Spec) -> Spec:
    """Return the layout if arrays can be packed into it.

    Raises:
        LayoutError: NumPy has no dtype or no array for it, or two elements share a slot.
    """
    check_packable(spec)
    refuse_overlaps(spec)
    return spec


def may_overlap(spec: Spec) -> bool:
    """Whether two elements may share a slot, so that packing into the layout is impossible."""
    try:
        refuse_overlaps(spec)
    except LayoutError:
        return True
    return False


def checked_buffer(buffer: Any, spec: Spec, what: str) -> Array:
    """Return a buffer of the shape as a plain array if it is flat and of the right dtype and size.

    Args:
        buffer: the buffer.
        spec: the shape.
        what: the buffer's name in messages.

    Raises:
        LayoutError: it does not hold the shape, or the shape cannot be packed.
        TypeError: it is not an array.
    """
    check_packable(spec)
    if not isinstance(buffer, np.ndarray):
        raise TypeError(f"{what}: expected an array, got {type(buffer).__name__}")
    flat: Array = np.asarray(buffer)
    if flat.ndim != 1 or not flat.flags.c_contiguous:
        raise LayoutError(
            f"{what} is not a flat, contiguous array: its shape is {flat.shape}, its strides "
            f"{flat.strides}\n"
            f"  pass one of {check_packable(spec)} bytes, such as the result of np.ravel"
        )
    if flat.dtype != np.uint8 and (spec.packed or flat.dtype != spec.dtype):
        wanted = "uint8" if spec.packed else f"{spec.dtype} or uint8"
        raise LayoutError(
            f"{what} is {flat.dtype}, but {shape_name(spec)} needs {wanted}\n  pass a buffer of that dtype"
        )
    check_size(flat, spec, what)
    return flat


def may_hold(dtype: np.dtype[Any], spec: Spec) -> bool:
    """Whether an array of that dtype may be a buffer of the layout: of its elements, of bytes or of words.

    Words are integers that hold several elements: int32 for u4, s8 or bf16.
    """
    words = dtype.kind in "iu" and dtype.isnative and 8 * dtype.itemsize > spec.bits
    return words or dtype == np.uint8 or (dtype == spec.dtype and not spec.packed)


def flat_words(buffer: Any, spec: Spec) -> Any:
    """Flatten a contiguous array, and view words as bytes; return anything else as it is.

    int32[4,8] for u4 -> its 128 bytes    f32[4,8] for f32 -> its 32 elements
    """
    if not isinstance(buffer, np.ndarray) or not buffer.flags.c_contiguous:
        return buffer
    flat = buffer if buffer.ndim == 1 else np.asarray(buffer).reshape(-1)
    is_elements = flat.dtype == spec.dtype and not spec.packed
    return flat if is_elements or not may_hold(flat.dtype, spec) else flat.view(np.uint8)


def check_size(buffer: Any, spec: Spec, what: str) -> None:
    """Raise a LayoutError unless the buffer has the shape's size in bytes."""
    size = check_packable(spec)
    if buffer.nbytes != size:
        raise LayoutError(
            f"{what} has {buffer.nbytes} bytes, but {shape_name(spec)} takes {size}\n"
            "  pass a buffer of that size, or its own layout"
        )


def flat_bytes(buffer: Any) -> Array:
    """Return the bytes of a contiguous array or bytes-like object, without a copy.

    Raises:
        TypeError: it is not bytes-like.
        LayoutError: it is not contiguous.
    """
    if isinstance(buffer, np.ndarray) and not buffer.flags.c_contiguous:
        raise LayoutError(f"the buffer is not contiguous: its strides are {buffer.strides}\n  copy it first")
    try:
        if isinstance(buffer, np.ndarray):
            data: Array = np.asarray(buffer)
            return data.reshape(-1).view(np.uint8)
        view = memoryview(buffer)
    except TypeError as error:
        raise TypeError(f"expected a bytes-like buffer, got {type(buffer).__name__}: {error}") from error
    except (ValueError, BufferError) as error:
        raise LayoutError(f"the buffer cannot be used: {error}") from error
    if not view.c_contiguous:
        raise LayoutError("the buffer is not contiguous\n  copy it first")
    if "O" in view.format:
        raise TypeError("expected a bytes-like buffer, got one of Python objects")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


@cached(1024)
def check_packable(spec: Spec) -> int:
    """Return the size of a shape's buffer in bytes if NumPy can hold its elements.

    Raises:
        LayoutError: the size is unknown, the element width is not the dtype's, or NumPy lacks the dtype or
            cannot have an array of those dimensions.
    """
    size, itemsize = spec.size_in_bytes, spec.dtype.itemsize
    own, stored = spec.element.bits, 8 * itemsize
    if spec.bits not in (own, stored) or spec.bits not in (1, 2, 4, 8, 16, 32, 64, 128):
        raise LayoutError(
            f"E({spec.bits}) is not the storage width of {spec.primitive_type}\n  write E({own}) or omit it"
            if own in (1, 2, 4, 8, 16, 32, 64, 128)
            else f"elements of {spec.bits} bits cannot be packed; omit E to store one per byte"
        )
    if spec.rank > MAX_RANK:
        raise LayoutError(
            f"the shape has {spec.rank} dimensions, but NumPy's arrays have at most {MAX_RANK}\n"
            "  omit dimensions of size 1, or merge some"
        )
    if itemsize * prod(n for n in spec.dimensions if n) > sys.maxsize:
        raise LayoutError(
            f"NumPy cannot have an array of dimensions {list(spec.dimensions)}, not even without elements\n"
            "  make the dimensions other than 0 smaller"
        )
    return size
