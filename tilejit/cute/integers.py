"""Arrays of integers whose arithmetic does not overflow: int64, or Python integers if that is too narrow."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilejit.support.masked_arrays import is_masked_array
from tilejit.support.tokens import MAX_INT64


def exact_integers(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Convert integers to int64, or to Python integers if one exceeds 64 bits.

    uint8 [200] -> int64 [200]    uint64 [2**64 - 1] -> object [2**64 - 1]

    Raises:
        TypeError: it contains something else, or is a masked array, whose mask has no meaning here.
    """
    if is_masked_array(array):
        raise TypeError(f"{what}: expected an array without a mask\n  fill the masked elements first")
    if array.dtype.kind in "iu":
        wide = array.dtype.kind == "u" and array.itemsize == 8 and array.size and array.max() > MAX_INT64
        return array.astype(object if wide else np.int64, copy=False)
    if array.dtype.kind == "O":
        numbers = [_integer(value, what) for value in array.reshape(-1)]
        if all(-MAX_INT64 <= number <= MAX_INT64 for number in numbers):
            return np.array(numbers, np.int64).reshape(array.shape)
        out = np.empty(array.size, object)
        out[:] = numbers
        return out.reshape(array.shape)
    raise TypeError(f"{what}: expected integers, got {array.dtype}")


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Convert Python integers to int64 if all of them fit."""
    fits = array.size == 0 or -MAX_INT64 <= array.min() <= array.max() <= MAX_INT64
    return array.astype(np.int64) if fits else array


def reach_of(array: NDArray[Any]) -> int:
    """The largest absolute value of an element."""
    return max(int(array.max()), -int(array.min()), 0) if array.size else 0


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what}: expected integers, got bool")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what}: expected integers, got {type(value).__name__}") from None
