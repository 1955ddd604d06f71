"""Damaged files, and processes that start at once: short versions of `python -m tests.faults.store`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.backend.store import KernelStore
from tests.faults.store import calls, damages, starts, truncations
from tests.tools.extent import is_full

FLIPS = 400
STARTS = 2


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that several processes have filled at the same time."""
    directory = tmp_path_factory.mktemp("cold") / "store"
    assert starts(directory, STARTS)["misses"] >= STARTS
    KernelStore(directory).put_note("thresholds-" + "0" * 32, {"stream_bytes": 1 << 22})
    return directory


@pytest.mark.full
def test_truncations_are_misses(cold: Path) -> None:
    assert truncations(cold, 1 if is_full() else 50)["misses"] > (1000 if is_full() else 100)


@pytest.mark.full
def test_random_damage_is_a_miss_or_the_right_answer(cold: Path, seed: int) -> None:
    counts = damages(cold, FLIPS, seed)
    assert counts["misses"] > FLIPS // 2
    assert counts["right"] == counts["unchanged"]


@pytest.mark.full
def test_processes_compute_right_on_a_damaged_store(cold: Path, seed: int) -> None:
    calls(cold, 1, seed)


@pytest.mark.full
def test_a_store_too_small_for_its_kernels(tmp_path: Path) -> None:
    """Each write removes something that another process has just written, or is about to read."""
    assert starts(tmp_path / "small", 2, TILEJIT_CACHE_BYTES="10000")["misses"] > 0
