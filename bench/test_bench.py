"""`pytest bench`: one group a case, memcpy, TileJIT and its peers side by side, on small arrays.

Add `--benchmark-columns=min,median --benchmark-sort=fullname` for narrower tables. Figures of record come
from `python -m bench`, where ways take turns and arrays are large.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from bench import casts, copies, gather, pack, peers, permute, relayout, subbyte
from bench.jobs import Case, Job
from bench.measure import checked
from bench.timing import memcpy, once, repeats

MEMCPY, OURS = "memcpy", "tilejit"
ROUNDS = 7
CASES: tuple[Case, ...] = (
    *copies.cases(quick=True),
    *permute.cases(quick=True),
    *casts.cases(quick=True),
    *subbyte.cases(quick=True),
    *pack.cases(quick=True),
    *relayout.cases(quick=True),
    *gather.cases(quick=True),
)
VERSIONS = peers.versions()


@lru_cache(maxsize=1)
def job_of(index: int) -> Job:
    """The arrays of one case, shared by the ways that come one after the other."""
    return CASES[index].make(1)


@pytest.mark.parametrize("way", [MEMCPY, OURS, *peers.NAMES])
@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{c.table}: {c.name}" for c in CASES])
def test_way(benchmark: Any, index: int, way: str) -> None:
    """The answer is checked before the clock."""
    if VERSIONS.get(way) == peers.NOT_INSTALLED:
        pytest.skip(f"{way} is not installed")
    job = job_of(index)
    run: peers.Way
    if way == MEMCPY:
        run = memcpy(job.moved_bytes // 2)
    elif way == OURS:
        run = job.ours()
    elif way in job.peers:
        run = job.peers[way]()
    else:
        pytest.skip(f"{way} has nothing for such a case")
    if way == MEMCPY:
        run()
    else:
        checked(run, job)
    benchmark.group = f"{CASES[index].table}: {CASES[index].name}"
    benchmark.extra_info["moved_bytes"] = job.moved_bytes
    benchmark.pedantic(run, rounds=ROUNDS, iterations=repeats(once(run)), warmup_rounds=1)
