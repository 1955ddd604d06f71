"""One case, from its arrays to its figures: check the answer, then measure in two passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

import tilejit as tj
from bench.arrays import Array, flat_bytes
from bench.jobs import UNTOUCHED, Case, Job
from bench.peers import Call
from bench.timing import Timing, alternating, interleaved, memcpy, once

FEWEST_ROUNDS = 3
LEARNING_CALLS = 3
"""Calls before timing. Only the figure of the first call includes what they prepare for later calls."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Method:
    """How to measure: the rounds, the threads, the peers, and a peer's time limit."""

    rounds: int
    threads: int
    peers: Collection[str]
    peer_seconds: float


@dataclass(frozen=True, slots=True)
class PeerFigure:
    """A peer in one case: its share of memcpy and TileJIT's speedup over it, or why there is no figure."""

    seconds: Timing | None = None
    share: float = 0.0
    ratio: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one case.

    `first_seconds` is the time of the first call, which plans the copy, compiles or loads its kernels, and
    runs it once.
    """

    table: str
    group: str
    case: str
    moved_bytes: int
    first_seconds: float
    ours: Timing
    memcpy: Timing
    peers: dict[str, PeerFigure] = field(default_factory=dict)
    problem: str = ""

    @property
    def rate(self) -> float:
        """GB/s read and written, by the median."""
        return self.moved_bytes / self.ours.median / 1e9

    @property
    def best_rate(self) -> float:
        """GB/s of the fastest round."""
        return self.moved_bytes / self.ours.least / 1e9

    @property
    def memcpy_rate(self) -> float:
        """GB/s of memcpy by the median."""
        return self.moved_bytes / self.memcpy.median / 1e9

    @property
    def share(self) -> float:
        """The share of memcpy, by medians."""
        return self.memcpy.median / self.ours.median


class WrongAnswer(Exception):
    """A copy differs from NumPy's."""


def measure(case: Case, method: Method) -> Row:
    """Measure one case. Failures and wrong answers are recorded in the row."""
    started = time.perf_counter()
    try:
        job = case.make(method.threads)
        started = time.perf_counter()
        run = job.ours()
        first = checked(run, job) - started
    except Exception as error:  # a bug in one kernel must not discard the figures of the others
        nothing = Timing(float("nan"), float("nan"))
        text = described(error)
        return Row(case.table, case.group, case.name, 0, 0.0, nothing, nothing, problem=text)
    for _ in range(LEARNING_CALLS):
        run()
    size = job.moved_bytes // 2
    copy = memcpy(size, method.threads)
    times = interleaved({"memcpy": copy, "tilejit": run}, method.rounds)
    row = Row(
        case.table,
        case.group,
        case.name,
        job.moved_bytes,
        first,
        times["tilejit"],
        times["memcpy"],
    )
    beside = partial(_beside_ours, run) if case.alternates else partial(_beside_memcpy, copy)
    for name in method.peers:
        if name in job.peers:
            row.peers[name] = _peer(name, job, partial(beside, row.share), method)
    return row


def middle(rows: Sequence[Row]) -> Row:
    """The median of several runs of a case: the row with the median share, and each peer's median ratio.

    For an even number of runs, the lower median counts. A failed run takes precedence over all others. Only
    the first run compiles, so its first call is kept.
    """
    failed = [row for row in rows if row.problem]
    if failed:
        return failed[0]
    names = dict.fromkeys(name for row in rows for name in row.peers)
    found = {name: _middle_figure([row.peers[name] for row in rows if name in row.peers]) for name in names}
    median = _lower_median(rows, lambda row: row.share)
    return replace(median, first_seconds=rows[0].first_seconds, peers=found)


def _middle_figure(figures: Sequence[PeerFigure]) -> PeerFigure:
    failed = [figure for figure in figures if figure.problem]
    return failed[0] if failed else _lower_median(figures, lambda figure: figure.ratio)


def _lower_median(values: Sequence[T], key: Callable[[T], float]) -> T:
    return sorted(values, key=key)[(len(values) - 1) // 2]


def checked(run: Call, job: Job) -> float:
    """Run once, check the answer byte by byte or by the job's rule, and return when the call ended.

    Raises:
        WrongAnswer: the answer differs from NumPy's.
    """
    flat_bytes(job.out)[:] = UNTOUCHED
    answer = run()
    done = time.perf_counter()
    agrees = job.agrees or (lambda found: np.array_equal(_bytes_of(found, job.out), job.expected))
    if not agrees(answer):
        raise WrongAnswer("the answer differs from NumPy's")
    return done


def described(error: Exception) -> str:
    """The error, on one line."""
    first, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {first}"


def _bytes_of(answer: object, out: Array) -> Array:
    """The memory of a call's result, or of `out` if it returned nothing."""
    if answer is None:
        return flat_bytes(out)
    return flat_bytes(answer.buffer if isinstance(answer, tj.TiledArray) else np.asarray(answer))


def _peer(name: str, job: Job, beside: Callable[[Call, int], PeerFigure], method: Method) -> PeerFigure:
    """Run the second pass: one peer `beside` another call.

    It takes the method's number of rounds, or fewer if the peer is slow.
    """
    try:
        peer = job.peers[name]()
        checked(peer, job)
    except Exception as error:  # a peer may not support a dtype, or may run out of memory
        return PeerFigure(problem=described(error))
    affordable = int(method.peer_seconds / once(peer))
    return beside(peer, max(min(FEWEST_ROUNDS, method.rounds), min(method.rounds, affordable)))


def _beside_memcpy(copy: Call, our_share: float, peer: Call, rounds: int) -> PeerFigure:
    """Time a peer and memcpy in turn."""
    times = interleaved({"memcpy": copy, "peer": peer}, rounds)
    share = times["memcpy"].median / times["peer"].median
    return PeerFigure(times["peer"], share, our_share / share)


def _beside_ours(run: Call, our_share: float, peer: Call, rounds: int) -> PeerFigure:
    """Time a peer and TileJIT, call by call."""
    ours, theirs = alternating(run, peer, rounds)
    ratio = theirs.median / ours.median
    return PeerFigure(theirs, our_share / ratio, ratio)
