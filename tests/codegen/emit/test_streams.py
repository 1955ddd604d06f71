"""Kernels with streaming stores write what others do, at any alignment, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.thresholds import Thresholds
from tests.codegen.simd.levels import AtLevels
from tests.conftest import SEED
from tests.tools.guard import Guarded
from tilejit.kernels import loop_kernels


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


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat arrays of any size as larger than the cache."""
    for name in ("CALIBRATED_FROM_BYTES", "LEAST_RUN_BYTES"):
        monkeypatch.setattr(loop_kernels, name, 0)
    monkeypatch.setattr(loop_kernels, "machine_thresholds", lambda _: Thresholds(stream_bytes=0))


@pytest.mark.parametrize("function", STREAMED, ids=lambda f: f.__name__)
def test_arrays_written_once_and_never_read_are_streamed(function: Callable[..., None]) -> None:
    """Each element is written once, adjacent to the others, and never read."""
    x, y = np.zeros(100, np.float32), np.zeros(100, np.float32)
    program = tj.kernel(function).specialize(x, y).program
    assert program.streaming_kernel.emitted.streamed == (("y",) if STREAMED[function] else ())


@pytest.mark.parametrize("tail", ["scalar", "shift", "assume_divisible"])
def test_only_masked_tails_have_a_head(tail: str) -> None:
    x, y = np.zeros(128, np.float32), np.zeros(128, np.float32)
    program = tj.kernel(tail=tail)(scaled).specialize(x, y).program
    assert program.streaming_kernel.emitted.streamed == ()


def test_only_large_arrays_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes of a call count, if enough of them are written."""
    monkeypatch.setattr(loop_kernels, "machine_thresholds", lambda _: Thresholds(stream_bytes=8 << 20))
    x = np.zeros(4 << 20, np.uint8)
    program = tj.kernel(scaled).specialize(x, x).program
    assert program.sized_kernel({"x": x, "y": x}) is program.streaming_kernel
    assert program.sized_kernel({"x": x, "y": x[: 1 << 20]}) is program.kernel
    assert program.sized_kernel({"x": x[:1000], "y": x[:1000]}) is program.kernel
    thin = x.reshape(-1, 64)
    assert program.sized_kernel({"x": thin, "y": thin}) is program.kernel
    repeated = np.broadcast_to(x[:1], x.shape)
    assert program.sized_kernel({"x": repeated, "y": x}) is program.kernel


@pytest.mark.full
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("function", [scaled, inner_part, running], ids=lambda f: f.__name__)
def test_every_alignment(function: Callable[..., None], dtype: Any) -> None:
    """Source and target begin at any byte. Guard pages catch accesses outside."""
    kind, rng = np.dtype(dtype), np.random.default_rng(SEED)
    kernel, source, target = tj.kernel(function), Guarded(1 << 14), Guarded(1 << 14)
    for count in (1, 5, 63, 64, 65, 130, 700):
        for gap in (0, 1, kind.itemsize, 16, 40, 63):
            for at_end in (False, True):
                size = count * kind.itemsize
                x = source.place(size, at_end=at_end, gap=gap % 7).view(kind)
                y = target.place(size, at_end=at_end, gap=gap).view(kind)
                x[:] = rng.choice([0, 0, 0, 1] if function is running else range(9), count).astype(kind)
                y[:] = 1
                kernel(x, y)
                want = np.ones_like(y)
                if function is scaled:
                    want[:] = x * x + kind.type(1)
                elif function is running:
                    want[:] = np.cumsum(x.astype(np.float64)).astype(kind)
                else:
                    want[3:-2] = (x[:-5] + x[5:]) if count > 5 else want[3:-2]
                np.testing.assert_array_equal(y, want, err_msg=f"{count} elements, gap {gap}")
                assert target.untouched()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", [(5, 63), (4, 64), (9, 131), (3, 1000)])
def test_rows_begin_anywhere(shape: tuple[int, int]) -> None:
    """Every row has its own head and tail, on one thread and on several."""
    rng = np.random.default_rng(SEED)
    x, column = rng.random(shape).astype(np.float32), rng.random((shape[0], 1)).astype(np.float32)
    wide = np.zeros((shape[0], shape[1] + 6), np.float32)
    for threads in (False, 3):
        out = wide[:, 3:-3]
        wide[:] = 0
        product = tj.elementwise(lambda a, b: a * b - a, parallel=threads)
        product(x, column, out=out)
        assert product.program
        assert product.program.streaming_kernel.emitted.streamed == ("out0",)
        np.testing.assert_array_equal(out, x * column - x)
        assert not wide[:, :3].any()
        assert not wide[:, -3:].any()


@pytest.mark.usefixtures("always")
def test_functions_give_the_same_bits_in_heads() -> None:
    """A lane's result does not depend on its position."""
    x = np.random.default_rng(SEED).random(1001).astype(np.float32)
    raw = np.empty(x.nbytes + 128, np.uint8)
    function = tj.elementwise(lambda a: np.exp(-a) / a)
    results = [function(x, out=raw[gap : gap + x.nbytes].view(x.dtype)).copy() for gap in range(0, 64, 4)]
    for each in results:
        np.testing.assert_array_equal(each, results[0])


@pytest.mark.usefixtures("always")
def test_the_source_mentions_streaming() -> None:
    x, y = np.zeros(100, np.float32), np.zeros(100, np.float32)
    source = tj.kernel(scaled).specialize(x, y).program.streaming_kernel.emitted.source
    assert "lines of y past the cache" in " ".join(source.split())
    assert source.rstrip().endswith("stream_fence()")


def at_lower_levels() -> AtLevels:
    return AtLevels(__file__, ["test_every_alignment", "test_rows_begin_anywhere"], 3 * len(DTYPES) + 4)
