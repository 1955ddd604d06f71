"""Comparisons of integers with numbers of Python, which have no end."""

from __future__ import annotations

import numpy as np

from codegen.ir.dtypes import numpy_dtype

_ABOVE = {"lt": "le", "le": "le", "ne": "le", "gt": "gt", "ge": "gt", "eq": "gt"}
_BELOW = {"gt": "ge", "ge": "ge", "ne": "ge", "lt": "lt", "le": "lt", "eq": "lt"}
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def swapped(op: str) -> str:
    """The comparison with its sides exchanged: lt -> gt, eq -> eq."""
    return _TURNED[op]


def within(op: str, number: int, dtype: str) -> tuple[str, int]:
    """A comparison of integers with a number, and the same one with a number that their dtype holds.

    u8 < 255 -> u8 < 255    u8 < 2**70 -> u8 <= 255    i64 == 2**70 -> i64 > 2**63 - 1    u64 > -1 -> u64 >= 0

    What is always so, or never, is a comparison still: the element is read, and its subscripts are checked.
    """
    low, high = (int(end) for end in (np.iinfo(numpy_dtype(dtype)).min, np.iinfo(numpy_dtype(dtype)).max))
    if number > high:
        return _ABOVE[op], high
    return (_BELOW[op], low) if number < low else (op, number)
