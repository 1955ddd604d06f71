"""Thresholds of the machine: measured once, remembered, and never decided by the clock of a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codegen.backend.store import KernelStore
from codegen.pipeline import calibrate
from codegen.pipeline.calibrate import (
    BEYOND_BYTES,
    CALIBRATED_FROM_BYTES,
    FOOTPRINTS,
    MEASURED_AT,
    MEASURED_FROM_BYTES,
    REPEATS,
    Measure,
    calibrated,
    machine_thresholds,
    remember,
    remembered_thresholds,
    stream_threshold,
)
from codegen.schedule.thresholds import DEFAULT_THRESHOLDS, Thresholds
from codegen.support.cpu import cpu_level
from codegen.support.errors import KernelError
from tests.tools.oracle import run_python

MIB = 1 << 20
FOUND = Thresholds(stream_bytes=8 * MIB)


def ratios(plain_to_streaming: dict[int, float]) -> Measure:
    """A machine on which streaming is that many times as fast as plain stores, by MiB."""
    return lambda stream, footprint: 1.0 / (plain_to_streaming[footprint // MIB] if stream else 1.0)


def no_trial() -> Measure:
    raise AssertionError("nothing is to be measured here")


class Trials:
    """A trial that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Measure:
        self.count += 1
        return ratios({n // MIB: 2.0 if n > 8 * MIB else 1.5 if n == 8 * MIB else 0.5 for n in FOOTPRINTS})


@pytest.mark.parametrize(
    ("gains", "mebibytes"),
    [
        ((*[2.0] * 8, 1.5, 0.5, 0.5), 8),
        ((2.0,) * 11, 2),
        ((0.5,) * 11, 64),
        ((1.0,) * 11, 64),
        ((1.5, 1.4, 1.3, 1.2, 1.1, 1.0, 0.9, 0.7, 0.5, 0.5, 0.5), 20),
        ((1.5, 0.9, *[0.5] * 9), 32),
        ((*[2.0] * 6, 0.9, 2.0, 2.0, 2.0, 0.4), 4),
        ((0.9, *[1.5] * 10), 2),
    ],
    ids=str,
)
def test_the_chosen_threshold_loses_least(gains: tuple[float, ...], mebibytes: int) -> None:
    by_size = dict(zip((n // MIB for n in FOOTPRINTS), gains, strict=True))
    assert stream_threshold(ratios(by_size)) == mebibytes * MIB


def test_one_slow_measurement_changes_nothing() -> None:
    calls: list[tuple[bool, int]] = []

    def measure(stream: bool, footprint: int) -> float:
        calls.append((stream, footprint))
        busy = 50.0 if len(calls) % (2 * REPEATS) in (1, 2) else 1.0
        return busy * (0.5 if stream and footprint >= 16 * MIB else 1.0)

    assert stream_threshold(measure) == 16 * MIB
    assert len(calls) == 2 * REPEATS * len(FOOTPRINTS)
    assert [stream for stream, _ in calls[:4]] == [False, True, False, True]


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


def test_small_copies_measure_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Medium copies measure nothing either, but use earlier measurements."""
    store = KernelStore(tmp_path)
    asked: list[Callable[[], Measure]] = []

    def measured(store: KernelStore, trial: Callable[[], Measure]) -> Thresholds:
        asked.append(trial)
        return FOUND

    monkeypatch.setattr(calibrate, "_known", None)
    monkeypatch.setattr(calibrate, "_planned", MEASURED_AT)
    monkeypatch.setattr(calibrate, "calibrated", measured)
    monkeypatch.setattr(calibrate, "default_store", lambda: store)
    assert machine_thresholds(CALIBRATED_FROM_BYTES - 1) == DEFAULT_THRESHOLDS
    assert machine_thresholds(MEASURED_FROM_BYTES - 1) == DEFAULT_THRESHOLDS
    assert asked == []
    assert machine_thresholds(MEASURED_FROM_BYTES) == machine_thresholds(1 << 40) == FOUND
    assert len(asked) == 1
    assert machine_thresholds(CALIBRATED_FROM_BYTES) == FOUND
    assert machine_thresholds(CALIBRATED_FROM_BYTES - 1) == DEFAULT_THRESHOLDS

    monkeypatch.setattr(calibrate, "_known", None)
    assert machine_thresholds(CALIBRATED_FROM_BYTES) == DEFAULT_THRESHOLDS
    remember(store, FOUND, cpu_level().name)
    assert machine_thresholds(CALIBRATED_FROM_BYTES) == FOUND
    assert len(asked) == 1


def test_the_first_process_measures_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first large copies use the thresholds that they find. A later process measures at once."""
    store, trials = KernelStore(tmp_path), Trials()
    monkeypatch.setattr(calibrate, "_trial", trials)
    monkeypatch.setattr(calibrate, "default_store", lambda: store)

    def process() -> None:
        monkeypatch.setattr(calibrate, "_known", None)
        monkeypatch.setattr(calibrate, "_planned", 0)

    process()
    for _ in range(MEASURED_AT - 1):
        assert machine_thresholds(MEASURED_FROM_BYTES) == DEFAULT_THRESHOLDS
    assert trials.count == 0
    process()
    assert machine_thresholds(MEASURED_FROM_BYTES) == FOUND
    assert trials.count == 1
    process()
    assert machine_thresholds(CALIBRATED_FROM_BYTES) == FOUND
    assert trials.count == 1
    for note in store.notes():
        note.unlink()
    process()
    found = [machine_thresholds(MEASURED_FROM_BYTES) for _ in range(MEASURED_AT)]
    assert found == [DEFAULT_THRESHOLDS] * (MEASURED_AT - 1) + [FOUND]
    assert trials.count == 2


@pytest.mark.parametrize("stream", [False, True])
def test_the_trial_copies_correctly(stream: bool) -> None:
    """Tiles of eight rows; the streaming program really streams."""
    size = 1 << 18
    program = calibrate._tiling(size, stream=stream)
    src_stop, dst_stop = (access.bounds[1] for access in (program.src, program.dst))
    assert dst_stop == size
    assert src_stop <= size + 8 * 64
    src = np.random.default_rng(0).integers(0, 256, src_stop, np.uint8)
    dst = np.zeros(dst_stop, np.uint8)
    program.run(src.ctypes.data, dst.ctypes.data)
    pitch = size // 8 + 64
    rows = [src[k * pitch : k * pitch + size // 8].reshape(-1, 512) for k in range(8)]
    assert (dst.reshape(-1, 8, 512) == np.stack(rows, axis=1)).all()
    assert [step.schedule.stream for step in program.steps] == [stream]


def test_a_trial_times_both_programs_within_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "FOOTPRINTS", (MIB, MIB // 2))
    measure = calibrate._trial()
    assert all(measure(stream, size) > 0 for stream in (False, True) for size in (MIB, MIB // 2))


COPY = """
import sys
import numpy as np
import tilejit as tj
from codegen.pipeline import calibrate
from codegen.backend.store import default_store

elements, may_measure = int(sys.argv[1]), sys.argv[2] == "measure"
trial, trials = calibrate._trial, []

def counted():
    trials.append(1)
    if not may_measure:
        raise AssertionError("measured")
    return trial()

calibrate._trial = counted
src = np.arange(elements, dtype=np.int32).reshape(-1, 64)
for dst in (np.zeros_like(src.T), np.zeros((64, elements // 64), np.int64)):
    tj.copyto(dst, src.T)
    assert (dst == src.T).all()
    assert (tj.unpack(tj.pack(src, "{1,0:T(8,128)}")) == src).all()
notes = [note.name[:10] for note in default_store().notes()]
print(len(trials), [name for name in notes if name == "thresholds"])
"""


def child(elements: int, mode: str, **changes: str) -> str:
    done = run_python(COPY, elements, mode, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.full
def test_the_second_process_measures_for_all(tmp_path: Path) -> None:
    """The first process with a large copy only leaves a note."""
    store = {"TILEJIT_CACHE_DIR": str(tmp_path)}
    assert child(1 << 14, "never", **store) == "0 []"
    assert child(5 << 16, "never", **store) == "0 []"
    assert child(1 << 19, "never", **store) == "0 ['thresholds']"
    assert child(1 << 19, "measure", **store) == "1 ['thresholds']"
    assert child(1 << 19, "never", **store) == "0 ['thresholds']"
    assert child(1 << 19, "never", TILEJIT_NO_CACHE="1") == "0 []"
