"""Sampled elements of an array: rare values, corners, neighbors, powers of two, and random ones."""

from __future__ import annotations

from math import prod

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.recognize.formats.changes import Index
from tilejit.recognize.formats.storage import Storage

POOL = 1 << 15
"""Random elements among which rare values are sought."""


def sampled_index(array: Array, storage: Storage, count: int) -> Index:
    """Indices of elements that tell orders apart; all of them if there are at most `count`.

    Half of the elements have values that are rare, because those that most elements have agree by chance.

    Args:
        array: the array.
        storage: the type that distinguishes its values.
        count: about how many.
    """
    dims, size = array.shape, array.size
    if size <= count:
        return np.unravel_index(np.arange(size), dims)
    rng = np.random.default_rng(0)
    first = int(rng.integers(size))
    numbers = [
        _rare(array, storage, count // 2, rng),
        (first + np.arange(count // 8)) % size,
        rng.integers(0, size, count // 4),
    ]
    rows = np.concatenate(
        [np.stack(np.unravel_index(np.concatenate(numbers), dims)), _marked(dims, count // 8, rng)], 1
    )
    return tuple(rows)


def _rare(array: Array, storage: Storage, count: int, rng: np.random.Generator) -> Array:
    """The numbers of random elements, those with rare values more likely."""
    pool = rng.integers(0, array.size, POOL)
    raw = storage.raw(array[np.unravel_index(pool, array.shape)])
    if raw.ndim > 1:
        raw = raw.astype(np.uint64) @ rng.integers(1, 1 << 63, raw.shape[1], np.uint64)
    _, inverse, counts = np.unique(raw, return_inverse=True, return_counts=True)
    keys = rng.exponential(counts[inverse.reshape(-1)].astype(np.float64))
    chosen: Array = pool[np.argsort(keys)[:count]]
    return chosen


def _marked(dims: tuple[int, ...], count: int, rng: np.random.Generator) -> Array:
    """Indices in corners, in the middle and at powers of two."""
    rows = []
    for size in dims:
        marks = {
            0,
            1,
            size // 2 - 1,
            size // 2,
            size - 2,
            size - 1,
            *(1 << k for k in range(size.bit_length())),
        }
        own = np.array(sorted(mark for mark in marks if 0 <= mark < size))
        rows.append(own[rng.integers(0, len(own), count)])
    return np.stack(rows)


def chance(raw: Array) -> float:
    """The share of elements that agree if they are in no order: the sum of squared frequencies."""
    _, counts = np.unique(raw, axis=0, return_counts=True)
    return float(np.sum((counts / len(raw)) ** 2))


def whole_index(dims: tuple[int, ...]) -> Index:
    """The index of every element."""
    return np.unravel_index(np.arange(prod(dims)), dims)
