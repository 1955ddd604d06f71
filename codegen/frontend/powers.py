"""Powers with exponents that are constants in the source."""

from __future__ import annotations

import math

from codegen.ir import dtypes
from codegen.ir.values import Const, Op, Value


def known_power(base: Value, exponent: Value) -> Value | None:
    """A power without a call of pow, which is slower and sometimes less exact; None for other exponents.

    x**2 -> x*x    x**-1 -> 1/x    x**0.5 -> a square root    x**1 -> x    x**0 -> 1
    """
    if not isinstance(exponent, Const):
        return None
    dtype, known = base.dtype, exponent.value
    if known == 2:
        return Op("mul", (base, base), dtype)
    if known == 1:
        return base
    if known == 0:
        return Const(1.0 if dtypes.is_float(dtype) else 1, dtype)
    if known == -1:
        return Op("div", (Const(1.0, dtype), base), dtype)
    return _root(base) if known == 0.5 else None


def _root(base: Value) -> Value:
    """The root as pow computes it: inf for -inf and 0.0 for -0.0, where sqrt gives NaN and -0.0."""
    dtype = base.dtype
    root = Op("sqrt", (Op("add", (base, Const(0.0, dtype)), dtype),), dtype)
    below = Op("eq", (base, Const(-math.inf, dtype)), "i1")
    return Op("select", (below, Const(math.inf, dtype), root), dtype)
