"""Record the reductions in a function of elements as stages, with NumPy's result dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import KernelError, Operand, apply_op, cast_operand, convert_operand, dtypes
from tilejit.expressions.recording import Part, Recording, Stage
from tilejit.expressions.reduced_axes import read_axes

REDUCTIONS = {"sum": "add", "min": "min", "max": "max", "amin": "min", "amax": "max", "mean": "add"}
"""NumPy's names, and the operation that combines two elements."""

PRODUCTS = ("dot", "vdot", "matmul", "inner", "vecdot")
"""NumPy's names of products of vectors."""

_CORE = {"matmul": 2, "vecdot": 1}
"""The number of trailing dimensions that the product consumes; other functions give C-order results."""


def reduced(recording: Recording, name: str, x: Part, axis: Any, dtype: Any, keepdims: bool) -> Part:
    """Record a sum, mean, minimum or maximum, with NumPy's result dtype."""
    operand, names, form = x
    axes, combiner, given = read_axes(axis, recording.rank(names)), REDUCTIONS[name], operand.dtype
    if dtype is not None:
        found = dtypes.dtype_name(np.dtype(dtype))
    elif combiner != "add":
        found = dtypes.concrete(given)
    else:
        found = summed(dtypes.concrete(given), mean=name == "mean")
    if dtype is not None or dtypes.is_float(found):
        operand = cast_operand(operand, found)
    if not axes:
        return Part(cast_operand(operand, found), names, recording.forms.computed(form))
    return recording.enter(
        Stage(
            recording.next_name,
            name.removeprefix("a"),
            _of_booleans(combiner, found),
            operand,
            names,
            found,
            axes,
            keepdims,
            forms=() if form is None else (form,),
        )
    )


def _of_booleans(combiner: str, dtype: str) -> str:
    return {"min": "and", "max": "or", "add": "or"}[combiner] if dtype == "i1" else combiner


def summed(dtype: str, *, mean: bool = False) -> str:
    """The dtype of a sum or a mean: NumPy sums integers in 64 bits, and takes their means in f64.

    i8 -> i64    u16 -> u64    i1 -> i64    bf16 -> bf16    the mean of i8 -> f64
    """
    if dtypes.is_float(dtype):
        return dtype
    return "f64" if mean else {"i": "i64", "u": "u64"}[dtype[0]]


def product(recording: Recording, name: str, *sides: Part) -> Part:
    """Record the sum of products along the last dimension, of two vectors or of rows with a vector.

    Raises:
        KernelError: the operands are matrices, which need another loop order.
    """
    ranks = [recording.rank(side.names) for side in sides]
    names = sides[0].names | sides[1].names
    if 0 in ranks:
        if name in ("matmul", "vecdot") or (name == "vdot" and any(ranks)):
            raise KernelError(
                f"np.{name}: expected arrays, got a number\n  write x * y for a product of elements"
            )
        form = recording.forms.computed(*(side.form for side in sides))
        return Part(apply_op("mul", *(side.operand for side in sides)), names, form)
    flat = name == "vdot" and ranks[0] == ranks[1]
    if not flat and name != "vecdot" and (ranks[1] > 1 or (name == "vdot" and ranks[0] > 1)):
        raise KernelError(
            f"np.{name} of arrays with {ranks[0]} and {ranks[1]} dimensions cannot be recorded\n"
            "  pass two vectors, or a matrix and a vector; call NumPy for matrices"
        )
    found = dtypes.concrete(dtypes.promote([side.operand.dtype for side in sides]))
    wide = "f32" if found in ("bf16", "f16") else found
    one, two = (Operand(wide, convert_operand(cast_operand(side.operand, found), wide)) for side in sides)
    rank = max(ranks)
    return recording.enter(
        Stage(
            recording.next_name,
            "dot",
            _of_booleans("add", found),
            apply_op("mul", one, two),
            names,
            found,
            tuple(range(rank)) if flat else (rank - 1,),
            pair=(sides[0].names, sides[1].names),
            forms=tuple(side.form for side in sides if side.form is not None) if name in _CORE else (),
            core=_CORE.get(name, 0),
        )
    )


def check_exponent(recording: Recording, base: Part, exponent: Part) -> None:
    """Record a reduction by which calls check for negative integer exponents, which NumPy rejects.

    Exponents that are constant or unsigned need no such check.
    """
    operand, names, _ = exponent
    found = dtypes.result_type("pow", [base.operand.dtype, operand.dtype])
    if dtypes.is_float(found) or not names or operand.dtype[0] != "i" or operand.dtype == "i1":
        return
    axes = tuple(range(recording.rank(names)))
    recording.enter(
        Stage(recording.next_name, "exponent", "min", operand, names, dtypes.concrete(operand.dtype), axes)
    )
