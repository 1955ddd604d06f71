"""The meaning of each IR operation, on NumPy scalars and on arrays of lanes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.dtypes import COMPARISONS, stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.prefix_steps import STEPS
from codegen.ir.values import VectorShape
from codegen.support.errors import KernelError

_RELAXED: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
}
"""Operations with a form that may be contracted and reassociated. It means the same, in any order."""

_EXACT: dict[str, Callable[..., Any]] = {
    **_RELAXED,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "neg": np.negative,
    "abs": np.absolute,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "copysign": np.copysign,
    **{f"fast_{name}": function for name, function in _RELAXED.items()},
}
"""These give the same bits on arrays of lanes as on scalars."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "hypot": np.hypot,
    "pow": operator.pow,
}
"""These run lane by lane, like `**` on a scalar: NumPy's results may differ between arrays and scalars."""


def _spread(found: Sequence[Any], dtype: str, shape: VectorShape) -> Any:
    """A number in each lane. A super-vector of outer loops has the leading dimensions."""
    inner = (1,) * (len(shape) - np.ndim(found[0]))
    return np.full(shape, np.reshape(found[0], np.shape(found[0]) + inner))


def _row(row: int, found: Sequence[Any], dtype: str, shape: VectorShape) -> Any:
    """A row of a block."""
    return found[0][row]


def _below(half: int, found: Sequence[Any], dtype: str, shape: VectorShape) -> Any:
    """The last lane of the lower half of each block of 2 * half lanes, in the lanes of the upper half."""
    lanes = np.arange(len(found[0]))
    return np.where(lanes & half, found[0][(lanes & -2 * half) + half - 1 & len(lanes) - 1], found[1])


MADE: dict[str, Callable[[Sequence[Any], str, VectorShape], Any]] = {
    "broadcast": _spread,
    "iota": lambda found, dtype, shape: np.arange(shape[0]).astype(stored_dtype(dtype)),
    "first": lambda found, dtype, shape: np.arange(shape[0]) < int(found[0]),
    "repeat": lambda found, dtype, shape: np.broadcast_to(found[0], shape),
    **{f"stack_{count}": lambda found, dtype, shape: np.stack(found) for count in INTERLEAVED_ROWS},
    **{f"row_{row}": partial(_row, row) for row in range(max(INTERLEAVED_ROWS))},
    "last": lambda found, dtype, shape: found[0][-1],
    "slide": lambda found, dtype, shape: np.concatenate([found[0][-1:], found[1][:-1]]),
    **{f"below_{half}": partial(_below, half) for half in STEPS},
}
"""Operations that make super-vectors of a shape, or move their lanes."""


def compute(name: str, operands: Sequence[Any], dtype: str) -> Any:
    """Run an operation on NumPy scalars, or on arrays of lanes; the result has `dtype`.

    add(f32, f32) -> f32    add(bf16, bf16) -> computed in f32, then rounded to bf16    lt(i32, i32) -> i1

    Raises:
        KernelError: the operation does not exist, or the operands have the wrong dtypes.
    """
    result = stored_dtype(dtype)
    if name == "cast" and dtype.startswith("bits"):
        return _bits(operands[0], bits_of(dtype))
    if name == "cast":
        return _cast(operands[0], dtype)
    if name == "round_to_odd":
        return _to_odd(operands[0])
    if name == "select":
        condition, then, otherwise = operands
        _checked(name, [condition], np.dtype(np.bool_))
        _checked(name, [then, otherwise], result)
        return np.where(condition, then, otherwise)[()]
    _checked(name, operands, operands[0].dtype if name in COMPARISONS else result)
    # NumPy's float16 min and max treat signed zeros differently from float32's.
    if operands[0].dtype.itemsize == 2 and operands[0].dtype.kind in "fV" and name not in ("min", "max"):
        wide = [operand.astype(np.float32) for operand in operands]
        return _run(name, wide).astype(result)
    return _run(name, operands).astype(result)


