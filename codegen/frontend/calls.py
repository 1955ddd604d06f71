"""Calls to functions of math, NumPy and Python, and to types."""

from __future__ import annotations

import math

import numpy as np

from codegen.frontend.functions import call_math, call_ufunc
from codegen.frontend.operands import Operand, cast_operand, either, for_each_side, strong_operand
from codegen.frontend.operations import apply_op
from codegen.frontend.scope import UNKNOWN, Scope
from codegen.ir import dtypes
from codegen.support.errors import KernelError


def called_with(name: str, function: object, operands: tuple[Operand, ...], scope: Scope) -> Operand:
    """The result of calling an object from outside the kernel; `name` is its name in the source.

    Raises:
        KernelError: kernels do not support it, or not with these operands.
    """
    if any(operand.choice for operand in operands) and function not in (min, max):
        operands = tuple(scope.let("side", operand) for operand in operands)
        return for_each_side(lambda *each: called_with(name, function, each, scope), *operands)
    if isinstance(function, np.ufunc):
        if function.__name__ in ("square", "isnan", "power"):  # These use an operand twice.
            operands = tuple(scope.let(function.__name__, operand) for operand in operands)
        return call_ufunc(function.__name__, operands)
    if function is np.where and len(operands) == 3:
        return strong_operand(apply_op("select", cast_operand(operands[0], "i1"), *operands[1:]))
    if function is np.clip and len(operands) == 3:
        return call_ufunc("minimum", (call_ufunc("maximum", operands[:2]), operands[2]))
    if isinstance(function, type) and len(operands) == 1:
        return cast_operand(operands[0], _type_name(function))
    if (function is min or function is max) and len(operands) > 1:
        return _least_or_largest("min" if function is min else "max", operands, scope)
    if function is abs and len(operands) == 1:
        return apply_op("abs", *operands)
    if function is pow and len(operands) == 2:
        return apply_op("pow", *operands)
    home = getattr(function, "__module__", None)
    short = getattr(function, "__name__", "")
    if home == "math" and getattr(math, short, None) is function:
        return call_math(short, operands)
    if function is UNKNOWN:
        raise KernelError(f"{name} is not defined, or not a function defined outside the kernel")
    raise KernelError(
        f"kernels cannot call {name}\n"
        "use elementwise functions of math and NumPy, abs, min, max, int, float and bool"
    )


def _least_or_largest(op: str, operands: tuple[Operand, ...], scope: Scope) -> Operand:
    """Python's min() and max(): the first operand unless a later one is less, or larger; NaN never is.

    Integers use the IR's operation. Floats use a select, which handles NaN and -0.0 as Python does. The
    result has the dtype of the operand that it is.
    """
    found = operands[0]
    for other in operands[1:]:
        both = {found.dtype, other.dtype}
        alike = len(both) == 1 and not found.choice and not other.choice
        whole = None
        if not dtypes.is_float(dtypes.promote([*both])):
            whole = apply_op(op, found, other)
            if alike:
                found = whole
                continue
        elif alike and found.literal is not None and other.literal is not None:
            found = apply_op(op, found, other)
            continue
        found, other = scope.let(op, found), scope.let(op, other)
        first = apply_op("lt" if op == "min" else "gt", other, found)
        found = either(first.value, other, found, whole=whole)
    return found


def _type_name(kind: type) -> str:
    """The dtype that calling a type converts to."""
    weak = {int: "weak_int", float: "weak_float", bool: "weak_bool"}.get(kind)
    if weak:
        return weak
    try:
        return dtypes.dtype_name(np.dtype(kind))
    except TypeError:
        raise KernelError(f"kernels cannot convert to {kind.__name__}") from None
