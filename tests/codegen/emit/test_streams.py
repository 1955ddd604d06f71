"""Kernels with streaming stores write what others do, at any alignment, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.machine import described, machine
from tests.codegen.simd.levels import AtLevels, turn
from tests.conftest import SEED
from tests.tools.guard import Guarded


def scaled(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] + 1


def from_the_end(x, y):
    for i in range(x.shape[0] - 1, -1, -1):
        y[i] = x[i] + x[i]


def inner_part(x, y):
    for i in range(3, x.shape[0] - 2):
        y[i] = x[i - 3] + x[i + 2]


def two_targets(x, y):
    for i in range(x.shape[0] // 2):
        t = x[i] + 1
        y[i] = t
        y[i + x.shape[0] // 2] = t * t


def in_place(x, y):
    for i in range(x.shape[0]):
        y[i] = y[i] + x[i]


def accumulating(x, y):
    for i in range(x.shape[0]):
        y[i] += x[i]


def written_again(x, y):
    for k in range(3):
        for i in range(x.shape[0]):
            y[i] = x[i] + k


def strided(x, y):
    for i in range(x.shape[0] // 2):
        y[2 * i] = x[i]


def running(x, y):
    s = x[0] - x[0]
    for i in tj.scan(range(x.shape[0])):
        s += x[i]
        y[i] = s


STREAMED = {scaled: True, running: True, from_the_end: False, inner_part: True, two_targets: False}
STREAMED |= {in_place: False, accumulating: False, written_again: False, strided: False}
DTYPES = [np.float32, np.float64, np.int16, np.uint8, ml_dtypes.bfloat16]


LARGE = 2 << 20
"""Bytes of arrays from which kernels may stream."""


@pytest.fixture
def always() -> Iterator[None]:
    """A machine without caches: large arrays never fit."""
    with described(replace(machine(), stream_bytes=0)):
        yield


@pytest.mark.parametrize("function", STREAMED, ids=lambda f: f.__name__)
def test_arrays_written_once_and_never_read_are_streamed(function: Callable[..., None]) -> None:
    """Each element is written once, adjacent to the others, and never read."""
    x, y = np.zeros(100, np.float32), np.zeros(100, np.float32)
    schedule = tj.kernel(function).specialize(x, y).schedule
    assert ("streaming stores where arrays are large" in schedule) == STREAMED[function]


@pytest.mark.full
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("function", [scaled, inner_part, running], ids=lambda f: f.__name__)
def test_every_alignment(function: Callable[..., None], dtype: Any) -> None:
    """Source and target begin at any byte. Guard pages catch accesses outside."""
    kind, rng = np.dtype(dtype), np.random.default_rng(SEED)
    kernel, source, target = tj.kernel(function), Guarded(2 * LARGE), Guarded(2 * LARGE)
    for count in (LARGE // kind.itemsize + more for more in (0, 1, 63)):
        for gap in (0, 1, kind.itemsize, 16, 40, 63):
            for at_end in (False, True):
                size = count * kind.itemsize
                x = source.place(size, at_end=at_end, gap=gap % 7).view(kind)
                y = target.place(size, at_end=at_end, gap=gap).view(kind)
                x[:] = rng.integers(0, 9, count).astype(kind)
                if function is running:
                    x[:], x[rng.integers(0, count, 100)] = 0, 1
                y[:] = 1
                kernel(x, y)
                want = np.ones_like(y)
                if function is scaled:
                    want[:] = x * x + kind.type(1)
                elif function is running:
                    want[:] = np.cumsum(x.astype(np.float64)).astype(kind)
                else:
                    want[3:-2] = x[:-5] + x[5:]
                np.testing.assert_array_equal(y, want, err_msg=f"{count} elements, gap {gap}")
                assert target.untouched()


@pytest.mark.full
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("columns", [1023, 1024, 1291])
def test_rows_begin_anywhere(columns: int) -> None:
    """Every row has its own head and tail, on one thread and on several."""
    rng, rows = np.random.default_rng(SEED), LARGE // 4096
    x, column = rng.random((rows, columns)).astype(np.float32), rng.random((rows, 1)).astype(np.float32)
    wide = np.zeros((rows, columns + 6), np.float32)
    for threads in (False, 3):
        out = wide[:, 3:-3]
        wide[:] = 0
        tj.elementwise(lambda a, b: a * b - a, parallel=threads)(x, column, out=out)
        np.testing.assert_array_equal(out, x * column - x)
        assert not wide[:, :3].any()
        assert not wide[:, -3:].any()


@pytest.mark.usefixtures("always")
def test_functions_give_the_same_bits_in_heads() -> None:
    """A lane's result does not depend on its position."""
    x = np.random.default_rng(SEED).random(LARGE // 4 + 1).astype(np.float32)
    raw = np.empty(x.nbytes + 128, np.uint8)
    function = tj.elementwise(lambda a: np.exp(-a) / a)
    results = [function(x, out=raw[gap : gap + x.nbytes].view(x.dtype)).copy() for gap in range(0, 64, 12)]
    for each in results:
        np.testing.assert_array_equal(each, results[0])


def at_lower_levels(level: str) -> AtLevels:
    dtypes = [np.dtype(dtype).name for dtype in DTYPES]
    cases = [
        f"test_every_alignment[{f}-{dtype}]" for f in ("scaled", "inner_part", "running") for dtype in dtypes
    ]
    chosen = turn(cases, level)
    return AtLevels(__file__, [*chosen, "test_rows_begin_anywhere"], len(chosen) + 3)
