"""Thresholds of the machine: measured once, remembered, and never decided by the clock of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen import KernelStore, remembered_thresholds
from codegen.pipeline.calibrate import (
    BEYOND_BYTES,
    FOOTPRINTS,
    REPEATS,
    Measure,
    calibrated,
    remember,
    stream_threshold,
)
from codegen.schedule.thresholds import DEFAULT_THRESHOLDS, Thresholds
from codegen.support.cpu import cpu_level
from codegen.support.errors import KernelError
from tests.tools.oracle import printed

FOUND = Thresholds(stream_bytes=8 << 20)


def streaming_wins_from(least: int) -> Measure:
    """A machine on which streaming takes half the time of plain stores from some footprint, else twice it."""
    return lambda stream, footprint: (0.5 if footprint >= least else 2.0) if stream else 1.0


def no_trial() -> Measure:
    raise AssertionError("nothing is to be measured here")


class Trials:
    """A trial that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Measure:
        self.count += 1
        return streaming_wins_from(FOUND.stream_bytes)


@pytest.mark.parametrize("least", [BEYOND_BYTES, *FOOTPRINTS])
def test_copies_stream_from_where_streaming_wins(least: int) -> None:
    assert stream_threshold(streaming_wins_from(least)) == least


def test_one_slow_measurement_changes_nothing() -> None:
    calls = 0

    def measure(stream: bool, footprint: int) -> float:
        nonlocal calls
        calls += 1
        busy = 50.0 if calls % (2 * REPEATS) in (1, 2) else 1.0
        return busy * streaming_wins_from(16 << 20)(stream, footprint)

    assert stream_threshold(measure) == 16 << 20


def test_a_clock_that_stands_still_causes_no_division_by_zero() -> None:
    assert stream_threshold(lambda stream, footprint: 0.0) == BEYOND_BYTES


def test_a_store_is_measured_once(tmp_path: Path) -> None:
    trials = Trials()
    assert remembered_thresholds(KernelStore(tmp_path)) is None
    assert calibrated(KernelStore(tmp_path), trials) == FOUND
    assert calibrated(KernelStore(tmp_path), trials) == FOUND
    assert remembered_thresholds(KernelStore(tmp_path)) == FOUND
    assert trials.count == 1


def test_nothing_is_measured_if_the_result_cannot_be_kept() -> None:
    assert calibrated(KernelStore(None, "no place"), no_trial) == DEFAULT_THRESHOLDS


@pytest.mark.parametrize("facts", [0, -1, 1 << 40, True, "8388608", 8e6, None], ids=repr)
def test_an_invalid_note_is_a_miss(tmp_path: Path, facts: object) -> None:
    store, trials = KernelStore(tmp_path), Trials()
    remember(store, FOUND, cpu_level().name)
    (note,) = tmp_path.glob("thresholds-*")
    store.put_note(note.stem, {"stream_bytes": facts})
    assert remembered_thresholds(store) is None
    assert calibrated(store, trials) == FOUND
    assert trials.count == 1


def test_each_cpu_level_has_its_own_measurement(tmp_path: Path) -> None:
    remember(KernelStore(tmp_path), FOUND, "another level")
    assert remembered_thresholds(KernelStore(tmp_path)) is None


@pytest.mark.parametrize("error", [ImportError("numba"), KernelError("no"), MemoryError()], ids=repr)
def test_a_failed_measurement_gives_the_default(tmp_path: Path, error: Exception) -> None:
    def trial() -> Measure:
        raise error

    assert calibrated(KernelStore(tmp_path), trial) == DEFAULT_THRESHOLDS
    assert not list(tmp_path.glob("thresholds-*"))


COPY = """
import sys
import numpy as np
import tilejit as tj
from codegen import default_store, remembered_thresholds

elements = int(sys.argv[1])
src = np.arange(elements, dtype=np.int32).reshape(-1, 64)
for dst in (np.zeros_like(src.T), np.zeros((64, elements // 64), np.int64)):
    tj.copyto(dst, src.T)
    assert (dst == src.T).all()
    assert (tj.unpack(tj.pack(src, "{1,0:T(8,128)}")) == src).all()
print(remembered_thresholds(default_store()) is not None)
"""


@pytest.mark.full
def test_only_processes_after_the_first_measure_large_copies(tmp_path: Path) -> None:
    """Small and medium copies measure nothing, and neither does a process without a store."""
    store = {"TILEJIT_CACHE_DIR": str(tmp_path)}
    for elements, measured in ((1 << 14, False), (5 << 16, False), (1 << 19, False), (1 << 19, True)):
        done = run_python(COPY, elements, **store)
        assert done.stdout.strip() == str(measured), done.stderr
    assert run_python(COPY, 1 << 19, TILEJIT_NO_CACHE="1").stdout.strip() == "False"
