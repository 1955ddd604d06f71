"""Repeated calls of indexed kernels: the elements of index arrays are checked each time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.conftest import SEED
from tests.kernels.indexed import CASES, Case, gather, scatter
from tests.kernels.test_indexed import HOSTILE, INTEGERS, arguments
from tests.tools.guard import Guarded


def repeat(kernel: Any, *given: Any) -> None:
    """Call a kernel until native code answers such calls."""
    for _ in range(4):
        kernel(*given)


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "index"),
    [(case, INTEGERS[k % 8]) for n, case in enumerate(CASES) for k in (n, n + 3)],
    ids=lambda given: getattr(given, "name", given),
)
def test_native_calls_agree_with_python(case: Case, index: str) -> None:
    kernel = tj.kernel(case.function)
    y, x, idx = arguments(case, "f8", index)
    repeat(kernel, y.copy(), x, idx)
    rng = np.random.default_rng(SEED)
    for _ in range(3):
        rng.shuffle(idx)
        mine, theirs = y.copy(), y.copy()
        assert kernel(mine, x, idx) == case.function(theirs, x, idx)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.full
@pytest.mark.parametrize("function", [gather, scatter], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("dtype", "indices", "text"), HOSTILE)
def test_hostile_indices_after_good_ones(function: Any, dtype: str, indices: list[int], text: str) -> None:
    rooms = [Guarded(4096) for _ in range(3)]
    n = len(indices) if function is gather else 9
    y = rooms[0].place(4 * n, at_end=True).view("f4")
    x = rooms[1].place(36, at_end=True).view("f4")
    idx = rooms[2].place(len(indices) * np.dtype(dtype).itemsize, at_end=True).view(dtype)
    y[...], x[...], idx[...] = 7, np.arange(1, 10), 0
    kernel = tj.kernel(function)
    repeat(kernel, y, x, idx)
    y[...], idx[...] = 7, indices
    with pytest.raises(IndexError, match=re.escape(text)):
        kernel(y, x, idx)
    assert (y == 7).all()
    assert all(room.untouched() for room in rooms)
    masked = tj.kernel(function, index_bounds="mask")
    repeat(masked, y, x, idx)
    assert all(room.untouched() for room in rooms)


def shifted(y, x, idx, k):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        y[i] = x[idx[2 * i + 1] + i - k]


def test_indices_plus_numbers_and_unused_elements() -> None:
    """Every other element, from the second one on, plus the loop's index."""
    kernel, y, x = tj.kernel(shifted), np.zeros(20), np.arange(100.0)
    idx = np.random.default_rng(SEED).integers(4, 80, 45)
    idx[::2], idx[41:] = 1 << 40, -(1 << 40)
    repeat(kernel, y, x, idx, 4)
    np.testing.assert_array_equal(y, x[idx[1:40:2] + np.arange(20) - 4])
    idx[39] = 99 - 15 + 1
    with pytest.raises(IndexError, match=re.escape("idx[39] is 85, which makes subscript 0 100")):
        kernel(y, x, idx, 4)
    idx[39] = 84  # outside only at another index, so Python decides
    kernel(y, x, idx, 4)
    assert y[19] == 99


def twice(y, x, far, near):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        y[i] = x[far[near[i]]]


def test_indices_of_indices() -> None:
    """All of `far` is checked at once. Python finds that a wrong element is not used."""
    kernel, y, x = tj.kernel(twice), np.zeros(20), np.arange(50.0)
    rng = np.random.default_rng(SEED)
    far, near = rng.integers(-50, 50, 30), rng.integers(0, 29, 20)
    repeat(kernel, y, x, far, near)
    np.testing.assert_array_equal(y, x[far[near]])
    far[29] = 50
    kernel(y, x, far, near)
    near[7] = -1
    with pytest.raises(IndexError, match=re.escape("far[29] is 50; expected -50 to 49")):
        kernel(y, x, far, near)


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[::3], np.s_[1:90]], ids=str)
def test_views_of_indices(view: slice) -> None:
    kernel, x = tj.kernel(gather), np.arange(50.0)
    idx = np.random.default_rng(SEED).integers(-50, 50, 100)[view]
    y = np.zeros(len(idx))
    repeat(kernel, y, x, idx)
    np.testing.assert_array_equal(y, x[idx])
    idx[-1] = 50
    with pytest.raises(IndexError, match="is 50; expected"):
        kernel(y, x, idx)
