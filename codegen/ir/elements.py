"""The values of elements that subscripts depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = (1 << 63) - 1
"""The largest value of an index: larger unsigned ones count as this one."""


def element_at(array: NDArray[Any], *subscripts: Any) -> Any:
    """The element with these subscripts, or an array of them; 0 if they are outside.

    [7, -1, 3], 1 -> -1    [7, -1, 3], [0, 5] -> [7, 0]
    """
    inside: Any = True
    for subscript, size in zip(subscripts, array.shape, strict=True):
        inside = inside & (subscript >= 0) & (subscript < size)
    if not np.ndim(inside):
        return min(int(array[tuple(subscripts)]), MOST) if inside else 0
    found = np.zeros(np.shape(inside), np.int64)
    at = [np.broadcast_to(each, np.shape(inside))[inside] for each in subscripts]
    found[inside] = as_indices(array[tuple(at)])
    return found


def as_indices(values: NDArray[Any]) -> NDArray[np.int64]:
    """Integers of any dtype as int64; unsigned ones beyond it are its largest."""
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(MOST))
    return values.astype(np.int64)
