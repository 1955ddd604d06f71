"""The line that says what a kernel moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.summary import summary_of


def shifted(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1] - 1):
            c[i, j] = a[i, j + 1] * 2 + b[j]


def accumulated(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, 0] += a[i, 0] + a[i, 0]


def several(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 8):
            c[i, j] = a[i, j] + a[i, j + 1] + a[i, j + 2] + a[i, j + 3] + a[i, j + 4]


def total(a: Any, b: Any, c: Any) -> Any:
    s = np.float32(0)
    for i in range(3, b.shape[0]):
        s += b[i]
    return s


@pytest.mark.parametrize(
    ("function", "summary"),
    [
        (shifted, "c[i, j] from a[i, j + 1], b[j]; i < a.shape[0], 1 <= j < a.shape[1] - 1"),
        (accumulated, "c[i, 0] from a[i, 0]; i < a.shape[0]"),
        (
            several,
            "c[i, j] from a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3], …; "
            "i < a.shape[0], j < a.shape[1] - 8",
        ),
        (total, "s from b[i]; 3 <= i < b.shape[0]"),
    ],
)
def test_it_says_what_moves_and_how_much(function: Callable[..., Any], summary: str) -> None:
    arrays = np.ones((4, 20), np.float32), np.ones(20, np.float32), np.ones((4, 20), np.float32)
    program = tj.kernel(function).specialize(*arrays).program
    assert summary_of(program.function) == summary
    assert function.__name__ + ": " in program.kernel.emitted.source
