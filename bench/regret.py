"""`python -m bench regret`: what TileJIT's choices cost, by the records of `python -m bench record`.

The regret of a case is the time of the schedule that this version of TileJIT chooses, as a multiple of the
time of the fastest schedule on record. TileJIT chooses anew for the recorded machine, without compiling, so a
changed rule is judged without measuring again.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from bench import saved
from bench.corpus import cases, is_held_out
from bench.record import Json, disturbed, read, shares_of
from bench.space import Space
from codegen import FallbackWarning, Machine, described

PAGE_WIDTH = 240
QUANTILES = 0.9, 0.98
SIZES = ((1 << 20, "below 1 MiB"), (1 << 24, "1 to 16 MiB"), (float("inf"), "from 16 MiB"))
"""Classes by the bytes that are read and written."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A recorded case and the schedule that is chosen for it today.

    chosen, winner  the texts of the chosen schedule and of the fastest one
    share, best     their shares of memcpy; share is None if the chosen schedule has no record
    """

    name: str
    kind: str
    size: str
    chosen: str
    winner: str
    share: float | None
    best: float

    @property
    def regret(self) -> float:
        """How many times as long as the fastest schedule the chosen one takes; 1 if it has no record."""
        return self.best / self.share if self.share else 1.0


def main(
    files: Annotated[
        list[Path] | None, typer.Argument(help="files of records; by default, all in bench/results")
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="only the cases that nothing may be fitted to")
    ] = False,
    only: Annotated[str, typer.Option(help="only cases with this text in their names")] = "",
    worst: Annotated[int, typer.Option(min=0, help="how many of the worst cases to list")] = 20,
) -> None:
    """Compare the schedules that TileJIT chooses with the fastest recorded ones, without compiling.

    Regret is the time of the chosen schedule as a multiple of the time of the fastest one. Cases whose chosen
    schedule has no record are counted and listed, but have no regret.
    """
    console = Console(width=max(PAGE_WIDTH, Console().width))
    paths = files or sorted(saved.FOLDER.glob("record-*.jsonl"))
    if not paths:
        raise typer.BadParameter(f"{saved.FOLDER} has no records; run python -m bench record first")
    spaces = {case.name: case.space for case in cases()}
    for path in paths:
        head, every = read(path)
        lines = [x for x in every if only in x["case"] and (is_held_out(x["case"]) or not held_out)]
        known = [x for x in lines if x["case"] in spaces and "problem" not in x]
        with described(Machine(**head["schedules_for"])):
            judged = [judge(x, spaces[x["case"]]) for x in known]
        what = f"{len(judged)} {'held-out ' * held_out}cases"
        console.print(f"{head['machine']['name']}, {head['level']}, recorded {head['date']}: {what}")
        for table in tables(judged, worst):
            console.print(table)
        for note in _notes(lines, spaces, disturbed(every) & {x.name for x in judged}):
            console.print(note, highlight=False, soft_wrap=True)


def _notes(lines: Sequence[Json], spaces: Container[str], slow: Sized) -> Iterator[str]:
    """What the tables don't show; slow: the cases that other work disturbed."""
    if slow:
        fix = "python -m bench record --again measures them again"
        yield f"other work slowed memcpy down in {len(slow)} cases; {fix}"
    yield from (f"failed: {x['case']}: {x['problem']}" for x in lines if "problem" in x)
    yield from (f"no longer in the corpus: {x['case']}" for x in lines if x["case"] not in spaces)


def judge(line: Json, make: Callable[[], Space]) -> Judged:
    """A recorded case with today's choice."""
    shares = {text: share for text, share in shares_of(line).items() if share is not None}
    winner = max(shares, key=lambda text: shares[text])
    with warnings.catch_warnings(action="ignore", category=FallbackWarning):  # a fallback has no record
        chosen = make().chosen()
    size = next(name for limit, name in SIZES if line["bytes"] < limit)
    return Judged(line["case"], line["kind"], size, chosen, winner, shares.get(chosen), shares[winner])


HEADS = (
    "",
    "cases",
    "no record",
    "mean",
    *(f"{100 * q:.0f} %" for q in QUANTILES),
    "worst",
    "share of memcpy",
    "best",
)


def tables(judged: Sequence[Judged], worst: int) -> Iterator[Table]:
    """Regret by kind and by size, the worst cases, and those whose choice has no record."""
    found = Table(
        *HEADS, title="regret: time of the chosen schedule / time of the fastest", title_justify="left"
    )
    for name in sorted({x.kind for x in judged}):
        found.add_row(*cells(name, (x for x in judged if x.kind == name)))
    for _, name in SIZES:
        if any(x.size == name for x in judged):
            found.add_row(*cells(name, (x for x in judged if x.size == name)))
    found.add_row(*cells("all", judged))
    yield found
    ranked = sorted((x for x in judged if x.share), key=lambda x: -x.regret)[:worst]
    if ranked:
        yield _listed("the worst", ranked)
    unknown = [x for x in judged if not x.share]
    if unknown:
        yield _listed("the chosen schedule has no record", unknown[:worst])


def cells(name: str, judged: Iterable[Judged]) -> list[str]:
    """One row: geometric means, and quantiles of regret. Cases without a record only count."""
    every = [*judged]
    known = [x for x in every if x.share]
    counts = [name, str(len(every)), str(len(every) - len(known))]
    if not known:
        return [*counts, *[""] * (len(HEADS) - len(counts))]
    regrets = [x.regret for x in known]
    mean, *shares = (
        statistics.geometric_mean(values)
        for values in (regrets, [x.share for x in known if x.share], [x.best for x in known])
    )
    quantiles = np.quantile(regrets, QUANTILES, method="nearest")
    return [*counts, *(f"{x:.2f}" for x in (mean, *quantiles, max(regrets), *shares))]


def _listed(title: str, judged: Sequence[Judged]) -> Table:
    table = Table(
        "case", "regret", "share", "best", "chosen, and the fastest", title=title, title_justify="left"
    )
    for x in judged:
        share = "" if x.share is None else f"{x.share:.2f}"
        table.add_row(
            x.name, f"{x.regret:.2f}" if x.share else "", share, f"{x.best:.2f}", f"{x.chosen}\n{x.winner}"
        )
    return table
