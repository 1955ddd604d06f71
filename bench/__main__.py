"""`python -m bench`: tables of figures and, on request, a JSON file and a chart.

`python -m bench record` and `python -m bench regret` measure and judge schedules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType

from bench import chart_figures, cliffs, cold_start, peers, record, regret, sizes, sweep, sweep_tables
from bench.markdown import report
from bench.measure import Method, Row
from bench.plot import plot
from bench.report import brief_table, gains_table, noise_note, rows_table, run_json, summaries, summary_table
from bench.saved import fits, runs_of, save
from bench.selection import Runs
from bench.suites import ALL, LONG, NAMES, SUITES, Choice, Figures, run_cases
from bench.timing import conditions, machine, today
from codegen import kernels_in_use

PAGE_WIDTH = 240
"""Tables are never cut to fit a narrow window or a file."""

PEER_SECONDS = 1.5
"""Time limit for one peer in one case; the first three rounds do not count."""

QUICK_ROUNDS, QUICK_PEER_SECONDS = 3, 0.1
BRIEF_SECONDS = 45.0
"""`--quick` alone starts no case after this time: with imports and tables it takes a minute."""
INTERRUPTED = 130

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
"""Suites with a chart of their own; others have bars."""

SUITE_HELP = (
    f"suites, separated by commas: {', '.join(NAMES)}; by default all but "
    f"{', '.join(name for name in NAMES if name in LONG or name not in SUITES)}"
)


def main(
    suite: Annotated[str | None, typer.Argument(help=SUITE_HELP)] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="save the figures in this file, or add them to it")
    ] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="write the tables to this file as Markdown")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="draw a chart of the figures in this SVG file")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="rounds per case; tables show medians")] = 9,
    threads: Annotated[int, typer.Option(min=1, help="threads for TileJIT, memcpy and peers")] = 1,
    only: Annotated[str, typer.Option(help="only cases with this text in their table, group or name")] = "",
    against: Annotated[
        str,
        typer.Option("--peers", help="libraries to compare with: all, none, or names such as numpy,torch"),
    ] = ALL,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="small arrays and few rounds; without a suite, one case of each group in a minute"
        ),
    ] = False,
    cases: Annotated[int | None, typer.Option(min=1, help="only the first N cases of each suite")] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="measure every case in this many runs, and keep the median")
    ] = 1,
    seconds: Annotated[float | None, typer.Option(help="start no case after this many seconds")] = None,
) -> None:
    """Measure TileJIT and other libraries, and print tables.

    "of memcpy" columns show the speed as a share of memcpy: numpy.copyto of contiguous arrays of the same
    size, in the same run. "x numpy" is TileJIT's speedup over NumPy. The exit code is 1 if an
    answer is wrong. Ctrl-C prints the figures so far and exits with 130.

    Two commands measure and judge the choices of the compiler instead: see python -m bench record -h, and
    python -m bench regret -h.
    """
    brief = quick and suite is None and not only and cases is None
    suite = ALL if suite is None else suite
    names = (
        tuple(n for n in SUITES if n not in LONG) if suite == ALL else tuple(dict.fromkeys(suite.split(",")))
    )
    for name in names:
        if name not in NAMES:
            near = get_close_matches(name, (*NAMES, ALL), n=1, cutoff=0.7)
            fix = f"did you mean {near[0]}?" if near else f"choose from {', '.join((*NAMES, ALL))}"
            raise typer.BadParameter(f"unknown suite {name}; {fix}")
    _check_outputs(json_file, markdown_file, plot_file)
    versions = peers.versions()
    os.environ["TILEJIT_THREADS"] = str(threads)  # NumPy's routines take no thread count
    method = Method(
        QUICK_ROUNDS if quick else rounds,
        threads,
        _chosen(against, versions),
        QUICK_PEER_SECONDS if quick else PEER_SECONDS,
    )
    facts, date, state = machine(), today(), conditions()
    state["versions"] |= versions
    if json_file and not fits(json_file, facts, date):
        raise typer.BadParameter(f"{json_file} holds results from another machine or day; name another file")
    console, progress = Console(width=max(PAGE_WIDTH, Console().width)), Console(stderr=True)
    limit = (BRIEF_SECONDS if brief else float("inf")) if seconds is None else seconds
    choice = Choice(names, only, quick, cases, runs, limit, brief)
    head = f"{facts['cpu']}, {date}, threads {threads}, rounds {method.rounds}"
    console.print(head + (f", runs {runs}" if runs > 1 else ""), highlight=False, soft_wrap=True)
    missing = [name for name, version in versions.items() if version == peers.NOT_INSTALLED]
    if missing:
        console.print(f"{peers.NOT_INSTALLED}: {', '.join(missing)}", highlight=False, soft_wrap=True)
    figures, interrupted = Figures(), False
    try:
        run_cases(choice, method, figures, progress)
    except KeyboardInterrupt:
        figures.note, interrupted = "Interrupted.", True
    if figures.note:
        measured = figures.rows or figures.gains or figures.starts.medians()
        progress.print(f"{figures.note} {'The figures so far:' if measured else 'There are no figures yet.'}")
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
    shown = {name: versions[name] for name in versions if name not in missing}
    if brief:
        _print_brief(figures, shown)
    else:
        _print(console, figures, shown)
    saved = runs_of({"machine": facts, "date": date, "runs": [run]})
    if plot_file and (figures.rows or medians):
        if own := PICTURES.get(suite):
            plot_file.write_text(own(saved))
        elif any(not row.problem for row in figures.rows):
            count = f"{threads} thread{'s' * (threads > 1)}"
            plot(figures.rows, f"{facts['cpu']}, {date}, {count}", plot_file)
    if markdown_file:
        markdown_file.write_text(report(saved))
    if any(row.problem for row in figures.rows) or any(gain.problem for gain in figures.gains):
        raise typer.Exit(1)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _check_outputs(*files: Path | None) -> None:
    """Check before a long run that the files can be written. The last one is the chart."""
    *_, plot_file = files
    for path in files:
        if path is None:
            continue
        folder = path.absolute().parent
        if not folder.is_dir():
            raise typer.BadParameter(f"the directory of {path} does not exist; create it first")
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a directory; name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise typer.BadParameter(f"{path} cannot be written; name another file")
    if plot_file and find_spec("matplotlib") is None:
        raise typer.BadParameter("--plot needs matplotlib; pip install '.[bench]'")


def _chosen(text: str, versions: dict[str, str]) -> tuple[str, ...]:
    """The requested peers that are installed."""
    named = tuple(name for name in text.split(",") if name)
    wanted = peers.NAMES if text == ALL else () if text == "none" else named
    for name in wanted:
        if name not in peers.NAMES:
            raise typer.BadParameter(f"unknown peer {name}; choose from {', '.join(peers.NAMES)}")
    return tuple(name for name in wanted if versions[name] != peers.NOT_INSTALLED)


def _print_brief(figures: Figures, versions: dict[str, str]) -> None:
    """Print one table as wide as the terminal, then the problems."""
    console = Console()
    if figures.rows:
        console.print(brief_table(figures.rows, versions))
    _print_problems(console, figures)


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
    _print_problems(console, figures)


def _print_problems(console: Console, figures: Figures) -> None:
    """Print what makes the figures doubtful: errors, and other work on the machine."""
    if note := noise_note(figures.rows):
        console.print(note, highlight=False, soft_wrap=True)
    for row in figures.rows:
        for problem in _problems(row):
            console.print(f"{row.table}: {row.case}: {problem}", highlight=False, soft_wrap=True)
    for gain in figures.gains:
        if gain.problem:
            console.print(f"two threads: {gain.case}: {gain.problem}", highlight=False, soft_wrap=True)


def _tables(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows by table, in the order in which the tables first appear."""
    for table in dict.fromkeys(row.table for row in rows):
        yield table, [row for row in rows if row.table == table]


def _problems(row: Row) -> Iterator[str]:
    """The problems of a row and its peers."""
    if row.problem:
        yield row.problem
    yield from (f"{name}: {p.problem}" for name, p in row.peers.items() if p.problem)


COMMANDS: dict[str, Callable[..., None]] = {"record": record.main, "regret": regret.main}
"""The first argument, for commands that measure or judge schedules instead of suites."""


def start(arguments: Sequence[str]) -> None:
    """Run the command that is the first argument; without one, measure suites."""
    command = COMMANDS.get(arguments[0]) if arguments else None
    app = typer.Typer(add_completion=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(command or main)
    name = f"python -m bench {arguments[0]}" if command else "python -m bench"
    app([*arguments[1 if command else 0 :]], prog_name=name)


if __name__ == "__main__":
    start(sys.argv[1:])
