"""How slow kernels are said to be, from which size on they get threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.call_limits import BOUND_BY_MEMORY, COMPUTES
from codegen.schedule.slowness import slowness_of


@tj.kernel
def scaled(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 2 * x[i, j] + x[j, i]


@tj.kernel
def exponential(x, y):
    for i in range(x.shape[0]):
        y[i] = np.exp(x[i]) + 1


@tj.kernel
def power(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] ** 0.37


@tj.kernel
def root(x, y):
    for i in range(x.shape[0]):
        y[i] = np.sqrt(x[i])


@tj.kernel
def product(x, y, z):
    for i in range(x.shape[0]):
        for j in range(y.shape[1]):
            for k in range(x.shape[1]):
                z[i, j] += x[i, k] * y[k, j]


@pytest.mark.parametrize(
    ("kernel", "rank", "slowness"),
    [
        (scaled, 2, BOUND_BY_MEMORY),
        (exponential, 1, COMPUTES),
        (power, 1, COMPUTES),
        (root, 1, BOUND_BY_MEMORY),
        (product, 2, COMPUTES),
    ],
    ids=["scaled", "exponential", "power", "root", "product"],
)
def test_functions_and_deep_loops_compute(kernel: Any, rank: int, slowness: int) -> None:
    arrays = [np.ones((4,) * rank) for _ in range(3 if kernel is product else 2)]
    assert slowness_of(kernel._specialized(arrays).function) == slowness
