"""The estimated slowness of kernels, which determines the size from which they use threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.call_limits import BOUND_BY_MEMORY, COMPUTES, TRANSPOSES
from codegen.schedule.slowness import slowness_of


@tj.kernel
def scaled(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 2 * x[i, j] + 1


@tj.kernel
def transposed(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 2 * x[i, j] + x[j, i]


@tj.kernel
def row_sums(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, 0] += x[i, j]


@tj.kernel
def in_blocks(x, y):
    for block in range(0, x.shape[0], 4):
        for i in range(block, min(block + 4, x.shape[0])):
            y[i] = 2 * x[i]


@tj.kernel
def triangle(x, y):
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            y[j] += x[i]


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
        (transposed, 2, TRANSPOSES),
        (row_sums, 2, BOUND_BY_MEMORY),
        (in_blocks, 1, BOUND_BY_MEMORY),
        (triangle, 1, COMPUTES),
        (exponential, 1, COMPUTES),
        (power, 1, COMPUTES),
        (root, 1, BOUND_BY_MEMORY),
        (product, 2, COMPUTES),
    ],
    ids=lambda x: x.__name__ if hasattr(x, "__name__") else str(x),
)
def test_functions_and_deep_loops_count_as_computation(kernel: Any, rank: int, slowness: int) -> None:
    arrays = [np.ones((4,) * rank) for _ in range(3 if kernel is product else 2)]
    assert slowness_of(kernel._specialized(arrays).function) == slowness


@pytest.mark.parametrize(
    ("orders", "slowness"),
    [("CC", TRANSPOSES), ("FF", TRANSPOSES), ("FC", BOUND_BY_MEMORY), ("CF", BOUND_BY_MEMORY)],
)
def test_the_order_in_memory_decides_what_is_transposed(orders: str, slowness: int) -> None:
    @tj.kernel
    def kernel(x, y):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[j, i]

    arrays = [np.ones((4, 4), order=order) for order in orders]
    assert slowness_of(kernel._specialized(arrays).function) == slowness
