"""`python -m bench`: tables of figures, a JSON file and a picture of them where asked for."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import casts, cliffs, copies, dropin, gather, pack, peers, permute, relayout, sizes, subbyte
from bench.gains import Gain, measure_gain
from bench.jobs import Case
from bench.markdown import report
from bench.measure import Method, Row, measure
from bench.plot import plot, roof
from bench.report import gains_table, rows_table, run_json, summaries, summary_table
from bench.saved import fits, runs_of, save
from bench.timing import conditions, machine, today
from codegen import kernels_in_use

SUITES: dict[str, Callable[[bool], list[Case]]] = {
    "copies": copies.cases,
    "pack": pack.cases,
    "permute": permute.cases,
    "casts": casts.cases,
    "subbyte": subbyte.cases,
    "relayout": relayout.cases,
    "gather": gather.cases,
    "dropin": dropin.cases,
    "sizes": sizes.cases,
    "cliffs": cliffs.cases,
}
ALL = "all"
LONG = ("sizes", "cliffs")
"""Suites of more than a thousand cases, which `all` leaves out."""
PAGE_WIDTH = 240
"""Tables are never cut to fit a narrow window or a file."""

PEER_SECONDS = 1.5
"""What the rounds of one peer in one case may take, three rounds aside."""

QUICK_ROUNDS, QUICK_PEER_SECONDS = 3, 0.1


@dataclass(slots=True)
class Figures:
    """What has been measured so far, also when somebody stops the run."""

    rows: list[Row]
    gains: list[Gain]


def main(
    suite: Annotated[str, typer.Argument(help="a suite, several with commas between, or all")] = ALL,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="also save the run there, or add it")
    ] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="and as Markdown")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="and a picture of them, SVG")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="rounds that medians are taken of")] = 9,
    threads: Annotated[int, typer.Option(min=1, help="threads of TileJIT, memcpy and peers")] = 1,
    only: Annotated[str, typer.Option(help="only cases with this text in table, group or name")] = "",
    against: Annotated[str, typer.Option("--peers", help="all, none, or names: numpy,torch")] = ALL,
    quick: Annotated[bool, typer.Option("--quick", help="small arrays, few rounds: a smoke test")] = False,
) -> None:
    """Measure, print, and keep the figures.

    Shares are of memcpy (numpy.copyto of contiguous arrays of the same size) in the same run; "x numpy" says
    how many times as fast as NumPy TileJIT is. Nothing but a wrong answer makes the exit code 1.
    """
    names = (
        tuple(n for n in SUITES if n not in LONG) if suite == ALL else tuple(dict.fromkeys(suite.split(",")))
    )
    for name in names:
        if name not in SUITES:
            raise typer.BadParameter(f"there is no suite {name}; choose {', '.join((*SUITES, ALL))}")
    _check_outputs(json_file, markdown_file, plot_file)
    versions = peers.versions()
    os.environ["TILEJIT_THREADS"] = str(threads)  # for routines that are called as NumPy's, with no number
    method = Method(
        QUICK_ROUNDS if quick else rounds,
        threads,
        _chosen(against, versions),
        QUICK_PEER_SECONDS if quick else PEER_SECONDS,
    )
    facts, date, state = machine(), today(), conditions()
    state["versions"] |= versions
    if json_file and not fits(json_file, facts, date):
        raise typer.BadParameter(f"{json_file} holds results of another machine or day; name another file")
    console, progress = Console(width=max(PAGE_WIDTH, Console().width)), Console(stderr=True)
    head = f"{facts['cpu']}, {date}, threads {threads}, rounds {method.rounds}"
    console.print(head, highlight=False, soft_wrap=True)
    figures = Figures([], [])
    try:
        _run(names, only, quick, method, figures, progress)
    except KeyboardInterrupt:
        progress.print("stopped; the figures so far:")
    _print(console, figures, versions)
    points: list[tuple[int, float]] = []
    if plot_file and figures.rows:
        points = roof(method.rounds, threads, max(row.moved_bytes for row in figures.rows))
        plot(figures.rows, points, f"{facts['cpu']}, {date}, {threads} thread(s)", plot_file)
    command = f"python -m bench {suite}" + (f" --only {only!r}" if only else "") + " --quick" * quick
    run = run_json(
        figures.rows,
        figures.gains,
        command=f"{command} --peers {against} --rounds {method.rounds} --threads {threads}",
        threads=threads,
        rounds=method.rounds,
        **state,
    )
    if markdown_file:
        markdown_file.write_text(report(runs_of({"machine": facts, "date": date, "runs": [run]})))
    if json_file:
        save(json_file, facts, date, run)
    if any(row.problem for row in figures.rows) or any(gain.problem for gain in figures.gains):
        raise typer.Exit(1)


def _check_outputs(*files: Path | None) -> None:
    """Before a long run rather than after it; the last one is the picture."""
    *_, plot_file = files
    for path in files:
        if path is None:
            continue
        folder = path.absolute().parent
        if not folder.is_dir():
            raise typer.BadParameter(f"{path}: there is no such directory; make it first")
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a directory; name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise typer.BadParameter(f"{path} cannot be written; name another file")
    if plot_file and find_spec("matplotlib") is None:
        raise typer.BadParameter("--plot needs matplotlib; pip install '.[bench]'")


def _chosen(text: str, versions: dict[str, str]) -> tuple[str, ...]:
    """The peers to measure, those that are installed."""
    named = tuple(name for name in text.split(",") if name)
    wanted = peers.NAMES if text == ALL else () if text == "none" else named
    for name in wanted:
        if name not in peers.NAMES:
            raise typer.BadParameter(f"there is no peer {name}; choose of {', '.join(peers.NAMES)}")
    return tuple(name for name in wanted if versions[name] != peers.NOT_INSTALLED)


def _run(
    names: tuple[str, ...], only: str, quick: bool, method: Method, figures: Figures, progress: Console
) -> None:
    """Every case in turn; the arrays of one are gone before the next."""
    cases = [case for name in names for case in SUITES[name](quick) if _wanted(case, only)]
    pairs = [case for case in copies.threaded(quick) if "copies" in names and _wanted(case, only)]
    if not cases and not pairs:
        raise typer.BadParameter(f"no case has {only!r} in its table, group or name")
    for number, case in enumerate(cases, 1):
        row = measure(case, method)
        figures.rows.append(row)
        text = row.problem or f"{row.rate:.1f} GB/s, {row.share:.2f} of memcpy"
        progress.print(
            f"{number}/{len(cases)} {case.table}: {case.name}: {text}", highlight=False, soft_wrap=True
        )
        gc.collect()
    for case in pairs:
        figures.gains.append(measure_gain(case, method.rounds))
        gc.collect()


def _wanted(case: Case, only: str) -> bool:
    return only in f"{case.table} {case.group} {case.name}"


def _print(console: Console, figures: Figures, versions: dict[str, str]) -> None:
    for title, rows in _tables(figures.rows):
        for table in cliffs.tables(rows) if title == cliffs.TABLE else [rows_table(title, rows, versions)]:
            console.print(table)
    slow = sizes.slower(figures.rows)
    if slow:
        console.print(slow)
    if figures.rows:
        console.print(summary_table(summaries(figures.rows), versions))
    if figures.gains:
        console.print(gains_table(figures.gains))
    slowest = max((row.first_seconds for row in figures.rows), default=0.0)
    console.print(
        f"{len(kernels_in_use())} kernels; the slowest first call, compiling included, took {slowest:.2f} s",
        highlight=False,
    )
    for row in figures.rows:
        for problem in _problems(row):
            console.print(f"{row.table}: {row.case}: {problem}", highlight=False, soft_wrap=True)
    for gain in figures.gains:
        if gain.problem:
            console.print(f"two threads: {gain.case}: {gain.problem}", highlight=False, soft_wrap=True)


def _tables(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows by table, in the order they came."""
    for table in dict.fromkeys(row.table for row in rows):
        yield table, [row for row in rows if row.table == table]


def _problems(row: Row) -> Iterator[str]:
    """What went wrong in a row, peers included."""
    if row.problem:
        yield row.problem
    yield from (f"{name}: {p.problem}" for name, p in row.peers.items() if p.problem)


if __name__ == "__main__":
    typer.run(main)
