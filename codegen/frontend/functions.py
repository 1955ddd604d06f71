"""Functions of math, NumPy and Python as operations of the IR."""

from __future__ import annotations

import math

import numpy as np

from codegen.frontend.operands import (
    Operand,
    cast_operand,
    convert_operand,
    literal_operand,
    refused,
    strong_operand,
)
from codegen.frontend.operations import apply_op
from codegen.ir import dtypes
from codegen.support.errors import KernelError, OperandError

_ONE: tuple[str, ...] = ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan")
_ONE += ("sinh", "cosh", "tanh", "cbrt", "floor", "ceil", "trunc")
_SAME = (*_ONE, "hypot", "copysign")
_ARC = ("asin", "acos", "atan", "asinh", "acosh", "atanh")

UFUNCS = {
    **{name: name for name in _SAME},
    **{name.replace("a", "arc", 1): name for name in (*_ARC, "atan2")},
    "rint": "rint",
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "mod": "mod",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "minimum": "min",
    "maximum": "max",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_not": "not",
    "invert": "not",
    "left_shift": "shl",
    "right_shift": "shr",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
"""The operation of each NumPy function, by its name."""

MATH = {**{name: name for name in (*_SAME, *_ARC, "atan2", "fma")}, "pow": "pow", "fabs": "abs"}
"""The operation of each function of math; call_math handles log with two arguments."""

_ARITY = {**dict.fromkeys((*_ONE, *_ARC, "rint", "neg", "abs", "not"), 1), "fma": 3}

_TESTS = ("isnan", "isinf", "isfinite")


def call_ufunc(name: str, operands: tuple[Operand, ...]) -> Operand:
    """A NumPy function; of Python numbers alone it returns float64, int64 or bool, never a weak dtype.

    Raises:
        KernelError: kernels do not support it, or not with these operands.
    """
    return strong_operand(_ufunc(name, operands))


def _ufunc(name: str, operands: tuple[Operand, ...]) -> Operand:
    if name in _TESTS:
        return _test(name, *_counted(name, operands, 1))
    if name.startswith("logical_"):
        return _logical(name.removeprefix("logical_"), operands)
    if name == "square":
        (x,) = _counted(name, operands, 1)
        x = cast_operand(x, "i8") if x.dtype == "i1" else x
        return apply_op("mul", x, x)
    if name == "positive":
        (x,) = _counted(name, operands, 1)
        if x.dtype == "i1":
            raise OperandError("positive of booleans\nNumPy does not define it; convert them")
        return x
    if name not in UFUNCS:
        raise KernelError(f"kernels do not support np.{name}\nuse one of {', '.join(sorted(UFUNCS))}")
    op = UFUNCS[name]
    if all(x.dtype in dtypes.WEAK for x in operands) and any(x.dtype == "weak_bool" for x in operands):
        operands = tuple(map(strong_operand, operands))  # NumPy adds Python's booleans as its own
    if name == "power" and all(x.dtype == "weak_int" for x in operands):
        # Python integers alone become int64, where a negative power is an error.
        operands = tuple(Operand("i64", convert_operand(x, "i64"), x.least, x.largest) for x in operands)
    if name == "fabs":
        operands = tuple(cast_operand(x, dtypes.result_type("sqrt", [x.dtype])) for x in operands)
    return apply_op(op, *_counted(name, operands, _ARITY.get(op, 2)))


def call_math(name: str, operands: tuple[Operand, ...]) -> Operand:
    """A function of math, in its argument's dtype where math itself would return a Python float.

    sqrt(f32) -> f32    sqrt(i32) -> weak float    floor(f32) -> f32, where Python gives an int

    Raises:
        KernelError: kernels do not support it, or Python raises on these numbers.
    """
    numbers = [x.literal for x in operands]
    function = getattr(math, name)
    if all(number is not None for number in numbers):
        try:
            return literal_operand(function(*numbers))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise KernelError(refused(error)) from None
    if name in _TESTS:
        return _test(name, *_counted(name, operands, 1))
    if name not in MATH:
        raise KernelError(f"kernels do not support math.{name}\nuse one of {', '.join(sorted(MATH))}")
    op = MATH[name]
    if op not in ("floor", "ceil", "trunc"):
        operands = tuple(x if dtypes.is_float(x.dtype) else cast_operand(x, "weak_float") for x in operands)
    if name == "log" and len(operands) == 2:
        return apply_op("div", apply_op("log", operands[0]), apply_op("log", operands[1]))
    return apply_op(op, *_counted(name, operands, _ARITY.get(op, 2)))


def _counted(name: str, operands: tuple[Operand, ...], number: int) -> tuple[Operand, ...]:
    if len(operands) != number:
        raise KernelError(
            f"{name} takes {number} argument{'s' * (number > 1)} in kernels, not {len(operands)}"
        )
    return operands


def _test(name: str, x: Operand) -> Operand:
    """isnan, isinf and isfinite as comparisons."""
    if not dtypes.is_float(x.dtype):
        return literal_operand(np.bool_(name == "isfinite"))
    if name == "isnan":
        return apply_op("ne", x, x)
    return apply_op("eq" if name == "isinf" else "lt", apply_op("abs", x), literal_operand(math.inf))


def _logical(op: str, operands: tuple[Operand, ...]) -> Operand:
    if op not in ("and", "or", "xor", "not"):
        raise KernelError(f"kernels do not support np.logical_{op}")
    booleans = tuple(
        cast_operand(x, "i1") for x in _counted(f"logical_{op}", operands, 1 if op == "not" else 2)
    )
    return apply_op(op, *booleans)
