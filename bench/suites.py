"""The suites of `python -m bench`, and the loop that measures their cases."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import typer
from rich.console import Console

from bench import (
    casts,
    catalog,
    cliffs,
    cold_start,
    copies,
    dropin,
    expressions,
    fused,
    gather,
    indexed,
    kernels,
    pack,
    permute,
    relayout,
    sizes,
    subbyte,
    sweep,
)
from bench.cold_start import Starts
from bench.gains import Gain, measure_gain
from bench.interrupts import remembered_interrupts
from bench.jobs import Case
from bench.measure import Method, Row, measure, middle

SUITES: dict[str, Callable[[bool], list[Case]]] = {
    "copies": copies.cases,
    "pack": pack.cases,
    "permute": permute.cases,
    "casts": casts.cases,
    "subbyte": subbyte.cases,
    "relayout": relayout.cases,
    "gather": gather.cases,
    "indexed": indexed.cases,
    "dropin": dropin.cases,
    "kernels": kernels.cases,
    "elementwise": lambda quick: [*expressions.cases(quick), *fused.cases(quick)],
    "sizes": sizes.cases,
    "cliffs": cliffs.cases,
    "formats": catalog.cases,
}
ALL = "all"
LONG = ("sizes", "cliffs", "formats")
"""Suites with many cases, which `all` omits."""
NAMES = (*SUITES, cold_start.SUITE, sweep.SUITE)
"""All suites. Cold starts and sweeps have no cases, and `all` omits them."""


def every_case(quick: bool) -> list[tuple[str, Case]]:
    """All cases, each with the name of its suite. A sweep has one case per super-vector size."""
    makers = {**SUITES, sweep.SUITE: sweep.cases}
    return [(name, case) for name, make in makers.items() for case in make(quick)]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases to measure, in how many runs, and when to stop.

    Each suite has at most `most` cases.
    """

    suites: tuple[str, ...]
    only: str
    quick: bool
    most: int | None
    runs: int
    seconds: float
    brief: bool = False
    """Take one case of each group, the suites in turn, so that each has a case before time runs out."""

    def cases(self) -> list[Case]:
        """The cases, in their order."""
        found = [
            [case for case in SUITES[name](self.quick) if self.has(case)]
            for name in self.suites
            if name in SUITES
        ]
        if self.brief:
            turns = zip_longest(*map(_first_of_groups, found))
            return [case for turn in turns for case in turn if case is not None]
        return [case for cases in found for case in cases[: self.most]]

    def has(self, case: Case) -> bool:
        """Whether its table, group or name contains the text."""
        return self.only in f"{case.table} {case.group} {case.name}"

    def sweeps(self) -> list[sweep.Workload]:
        """The workloads that are measured with many super-vector sizes."""
        found = sweep.workloads(self.quick) if sweep.SUITE in self.suites else []
        return [each for each in found if self.only in f"{sweep.SUITE} {each.name}"][: self.most]

    def command(self, suite: str) -> str:
        """The command for these cases, without defaults. The time limit changes no figure and is omitted."""
        text = "python -m bench" if self.brief else f"python -m bench {suite}"
        text += f" --only {self.only!r}" if self.only else ""
        text += f" --cases {self.most}" if self.most is not None else ""
        return text + (f" --runs {self.runs}" if self.runs > 1 else "") + " --quick" * self.quick


def _first_of_groups(cases: Sequence[Case]) -> list[Case]:
    """One case of each group, in order."""
    firsts: dict[tuple[str, str], Case] = {}
    for case in cases:
        firsts.setdefault((case.table, case.group), case)
    return list(firsts.values())


@dataclass(slots=True)
class Figures:
    """The figures so far: rows by case number, and why there are no more."""

    found: dict[int, list[Row]] = field(default_factory=dict)
    gains: list[Gain] = field(default_factory=list)
    starts: Starts = field(default_factory=Starts)
    note: str = ""

    @property
    def rows(self) -> list[Row]:
        """One row per case."""
        return [middle(rows) for rows in self.found.values()]


def run_cases(choice: Choice, method: Method, figures: Figures, progress: Console) -> None:
    """Measure every case in turn. The arrays of one case are freed before the next.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, even if the exception was discarded within a case.
    """
    with remembered_interrupts() as check:
        _run_cases(choice, method, figures, progress, check)


def _run_cases(
    choice: Choice, method: Method, figures: Figures, progress: Console, check: Callable[[], None]
) -> None:
    cases = choice.cases()
    threaded = "copies" in choice.suites and not choice.brief
    pairs = [case for case in copies.threaded(choice.quick) if choice.has(case)] if threaded else []
    if not cases and not pairs and not choice.sweeps() and cold_start.SUITE not in choice.suites:
        raise typer.BadParameter(
            f"no case has {choice.only!r} in its table, group or name; use another --only"
        )
    ends = time.monotonic() + choice.seconds
    queue = [each for _ in range(choice.runs) for each in enumerate(cases)]
    for done, (number, case) in enumerate(queue):
        if done and time.monotonic() > ends:
            figures.note = f"Stopped after {choice.seconds:g} s: {done} of {len(queue)} cases."
            return
        row = measure(case, method)
        figures.found.setdefault(number, []).append(row)
        gc.collect()
        check()
        text = row.problem or f"{row.rate:.1f} GB/s, {row.share:.2f} of memcpy"
        count = f"{done + 1}/{len(queue)}"
        progress.print(f"{count} {case.table}: {case.name}: {text}", highlight=False, soft_wrap=True)
    _run_sweeps(choice, method, figures, progress, ends, check)
    for case in pairs[: choice.most]:
        if figures.rows and time.monotonic() > ends:
            figures.note = f"Stopped after {choice.seconds:g} s, before the last cases on two threads."
            return
        figures.gains.append(measure_gain(case, method.rounds))
        gc.collect()
        check()
    if cold_start.SUITE in choice.suites:
        empty = -(-method.rounds // cold_start.ROUNDS_AN_EMPTY_STORE)
        cold_start.measure(figures.starts, method.rounds, empty, progress.print)


def _run_sweeps(
    choice: Choice,
    method: Method,
    figures: Figures,
    progress: Console,
    ends: float,
    check: Callable[[], None],
) -> None:
    """Measure every workload. Its sizes take turns."""
    numbers: dict[tuple[str, str], int] = {}
    queue = [each for _ in range(choice.runs) for each in choice.sweeps()]
    for done, workload in enumerate(queue):
        if done and time.monotonic() > ends:
            figures.note = f"Stopped after {choice.seconds:g} s: {done} of {len(queue)} workloads."
            return
        rows = sweep.measure(workload, method)
        gc.collect()
        for row in rows:
            number = numbers.setdefault((row.group, row.case), -1 - len(numbers))
            figures.found.setdefault(number, []).append(row)
        check()
        for _, _, best, auto in sweep.best_of(rows):
            share = "" if auto is None else f", auto {auto.rate / best.rate:.2f} of it"
            text = f"{done + 1}/{len(queue)} {workload.name}: {best.rate:.1f} GB/s with {best.case}{share}"
            progress.print(text, highlight=False, soft_wrap=True)
