"""Look up the routines that generated kernels call by name. Imports Numba, so import it lazily.

Names are looked up in the tables of `codegen/ir/`, whose entries determine the object to bind.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from codegen.ir.routines import Routine, routine_named
from codegen.simd import direct
from codegen.simd.instructions import builder_of
from codegen.simd.register import bits, calls, memory

LISTED: dict[str, Any] = {
    **memory.ELEMENTS,
    **bits.BIT_LOADS,
    **bits.BIT_STORES,
}
"""The routines of elements of copies; others are built for the types in their names."""

_OTHERS: dict[str, Any] = {
    "call_kernel": calls.call_kernel,
    "answered": direct.answered,
    "inf": float("inf"),
    "nan": float("nan"),
}
"""Routines that do not move elements themselves, and numbers that Python has no literals for."""


def bound_routines(names: Iterable[str]) -> dict[str, Any]:
    """The routines among the names that a generated kernel looks up."""
    return {name: routine for name in names if (routine := _routine(name)) is not None}


@cache
def _routine(name: str) -> Any:
    """The routine of that name, built on first use; None for a name of Python or NumPy."""
    if (builder := builder_of(name)) is not None:
        return builder
    if name in LISTED or name in _OTHERS:
        return LISTED.get(name, _OTHERS.get(name))
    match routine_named(name):
        case None:
            return None
        case Routine(family, "", (count,)) if family in memory.SIZED:
            return memory.SIZED[family](name, count)
        case routine:
            # Importing the routines of registers defines their operators, which the source need not name.
            from codegen.simd.vector.routines import vector_routine

            return vector_routine(routine)
