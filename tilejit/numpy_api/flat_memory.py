"""Arrays as flat memory, so that one number identifies an element."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.arrays.strided import span
from tilejit.programs.moves import move_for

BLOCK_ELEMENTS = 1 << 15
"""Indices to process together, so that intermediate results stay in the L2 cache."""

_NUMBERS = "biuf"
"""Kinds of dtypes that NumPy converts to each other in every assignment."""

_WORDS = {width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)}


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether elements may be moved as bytes."""
    return not dtype.hasobject and dtype.itemsize > 0 and move_for(dtype, dtype) is not None


def as_words(x: Array) -> Array:
    """The same memory with elements as unsigned integers, or as bytes if no integer has that size.

    f4 -> u4    >i2 -> u2    c16 -> V16
    """
    return x.view(_WORDS.get(x.itemsize) or np.dtype((np.void, x.itemsize)))


def flat_memory(x: Array) -> tuple[Array, int, tuple[int, ...]] | None:
    """Return the memory of an array as words, the index of its first element, and the steps along each axis.

    f4[3,5] with strides (40, 8) -> 29 words, 0, (10, 2)    f4[5] with strides (-4,) -> 5 words, 4, (-1,)

    Returns None if elements are not at multiples of their size from each other.
    """
    size, words = x.itemsize, as_words(x)
    if not x.size or not x.flags.aligned or any(s % size for s in x.strides):
        return None
    low, stop = span(x.shape, x.strides, size)
    lowest = words[tuple(slice(None, None, -1) if s < 0 else slice(None) for s in x.strides)]
    flat = np.lib.stride_tricks.as_strided(lowest, ((stop - low) // size,), (size,))
    return flat, -low // size, tuple(s // size for s in x.strides)


def least_within(indices: Array, extent: int) -> int | None:
    """The smallest index, or 0 if none is negative; None if one is out of bounds.

    [2, 0], 3 -> 0    [2, -3], 3 -> -3    [2, 3], 3 -> None
    """
    # Negative numbers are huge as unsigned integers.
    if indices.dtype == np.int64 and np.maximum.reduce(indices.view(np.uint64), axis=None) < extent:
        return 0
    low, high = (int(reduce(indices, axis=None)) for reduce in (np.minimum.reduce, np.maximum.reduce))
    return low if -extent <= low and high < extent else None


def values_for(x: Array, values: Any) -> Array | None:
    """Values of any shape as an array with the dtype of `x`; None if NumPy must convert them.

    Raises:
        NumPy's errors: a number does not fit the dtype.
    """
    if isinstance(values, bool | int | float | complex | np.generic):
        number = np.empty((), x.dtype)
        number[()] = values
        return number
    if type(values) is not np.ndarray:
        return None
    if values.dtype == x.dtype:
        return values
    numbers = values.dtype.kind in _NUMBERS and x.dtype.kind in _NUMBERS
    return values.astype(x.dtype) if numbers else None
