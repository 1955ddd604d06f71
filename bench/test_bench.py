"""`pytest bench --benchmark-only`: every case of `python -m bench` on small arrays, one group each.

    pytest bench --benchmark-only -k "pack or kernel"
    pytest bench --benchmark-only -k "take and (tilejit or numpy)" --benchmark-columns=min,median

A test runs a case with one method: memcpy of as many bytes, TileJIT, or a peer. Its name contains the suite,
the table, the group and the case. Published figures come from `python -m bench`, where methods take turns and
arrays are large.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from bench import cold_start, peers
from bench.jobs import Job
from bench.measure import checked
from bench.suites import every_case
from bench.timing import memcpy, once, repeats

MEMCPY, OURS = "memcpy", "tilejit"
METHODS = (MEMCPY, OURS, *peers.NAMES, "numba", "numexpr")
ROUNDS, COLD_ROUNDS = 7, 3
CASES = every_case(quick=True)
NAMES = [": ".join(dict.fromkeys((suite, x.table, x.group, x.name))) for suite, x in CASES]


@lru_cache(maxsize=1)
def job_of(index: int) -> Job:
    """The arrays of one case. Consecutive tests share them."""
    return CASES[index][1].make(1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("index", range(len(CASES)), ids=NAMES)
def test_method(benchmark: Any, index: int, method: str) -> None:
    """The answer is checked before timing starts."""
    job = job_of(index)
    run: peers.Call
    if method == MEMCPY:
        run = memcpy(job.moved_bytes // 2)
        run()
    else:
        run = job.ours() if method == OURS else peer(job, method)
        checked(run, job)
    benchmark.group = NAMES[index]
    benchmark.extra_info["moved_bytes"] = job.moved_bytes
    benchmark.pedantic(run, rounds=ROUNDS, iterations=repeats(once(run)), warmup_rounds=1)


def peer(job: Job, name: str) -> peers.Call:
    """The peer's method; the test is skipped if it has none."""
    if name not in job.peers:
        pytest.skip(f"{name} does not support this case")
    try:
        return job.peers[name]()
    except ImportError:
        pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose store has the kernels of the first copies."""
    made = tmp_path_factory.mktemp("cold_start")
    cold_start.process(made, "store")
    return made


EMPTY = "empty"
STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{cold_start.NUMPY} alone": ("store", {"copies": False}),
    cold_start.STORED: ("store", {"numba": False}),
    cold_start.EMPTY: (EMPTY, {"numba": True}),
}
"""The kinds of processes: the store, unless it is a new empty one, and what each must do."""


@pytest.mark.parametrize("kind", STARTS)
def test_cold_start(benchmark: Any, folder: Path, kind: str) -> None:
    """Time a process from start to end.

    It checks its own copies, and `extra_info` has the time of each step.
    """
    store, expected = STARTS[kind]
    found: list[cold_start.Milliseconds] = []

    def start() -> None:
        name = f"{store}{len(found)}" if store == EMPTY else store
        found.append(cold_start.process(folder, name, **expected))

    benchmark.group = "cold_start"
    benchmark.pedantic(start, rounds=COLD_ROUNDS)
    benchmark.extra_info["ms"] = {step: median(ms[step][0] for ms in found) for step in found[0]}
