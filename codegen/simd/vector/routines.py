"""The routines on registers and single numbers that `codegen/ir/routines.py` declares."""

from __future__ import annotations

from functools import cache
from typing import Any

from codegen.ir.access_families import NUMBER_ACCESSES, REGISTER_ACCESSES
from codegen.ir.element_types import HALF_TYPES
from codegen.ir.routines import MADE, NUMBERS, Routine
from codegen.simd.vector import arithmetic, casts, math, memory, prefixes, scalars, transposes

COMPUTING: dict[str, Any] = arithmetic.NAMED | casts.NAMED | math.NAMED | prefixes.NAMED
"""Routines that accept registers of all their types, by name. Operators need no name."""

_MADE = {
    "splat": casts.splat,
    "repeated": casts.repeat,
    "iota": casts.iota,
    "cast": casts.cast,
    "transposed": transposes.transposed,
}

_OF_REGISTERS = {family.name: family for family in REGISTER_ACCESSES}
_OF_NUMBERS = tuple(family.name for family in NUMBER_ACCESSES)


@cache
def vector_routine(routine: Routine) -> Any:
    """The routine that kernels call, built on first use."""
    family, lanes, half = routine.family, routine.lanes, routine.dtype if routine.dtype in HALF_TYPES else ""
    dtype = "f32" if half else routine.dtype
    match family:
        case _ if family in COMPUTING:
            return COMPUTING[family]
        case "first":
            return memory.first_lanes(routine.name, lanes)
        case _ if not lanes and family in (*NUMBERS, *_OF_NUMBERS):
            return scalars.scalar_routine(routine)
        case _ if family in _OF_REGISTERS:
            access = _OF_REGISTERS[family]
            if access.streams:
                return memory.streamed(routine.name, dtype, lanes, half)
            return memory.access(routine.name, access, dtype, lanes, half, routine.which, routine.rows)
        case _ if family in MADE:
            return _MADE[family](routine.name, dtype, lanes, routine.rows)
    raise AssertionError(f"simd: no rule for {routine.name}")
