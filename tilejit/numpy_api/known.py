"""Native entries for frequent calls of routines that return new arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from codegen import compiler_lock, threads_by_size
from tilejit.arrays.memory import HUGE_BYTES, Array
from tilejit.arrays.numpy_originals import numpy_ascontiguousarray, numpy_asfortranarray
from tilejit.arrays.strided import minor_axis, slowness_of_copy
from tilejit.copies.plan import cached_plan
from tilejit.copies.shortcuts import Shortcut, numpy_entry
from tilejit.copies.sizes import (
    SIZES,
    is_constant,
    numpy_converts_as_fast,
    numpy_reorders_as_fast,
)
from tilejit.numpy_api.wanted import differs, native

if TYPE_CHECKING:
    from codegen import Entry


def _entry_in_order(order: str, routine: Callable[..., Any], a: Array) -> Entry | None:
    """The native entry for a call with such an array: NumPy answers it, or a kernel copies it to C order."""
    numpy_reorders = numpy_reorders_as_fast(a, order)
    if not differs(a, a.dtype, order) or (order == "F" and numpy_reorders):
        return numpy_entry(routine, a)
    return _entry_of_duplicate(a, a.dtype, owner=numpy_reorders) if order == "C" else None


def _entry_of_cast(x: Array, dtype: Any) -> Entry | None:
    """The native entry for the conversion of such an array to C order."""
    target = native(x, dtype) if is_constant(dtype) else None
    if target is None:
        return None
    numpy_converts = numpy_converts_as_fast(x, dtype)
    entry = _entry_of_duplicate(x, target, dtype, owner=numpy_converts) if x.flags.c_contiguous else None
    return numpy_entry(ndarray.astype, x, dtype) if entry is None and numpy_converts else entry


def _entry_of_duplicate(x: Array, dtype: np.dtype[Any], *others: Any, owner: bool) -> Entry | None:
    """The native entry for calls with `x` and identical `others` that return a new copy in C order.

    Args:
        x: the argument to copy.
        dtype: the copy's dtype.
        others: the arguments after `x`.
        owner: whether NumPy has made such copies so far. NumPy's arrays own their memory; TileJIT's own it
            only below a certain size.
    """
    size = x.size * dtype.itemsize
    if x.dtype.hasobject or dtype.hasobject or not 0 < size < HUGE_BYTES:
        return None
    strides = np.empty(x.shape, dtype).strides
    slowness = slowness_of_copy(minor_axis(x.shape, strides), minor_axis(x.shape, x.strides))
    if threads_by_size(None, size + x.nbytes, slowness) > 1:
        return None
    with compiler_lock:  # few processes repeat a call often enough
        from codegen import FreshArray, SameArgument
    plan = cached_plan(x.shape, strides, dtype, x.shape, x.strides, x.dtype, 1)
    new = FreshArray(dtype, x.shape, owner=owner or size < SIZES.aligned_bytes)
    return plan._direct_entry(dtype, x.dtype, new, *map(SameArgument, others)) if plan else None


known_in_c_order = Shortcut(partial(_entry_in_order, "C", numpy_ascontiguousarray))
known_in_f_order = Shortcut(partial(_entry_in_order, "F", numpy_asfortranarray))
known_cast = Shortcut(_entry_of_cast)
