"""The dtypes of results against NumPy's scalars."""

from __future__ import annotations

import operator
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

from codegen.ir.dtypes import concrete, dtype_name, numpy_dtype, promote, result_type
from codegen.support.errors import KernelError

STRONG = ("i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64")
WEAK = {"weak_bool": True, "weak_int": 1, "weak_float": 1.0}
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "lt": operator.lt,
    "eq": operator.eq,
    "min": np.minimum,
    "max": np.maximum,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
}
UNARY = {
    "neg": operator.neg,
    "abs": abs,
    "not": operator.invert,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log1p": np.log1p,
    "cbrt": np.cbrt,
    "rint": np.rint,
    "tanh": np.tanh,
}


def one(dtype: str) -> Any:
    return WEAK[dtype] if dtype in WEAK else numpy_dtype(dtype).type(1)


def kind(value: Any) -> str:
    for number, name in ((bool, "weak_bool"), (int, "weak_int"), (float, "weak_float")):
        if type(value) is number:
            return name
    return dtype_name(np.asarray(value).dtype)


def expected(function: Any, dtypes: tuple[str, ...]) -> str | None:
    """NumPy's dtype, or Python's type as a weak one; None if there is no result."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return kind(function(*map(one, dtypes)))
        except TypeError:
            return None


def ours(op: str, dtypes: tuple[str, ...]) -> str | None:
    try:
        return result_type(op, dtypes)
    except KernelError:
        return None


@pytest.mark.parametrize("op", BINARY)
def test_binary_as_numpy(op: str) -> None:
    """Every pair of dtypes, weak ones included. NumPy functions make Python numbers concrete."""
    for dtypes in product((*STRONG, *WEAK), repeat=2):
        found, right = ours(op, dtypes), expected(BINARY[op], dtypes)
        if isinstance(BINARY[op], np.ufunc) and all(d in WEAK for d in dtypes):
            continue
        assert found == right, (op, dtypes, found, right)


@pytest.mark.parametrize("op", UNARY)
def test_unary_as_numpy(op: str) -> None:
    for dtype in (*STRONG, *(() if isinstance(UNARY[op], np.ufunc) else WEAK)):
        assert ours(op, (dtype,)) == expected(UNARY[op], (dtype,)), (op, dtype)


def test_bfloat16() -> None:
    assert promote(["bf16", "f32"]) == "f32"
    assert promote(["bf16", "f16"]) == "f32"
    assert promote(["bf16", "weak_float"]) == "bf16"
    assert [promote(["bf16", d]) for d in ("u8", "i16", "i32")] == ["bf16", "f32", "f64"]
    assert result_type("exp", ["bf16"]) == "bf16"


def test_weak_dtypes_are_concrete_in_the_ir() -> None:
    assert [concrete(d) for d in ("weak_bool", "weak_int", "weak_float", "f16")] == [
        "i1",
        "i64",
        "f64",
        "f16",
    ]


@pytest.mark.parametrize("dtype", ["c8", "f128", "str", ""])
def test_unknown_dtypes(dtype: str) -> None:
    with pytest.raises(KernelError, match="kernels do not support the dtype"):
        numpy_dtype(dtype)


@pytest.mark.parametrize("dtype", [">f4", "c8", "S3", "M8[s]"])
def test_arrays_with_unsupported_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises(KernelError, match="kernels do not support"):
        dtype_name(np.dtype(dtype))
