"""Read the dtype and the memory order that a routine's arguments request."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tilejit.arrays.memory import Array

ORDERS = ("C", "F", "A", "K")
"""NumPy's names of memory orders."""


def native(x: Array, dtype: Any) -> np.dtype[Any] | None:
    """The dtype of a converted result, or None if NumPy must read the argument."""
    if dtype is None or dtype is x.dtype:
        return x.dtype
    if not isinstance(dtype, (np.dtype, type)):
        return None
    try:
        target = np.dtype(dtype)
    except TypeError:
        return None
    plain = target.itemsize and not target.hasobject and target.names is None and target.subdtype is None
    return target if plain else None


def native_or_own(x: Array, dtype: Any) -> np.dtype[Any] | None:
    """Like `native`, but the array's own dtype if it is equal: all routines but `astype` keep it.

    Equal dtypes include 64-bit "l" and "q", and dtypes that differ only in metadata.
    """
    target = native(x, dtype)
    return x.dtype if x.dtype == target else target


def is_rank(ndmin: Any, x: Array) -> bool:
    """Whether the array has the requested number of dimensions."""
    return type(ndmin) is int and ndmin <= x.ndim


def differs(x: Array, dtype: np.dtype[Any], order: str) -> bool:
    """Whether the array lacks that dtype or order; "A" and "K" accept any order."""
    if dtype is not x.dtype and dtype != x.dtype:
        return True
    return (order == "C" and not x.flags.c_contiguous) or (order == "F" and not x.flags.f_contiguous)


def required_order(requirements: Any) -> Literal["C", "F", ""]:
    """Return "C" or "F" if only that order is required and owned memory is not; otherwise ""."""
    if not isinstance(requirements, str | list | tuple | set | frozenset):
        return ""
    names = {name.upper() for name in requirements if isinstance(name, str)}
    if names & {"O", "OWNDATA", "E", "ENSUREARRAY"}:
        return ""
    in_c = bool(names & {"C", "C_CONTIGUOUS", "CONTIGUOUS"})
    in_f = bool(names & {"F", "F_CONTIGUOUS", "FORTRAN"})
    return "" if in_c == in_f else "C" if in_c else "F"
