"""`python -m bench`: tables of figures, a JSON file and a picture of them where asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType

from bench import chart_figures, cliffs, cold_start, peers, sizes, sweep, sweep_tables
from bench.markdown import report
from bench.measure import Method, Row
from bench.plot import plot, roof
from bench.report import gains_table, rows_table, run_json, summaries, summary_table
from bench.saved import fits, runs_of, save
from bench.selection import Runs
from bench.suites import ALL, LONG, NAMES, SUITES, Choice, Figures, run_cases
from bench.timing import conditions, machine, today
from codegen import kernels_in_use

PAGE_WIDTH = 240
"""Tables are never cut to fit a narrow window or a file."""

PEER_SECONDS = 1.5
"""What the rounds of one peer in one case may take, three rounds aside."""

QUICK_ROUNDS, QUICK_PEER_SECONDS = 3, 0.1

TABLES: dict[str, Callable[[Sequence[Row]], Iterable[RenderableType]]] = {
    sizes.TABLE: sizes.tables,
    cliffs.TABLE: cliffs.tables,
    sweep.SUITE: sweep_tables.tables,
}
"""Suites that print tables of their own."""

PICTURES: dict[str, Callable[[Runs], str]] = {
    sizes.TABLE: chart_figures.recipes,
    cliffs.TABLE: chart_figures.cliffs,
    cold_start.SUITE: chart_figures.cold_start,
    sweep.SUITE: sweep_tables.chart,
}
"""Suites with a chart of their own; others have the roofline of copies."""


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
    cases: Annotated[int | None, typer.Option(min=1, help="only so many of each suite, the first")] = None,
    runs: Annotated[int, typer.Option(min=1, help="runs one after the other; their median is kept")] = 1,
    seconds: Annotated[float, typer.Option(help="stop after the first case that ends later")] = float("inf"),
) -> None:
    """Measure, print, and keep the figures.

    Shares are of memcpy (numpy.copyto of contiguous arrays of the same size) in the same run; "x numpy" says
    how many times as fast as NumPy TileJIT is. Nothing but a wrong answer makes the exit code 1.
    """
    names = (
        tuple(n for n in SUITES if n not in LONG) if suite == ALL else tuple(dict.fromkeys(suite.split(",")))
    )
    for name in names:
        if name not in NAMES:
            raise typer.BadParameter(f"there is no suite {name}; choose {', '.join((*NAMES, ALL))}")
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
    choice = Choice(names, only, quick, cases, runs, seconds)
    head = f"{facts['cpu']}, {date}, threads {threads}, rounds {method.rounds}"
    console.print(head + (f", runs {runs}" if runs > 1 else ""), highlight=False, soft_wrap=True)
    figures = Figures()
    try:
        run_cases(choice, method, figures, progress)
    except KeyboardInterrupt:
        figures.note = "Stopped by hand."
    if figures.note:
        progress.print(f"{figures.note} The figures so far:")
    run = run_json(
        figures.rows,
        figures.gains,
        command=f"{choice.command(suite)} --peers {against} --rounds {method.rounds} --threads {threads}",
        threads=threads,
        rounds=method.rounds,
        **({"cold_start_ms": medians} if (medians := figures.starts.medians()) else {}),
        **({"note": figures.note} if figures.note else {}),
        **state,
    )
    if json_file:
        save(json_file, facts, date, run)
    _print(console, figures, versions)
    saved = runs_of({"machine": facts, "date": date, "runs": [run]})
    if plot_file and (figures.rows or medians):
        if own := PICTURES.get(suite):
            plot_file.write_text(own(saved))
        elif figures.rows:
            points = roof(method.rounds, threads, max(row.moved_bytes for row in figures.rows))
            plot(figures.rows, points, f"{facts['cpu']}, {date}, {threads} thread(s)", plot_file)
    if markdown_file:
        markdown_file.write_text(report(saved))
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


def _print(console: Console, figures: Figures, versions: dict[str, str]) -> None:
    for title, rows in _tables(figures.rows):
        own = TABLES.get(title)
        for table in own(rows) if own else [rows_table(title, rows, versions)]:
            console.print(table)
    if figures.starts.medians():
        console.print(cold_start.tables(figures.starts))
    if figures.rows:
        console.print(summary_table(summaries(figures.rows), versions))
        slowest = f"{max(row.first_seconds for row in figures.rows):.2f} s"
        console.print(
            f"{len(kernels_in_use())} kernels; the slowest first call, compiling included, took {slowest}",
            highlight=False,
        )
    if figures.gains:
        console.print(gains_table(figures.gains))
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
