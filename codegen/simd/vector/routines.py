"""The routines on registers and single numbers that `codegen/ir/routines.py` declares."""

from __future__ import annotations

from functools import cache
from typing import Any

from codegen.ir.access_families import NUMBER_ACCESSES
from codegen.ir.routines import MADE, NUMBERS, Routine
from codegen.simd.register.values import Vector
from codegen.simd.vector import accesses, arithmetic, block_rows, casts, masked, math, prefixes, scalars

COMPUTING: dict[str, Any] = arithmetic.NAMED | block_rows.NAMED | casts.NAMED | math.NAMED | prefixes.NAMED
"""Routines that accept vectors of all their types, by name. Operators need no name."""

_MADE = {"splat": casts.splat, "repeated": casts.repeat, "iota": casts.iota, "cast": casts.cast}

_OF_NUMBERS = (*NUMBERS, *(family.name for family in NUMBER_ACCESSES))


@cache
def vector_routine(routine: Routine) -> Any:
    """The routine that kernels call, built on first use."""
    family, access = routine.family, routine.access
    match family:
        case _ if family in COMPUTING:
            return COMPUTING[family]
        case "first":
            return masked.first_lanes(routine.name, *routine.shape)
        case _ if family in _OF_NUMBERS:
            return scalars.scalar_routine(routine)
        case _ if access is not None:
            return accesses.access(routine, access)
        case _ if family in MADE:
            *rows, lanes = routine.shape
            return _MADE[family](routine.name, Vector(routine.dtype, lanes, *rows))
    raise AssertionError(f"simd: no rule for {routine.name}")
