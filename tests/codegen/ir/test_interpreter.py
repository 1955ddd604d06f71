"""The interpreter on super-vectorized forms written by hand, and on malformed IR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codegen.ir.index import Affine, FloorDiv, Index, index_symbol
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import ArrayArg, Carried, For, Function, Let, ScalarArg, Statement, Store
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Value
from codegen.support.errors import KernelError
from tests.codegen.passes.rows import numbers, out

I_, J, N = index_symbol("i"), index_symbol("j"), index_symbol("n")


def loop(index: str, upper: Index, *body: Statement, size: int = 1, step: int = 1, **more: Any) -> For:
    return For(index, (Affine(),), (upper,), step * size, body, size=size, **more)


def function(*body: Statement, ranks: tuple[int, ...] = (1, 1), results: tuple[Value, ...] = ()) -> Function:
    arrays = [ArrayArg(name, "f32", rank) for name, rank in zip("AC", ranks, strict=True)]
    return Function("f", (*arrays, ScalarArg("n", "i64")), body, results)


def twice(value: Value) -> Value:
    return Op("mul", (Const(2.0, "f32", value.shape), value), "f32", value.shape)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 23, 32])
def test_a_masked_tail_touches_no_further_elements(n: int) -> None:
    """Lanes past the end of the loop are neither read nor written, although the arrays continue."""
    a, c = numbers(32, "f"), out(32, "f")
    wide = loop(
        "i", N, Store("C", (I_,), twice(Load("A", (I_,), "f32", (8,), (0,), (1,))), (0,), (1,)), size=8
    )
    interpret(function(wide), (a, c, n))
    assert (c[:n] == 2 * a[:n]).all()
    assert (c[n:] == 7).all()


def test_lanes_outside_the_array_but_inside_the_loop_are_errors() -> None:
    load = Load("A", (I_,), "f32", (8,), (0,), (1,))
    wide = loop("i", N, Store("C", (I_,), load, (0,), (1,)), size=8)
    c = out(32, "f")
    interpret(function(wide), (numbers(9, "f"), c, 9))
    with pytest.raises(KernelError, match=r"A\[i\] is A\[9\] here, but dimension 0 has 9 elements \(i = 8\)"):
        interpret(function(wide), (numbers(9, "f"), c, 10))


def test_steps_reversed_and_strided() -> None:
    """C[31 - i] = A[2*i]: lanes go backward in one array and by two in the other."""
    load = Load("A", (I_ * 2,), "f32", (4,), (0,), (2,))
    wide = loop("i", N, Store("C", (Affine(15) - I_,), load, (0,), (-1,)), size=4)
    a, c = numbers(32, "f"), out(16, "f")
    interpret(function(wide), (a, c, 14))
    assert (c[::-1][:14] == a[::2][:14]).all()
    assert (c[:2] == 7).all()


def test_loop_steps() -> None:
    """for i in range(0, n, 3), four at once: lanes are 3 apart."""
    load = Load("A", (I_,), "f32", (4,), (0,), (3,))
    wide = loop("i", N, Store("C", (I_,), load, (0,), (3,)), size=4, step=3)
    a, c = numbers(32, "f"), out(32, "f")
    interpret(function(wide), (a, c, 20))
    expected = out(32, "f")
    expected[0:20:3] = a[0:20:3]
    assert (c == expected).all()


@pytest.mark.parametrize("shape", [(3, 5), (8, 4), (9, 13)])
def test_transposed_super_vectors(shape: tuple[int, int]) -> None:
    """C[j, i] = A[i, j] in vectors of 4x4: each array has its own order of subscripts."""
    load = Load("A", (I_, J), "f32", (4, 4), (0, 1), (1, 1))
    inner = loop("j", index_symbol("A.shape[1]"), Store("C", (J, I_), load, (1, 0), (1, 1)), size=4)
    wide = loop("i", index_symbol("A.shape[0]"), inner, size=4)
    a, c = numbers(shape, "f"), out(shape[::-1], "f")
    interpret(function(wide, ranks=(2, 2)), (a, c, 0))
    assert (c == a.T).all()


def test_super_vector_of_the_outer_loop_in_the_inner_one() -> None:
    """C[i, j] = A[i] + i: a value with the lanes of i is repeated along j."""
    lane = IndexValue(I_, "i64", (2,), ("i",))
    row = Op(
        "add", (Load("A", (I_,), "f32", (2,), (0,), (1,)), Op("cast", (lane,), "f32", (2,))), "f32", (2,)
    )
    spread = Op("broadcast", (Local("r", "f32", (2,)),), "f32", (2, 4))
    inner = loop("j", index_symbol("C.shape[1]"), Store("C", (I_, J), spread, (0, 1), (1, 1)), size=4)
    wide = loop("i", index_symbol("C.shape[0]"), Let("r", row), inner, size=2)
    a, c = numbers(5, "f"), out((5, 6), "f")
    interpret(function(wide, ranks=(1, 2)), (a, c, 0))
    assert (c == (a + np.arange(5, dtype="f"))[:, None]).all()


def test_index_values_along_lanes() -> None:
    """i // 3 in each lane."""
    value = Op("cast", (IndexValue(FloorDiv(I_, 3), "i64", (8,), ("i",)),), "f32", (8,))
    c = out(20, "f")
    wide = loop("i", N, Store("C", (I_,), value, (0,), (1,)), size=8)
    interpret(function(wide), (numbers(4, "f"), c, 19))
    assert (c[:19] == np.arange(19) // 3).all()
    assert c[19] == 7


@pytest.mark.parametrize("n", [0, 5, 8, 21])
def test_reductions_ignore_masked_lanes(n: int) -> None:
    a = np.round(numbers(24, "f"))
    update = Op("add", (Local("s", "f32", (8,)), Load("A", (I_,), "f32", (8,), (0,), (1,))), "f32", (8,))
    carried = Carried("s", Const(0.0, "f32", (8,)), update, "add")
    total = Reduce("add", Local("s", "f32", (8,)), Const(100.0, "f32"), "f32")
    wide = loop("i", N, size=8, carried=(carried,))
    assert interpret(function(wide, results=(total,)), (a, out(1, "f"), n)) == (100 + a[:n].sum(),)


def test_stores_that_accumulate_into_one_element() -> None:
    """C[0] += A[i] for each lane inside the loop."""
    a, c = np.round(numbers(24, "f")), out(1, "f")
    load = Load("A", (I_,), "f32", (8,), (0,), (1,))
    wide = loop("i", N, Store("C", (Affine(),), load, (None,), (1,), "add"), size=8)
    interpret(function(wide), (a, c, 21))
    assert c[0] == 7 + a[:21].sum()


def test_negative_steps() -> None:
    """A loop that counts down, several iterations at once."""
    load = Load("A", (I_,), "f32", (4,), (0,), (-1,))
    store = Store("C", (I_,), load, (0,), (-1,))
    wide = For("i", (Affine(9),), (Affine(1),), -4, (store,), size=4)
    a, c = numbers(12, "f"), out(12, "f")
    interpret(function(wide), (a, c, 0))
    assert (c[2:10] == a[2:10]).all()
    assert (c[[0, 1, 10, 11]] == 7).all()


def test_negative_subscripts_do_not_wrap() -> None:
    back = loop("i", N, Store("C", (I_,), Load("A", (I_ + Affine(-1),), "f32")))
    with pytest.raises(KernelError, match=r"A\[i - 1\] is A\[-1\] here"):
        interpret(function(back), (numbers(4, "f"), out(4, "f"), 4))


FMA = Op("fma", (Const(1 + 2.0**-23, "f32"), Const(1 - 2.0**-23, "f32"), Const(-1.0, "f32")), "f32")


def test_fma_rounds_once() -> None:
    assert interpret(function(results=(FMA,)), (out(1, "f"), out(1, "f"), 0)) == (np.float32(-(2.0**-46)),)
    wide = replace(FMA, operands=tuple(replace(c, shape=(4,)) for c in FMA.operands), shape=(4,))  # type: ignore
    (lanes,) = interpret(function(results=(wide,)), (out(1, "f"), out(1, "f"), 0))
    assert (lanes == np.float32(-(2.0**-46))).all()


@pytest.mark.parametrize(
    "value",
    [
        Op("add", (Const(1, "f32"), Const(1, "f64")), "f64"),
        Op("add", (Const(1, "f32"), Const(1, "f32")), "f64"),
        Op("wobble", (Const(1, "f32"),), "f32"),
        Local("t", "f32"),
        Op("add", (Const(1, "f32", (4,)), Const(1, "f32")), "f32"),
        Op("pow", (Const(2, "i32"), Const(-1, "i32")), "i32"),
    ],
    ids=["mixed", "result", "unknown", "unset", "shape", "negative power"],
)
def test_malformed_ir_is_refused(value: Value) -> None:
    with pytest.raises(KernelError):
        interpret(function(results=(value,)), (out(1, "f"), out(1, "f"), 0))


@pytest.mark.parametrize(
    "arguments",
    [(), (1, 2, 3), (out(1, "d"), out(1, "f"), 0), (out((1, 1), "f"), out(1, "f"), 0)],
    ids=["none", "numbers", "dtype", "rank"],
)
def test_arguments_of_other_types_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(KernelError, match=r"is an array of float32|takes 3 arguments"):
        interpret(function(), arguments)
