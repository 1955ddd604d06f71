"""Memory that a caller gives for a layout: flat, of its dtype or of bytes, and of its size."""

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
    """The layout, if arrays can be packed into it.

    Raises:
        LayoutError: NumPy has no such elements or no such array, or two elements share a slot.
    """
    check_packable(spec)
    refuse_overlaps(spec)
    return spec


def may_overlap(spec: Spec) -> bool:
    """Whether two elements may share a slot, so that nothing can be packed into the layout."""
    try:
        refuse_overlaps(spec)
    except LayoutError:
        return True
    return False


def checked_buffer(buffer: Any, spec: Spec, what: str) -> Array:
    """A buffer of the shape as a plain array, if it is flat and of the right dtype and size.

    what: how messages call it.

    Raises:
        LayoutError: it does not hold the shape, or the shape cannot be packed.
        TypeError: it is not an array.
    """
    check_packable(spec)
    if not isinstance(buffer, np.ndarray):
        raise TypeError(f"{what} is an array, not {type(buffer).__name__}")
    flat: Array = np.asarray(buffer)
    if flat.ndim != 1 or not flat.flags.c_contiguous:
        raise LayoutError(
            f"{what} is not a flat, contiguous array: its shape is {flat.shape}, its strides {flat.strides}\n"
            f"  give one of {check_packable(spec)} bytes, e.g. what np.ravel makes"
        )
    if flat.dtype != np.uint8 and (spec.packed or flat.dtype != spec.dtype):
        wanted = "uint8" if spec.packed else f"{spec.dtype} or uint8"
        raise LayoutError(
            f"{what} is {flat.dtype}, but {shape_name(spec)} wants {wanted}\n  give one of that"
        )
    check_size(flat, spec, what)
    return flat


def check_size(buffer: Array, spec: Spec, what: str) -> None:
    """Raise a LayoutError unless the buffer has the shape's size in bytes."""
    size = check_packable(spec)
    if buffer.nbytes != size:
        raise LayoutError(
            f"{what} has {buffer.nbytes} bytes, but {shape_name(spec)} takes {size}\n"
            "  give as many, or the layout of these"
        )


def flat_bytes(buffer: Any) -> Array:
    """The bytes of a contiguous array or bytes-like object, without a copy.

    Raises:
        TypeError: it has no bytes to show.
        LayoutError: they do not lie side by side.
    """
    if isinstance(buffer, np.ndarray) and not buffer.flags.c_contiguous:
        raise LayoutError(f"the buffer is not contiguous: its strides are {buffer.strides}\n  copy it first")
    try:
        if isinstance(buffer, np.ndarray):
            data: Array = np.asarray(buffer)
            return data.reshape(-1).view(np.uint8)
        view = memoryview(buffer)
    except TypeError as error:
        raise TypeError(f"a buffer is bytes-like, not {type(buffer).__name__}: {error}") from error
    except (ValueError, BufferError) as error:
        raise LayoutError(f"the buffer cannot be used: {error}") from error
    if not view.c_contiguous:
        raise LayoutError("the buffer is not contiguous\n  copy it first")
    if "O" in view.format:
        raise TypeError("a buffer is bytes-like; this one holds Python objects")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


@cached(1024)
def check_packable(spec: Spec) -> int:
    """The bytes of a shape's buffer, if it is one of elements that NumPy knows.

    Raises:
        LayoutError: an unknown size, an element width that is not the dtype's, no NumPy dtype, or dimensions
            that no array of NumPy has.
    """
    size, itemsize = spec.size_in_bytes, spec.dtype.itemsize
    own, stored = spec.element.bits, 8 * itemsize
    if spec.bits not in (own, stored) or spec.bits not in (1, 2, 4, 8, 16, 32, 64, 128):
        raise LayoutError(
            f"E({spec.bits}) is not how {spec.primitive_type} is stored\n  write E({own}) or leave it out"
            if own in (1, 2, 4, 8, 16, 32, 64, 128)
            else f"elements of {spec.bits} bits cannot be packed; leave E out to store one a byte"
        )
    if spec.rank > MAX_RANK:
        raise LayoutError(
            f"the shape has {spec.rank} dimensions, but NumPy's arrays have at most {MAX_RANK}\n"
            "  leave out dimensions of size 1, or merge some"
        )
    if itemsize * prod(n for n in spec.dimensions if n) > sys.maxsize:
        raise LayoutError(
            f"NumPy has no array of dimensions {list(spec.dimensions)}, not even without elements\n"
            "  make the dimensions beside the 0 smaller"
        )
    return size
