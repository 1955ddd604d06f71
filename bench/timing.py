"""Time several calls in turn, so that all of them see the same state of the machine."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from bench.arrays import Array

BLOCK_SECONDS = 1e-3
"""Shorter calls are repeated until they take this long."""

WARM_CALLS, WARM_SECONDS = 4, 2e-3
"""Warm-up calls in each turn; one if a call takes so long that its data fits no cache.

The data of other calls must leave the cache first: an L3 cache of 32 MiB needs four passes to hold 10 MiB
that it did not hold before (Zen 4, 2026-11).
"""

LONG_SECONDS = 1e-2
"""Calls that take longer, even the first time, are not warmed up: they move more than caches hold."""

SURE_ROUNDS = 3
"""Rounds that a limit of seconds never omits."""

SHORT_SECONDS = 2e-5
"""When single calls alternate, shorter ones are repeated until they take this long."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: the least and the median of all rounds."""

    least: float
    median: float


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    seconds: float = float("inf"),
    *,
    same_data: bool = False,
) -> dict[str, Timing]:
    """Run every call `rounds` times in turn. After that many seconds, only the first few rounds begin.

    Each must have run before, so that nothing is compiled now. Each meets the caches as it leaves them
    itself, because the call before it is one of its own: lines that another call has changed are written
    back, which is 8 to 14 % of a 52 MB copy after memcpy (Zen 4, 2026-12). Calls on the `same_data` are all
    warmed up if the fastest one is: the data fits the caches, and another call may have stored it past them.
    """
    ends = time.monotonic() + seconds
    times: dict[str, list[float]] = {name: [] for name in calls}
    lengths = {name: _warm(run) for name, run in calls.items()}
    fastest = min(lengths.values())
    collecting = gc.isenabled()
    gc.disable()
    try:
        for done in range(rounds):
            if done >= SURE_ROUNDS and time.monotonic() > ends:
                break
            for name, run in calls.items():
                is_short = (fastest if same_data else lengths[name]) < WARM_SECONDS
                _timed(run, WARM_CALLS if is_short else 1)
                times[name].append(_timed(run, repeats(lengths[name])))
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(min(s), statistics.median(s)) for name, s in times.items()}


def alternating(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> tuple[Timing, Timing]:
    """Time two calls alternately, each as often before the other as after it. Both must have run before.

    Both then meet the same states equally often: memory just freed, touched pages, lines in cache. A round
    has as many calls as in `interleaved`.
    """
    longest = max(once(first), once(second))
    count = max(1, round(SHORT_SECONDS / longest))
    pairs = rounds * max(1, round(BLOCK_SECONDS / (count * longest)))
    seconds: tuple[list[float], list[float]] = [], []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for k in range(pairs + pairs % 2):
            for which in (0, 1) if k % 2 else (1, 0):
                seconds[which].append(_timed((first, second)[which], count))
    finally:
        if collecting:
            gc.enable()
    ours, theirs = (Timing(min(s), statistics.median(s)) for s in seconds)
    return ours, theirs


def once(run: Callable[[], object]) -> float:
    """Seconds of one call."""
    return max(1e-9, _timed(run, 1))


def _warm(run: Callable[[], object]) -> float:
    """Seconds of a call after earlier calls have brought as much of its data into the caches as fits."""
    if once(run) < LONG_SECONDS:
        _timed(run, WARM_CALLS)
    return min(once(run), once(run))


def repeats(seconds: float) -> int:
    """How many calls of that length take long enough to time."""
    return max(1, round(BLOCK_SECONDS / seconds))


def _timed(run: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, count):
        run()
    return (time.perf_counter() - start) / count


def memcpy(size_bytes: int, threads: int = 1) -> Callable[[], None]:
    """Run numpy.copyto between two line-aligned arrays of that size, with one piece per thread."""
    source, target = np.empty(size_bytes + 64, np.uint8), np.empty(size_bytes + 64, np.uint8)
    source[:], target[:] = 1, 0
    s, t = (a[-a.ctypes.data % 64 :][:size_bytes] for a in (source, target))
    if threads == 1:
        return lambda: np.copyto(t, s)
    cuts = [size_bytes * k // threads // 64 * 64 for k in range(threads)] + [size_bytes]
    pieces: list[tuple[Array, Array]] = [(t[a:b], s[a:b]) for a, b in pairwise(cuts)]

    def run() -> None:
        others = [_pool(threads - 1).submit(np.copyto, *piece) for piece in pieces[1:]]
        np.copyto(*pieces[0])
        for other in others:
            other.result()

    return run


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def machine() -> dict[str, str]:
    """The machine: a readable name, the processor, its caches."""
    return {"name": _name(), "cpu": _cpu(), "caches": caches_text()}


def today() -> str:
    """2026-11-22"""
    return time.strftime("%Y-%m-%d")


def conditions() -> dict[str, Any]:
    """The versions and the state of the system during a run."""
    found = {"python": platform.python_version()}
    for package in ("numpy", "numba", "llvmlite", "ml_dtypes"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    load = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
    return {"versions": found, "huge_pages": _huge_pages(), **load}


def caches() -> dict[str, int]:
    """Bytes of each data cache that the system reports: L1, L2, L3."""
    found = {}
    for cache_path in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = (
                (cache_path / name).read_text().strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            found[f"L{level}"] = int(size[:-1]) << 10
    return found


def caches_text() -> str:
    """L1 48 KiB, L2 …"""
    return " ".join(f"{name} {size >> 10} KiB" for name, size in caches().items()) or "unknown"


def _huge_pages() -> str:
    """The system's policy for huge pages: the word that Linux puts in brackets."""
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return "unknown"
    return text.partition("[")[2].partition("]")[0]


GENERATIONS = {
    ("25", "1"): "Zen 3",
    ("25", "17"): "Zen 4",
    ("26", "2"): "Zen 5",
    ("6", "143"): "Sapphire Rapids",
}
"""By CPU family and model, because virtual machines call them all "AMD EPYC" or "Intel Xeon"."""


def _name() -> str:
    """The processor's name and generation: "AMD EPYC (Zen 4)"."""
    facts = _cpu_facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    generation = GENERATIONS.get((facts.get("cpu family", ""), facts.get("model", "")))
    return f"{name} ({generation})" if generation else name


def _cpu() -> str:
    """The processor's name with family and model, because virtual machines shorten the name."""
    facts = _cpu_facts()
    if not facts:
        return platform.processor() or platform.machine()
    name, family, model = (facts.get(key, "unknown") for key in ("model name", "cpu family", "model"))
    return f"{os.cpu_count()} x {name} family {family} model {model}"


def _cpu_facts() -> dict[str, str]:
    """What Linux reports about the processors; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {}
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in fields.items()}
