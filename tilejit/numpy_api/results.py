"""Allocate results of routines, in the memory order that NumPy gives them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from codegen import TilejitError
from tilejit.arrays.memory import Array, empty
from tilejit.copies.sizes import SIZES
from tilejit.numpy_api.copyto import copy_plain


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any], axes: Sequence[int] | None = None) -> Array:
    """Allocate memory of that shape with its axes in the given order, the most major first.

    allocate((3, 5), dtype) -> C order    allocate((3, 5), dtype, (1, 0)) -> F order

    Below SIZES.aligned_bytes an array owns its memory, as NumPy's do.

    Raises:
        MemoryError: there is not enough memory, as in NumPy.
    """
    if prod(shape) * dtype.itemsize < SIZES.aligned_bytes:
        strides = None if axes is None else _strides(shape, dtype.itemsize, axes)
        return np.ndarray(shape, dtype, strides=strides)
    laid = shape if axes is None else tuple(shape[axis] for axis in axes)
    try:
        result = empty(laid, dtype)
    except TilejitError:
        result = np.empty(laid, dtype)
    return result if axes is None else result.transpose([axes.index(k) for k in range(len(axes))])


def _strides(shape: tuple[int, ...], itemsize: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The strides in bytes of memory without gaps whose axes are in that order, the most major first."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(axes):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def duplicate(
    x: Array, dtype: np.dtype[Any] | None = None, order: str = "C", *, threads: int | None = None
) -> Array | None:
    """A new copy of an array that `is_handled`, in NumPy's order "C", "F", "A" or "K".

    Returns None if no kernel makes the copy.
    """
    dtype = x.dtype if dtype is None else dtype
    if dtype.hasobject or dtype.itemsize == 0:
        return None
    axes = memory_order(x, order)
    if axes is None and x.size * dtype.itemsize < SIZES.aligned_bytes:
        result = np.empty(x.shape, dtype)  # the result of `allocate`, inlined
    else:
        result = allocate(x.shape, dtype, axes)
    return result if copy_plain(result, x, threads) else None


def memory_order(x: Array, order: str) -> tuple[int, ...] | None:
    """The axes of a copy of `x`, the most major first; None for C order.

    memory_order(x.T, "K") -> (1, 0)    memory_order(x, "F") -> (1, 0)
    """
    if order == "C" or (order == "A" and not x.flags.fnc):
        return None
    if order in ("F", "A"):
        return tuple(reversed(range(x.ndim)))
    if x.ndim <= 1 or x.flags.c_contiguous:
        return None
    if x.flags.f_contiguous:
        return tuple(reversed(range(x.ndim)))
    # The sort is stable, as in NumPy, so equal strides keep C order.
    axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    return None if axes == list(range(x.ndim)) else tuple(axes)


def common_order(arrays: Sequence[Array]) -> tuple[int, ...] | None:
    """The axes of NumPy's result for several arrays of one rank, the most major first; None for C order.

    NumPy sorts by insertion: an axis moves before those over which some array's strides are smaller. C order
    wins if arrays disagree, and axes of length 1 do not count.
    """
    axes = list(range(arrays[0].ndim))
    laid = [(x.shape, x.strides) for x in arrays]
    for k in range(1, len(axes)):
        place = k
        for j in reversed(range(k)):
            before = _goes_before(axes[k], axes[j], laid)
            if before is False:
                break
            if before:
                place = j
        axes.insert(place, axes.pop(k))
    return None if axes == sorted(axes) else tuple(axes)


def _goes_before(
    axis: int, other: int, laid: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
) -> bool | None:
    """Whether `axis` is more major in arrays of those shapes and strides; None if undecided."""
    told: bool | None = None
    for shape, strides in laid:
        if shape[axis] == 1 or shape[other] == 1:
            continue
        if abs(strides[axis]) <= abs(strides[other]):
            return False
        told = True
    return told
