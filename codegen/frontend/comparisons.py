"""Comparisons of fixed-width integers with Python integers, which are unbounded."""

from __future__ import annotations

import numpy as np

from codegen.ir.dtypes import numpy_dtype

_ABOVE = {"lt": "le", "le": "le", "ne": "le", "gt": "gt", "ge": "gt", "eq": "gt"}
_BELOW = {"gt": "ge", "ge": "ge", "ne": "ge", "lt": "lt", "le": "lt", "eq": "lt"}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def swapped(op: str) -> str:
    """The comparison with its sides exchanged: lt -> gt, eq -> eq."""
    return _SWAPPED[op]


def within(op: str, number: int, dtype: str) -> tuple[str, int]:
    """An equivalent comparison, with a number that the integers' dtype can hold.

    u8 < 255 -> u8 < 255    u8 < 2**70 -> u8 <= 255    i64 == 2**70 -> i64 > 2**63 - 1    u64 > -1 -> u64 >= 0

    A comparison that is always true or always false stays a comparison: the element is still read, and its
    subscripts are checked.
    """
    low, high = (int(end) for end in (np.iinfo(numpy_dtype(dtype)).min, np.iinfo(numpy_dtype(dtype)).max))
    if number > high:
        return _ABOVE[op], high
    return (_BELOW[op], low) if number < low else (op, number)
