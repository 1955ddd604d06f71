"""The verifier finds what is not well formed, and names the statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from codegen.ir.building import index_of, loop
from codegen.ir.index import index_symbol
from codegen.ir.nodes import (
    ArrayArg,
    Call,
    Carried,
    For,
    Function,
    If,
    Let,
    ScalarArg,
    Statement,
    Store,
    View,
)
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce
from codegen.ir.verifier import verify

AT = index_symbol("i")
X = Load("x", (AT,), "f32")
WIDE = Load("x", (AT,), "f32", (16,), (0,), (1,))
ARRAYS = (ArrayArg("x", "f32", 1), ArrayArg("y", "f32", 1), ArrayArg("m", "f32", 2))


def made(*body: Statement, **more: Any) -> Function:
    """A function with a loop over i around the statements."""
    arguments = (*ARRAYS, ScalarArg("n", "i64"), ScalarArg("s", "f32"))
    return Function("f", arguments, (replace(loop("i", 0, "n", *body), **more),))


GOOD: dict[str, Callable[[], Function]] = {
    "store": lambda: made(Store("y", (AT,), X)),
    "lanes": lambda: made(Store("y", (AT,), WIDE, (0,), (1,))),
    "let": lambda: made(Let("a", X), Store("y", (AT,), Local("a", "f32"))),
    "both branches": lambda: made(
        If((Op("lt", (X, X), "i1"),), (Let("a", X),), (Let("a", Const(1.0, "f32")),)),
        Store("y", (AT,), Local("a", "f32")),
    ),
    "carried": lambda: Function(
        "f",
        ARRAYS,
        (
            For(
                "i",
                (index_symbol("x.shape[0]"),),
                (I_END,),
                1,
                (),
                (Carried("t", ZERO, Op("add", (T, X), "f32")),),
            ),
        ),
        (T,),
    ),
}
ZERO, T, I_END = Const(0.0, "f32"), Local("t", "f32"), index_symbol("y.shape[0]")

BAD: dict[str, tuple[Callable[[], Function], str]] = {
    "unknown array": (lambda: made(Store("z", (AT,), X)), "z is not an array or a buffer"),
    "unknown symbol": (lambda: made(Store("y", (index_symbol("k"),), X)), "k is unknown"),
    "index after its loop": (
        lambda: replace(made(), body=(*made().body, Store("y", (AT,), Const(1.0, "f32")))),
        "i is unknown",
    ),
    "float as a subscript": (lambda: made(Store("y", (index_symbol("s"),), X)), "s is .*, not an integer"),
    "unknown local": (lambda: made(Store("y", (AT,), Local("a", "f32"))), "a is unknown"),
    "another dtype": (lambda: made(Let("a", X), Store("y", (AT,), Local("a", "f64"))), "a is .*, not f64"),
    "stored dtype": (lambda: made(Store("y", (AT,), Const(1, "i32"))), "y of f32 gets i32"),
    "loaded dtype": (lambda: made(Let("a", replace(X, dtype="f64"))), "x of f32 is loaded as f64"),
    "subscripts": (lambda: made(Let("a", Load("m", (AT,), "f32"))), "m has rank 2, and 1 subscripts"),
    "steps": (lambda: made(Store("y", (AT,), WIDE, (0,), (1, 1))), r"y: steps \(1, 1\) for lanes \(16,\)"),
    "dims": (lambda: made(Store("y", (AT,), WIDE, (1,), (1,))), "y has no subscript 1"),
    "mask": (
        lambda: made(Store("y", (AT,), WIDE, (0,), (1,), where=Const(value=True, dtype="i1", shape=(8,)))),
        "the mask of",
    ),
    "lanes of operands": (lambda: made(Let("a", Op("add", (WIDE, X), "f32"))), "add of the shapes"),
    "dtypes of operands": (lambda: made(Let("a", Op("add", (X, Const(1, "i32")), "f32"))), "add of"),
    "operands": (lambda: made(Let("a", Op("add", (X,), "f32"))), "add takes 2 operands, got 1"),
    "one branch": (
        lambda: made(If((Op("lt", (X, X), "i1"),), (Let("a", X),)), Store("y", (AT,), Local("a", "f32"))),
        "a is unknown",
    ),
    "view of another name": (
        lambda: made(Let("a", X), View("a", "y", index_of(0))),
        "the view a has the name of something else",
    ),
    "first rows of one": (
        lambda: made(Store("y", (AT,), Const(0, "bits8", (64,)), (0,), (1,), first=AT)),
        r"y stores the first rows of \(64,\)",
    ),
    "assigned twice": (lambda: made(Let("a", X), Let("a", X)), "a is assigned twice"),
    "carried dtype": (
        lambda: made(carried=(Carried("t", ZERO, Const(0, "i32")),)),
        "t goes from",
    ),
    "no combiner": (lambda: made(Let("a", Reduce("sub", WIDE, ZERO, "f32"))), "sub of"),
    "lanes of no loop": (
        lambda: made(Let("a", IndexValue(AT, "i64", (4,), ("j",)))),
        "j is not the index of a loop",
    ),
    "instruction": (lambda: made(Call("launch_missiles")), "launch_missiles is not an instruction"),
    "step": (lambda: made(step=0), "loop i has step 0"),
    "size": (lambda: made(step=16, size=3), "loop i: 3 of 16"),
}


@pytest.mark.parametrize("name", GOOD)
def test_accepted(name: str) -> None:
    verify(GOOD[name]())


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    function, says = BAD[name]
    with pytest.raises(AssertionError, match=f"f: {says}(.|\n)*\n  in "):
        verify(function())
