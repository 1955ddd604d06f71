"""Loops whose bounds are array elements: rows of a sparse matrix."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.conftest import SEED
from tests.tools.guard import Guarded


def product(y, x, val, col, ptr):
    for i in range(y.shape[0]):
        s = 0.0
        for k in tj.reduction(range(ptr[i], ptr[i + 1])):
            s += val[k] * x[col[k]]
        y[i] = s


def sums(y, x, val, col, ptr):
    for i in range(y.shape[0]):
        for k in tj.reduction(range(ptr[i], ptr[i + 1])):
            y[i] += val[k]


def scaled(y, x, val, col, ptr):
    for i in tj.parallel(range(len(ptr) - 1)):
        for k in range(ptr[i], ptr[i + 1]):
            val[k] *= y[i]


def scattered(y, x, val, col, ptr):
    for i in range(len(ptr) - 1):
        first = ptr[i]
        end = ptr[i + 1]
        for k in range(first, end):
            x[col[k]] += val[k] * y[i]


def every_other(y, x, val, col, ptr):
    for i in range(len(ptr) - 1):
        for k in range(ptr[i] + 1, min(ptr[i + 1], len(val) - 1), 2):
            val[k] = val[k] * 2 + y[i]


def heads(y, x, val, col, ptr):
    for i in range(len(ptr) - 1):
        for k in range(ptr[i]):
            val[k] = val[k] + 1


def dense(y, x, val, col, ptr):
    for k in range(ptr[1], ptr[len(ptr) - 1]):
        val[k] = x[col[k]] + 1


KERNELS = (product, sums, scaled, scattered, every_other, heads, dense)


def matrix(rows: int, index: str, columns: int = 23) -> tuple[Any, ...]:
    """y, x, val, col, ptr"""
    rng = np.random.default_rng(SEED)
    counts = rng.integers(0, 40, rows) * rng.integers(0, 2, rows)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    col = rng.integers(0, columns, int(ptr[-1])).astype(index)
    y, x, val = (rng.integers(0, 9, n).astype(float) for n in (rows, columns, len(col)))
    return y, x, val, col, ptr


def same(kernel: Any, function: Callable[..., None], given: tuple[Any, ...]) -> None:
    mine, theirs = ([each.copy() for each in given] for _ in range(2))
    kernel(*mine)
    function(*theirs)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("function", "tail", "size", "index"),
    [
        pytest.param(
            *(function, tail, ("auto", 3, 64)[(m + n) % 3]),
            ("i8", "i4")[(m + n) % 2 * (function is not every_other)],
            marks=[pytest.mark.full] * (m > 0),
        )
        for m, function in enumerate(KERNELS)
        for n, tail in enumerate(("mask", "scalar", "shift"))
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_kernels_agree_with_python(function: Callable[..., None], tail: str, size: Any, index: str) -> None:
    """Functions take each tail, with the sizes and dtypes of bounds in turn."""
    kernel = tj.kernel(function, tail=tail, virtual_vector_size=size)
    for rows in (1, 2, 30):
        for _ in range(3):
            same(kernel, function, matrix(rows, index))


@pytest.mark.full
@pytest.mark.parametrize("index", ["i1", "u1", "u2", "u4", "u8"])
def test_dtypes_of_bounds(index: str) -> None:
    y, x, val, col, ptr = matrix(5, "i8")
    ptr = np.minimum(ptr, 100)
    for function in (product, scaled, scattered):
        same(tj.kernel(function), function, (y, x, val, col.astype(index), ptr.astype(index)))


def test_the_inner_loop_vectorizes() -> None:
    kernel = tj.kernel(product).specialize(*matrix(5, "i4"))
    assert "loop i: scalar, bound-uses-index: the bound ptr[i] of loop k uses i" in kernel.report()
    assert re.search(r"loop k: vectorized .*x\[col\[k\]\] gathered, s is reduced by add", kernel.report())
    assert "elements of col and ptr are subscripts: calls check them" in kernel.report()


@pytest.mark.full
def test_bounds_that_cross_are_empty_loops() -> None:
    y, x, val, col, _ = matrix(4, "i8")
    ptr = np.array([9, 3, 7, 7, 2])
    for function in (product, sums, scaled, scattered):
        same(tj.kernel(function), function, (y, x, val, col, ptr))


HOSTILE = (-1, 41, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63))


@pytest.mark.parametrize("wrong", HOSTILE)
@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("function", [product, sums, scaled, scattered, dense], ids=lambda f: f.__name__)
def test_hostile_bounds(function: Callable[..., None], at: int, wrong: int) -> None:
    """Accesses outside an array are refused before anything is written, even after valid calls."""
    rooms = [Guarded(1 << 12) for _ in range(3)]
    val = rooms[0].place(8 * 40, at_end=at != 0).view(float)
    col = rooms[1].place(8 * 40, at_end=at != 0).view(np.int64)
    ptr = rooms[2].place(8 * 4, at_end=at != 0).view(np.int64)
    y, x = np.ones(3), np.ones(11)
    val[...], col[...], ptr[...] = 1, np.arange(40) % 11, [0, 12, 12, 40]
    kernel = tj.kernel(function)
    for _ in range(4):
        kernel(y, x, val, col, ptr)
    y[...], x[...], val[...] = 1, 1, 1
    ptr[at] = wrong
    pairs = [(ptr[1], ptr[3])] if function is dense else list(pairwise(ptr))
    outside = any(a < b and (a < 0 or b > 40) for a, b in pairs)
    if outside:
        with pytest.raises(IndexError, match="correct the elements of ptr"):
            kernel(y, x, val, col, ptr)
        assert (val == 1).all()
        assert (y == 1).all()
    else:
        with suppress(IndexError):  # a bound of an empty loop has more than 61 bits
            kernel(y, x, val, col, ptr)
    assert all(room.untouched() for room in rooms)


@pytest.mark.parametrize("wrong", [-12, 11, 1 << 40])
def test_hostile_columns(wrong: int) -> None:
    y, x, val, col, ptr = np.ones(3), np.ones(11), np.ones(40), np.arange(40) % 11, np.array([0, 12, 12, 40])
    for function in (product, scattered):
        kernel = tj.kernel(function)
        for _ in range(4):
            kernel(y, x, val, col, ptr)
        broken = col.copy()
        broken[17] = wrong
        with pytest.raises(IndexError, match=re.escape(f"col[17] is {wrong}")):
            kernel(y, x, val, broken, ptr)
        kernel(y, x, val, broken, np.array([0, 12, 12, 17]))


def test_shorter_arrays_are_checked_again() -> None:
    """The part of col that is used depends on ptr."""
    y, x, val, col, ptr = np.ones(1), np.ones(11), np.ones(40), np.zeros(40, np.int64), np.array([0, 5])
    kernel = tj.kernel(product)
    kernel(y, x, val, col, ptr)
    col[20] = 99
    kernel(y, x, val, col, ptr)
    ptr[1] = 30
    with pytest.raises(IndexError, match=re.escape("col[20] is 99")):
        kernel(y, x, val, col, ptr)


@pytest.mark.full
def test_loops_without_iterations_until_bounds_change() -> None:
    """There are no matrix elements, so every bound except 0 is outside."""
    y, x, none, ptr = np.ones(3), np.ones(11), np.ones(0), np.zeros(4, np.int64)
    for function in (product, sums, scaled, scattered):
        kernel = tj.kernel(function)
        for _ in range(4):
            kernel(y, x, none, none.astype(int), ptr)
        ptr[2] = 5
        with pytest.raises(IndexError, match="correct the elements of ptr"):
            kernel(y, x, none, none.astype(int), ptr)
        ptr[2] = 0


@pytest.mark.full
def test_repeated_calls() -> None:
    given = matrix(9, "i4")
    for function in (product, sums, scattered):
        kernel = tj.kernel(function)
        for _ in range(4):
            kernel(*given)
        same(kernel, function, given)


def test_arrays_of_bounds_must_not_be_stored_to() -> None:
    def grows(ptr):  # type: ignore[no-untyped-def]
        for i in range(ptr.shape[0] - 1):
            for k in range(ptr[i], ptr[i + 1]):
                ptr[k] = 0

    with pytest.raises(tj.KernelError, match="ptr is stored to, and its elements are subscripts"):
        tj.kernel(grows)(np.zeros(4, np.int64))

    shared = np.zeros(9, np.int64)
    with pytest.raises(ValueError, match="shares memory"):
        tj.kernel(scaled)(np.ones(8), np.ones(2), shared, shared[:0], shared)


def test_bounds_that_count_down_or_divide_are_refused() -> None:
    def down(y, ptr):  # type: ignore[no-untyped-def]
        for i in range(ptr[0], 0, -1):
            y[i] = 1

    def half(y, ptr):  # type: ignore[no-untyped-def]
        for i in range(ptr[0] // 2):
            y[i] = 1

    for function in (down, half):
        with pytest.raises(tj.KernelError, match="a bound"):
            tj.kernel(function)(np.ones(9), np.zeros(1, np.int64))


@pytest.mark.full
def test_verify_and_other_options() -> None:
    given = matrix(7, "i8")
    for options in ({"verify": True}, {"vectorize_at": "after_tile"}, {"parallel": 2}, {"parallel": False}):
        same(tj.kernel(scaled, **options), scaled, given)
    for options in ({"vectorize_reductions": True, "fastmath": True}, {"specialize": "sizes"}):
        same(tj.kernel(product, **options), product, given)
    same(tj.kernel(product, index_bounds="mask"), product, given)
