"""Which copies are ours to make and which NumPy's: every threshold, and every decision that goes by one.

What is asked before anything else stands first; NumPy has made a small copy before ours is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Sizes:
    """The thresholds of calls, not of kernels; `accelerate(smallest=...)` sets the first."""

    small_elements: int = 1 << 13
    """Below this number of elements NumPy copies."""
    small_run_bytes: int = 8 << 20
    """Below this NumPy copies long rows, and contiguous arrays to each other, as fast as we do."""
    long_row_bytes: int = 256
    """What a long row is: NumPy copies each by one call of memcpy."""
    part_bytes: int = 1 << 15
    """Of many arrays that are joined, each has as many bytes on the average, or NumPy joins them."""
    aligned_bytes: int = 1 << 18
    """From this size on fresh results start a cache line; below, their memory is NumPy's own."""


SIZES = Sizes()

FEW_PARTS = 8
"""Of more arrays than these the first one tells whether they are large enough to be looked at."""

_LAST_FAST = np.dtype(np.float64).num
"""Between bool and this one, in NumPy's numbering, its own loops convert as fast as memory."""


def is_small(x: Any) -> bool:
    """Whether this is an array of NumPy's that NumPy has copied before ours would be looked up."""
    return type(x) is np.ndarray and x.size < SIZES.small_elements


def are_small(arrays: Any) -> bool:
    """Whether these are NumPy's arrays, together too small for us or too many.

    Of many the first one tells, since looking at each takes as long as NumPy takes to join them.
    """
    if type(arrays) not in (list, tuple):
        return False
    if len(arrays) > FEW_PARTS and type(arrays[0]) is np.ndarray and arrays[0].nbytes < SIZES.part_bytes:
        return True
    size = 0
    for x in arrays:
        if type(x) is not np.ndarray:
            return False
        size += x.size
        if size >= SIZES.small_elements:
            return False
    return True


def is_ours(x: Any) -> bool:
    """Whether the array is large enough, and of plain enough elements, to be copied by a kernel."""
    return type(x) is np.ndarray and x.size >= max(SIZES.small_elements, 1) and not x.dtype.hasobject


def are_ours(arrays: Sequence[Any]) -> bool:
    """Whether all are arrays of plain elements, and large enough together and on the average.

    Each costs us a call, and NumPy next to nothing.
    """
    if not arrays or any(type(x) is not np.ndarray or x.dtype.hasobject or not x.itemsize for x in arrays):
        return False
    if sum(x.size for x in arrays) < SIZES.small_elements:
        return False
    return sum(x.nbytes for x in arrays) >= len(arrays) * SIZES.part_bytes


def numpy_is_as_fast(dst: Any, src: Any) -> bool:
    """Whether NumPy makes the copy by whole rows or the conversion in one loop, and both stay in cache.

    Past the cache it is ours: NumPy's stores read every line first.
    """
    if type(dst) is not np.ndarray or type(src) is not np.ndarray or dst.nbytes >= SIZES.small_run_bytes:
        return False
    if dst.dtype is not src.dtype:
        in_order = dst.flags.c_contiguous and src.flags.c_contiguous
        return in_order and dst.shape == src.shape and max(dst.dtype.num, src.dtype.num) <= _LAST_FAST
    if dst.strides == src.strides and dst.flags.forc:
        return True
    width = dst.itemsize
    return (
        src.ndim == dst.ndim > 0
        and dst.strides[-1] == src.strides[-1] == width
        and src.shape[-1] * width >= SIZES.long_row_bytes
    )


def numpy_joins_as_fast(parts: Sequence[NDArray[Any]]) -> bool:
    """Whether NumPy joins them by whole rows, in cache."""
    return sum(x.nbytes for x in parts) < SIZES.small_run_bytes and all(x.flags.c_contiguous for x in parts)


def numpy_pads_as_fast(x: Any) -> bool:
    """Whether NumPy copies the array by whole rows, in cache, into what it pads."""
    return type(x) is np.ndarray and x.flags.forc and x.nbytes < SIZES.small_run_bytes
