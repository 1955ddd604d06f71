"""The size from which copies stream: measured once, remembered, and never decided by the clock of a test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from codegen import remembered_stream_bytes
from codegen.backend.store import KernelStore
from codegen.pipeline.calibrate import (
    BEYOND_BYTES,
    FOOTPRINTS,
    REPEATS,
    Measure,
    calibrated,
    copy_tiles,
    remember,
    row_bytes,
    stream_threshold,
)
from codegen.schedule.machine import STREAM_BYTES
from codegen.support.cpu import cpu_level
from codegen.support.errors import KernelError
from tests.tools.oracle import printed

FOUND = 8 << 20


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
        return streaming_wins_from(FOUND)


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
    assert remembered_stream_bytes(KernelStore(tmp_path)) is None
    assert calibrated(KernelStore(tmp_path), trials) == FOUND
    assert calibrated(KernelStore(tmp_path), trials) == FOUND
    assert remembered_stream_bytes(KernelStore(tmp_path)) == FOUND
    assert trials.count == 1


def test_nothing_is_measured_if_the_result_cannot_be_kept() -> None:
    assert calibrated(KernelStore(None, "no place"), no_trial) == STREAM_BYTES


@pytest.mark.parametrize("facts", [0, -1, 1 << 40, True, "8388608", 8e6, None], ids=repr)
def test_an_invalid_note_is_a_miss(tmp_path: Path, facts: object) -> None:
    store, trials = KernelStore(tmp_path), Trials()
    remember(store, FOUND, cpu_level().name)
    (note,) = tmp_path.glob("thresholds-*")
    store.put_note(note.stem, {"stream_bytes": facts})
    assert remembered_stream_bytes(store) is None
    assert calibrated(store, trials) == FOUND
    assert trials.count == 1


def test_each_cpu_level_has_its_own_measurement(tmp_path: Path) -> None:
    remember(KernelStore(tmp_path), FOUND, "another level")
    assert remembered_stream_bytes(KernelStore(tmp_path)) is None


@pytest.mark.parametrize("error", [ImportError("numba"), KernelError("no"), MemoryError()], ids=repr)
def test_a_failed_measurement_gives_the_default(tmp_path: Path, error: Exception) -> None:
    def trial() -> Measure:
        raise error

    assert calibrated(KernelStore(tmp_path), trial) == STREAM_BYTES
    assert not list(tmp_path.glob("thresholds-*"))


@pytest.mark.parametrize("stream", [False, True])
def test_the_trial_copies_correctly(stream: bool) -> None:
    """Tiles of eight rows, and nothing beside them."""
    tiles = 5
    pitch, size = row_bytes(tiles), 8 * 512 * tiles
    src = np.random.default_rng(0).integers(0, 256, (8, pitch), np.uint8)
    room = np.zeros(size + 128, np.uint8)
    dst = room[-room.ctypes.data % 64 :]
    copy_tiles(src.ctypes.data, dst.ctypes.data, tiles, stream=stream)
    runs = src[:, : 512 * tiles].reshape(8, tiles, 512)
    assert (dst[:size].reshape(tiles, 8, 512) == runs.swapaxes(0, 1)).all()
    assert not dst[size:].any()


CALLS = """
import sys
import numpy as np
import tilejit as tj

@tj.kernel
def double(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * 2

x = np.arange(300 * int(sys.argv[1]), dtype=np.float32).reshape(-1, 300)
assert (tj.unpack(tj.pack(x, "{1,0:T(8,128)}")) == x).all()
double(x, out := np.empty_like(x))
assert (out == x * 2).all()
print("numba" in sys.modules)
"""

CACHE_INFO = "import sys; sys.argv[1:] = 'cache', 'info', '--json'; from tilejit.cli import main; main()"


@pytest.mark.full
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """Neither for the same calls, nor to measure: the first large copy did. Small copies measure nothing."""
    calls, store = tmp_path / "calls.py", tmp_path / "store"
    calls.write_text(CALLS)  # kernels are read from files

    def process(rows: int) -> tuple[object, ...]:
        run = f"import runpy, sys; sys.argv[1:] = ['{rows}']; runpy.run_path({str(calls)!r})"
        imported = printed(run, store)
        state = json.loads(printed(CACHE_INFO, store))
        assert state["compiled"] == state["kernels"]
        return imported, state["kernels"], state["stream_bytes"]

    small, large = process(rows=1000), process(rows=4000)
    assert small == ("True\n", small[1], None)
    assert large[2] in (BEYOND_BYTES, *FOOTPRINTS)
    assert process(rows=4000) == process(rows=1000) == ("False\n", *large[1:])
