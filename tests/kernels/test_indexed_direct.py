"""Calls of indexed kernels that native code answers, including the check of their indices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.interpreter import interpret
from codegen.pipeline.index_limits import limits_kernel, outside_function
from codegen.runtime.direct_calls import supported
from tests.conftest import SEED
from tests.kernels.indexed import CASES, Case, gather, scatter, scatter_apart
from tests.kernels.test_indexed import HOSTILE, INTEGERS, arguments
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded
from tilejit.programs.direct_policy import LOOPS_FROM

pytestmark = [
    pytest.mark.skipif(not supported(), reason="direct calls are not supported here"),
]


def answered(kernel: Any, *given: Any) -> bool:
    """Whether native code answers a call after some repetitions."""
    for _ in range(LOOPS_FROM):
        kernel(*given)
    kernel(*given)
    return kernel._last_answer() is not None


@pytest.mark.parametrize("index", INTEGERS)
@pytest.mark.parametrize("case", few_by_default(CASES, 3), ids=lambda case: case.name)
def test_native_calls_agree_with_python(case: Case, index: str) -> None:
    kernel = tj.kernel(case.function)
    y, x, idx = arguments(case, "f8", index)
    assert answered(kernel, y.copy(), x, idx)
    rng = np.random.default_rng(SEED)
    for _ in range(3):
        rng.shuffle(idx)
        mine, theirs = y.copy(), y.copy()
        assert kernel(mine, x, idx) == case.function(theirs, x, idx)
        assert kernel._last_answer() is not None
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
    assert answered(kernel, y, x, idx)
    y[...], idx[...] = 7, indices
    with pytest.raises(IndexError, match=re.escape(text)):
        kernel(y, x, idx)
    assert (y == 7).all()
    assert all(room.untouched() for room in rooms)
    masked = tj.kernel(function, index_bounds="mask")
    assert answered(masked, y, x, idx)
    assert all(room.untouched() for room in rooms)


def shifted(y, x, idx, k):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        y[i] = x[idx[2 * i + 1] + i - k]


def test_indices_plus_numbers_and_unused_elements() -> None:
    """Every other element, from the second one on, plus the loop's index."""
    kernel, y, x = tj.kernel(shifted), np.zeros(20), np.arange(100.0)
    idx = np.random.default_rng(SEED).integers(4, 80, 45)
    idx[::2], idx[41:] = 1 << 40, -(1 << 40)
    assert answered(kernel, y, x, idx, 4)
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
    assert answered(kernel, y, x, far, near)
    np.testing.assert_array_equal(y, x[far[near]])
    far[29] = 50
    kernel(y, x, far, near)
    assert kernel._last_answer() is None
    near[7] = -1
    with pytest.raises(IndexError, match=re.escape("far[29] is 50; expected -50 to 49")):
        kernel(y, x, far, near)
    long = np.zeros(1000, np.int64)
    assert not answered(kernel, y, x, long, np.zeros(20, np.int64))


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[::3], np.s_[1:90]], ids=str)
def test_views_of_indices(view: slice) -> None:
    kernel, x = tj.kernel(gather), np.arange(50.0)
    idx = np.random.default_rng(SEED).integers(-50, 50, 100)[view]
    y = np.zeros(len(idx))
    assert answered(kernel, y, x, idx)
    np.testing.assert_array_equal(y, x[idx])
    idx[-1] = 50
    with pytest.raises(IndexError, match="is 50; expected"):
        kernel(y, x, idx)


def test_a_checked_permutation_goes_through_python() -> None:
    kernel = tj.kernel(scatter_apart, verify=True)
    assert not answered(kernel, np.zeros(4), np.arange(4.0), np.array([3, 0, 2, 1]))


@pytest.mark.full
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shape", [(1,), (67,), (3, 41), (2, 3, 17)], ids=str)
def test_range_checks_find_elements_outside(dtype: str, shape: tuple[int, ...]) -> None:
    """The result is 1 exactly if an element is below or above the limits, interpreted and compiled."""
    rng, info = np.random.default_rng(SEED), np.iinfo(dtype)
    name = f"{dtype[0]}{info.bits}"
    kinds = [(False, len(shape))] + [(True, 1)] * (len(shape) == 1)
    for spread in (3, 60, info.max):
        x = rng.integers(max(info.min, -spread), spread, shape, dtype, endpoint=True)
        for low, high in (
            (0, 50),
            (-60, 59),
            (-1, min(spread - 1, (1 << 63) - 1)),
            (0, 0),
            (-(1 << 63), (1 << 63) - 1),
        ):
            least = max(low, 0) if dtype[0] == "u" else low
            wanted = int(any(not low <= int(v) <= high for v in x.ravel()))
            for dense, rank in kinds:
                assert interpret(outside_function(name, rank, dense), [x, least, high]) == (wanted,)
                bound = limits_kernel(name, rank, dense).bind(
                    {"x": shape}, {"x": x.strides}, {"low": least, "high": high}
                )
                assert bound.run([x.ctypes.data]) == (wanted,)
