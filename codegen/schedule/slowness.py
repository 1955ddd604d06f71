"""How slow a kernel is beside memcpy, which decides from what size on it gets several threads."""

from __future__ import annotations

from collections.abc import Iterable

from codegen.ir.dtypes import FLOAT_FUNCTIONS
from codegen.ir.nodes import ArrayArg, Function
from codegen.ir.values import Op
from codegen.ir.visit import Loop, loops_of, parts, values_of
from codegen.schedule.call_limits import BOUND_BY_MEMORY, COMPUTES

COSTLY = frozenset(FLOAT_FUNCTIONS) - {"sqrt", "rint", "copysign", "fma"} | {"pow", "floordiv", "mod"}
"""Operations that take many instructions."""


def slowness_of(function: Function) -> int:
    """BOUND_BY_MEMORY if each element takes some arithmetic only, else COMPUTES.

    y[i] = 2 * x[i] -> BOUND_BY_MEMORY    y[i] = exp(x[i]), or a product of matrices -> COMPUTES
    """
    rank = max((x.rank for x in function.arguments if isinstance(x, ArrayArg)), default=0)
    values = (part for value in values_of(function.body) for part in parts(value))
    calls = any(isinstance(x, Op) and x.name in COSTLY for x in values)
    return COMPUTES if calls or _depth(loops_of(function.body)) > rank else BOUND_BY_MEMORY


def _depth(loops: Iterable[Loop]) -> int:
    return max((1 + _depth(loop.inside) for loop in loops), default=0)
