"""Look up the routines that generated kernels call by name. Imports Numba, so import it lazily."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from codegen.simd import direct
from codegen.simd.copy import runs
from codegen.simd.copy.casts import conversion_routine
from codegen.simd.instructions import BUILDERS
from codegen.simd.register import bits, calls, memory
from codegen.simd.register.super_vectors import access_routine, arguments_routine, scratch_routine
from codegen.simd.vector.names import routine as vector_routine
from codegen.simd.vector.scalars import scalar_routine

_OTHERS = {
    "call_kernel": calls.call_kernel,
    "answered": direct.answered,
}
"""Routines that do not move elements themselves."""


def bound_routines(names: Iterable[str]) -> dict[str, Any]:
    """The routines among the names that a generated kernel looks up."""
    return {name: routine for name in names if (routine := _routine(name)) is not None}


def _routine(name: str) -> Any:
    """The routine of that name, built on first use; None for a name of Python or NumPy."""
    for known in (
        _OTHERS.get,
        BUILDERS.get,
        listed_routines().get,
        scalar_routine,
        conversion_routine,
        vector_routine,
        access_routine,
        arguments_routine,
        scratch_routine,
    ):
        if (routine := known(name)) is not None:
            return routine
    return None


@cache
def listed_routines() -> dict[str, Any]:
    """The routines that exist from the start; others are built for the types in their names."""
    names: dict[str, Any] = {}
    for module in (memory, runs):
        names |= {k: v for k, v in vars(module).items() if k.startswith(PREFIXES)}
    names |= memory.ELEMENTS | bits.BIT_LOADS | bits.BIT_STORES
    return names


PREFIXES = (
    "move_u",
    "load_",
    "store_u",
    "store_f",
    "int64_at",
    "opaque",
    "stream_",
)
