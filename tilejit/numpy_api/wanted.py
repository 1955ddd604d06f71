"""What the arguments of a routine ask for: a dtype, an order of the axes in memory."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tilejit.arrays.memory import Array


def native(x: Array, dtype: Any) -> np.dtype[Any] | None:
    """The dtype that a converted result has, or None where NumPy shall read the argument."""
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
    """As `native`, but the array's own where that equals it: all routines but `astype` keep it.

    "l" and "q" of 64 bits are equal, and so are dtypes that differ in their metadata.
    """
    target = native(x, dtype)
    return x.dtype if x.dtype == target else target


def is_rank(ndmin: Any, x: Array) -> bool:
    """Whether the array has as many dimensions as are asked for."""
    return type(ndmin) is int and ndmin <= x.ndim


def differs(x: Array, dtype: np.dtype[Any], order: str) -> bool:
    """Whether the array is not yet of that dtype and in that order; "A" and "K" are content with any."""
    if dtype is not x.dtype and dtype != x.dtype:
        return True
    return (order == "C" and not x.flags.c_contiguous) or (order == "F" and not x.flags.f_contiguous)


def required_order(requirements: Any) -> Literal["C", "F", ""]:
    """ "C" or "F" where just that is required, and not memory of the array's own; else ""."""
    if not isinstance(requirements, str | list | tuple | set | frozenset):
        return ""
    names = {name.upper() for name in requirements if isinstance(name, str)}
    if names & {"O", "OWNDATA", "E", "ENSUREARRAY"}:
        return ""
    in_c = bool(names & {"C", "C_CONTIGUOUS", "CONTIGUOUS"})
    in_f = bool(names & {"F", "F_CONTIGUOUS", "FORTRAN"})
    return "" if in_c == in_f else "C" if in_c else "F"
