"""Errors about text that isn't MLIR suggest a valid line."""

from __future__ import annotations

import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen.support.errors import KernelError
from tests.mlir.test_parse import around
from tests.mlir.texts import VECRED
from tilejit import mlir
from tilejit.mlir.advice import SUPPORTED, advice
from tilejit.mlir.xdsl_text import operations, reader_context

ADVICE = {
    "no type": (around("%x = affine.load %A[%i]"), "write it as %x = affine.load %A[%i, "),
    "no percent sign": (around("", "A: memref<?xf32>"), "write it as func.func @f(%A: memref<?xf32>"),
    "two names": (
        around("%x = arith.constant 1 : i32\n    %x = arith.constant 1 : i32"),
        "its own name",
    ),
    "two types": (
        around("%x = affine.load %A[%i] : memref<?xf64>"),
        "write the type that the value is defined with",
    ),
    "no definition": (
        around("%x = affine.load %Z[%i] : memref<?xf32>"),
        "define the value before it is used",
    ),
    "no alias": (
        around("%x = affine.apply #map(%i)"),
        "define it before the functions, as #map = affine_map",
    ),
    "a dimension": ("#map = affine_map<(d0) -> (d1)>\n" + VECRED, "use the dimensions and symbols"),
    "an alias": ("#map = affine_map<(d0) (d0)>\n" + VECRED, "write it as #map = affine_map<"),
    "a bound": (around("affine.for %j = 0, 4 {\n}"), "write it as affine.for %i = 0 to %n step 1 {"),
    "a comparison": (
        around("%p = arith.cmpi %i, %i : index"),
        "write it as %p = arith.cmpi slt, %x, %y : i32",
    ),
    "another type": (around("%y = arith.addf %i, %i : index"), "write it as %z = arith.addf %x, %y : f32"),
    "a slip": (around("%y = arith.adff %i, %i : index"), "did you mean arith.addf?"),
    "another dialect": (
        around("%y = tensor.empty() : tensor<4xf32>"),
        "write affine.for, affine.if, affine.load",
    ),
    "another language": ("define float @f(ptr %0) {\n  ret void\n}\n", "begin a function as func.func @f("),
    "nothing": (" \n", "begin a function as func.func @f("),
    "no brace": (VECRED.rstrip().removesuffix("}"), "close each ( with ) and each { with }"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_errors_suggest_a_valid_line(name: str) -> None:
    text, said = ADVICE[name]
    with pytest.raises(KernelError) as caught:
        mlir.parse(text)
    assert said in str(caught.value).splitlines()[-1]


DEFINED = ("func.func", "arith.constant", "vector.constant_mask", "vector.step", "ub.poison")
"""Operations without operands, whose lines are complete."""


@pytest.mark.parametrize("operation", sorted({*SUPPORTED} - {"builtin.module"}))
def test_suggestions_are_valid_mlir(operation: str) -> None:
    """The suggestion for a misspelled operation is read, except that nothing defines its values."""
    if reader_context().get_optional_op(operation) is None:
        pytest.skip("this version of xdsl doesn't have it")
    line = advice("", operation, "").removeprefix("write it as ")
    assert operation.removeprefix("func.") in line
    body = f"{line}\n}}" if line.endswith("{") else line
    text = body if operation == "func.func" else f"func.func @g() {{\n{body}\nreturn\n}}\n"
    if "%" not in line or operation in DEFINED:
        operations(text)
        return
    with pytest.raises(KernelError, match="used but not defined"):
        operations(text)
