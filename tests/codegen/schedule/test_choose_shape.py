"""The sizes that "auto" chooses: a row of registers, or a square if a row would need strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.nodes import ArrayArg
from codegen.schedule.choose_lanes import choose_shape

ROW, SQUARE = (64,), (16, 16)


def along(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j]


def transposed(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]


def mixed(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * b[j, i]


def down(a, b, c):
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            c[i, j] = a[i, j]


def one_loop(a, b, c):
    for i in range(a.shape[0]):
        c[i, 0] = a[0, i]


def product(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def diagonal(a, b, c):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[j, i] = a[j - 1, i - 1] + b[i, j]


def chosen(function: Callable[..., None], lanes: int = 16, tail: str = "mask", order: str = "C") -> Any:
    arguments = [ArrayArg(name, "f32", 2, order if name == "c" else "C") for name in "abc"]
    return choose_shape(read_function(function).typed(arguments), 4, lanes, False, tail, False)


@pytest.mark.parametrize("function", [along, down, one_loop, product])
def test_rows_are_chosen(function: Callable[..., None]) -> None:
    """Every access is contiguous along one loop, or no square would make it so."""
    assert chosen(function) == ROW


@pytest.mark.parametrize("function", [transposed, mixed])
def test_squares_are_chosen(function: Callable[..., None]) -> None:
    assert chosen(function) == SQUARE


def test_the_order_of_an_array_matters() -> None:
    """In column-major order, c[j, i] is contiguous along j."""
    assert chosen(transposed, order="F") == ROW
    assert chosen(along, order="F") == SQUARE


def test_two_dimensions_must_be_legal() -> None:
    """A dependence along both loops allows only rows."""
    assert chosen(diagonal) == ROW


def test_few_lanes_and_promised_extents() -> None:
    """Two rows of two lanes take as long as strides. A promise about one loop says nothing about another."""
    assert chosen(transposed, lanes=2) == (8,)
    assert chosen(transposed, lanes=4) == (4, 4)
    assert chosen(transposed, tail="assume_divisible") == ROW