def _cast(numbers: Any, dtype: str) -> Any:
    """Integers keep their low bits. NaN and floats out of range convert as on x86: to the smallest 32-bit
    integer (64-bit for i64, u32, u64) truncated to the dtype, or to 0 if they are too large for u64.
    """
    target = stored_dtype(dtype)
    if numbers.dtype.kind in "iubO" or target.kind not in "iu":
        return numbers.astype(target)
    limit = 2.0**63 if dtype in ("i64", "u32", "u64") else 2.0**31
    exact = np.trunc(np.asarray(numbers).astype(np.float64))
    high = (exact >= limit) & (dtype == "u64")
    exact = np.where(high, exact - limit, exact)
    fits = (exact >= -limit) & (exact < limit)
    signed = np.where(fits, exact, -limit).astype(np.int64)
    return np.where(high, signed ^ np.iinfo(np.int64).min, signed).astype(target)[()]


def _to_odd(numbers: Any) -> Any:
    """f64 as f32: toward zero, with the last bit set if that is inexact."""
    near = numbers.astype(np.float32)
    toward_zero = np.where(abs(near) > abs(numbers), np.nextafter(near, np.float32(0)), near)
    odd = (toward_zero.view(np.uint32) | 1).view(np.float32)
    return np.where((toward_zero == numbers) | np.isnan(numbers), near, odd)[()]


def _bits(numbers: Any, bits: int) -> Any:
    """The low bits of numbers; for one bit, whether they are not zero."""
    mask = (1 << bits) - 1
    kept = [int(x != 0) if bits == 1 else int(x) & mask for x in np.ravel(numbers)]
    return np.array(kept, object).reshape(np.shape(numbers))


def _checked(name: str, operands: Sequence[Any], dtype: np.dtype[Any]) -> None:
    kinds = [str(operand.dtype) for operand in operands]
    if any(operand.dtype != dtype for operand in operands):
        raise KernelError(f"interpret: {name} of {', '.join(kinds)} in {dtype}")


def _run(name: str, operands: Sequence[Any]) -> Any:
    if name in _EXACT:
        return np.asarray(_EXACT[name](*operands))[()]
    if name == "fma":
        return _fused(*operands)
    if name not in _FUNCTIONS:
        raise KernelError(f"interpret: kernels do not support the operation {name}")
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands))
    if not shape:
        return _one(name, operands)
    lanes = np.broadcast_arrays(*operands)
    found = np.empty(shape, operands[0].dtype)
    for lane in np.ndindex(shape):
        found[lane] = _one(name, [each[lane] for each in lanes])
    return found


def _one(name: str, operands: Sequence[Any]) -> Any:
    try:
        return _FUNCTIONS[name](*operands)
    except ValueError as error:
        raise KernelError(f"{name} of {', '.join(map(str, operands))}: {error}") from None


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a*b + c, rounded once; computed exactly as a Fraction."""

    def one(x: Any, y: Any, z: Any) -> Any:
        if not np.isfinite([x, y, z]).all():
            return x * y + z
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        return _rounded(exact, x.dtype) if exact else x * y + z

    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
    lanes = np.broadcast_arrays(a, b, c)
    found = np.empty(shape, np.asarray(a).dtype)
    for lane in np.ndindex(shape):
        found[lane] = one(*(each[lane] for each in lanes))
    return found[()]


def _rounded(exact: Fraction, dtype: np.dtype[Any]) -> Any:
    """The nearest number of a dtype, ties to even.

    float() has rounded once already, so the neighbors are candidates too.
    """
    try:
        near = dtype.type(float(exact))
    except OverflowError:
        return dtype.type(np.inf if exact > 0 else -np.inf)
    if not np.isfinite(near):
        return near
    candidates = [near, np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))]
    finite = [x for x in candidates if np.isfinite(x)]
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), x.view(f"u{dtype.itemsize}") & 1))
