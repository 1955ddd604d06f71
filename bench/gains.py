"""Two threads against one: memcpy and TileJIT, all four in turn."""

from __future__ import annotations

from dataclasses import dataclass

from bench.jobs import Case
from bench.measure import checked, described
from bench.timing import Timing, interleaved, memcpy


@dataclass(frozen=True, slots=True)
class Gain:
    """The speedups of memcpy and TileJIT."""

    case: str
    moved_bytes: int
    ours: dict[int, Timing]
    memcpy: dict[int, Timing]
    problem: str = ""

    @property
    def gain(self) -> float:
        """TileJIT on one thread over TileJIT on two."""
        return self.ours[1].median / self.ours[2].median

    @property
    def memcpy_gain(self) -> float:
        """The speedup of memcpy, split in two."""
        return self.memcpy[1].median / self.memcpy[2].median


def measure_gain(case: Case, rounds: int) -> Gain:
    """Measure one case with one thread and with two."""
    try:
        jobs = {threads: case.make(threads) for threads in (1, 2)}
        runs = {threads: job.ours() for threads, job in jobs.items()}
        for threads, job in jobs.items():
            checked(runs[threads], job)
    except Exception as error:  # recorded in the row, as in `measure`
        return Gain(case.name, 0, {}, {}, described(error))
    size = jobs[1].moved_bytes // 2
    calls = {("memcpy", n): memcpy(size, n) for n in (1, 2)} | {("tilejit", n): runs[n] for n in (1, 2)}
    times = interleaved({f"{who} {n}": call for (who, n), call in calls.items()}, rounds)
    return Gain(
        case.name,
        jobs[1].moved_bytes,
        {n: times[f"tilejit {n}"] for n in (1, 2)},
        {n: times[f"memcpy {n}"] for n in (1, 2)},
    )
