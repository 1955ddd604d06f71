# ruff: noqa: N803
"""Python functions against the IR that they become, which the interpreter runs."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import ArrayArg, For, Function, ScalarArg
from tests.codegen.frontend import kernels
from tests.codegen.passes.rows import ROWS, Row, numbers, out


def typed(function: Any, arguments: tuple[Any, ...]) -> Function:
    names = inspect.signature(function).parameters
    return read_function(function).typed([argument(n, a) for n, a in zip(names, arguments, strict=False)])


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with copies of the arrays in the same memory order."""
    return tuple(a.copy(order="K") if isinstance(a, np.ndarray) else a for a in arguments)


def same(a: Any, b: Any) -> bool:
    """Equal bit for bit; any NaN equals any other."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f" and a.dtype == b.dtype:
        known = ~np.isnan(a)
        return bool((np.isnan(b) == ~known).all() and (a[known].tobytes() == b[known].tobytes()))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_interpreter_agrees_with_python(row: Row) -> None:
    """The IR leaves the same arrays as the function and returns the same."""
    ours, theirs = copied(row.arguments), copied(row.arguments)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = row.function(*theirs)
    results = interpret(typed(row.function, row.arguments), ours)
    for mine, right in zip(ours, theirs, strict=True):
        assert same(mine, right)
    expected = () if expected is None else expected if isinstance(expected, tuple) else (expected,)
    assert len(results) == len(expected)
    for mine, right in zip(results, expected, strict=True):
        assert mine == right or (np.isnan(mine) and np.isnan(right))
        if isinstance(right, np.generic):
            assert mine.dtype == right.dtype


def loops(body: Any) -> list[For]:
    return [loop for s in body if isinstance(s, For) for loop in (s, *loops(s.body))]


COMBINERS = [
    (kernels.dot, ("f", "f"), ["add"]),
    (kernels.total_and_product, ("f",), ["add", "mul"]),
    (kernels.least_and_largest, ("f",), ["min", "max"]),
    (kernels.sum_of_some, ("f",), ["add"]),
    (kernels.largest_if, ("f",), ["max"]),
    (kernels.not_reductions, ("f",), ["", "", ""]),
    (kernels.bits, ("i", "i", "i"), ["and", "or", "xor"]),
    (kernels.prefix, ("f", "f"), [""]),
    (kernels.last_of, ("f",), [""]),
    (kernels.whole_sum, ("ff",), ["add", "add"]),
    (kernels.flags, ("f", "?"), ["and", "or"]),
    (kernels.horner, ("f", "f", "f"), [""]),
    (kernels.count, ("f", 0.5), ["add"]),
    (kernels.swapped, (3,), ["", ""]),
]


@pytest.mark.parametrize(
    ("function", "kinds", "expected"), COMBINERS, ids=lambda x: getattr(x, "__name__", "")
)
def test_combiners(function: Any, kinds: tuple[Any, ...], expected: list[str]) -> None:
    arguments = tuple(numbers((4,) * len(k), k[0]) if isinstance(k, str) else k for k in kinds)
    assert [c.combiner for loop in loops(typed(function, arguments).body) for c in loop.carried] == expected


def test_accumulating_stores_have_their_operation() -> None:
    (outer,) = typed(kernels.matmul_in_place, (numbers((2, 2), "f"),) * 3).body
    assert [s.accumulate for s in loops([outer])[-1].body] == ["add"]
    wide = typed(kernels.matmul_in_place, (numbers((2, 2), "f"), numbers((2, 2), "d"), numbers((2, 2), "f")))
    assert [s.accumulate for s in loops(wide.body)[-1].body] == [""]


def test_annotations_give_dtypes() -> None:
    one, two = typed(kernels.annotated, (numbers(4, "i"), out(4, "i"))).body
    assert (one.parallel, two.parallel, two.carried[0].combiner) == (True, False, "add")


def test_loops_have_unique_names_and_their_lines() -> None:
    found = loops(typed(kernels.shadowed, (numbers((2, 2), "f"),) * 2).body)
    first = inspect.getsourcelines(kernels.shadowed)[1]
    assert [loop.index for loop in found] == ["i", "j", "i.1", "j.1"]
    assert [loop.line - first for loop in found] == [1, 3, 6, 7]
    assert all(not loop.carried for loop in found)


def test_python_numbers_are_weak() -> None:
    """A Python float 2.0 does not change the dtype of f32; np.float64(2) does."""
    weak = typed(kernels.saxpy, (2.0, numbers(4, "f"), numbers(4, "f")))
    assert weak.arguments[0] == ScalarArg("alpha", "f64")
    assert loops(weak.body)[0].body[0].accumulate == "add"
    strong = typed(kernels.saxpy, (np.float64(2), numbers(4, "f"), numbers(4, "f")))
    assert loops(strong.body)[0].body[0].accumulate == ""


def test_bfloat16_is_rounded_at_each_operation() -> None:
    def fused(A, B, C):
        for i in range(A.shape[0]):
            C[i] = A[i] * B[i] + 1.0

    a, b = (numbers(64, "f").astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros(64, ml_dtypes.bfloat16)
    interpret(typed(fused, (a, b, c)), (a, b, c))
    product = (a.astype("f") * b.astype("f")).astype(ml_dtypes.bfloat16).astype("f")
    assert (c == (product + np.float32(1)).astype(ml_dtypes.bfloat16)).all()


def test_math_stays_in_its_dtype() -> None:
    """math.sqrt(f32) is f32, whereas Python computes it in f64."""

    def root(A, C):
        one = 1
        for i in range(A.shape[0]):
            C[i] = kernels.math.sqrt(A[i]) * one

    a, c = numbers(16, "f", low=0), out(16, "d")
    interpret(typed(root, (a, c)), (a, c))
    assert (c == np.sqrt(a)).all()


def test_closures_and_defaults_are_constants() -> None:
    factor = 3

    def scaled(A, C, by=2.0):
        for i in range(A.shape[0]):
            C[i] = A[i] * factor * by

    a, c = numbers(4, "f"), out(4, "f")
    function = typed(scaled, (a, c))
    assert len(function.arguments) == 2
    interpret(function, (a, c))
    assert same(c, a * 3 * np.float32(2))


def test_an_index_out_of_bounds_is_an_error_before_anything_is_written() -> None:
    def shifted(A):
        for i in range(A.shape[0]):
            A[i + 1] = A[i]

    a = numbers(4, "f")
    with pytest.raises(Exception, match=r"A\[i \+ 1\] is A\[4\] here, but dimension 0 has 4 elements"):
        interpret(typed(shifted, (a,)), (a,))


def test_a_source_can_be_typed_repeatedly() -> None:
    """A source is read once and typed for each call. No state remains between calls."""
    source = read_function(kernels.dot)
    f32 = [ArrayArg("A", "f32", 1, "C"), ArrayArg("B", "f32", 1, "C")]
    assert source.typed(f32) == source.typed(f32)
    assert source.typed([ArrayArg("x", "i8", 1), ArrayArg("y", "f64", 1)]).results[0].dtype == "f64"
