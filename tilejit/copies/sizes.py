"""The choice between TileJIT and NumPy for each copy: every threshold and the decisions that use it.

Cheap checks run first, because NumPy finishes a small copy before TileJIT could look up a plan.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray  # NumPy's module __getattr__ makes np.ndarray slower

from codegen import dataclass


@dataclass(slots=True)
class Sizes:
    """The thresholds of calls, not of kernels; `accelerate(smallest=...)` sets the first."""

    small_elements: int = 1 << 13
    """NumPy makes copies of fewer elements."""
    small_run_bytes: int = 8 << 20
    """Below this size in bytes, NumPy copies long rows and contiguous arrays as fast as TileJIT."""
    long_row_bytes: int = 256
    """The bytes of a long row, which NumPy copies by one call of memcpy."""
    part_bytes: int = 1 << 15
    """The average size in bytes below which NumPy joins many arrays."""
    interleaved_bytes: int = 1 << 19
    """Below this size in bytes, NumPy stacks arrays element by element as fast as TileJIT."""
    few_indices: int = 1 << 16
    """Below this number of indices along an axis, NumPy gathers as fast as TileJIT."""
    aligned_bytes: int = 1 << 18
    """From this size in bytes on, new results are cache-line aligned; below it, NumPy allocates them."""


SIZES = Sizes()

FEW_PARTS = 8
"""With more arrays than this, only the size of the first one decides."""

_LAST_FAST = np.dtype(np.float64).num
"""NumPy converts between bool and this type, in its numbering, at memory speed."""

_F32 = np.dtype(np.float32)
"""ml_dtypes converts bfloat16 to this type at memory speed, by shifting bits."""

_OF_TYPES = {np.dtype(code).type: np.dtype(code) for code in "?bBhHiIlLqQfd"}


def is_small(x: Any) -> bool:
    """Whether this is a NumPy array that NumPy copies faster than TileJIT can look up a plan.

    Hot callers inline this check, because the call itself takes a tenth of a small copy.
    """
    return type(x) is ndarray and x.size < SIZES.small_elements


def are_small(arrays: Any) -> bool:
    """Whether these are NumPy arrays that are together too small, or too many, for TileJIT.

    With many arrays only the first one counts, because checking each takes as long as NumPy takes to join
    them.
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
    """Whether a kernel copies the array: it is large enough and has plain elements."""
    return type(x) is ndarray and x.size >= (SIZES.small_elements or 1) and not x.dtype.hasobject


def are_handled(arrays: Sequence[Any]) -> bool:
    """Whether all arrays have plain elements, and are large enough together and on average.

    Each array costs TileJIT a call, and NumPy almost nothing.
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
    """Whether NumPy copies whole rows, or converts in one loop, and both arrays stay in cache.

    Beyond the cache TileJIT is faster, because NumPy's stores read every line first.
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
    """Whether NumPy reorders the array to "C" or "F" by whole rows in cache, or it already has that order."""
    if type(x) is not ndarray or x.nbytes >= SIZES.small_run_bytes or not x.ndim:
        return False
    along, width = (-1 if order == "C" else 0), x.itemsize
    return x.strides[along] == width and x.shape[along] * width >= SIZES.long_row_bytes


def numpy_converts_as_fast(x: Any, dtype: Any) -> bool:
    """Whether NumPy converts the array in C order in one loop, and both stay in cache.

    Args:
        x: the argument to convert.
        dtype: the target; only dtype objects and NumPy's own types are examined.
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
    """Whether it always represents the same dtype; a class with an attribute `dtype` may change it.

    Element types, including those of ml_dtypes, are fixed; np.void may have other dtypes.
    """
    if isinstance(dtype, np.dtype) or type(dtype) is not type:
        return isinstance(dtype, np.dtype)
    if dtype in _OF_TYPES:
        return True
    return issubclass(dtype, np.generic) and not issubclass(dtype, np.void) and np.dtype(dtype).type is dtype


def numpy_joins_as_fast(parts: Any, *, interleaved: bool = False) -> bool:
    """Whether these are NumPy arrays that NumPy joins in cache.

    Args:
        parts: the arrays.
        interleaved: whether it joins them element by element, which is as fast up to a smaller size, instead
            of by whole rows.
    """
    if type(parts) not in (list, tuple):
        return False
    left = SIZES.interleaved_bytes if interleaved else SIZES.small_run_bytes
    for x in parts:
        if type(x) is not ndarray or not x.flags.c_contiguous:
            return False
        left -= x.nbytes
    return left > 0


def numpy_pads_as_fast(x: Any) -> bool:
    """Whether NumPy copies the array by whole rows, in cache, into the padded result."""
    return type(x) is ndarray and x.flags.forc and x.nbytes < SIZES.small_run_bytes


def _is_bf16(dtype: np.dtype[Any]) -> bool:
    """Whether it is ml_dtypes' bfloat16; no array has it until ml_dtypes is imported."""
    return dtype.type is getattr(sys.modules.get("ml_dtypes"), "bfloat16", None)
