"""Copies of selected elements: `copyto(dst, src, where=mask)` as a kernel with masked stores."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.strided import overlaps_itself
from tilejit.copies.plan import plan_copy
from tilejit.copies.sizes import is_handled
from tilejit.expressions.elementwise import Elementwise, elementwise
from tilejit.programs.moves import move_for

_WORDS = {width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)}


def copy_where(dst: Array, src: Any, casting: Any, where: Any) -> bool:
    """Copy the elements at which `where` is true; return False, with nothing written, if NumPy must do it.

    Args:
        dst: the array to write.
        src: an array of its dtype, or a number; it is broadcast.
        casting: NumPy's rule for conversions.
        where: an array of bool; it is broadcast.

    Raises:
        NumPy's errors: src is a number that does not convert to the dtype of dst.
    """
    words = _WORDS.get(dst.itemsize)
    if (
        not is_handled(dst)
        or words is None
        or type(where) is not np.ndarray
        or where.dtype != np.bool_
        or not dst.dtype.isnative
        or move_for(dst.dtype, dst.dtype) is None
        or overlaps_itself(dst.shape, dst.strides, dst.itemsize)
    ):
        return False
    values = _values(dst, src, casting)
    if values is None or any(np.may_share_memory(dst, x) for x in (values, where)):
        return False
    try:
        values, mask = np.broadcast_to(values, dst.shape), np.broadcast_to(where, dst.shape)
    except ValueError:
        return False
    values, mask = _along(dst, values.view(words)), _along(dst, mask)
    _same()(values, out=dst.view(words), where=mask)
    return True


@cache
def _same() -> Elementwise[[Any], Any]:
    """Created lazily, to keep the import cheap."""
    made: Elementwise[[Any], Any] = elementwise(lambda value: value)
    return made


def _along(dst: Array, x: Array) -> Array:
    """The array, copied to the memory order of `dst` if they differ, because gathers cost more."""
    if 0 in x.strides or not x.ndim or (x.strides[-1] == x.itemsize) == (dst.strides[-1] == dst.itemsize):
        return x
    laid = np.empty_like(dst, x.dtype)
    plan = plan_copy(laid, x)
    plan(laid, x)
    return laid


def _values(dst: Array, src: Any, casting: Any) -> Array | None:
    """The source as an array with the dtype of dst, or None if NumPy must convert it."""
    if isinstance(src, bool | int | float | complex | np.generic):
        number = np.empty((), dst.dtype)
        numpy_copyto(number, src, casting)
        return number
    return src if type(src) is np.ndarray and src.dtype == dst.dtype else None
