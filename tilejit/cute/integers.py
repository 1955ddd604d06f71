"""Arrays of integers whose arithmetic does not wrap: int64, or Python's integers where that is too narrow."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilejit.support.masked_arrays import is_masked_array
from tilejit.support.tokens import MAX_INT64


def exact_integers(array: NDArray[Any], what: str) -> NDArray[Any]:
    """The same integers as int64, or as Python's where one passes 64 bits.

    uint8 [200] -> int64 [200]    uint64 [2**64 - 1] -> object [2**64 - 1]

    Raises:
        TypeError: something else than integers, or a masked array, whose mask says nothing here.
    """
    if is_masked_array(array):
        raise TypeError(f"{what} is an array of integers without a mask\n  fill the masked places first")
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
    raise TypeError(f"{what} is made of integers, not of {array.dtype}")


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Python's integers as int64 where all of them fit."""
    fits = array.size == 0 or -MAX_INT64 <= array.min() <= array.max() <= MAX_INT64
    return array.astype(np.int64) if fits else array


def reach_of(array: NDArray[Any]) -> int:
    """The largest distance of an element from 0."""
    return max(int(array.max()), -int(array.min()), 0) if array.size else 0


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} is made of integers, not of bool")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} is made of integers, not of {type(value).__name__}") from None
