"""Which copies are ours to make and which NumPy's: every threshold, and every decision that goes by one.

What is asked before anything else stands first; NumPy has made a small copy before ours is looked up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray  # by its own name: NumPy's module has a __getattr__, which makes np.x slower

from codegen import dataclass


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
    woven_bytes: int = 1 << 19
    """Below this NumPy stacks arrays element by element as fast."""
    few_indices: int = 1 << 16
    """Below this number of indices along an axis NumPy finds their elements as fast."""
    aligned_bytes: int = 1 << 18
    """From this size on what kernels write anew starts a cache line; below, its memory is NumPy's own."""


SIZES = Sizes()

FEW_PARTS = 8
"""Of more arrays than these the first one tells whether they are large enough to be looked at."""

_LAST_FAST = np.dtype(np.float64).num
"""Between bool and this one, in NumPy's numbering, its own loops convert as fast as memory."""

_F32 = np.dtype(np.float32)
"""And to this one from bfloat16, ml_dtypes' loop: bits are moved up."""

_OF_TYPES = {np.dtype(code).type: np.dtype(code) for code in "?bBhHiIlLqQfd"}


def is_small(x: Any) -> bool:
    """Whether this is an array of NumPy's that NumPy has copied before ours would be looked up.

    Written out where small copies are asked for most: a call of this takes a tenth of theirs.
    """
    return type(x) is ndarray and x.size < SIZES.small_elements


def are_small(arrays: Any) -> bool:
    """Whether these are NumPy's arrays, together too small for us or too many.

    Of many the first one tells, since looking at each takes as long as NumPy takes to join them.
    """
    if type(arrays) not in (list, tuple):
        return False
    if len(arrays) > FEW_PARTS and type(arrays[0]) is ndarray and arrays[0].nbytes < SIZES.part_bytes:
        return True
    left = SIZES.small_elements
    for x in arrays:
        if type(x) is not ndarray:
            return False
        left -= x.size
        if left <= 0:
            return False
    return True


def is_handled(x: Any) -> bool:
    """Whether the array is large enough, and of plain enough elements, to be copied by a kernel."""
    return type(x) is ndarray and x.size >= (SIZES.small_elements or 1) and not x.dtype.hasobject


def are_handled(arrays: Sequence[Any]) -> bool:
    """Whether all are arrays of plain elements, and large enough together and on the average.

    Each costs us a call, and NumPy next to nothing.
    """
    elements = nbytes = 0
    for x in arrays:
        if type(x) is not ndarray or x.dtype.hasobject or not x.itemsize:
            return False
        elements += x.size
        nbytes += x.nbytes
    large = elements >= SIZES.small_elements and nbytes >= len(arrays) * SIZES.part_bytes
    return large and len(arrays) > 0


def numpy_is_as_fast(dst: Any, src: Any) -> bool:
    """Whether NumPy makes the copy by whole rows or the conversion in one loop, and both stay in cache.

    Past the cache it is ours: NumPy's stores read every line first.
    """
    if type(dst) is not ndarray or type(src) is not ndarray or dst.nbytes >= SIZES.small_run_bytes:
        return False
    kind, source_kind = dst.dtype, src.dtype
    if kind is not source_kind:
        fast = kind.num <= _LAST_FAST and source_kind.num <= _LAST_FAST
        if not fast and not (kind is _F32 and _is_bf16(source_kind)):
            return False
        return dst.shape == src.shape and dst.flags.c_contiguous and src.flags.c_contiguous
    steps, source_steps = dst.strides, src.strides
    if steps == source_steps and dst.flags.forc:
        return True
    return (
        len(steps) == len(source_steps) > 0
        and steps[-1] == source_steps[-1] == dst.itemsize
        and src.shape[-1] * dst.itemsize >= SIZES.long_row_bytes
    )


def numpy_reorders_as_fast(x: Any, order: str) -> bool:
    """Whether NumPy brings the array into order "C" or "F" by whole rows, in cache; or finds it there."""
    if type(x) is not ndarray or x.nbytes >= SIZES.small_run_bytes or not x.ndim:
        return False
    along, width = (-1 if order == "C" else 0), x.itemsize
    return x.strides[along] == width and x.shape[along] * width >= SIZES.long_row_bytes


def numpy_converts_as_fast(x: Any, dtype: Any) -> bool:
    """Whether NumPy makes a converted array, in the order of C, in one loop, and both stay in cache.

    dtype: as NumPy takes it; anything but a dtype, and a type of NumPy's own, is not looked into.
    """
    if type(x) is not ndarray:
        return False
    target = dtype if isinstance(dtype, np.dtype) else _OF_TYPES.get(dtype) if type(dtype) is type else None
    if target is None or target.num > _LAST_FAST:
        return False
    if x.dtype.num > _LAST_FAST and not (target is _F32 and _is_bf16(x.dtype)):
        return False
    return x.flags.c_contiguous and x.size * target.itemsize < SIZES.small_run_bytes


def is_constant(dtype: Any) -> bool:
    """Whether it stands for one dtype for good: a class with an attribute `dtype` may change its mind.

    Types of elements, ml_dtypes' among them, are the dtype's own; of np.void there may be others.
    """
    if isinstance(dtype, np.dtype) or type(dtype) is not type:
        return isinstance(dtype, np.dtype)
    if dtype in _OF_TYPES:
        return True
    return issubclass(dtype, np.generic) and not issubclass(dtype, np.void) and np.dtype(dtype).type is dtype


def numpy_joins_as_fast(parts: Any, *, woven: bool = False) -> bool:
    """Whether these are NumPy's arrays, which it joins by whole rows, in cache.

    woven: element by element instead, which is as fast as long as they are smaller.
    """
    if type(parts) not in (list, tuple):
        return False
    left = SIZES.woven_bytes if woven else SIZES.small_run_bytes
    for x in parts:
        if type(x) is not ndarray or not x.flags.c_contiguous:
            return False
        left -= x.nbytes
    return left > 0


def numpy_pads_as_fast(x: Any) -> bool:
    """Whether NumPy copies the array by whole rows, in cache, into what it pads."""
    return type(x) is ndarray and x.flags.forc and x.nbytes < SIZES.small_run_bytes


def _is_bf16(dtype: np.dtype[Any]) -> bool:
    """Whether it is ml_dtypes' bfloat16, which no array is of before that is imported."""
    return dtype.type is getattr(sys.modules.get("ml_dtypes"), "bfloat16", None)
