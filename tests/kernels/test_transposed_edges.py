"""Kernels with blocks that are transposed in registers, at extents around those of a block."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded

EXTENTS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33)


def moved(c: Any, a: Any, b: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[j, i] * 2 + b[i, j]


def added(c: Any, a: Any, b: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] += a[j, i] + b[i, j]


@pytest.mark.parametrize(
    ("size", "tail"), [("auto", "shift"), ("auto", "mask"), ((8, 8), "shift"), ((16, 32), "clamp")], ids=str
)
@pytest.mark.parametrize("function", [moved, added], ids=lambda x: x.__name__)
@pytest.mark.parametrize("dtype", ["f4", "u2"])
def test_edges_between_guard_pages(function: Any, size: Any, tail: str, dtype: str) -> None:
    """Blocks overlap where iterations may run twice: in `moved`, unless its tail is masked."""
    kernel = tj.kernel(virtual_vector_size=size, tail=tail, parallel=True)(function)
    rng, rooms = np.random.default_rng(7), [Guarded(4 * EXTENTS[-1] ** 2) for _ in range(3)]
    for n, m in product(EXTENTS, repeat=2):
        a, b, before = (rng.integers(0, 99, shape).astype(dtype) for shape in ((m, n), (n, m), (n, m)))
        given = []
        for room, x in zip(rooms, (before, a, b), strict=True):
            given.append(room.place(x.nbytes, at_end=(n + m) % 2 == 0).view(x.dtype).reshape(x.shape))
            given[-1][...] = x
        kernel(*given)
        expected = before + (a.T + b) if function is added else a.T * 2 + b
        assert np.array_equal(given[0], expected), (n, m)
        assert all(room.untouched() for room in rooms), (n, m)
    overlaps = "i_block" in kernel.specialize(*given).source
    assert overlaps == (function is moved and tail != "mask")


def test_the_report_says_what_arrays_too_thin_for_a_block_do() -> None:
    kernel = tj.kernel(moved)
    c, a, b = np.zeros((300, 1), "f4"), np.ones((1, 300), "f4"), np.ones((300, 1), "f4")
    kernel(c, a, b)
    assert (c == 3).all()
    assert "element by element where none is full" in str(kernel.report())
