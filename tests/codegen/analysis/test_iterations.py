"""How often the loops of a function run at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen import known_sizes
from codegen.analysis.iterations import most_iterations


def once(x, n):
    x[0] = n


def steps(x, n):
    for i in range(n):
        x[0] = x[0] + i


def backward(x, n):
    for i in range(n - 1, -1, -3):
        x[0] = x[0] + i


def cut(x, n):
    for i in range(max(n - 7, 0), min(n, 4 * n), 2):
        x[0] = x[0] + i


def square(x, n):
    for i in range(n):
        for j in range(len(x)):
            x[j] = x[j] + i


def triangle(x, n):
    for i in range(n):
        for j in range(i):
            x[0] = x[0] + j


def blocks(x, n):
    for i in range(0, n, 4):
        for j in range(i, min(i + 4, n)):
            x[0] = x[0] + j


def several(x, n):
    for i in range(n):
        if x[0] > i:
            for j in range(i, n):
                x[0] = x[0] - j
        for j in range(3):
            x[1] = x[1] + j
    for i in range(n // 2):
        x[2] = x[2] + i


EXPECTED: tuple[tuple[Callable[..., Any], Callable[[int], int]], ...] = (
    (once, lambda n: 0),
    (steps, lambda n: n),
    (backward, lambda n: -(-n // 3)),
    (cut, lambda n: (min(n, 7) + 1) // 2),
    (square, lambda n: 5 * n),
    (triangle, lambda n: n * max(n - 1, 1) if n else 0),
    (blocks, lambda n: -(-n // 4) * min(n, 4)),
    (several, lambda n: n * (n + 3) + n // 2),
)


def scalar(function: Callable[..., Any], *given: Any) -> Any:
    return tj.kernel(function).specialize(*given).program.function


@pytest.mark.parametrize("n", [0, 1, 2, 9, 40])
@pytest.mark.parametrize(("function", "expected"), EXPECTED, ids=lambda f: f.__name__)
def test_the_most_iterations_of_loops(
    function: Callable[..., Any], expected: Callable[[int], int], n: int
) -> None:
    """Inner loops count as if they always had their maximum length."""
    found = most_iterations(scalar(function, np.zeros(5), n), known_sizes({"x": (5,)}, {"n": n}))
    assert found == expected(n)


def by_element(x, first):
    for i in range(first[0]):
        x[0] = x[0] + i


def inner_by_element(x, first):
    for i in range(len(first) - 1):
        for k in range(first[i], first[i + 1]):
            x[0] = x[0] + k


@pytest.mark.parametrize("function", [by_element, inner_by_element], ids=lambda f: f.__name__)
def test_bounds_that_are_elements_are_unknown(function: Callable[..., Any]) -> None:
    sizes = known_sizes({"x": (5,), "first": (3,)}, {})
    typed = scalar(function, np.zeros(5), np.zeros(3, np.int64))
    assert most_iterations(typed, sizes) is None
