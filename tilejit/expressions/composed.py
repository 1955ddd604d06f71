"""NumPy's elementwise functions that are composed of other ones; results are bit-identical to NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codegen import OperandError, cast_operand, dtypes
from tilejit.expressions.stand_in import StandIn


def _sign(x: Any) -> Any:
    """np.sign: 1, -1 or 0, and NaN for NaN."""
    dtype = x.operand.dtype
    if dtype == "i1":
        raise OperandError("np.sign is undefined for booleans\n  convert them, x.astype(np.int8)")
    if dtype[0] == "u":
        return np.where(x > 0, 1, x)
    # np.sign(-0.0) is 0.0, but -0.0 for ml_dtypes.bfloat16.
    rest = np.where(x == 0, 0, x) if dtypes.is_float(dtype) and dtype != "bf16" else x
    return np.where(x > 0, 1, np.where(x < 0, -1, rest))


def _conjugate(x: Any) -> Any:
    """np.conjugate: real numbers unchanged, booleans as int8."""
    return x.made(cast_operand(x.operand, "i8" if x.operand.dtype == "i1" else x.operand.dtype), x)


def _fmin(x1: Any, x2: Any) -> Any:
    return _without_nan(np.minimum(x1, x2), x1, x2)


def _fmax(x1: Any, x2: Any) -> Any:
    return _without_nan(np.maximum(x1, x2), x1, x2)


def _without_nan(found: Any, x1: Any, x2: Any) -> Any:
    """The result for two numbers, except that a NaN gives the other one, and two NaNs give the first."""
    for x, other in ((x1, x2), (x2, x1)):
        is_nan = _is_nan(x)
        found = found if is_nan is False else np.where(is_nan, other, found)
    return found


def _is_nan(x: Any) -> Any:
    """Whether a value is NaN: an expression, or False if it never is."""
    if isinstance(x, StandIn):
        return x != x if dtypes.is_float(x.operand.dtype) else False
    return isinstance(x, float | np.floating) and bool(np.isnan(x))


COMPOSED: dict[str, Callable[..., Any]] = {
    "sign": _sign,
    "conjugate": _conjugate,
    "fmin": _fmin,
    "fmax": _fmax,
}
"""The functions by NumPy's names."""
