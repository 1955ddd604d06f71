"""Super-vectors of two loops with transposed transfers: blocks are transposed in registers, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.codegen.passes.rows import numbers
from tests.tools.guard import Guarded


def doubled(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j] * 2


def loaded_by_columns(a, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] += a[j, i] * i + (a[0, i] - j)


def where_positive(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            t = a[i, j] + (i // 3) % 2
            if t > 0:
                c[j, i] += t


def read_again(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]
            c[j, i] += c[j, i] + 1


def rows_added(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = c[j, i]
            for k in range(3):
                s += a[i, j] * k
            c[j, i] = s


def every_second(a, c):
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1] - 1, -1, -2):
            c[j, i] = a[i, j]


def outermost_turned(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                c[k, j, i] = a[i, j, k]


def inner_two_turned(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                c[i, k, j] = a[i, j, k] + i


FLAT = (doubled, loaded_by_columns, where_positive, read_again, rows_added, every_second)


def check(function: Callable[..., Any], kernel: Any, a: np.ndarray, c: np.ndarray) -> None:
    expected = c.copy()
    function(a, expected)
    kernel(a, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "dtype"),
    [*((f, "f") for f in FLAT), (doubled, "d")],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_two_dimensions(function: Callable[..., Any], dtype: str) -> None:
    kernel = tj.kernel(virtual_vector_size=(16, 32))(function)
    for rows, columns in ((0, 9), (32, 16), (3, 70), (40, 5), (37, 41)):
        check(function, kernel, numbers((rows, columns), dtype), numbers((columns, rows), dtype))


@pytest.mark.full
@pytest.mark.parametrize("tail", ["scalar", "shift", "assume_divisible"])
def test_tails(tail: str) -> None:
    kernel = tj.kernel(virtual_vector_size=(16, 16), tail=tail)(where_positive)
    shapes = ((48, 32),) if tail == "assume_divisible" else ((48, 32), (37, 41))
    for shape in shapes:
        check(where_positive, kernel, numbers(shape, "f"), numbers(shape[::-1], "f"))


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["b", "e", "i", "?"])
def test_dtypes(dtype: str) -> None:
    function = doubled if dtype != "?" else every_second
    kernel = tj.kernel(virtual_vector_size=(16, 16))(function)
    check(function, kernel, numbers((37, 41), dtype), numbers((41, 37), dtype))


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "sizes"), [(outermost_turned, (8, 2, 8)), (inner_two_turned, (2, 8, 8))]
)
def test_three_dimensions(function: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    kernel = tj.kernel(virtual_vector_size=sizes)(function)
    a = numbers((11, 19, 21), "f")
    check(function, kernel, a, np.zeros(a.shape[::-1] if function is outermost_turned else (11, 21, 19), "f"))


@pytest.mark.full
def test_no_byte_outside_the_arrays_is_touched() -> None:
    kernel = tj.kernel(virtual_vector_size=(16, 16))(doubled)
    source, target = Guarded(1 << 14), Guarded(1 << 14)
    for rows, columns in ((37, 41), (16, 16), (17, 31)):
        for at_end in (False, True):
            a, c = (side.place(4 * rows * columns, at_end=at_end).view("f") for side in (source, target))
            a, c = a.reshape(rows, columns), c.reshape(columns, rows)
            a[...], c[...] = numbers((rows, columns), "f"), 7
            check(doubled, kernel, a, c)
            assert target.untouched()


def test_threads_share_the_rows() -> None:
    kernel = tj.kernel(virtual_vector_size=(16, 16), parallel=3)(doubled)
    check(doubled, kernel, numbers((131, 67), "f"), np.zeros((67, 131), "f"))
