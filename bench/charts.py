"""`python -m bench.charts`: every chart and table of the documentation, from the saved results.

Writes `docs/images/speed.svg` and `docs/images/bench-*.svg`, the tables and captions of `docs/benchmarks.md`
between their markers, and `bench/results.md`. Save new results first:

    python -m bench copies,pack,permute,casts --json bench/results/zen4-2026-12-01.json
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench import chart_figures, summary_tables
from bench.markdown import report
from bench.saved import FOLDER, latest, load
from bench.selection import (
    MAIN,
    SUMMARY,
    Runs,
    by_kind,
    expressions_run,
    routines_run,
    vector_sizes_run,
    where,
)

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
RESULTS = Path(__file__).parent / "results.md"


@dataclass(frozen=True, slots=True)
class Chart:
    """An SVG and its caption, which names the machine, date and conditions."""

    name: str
    alt: str
    draw: Callable[[Runs], str]
    caption: Callable[[Runs], str]


def speed_caption(runs: Runs) -> str:
    """The runs that the chart shows, and what its figures omit."""
    used = [latest(runs, name, MAIN) for name in ("formats", "transposes", "permutations", "casts")]
    moved = [figure.mb for _, _, cases in by_kind(runs) for figure in cases]
    return (
        f"{where(used)}. One thread; {min(moved):.0f} to {max(moved):.0f} MB read and written. Results go to "
        "preallocated memory, except for jax, which allocates on every call. Only cases available in all "
        "four libraries."
    )


def _measured(runs: Runs, *names: str, more: str = "") -> str:
    """The runs on the main machine that these tables come from."""
    return f"{where(latest(runs, name, MAIN) for name in names)}. {more}".rstrip()


SHARED = "A shared virtual machine: single cases differ by a fifth from run to run."

CHARTS = (
    Chart(
        "speed",
        "Bars of GB/s for packs, transposes, permutations and casts",
        chart_figures.speed,
        speed_caption,
    ),
    Chart(
        "bench-copies",
        "Share of memcpy by group of cases, for TileJIT, NumPy, torch, jax and MKL",
        chart_figures.copies,
        lambda runs: _measured(
            runs,
            *dict.fromkeys(name for name, *_ in SUMMARY),
            more=f"One thread; results go to preallocated memory, except for jax. {SHARED}",
        ),
    ),
    Chart(
        "bench-machines",
        "TileJIT's share of memcpy by group of cases, on Zen 4, Zen 5 and Zen 3",
        chart_figures.machines,
        lambda runs: (
            f"{where([run for run in runs if run.figures and 'Zen' in run.machine])}. One thread; "
            "results go to preallocated memory. For the last four groups on Zen 4, only means were saved."
        ),
    ),
    Chart(
        "bench-fresh",
        "GB/s into given and into new memory, for TileJIT and NumPy",
        chart_figures.fresh,
        lambda runs: _measured(runs, "fresh outputs", more="One thread. 134 MB to 1.1 GB read and written."),
    ),
    Chart(
        "bench-sizes",
        "GB/s of packs from 4 KiB to 64 MiB, for TileJIT and NumPy",
        chart_figures.sizes,
        lambda runs: (
            f"{where([latest(runs, 'sizes')])}. One thread. Calls alternate with NumPy's reshape, "
            "transpose and copy."
        ),
    ),
    Chart(
        "bench-routines",
        "TileJIT's versions of NumPy's routines against NumPy, by size",
        chart_figures.routines,
        lambda runs: f"{where([routines_run(runs)])}. One thread; calls alternate with NumPy's.",
    ),
    Chart(
        "bench-expressions",
        "Expressions and sums against NumPy, numexpr, torch, jax and numba, by number of elements",
        chart_figures.expressions,
        lambda runs: (
            f"{where([expressions_run(runs)])}. One thread; float32 and float64, 17 cases of each size."
        ),
    ),
    Chart(
        "bench-vector-size",
        "GB/s of a+b+1+2 by virtual_vector_size",
        chart_figures.vector_sizes,
        lambda runs: f"{where([vector_sizes_run(runs)])}. One thread.",
    ),
)

TABLES: Mapping[str, Callable[[Runs], str]] = {
    "copies": summary_tables.copies_table,
    "moves": summary_tables.moves_table,
    "threads": summary_tables.threads_table,
    "expressions": summary_tables.expressions_table,
    "cold-start": summary_tables.cold_start_table,
}


def filled(page: str, runs: Runs) -> str:
    """A page with the charts and tables between its markers replaced.

    <!-- chart: speed --> … <!-- end -->    <!-- table: copies --> … <!-- end -->

    Raises:
        KeyError: a marker names no chart or table.
    """
    charts = {chart.name: chart for chart in CHARTS}

    def block(found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        if kind == "chart":
            chart = charts[name]
            text = f"![{chart.alt}](images/{name}.svg)\n\n*{chart.caption(runs)}*\n"
        else:
            text = TABLES[name](runs)
        return f"<!-- {kind}: {name} -->\n\n{text}\n<!-- end -->"

    pattern = r"<!-- (?P<kind>chart|table): (?P<name>[\w-]+) -->.*?<!-- end -->"
    return re.sub(pattern, block, page, flags=re.DOTALL)


def main(
    results: Annotated[Path, typer.Option(help="the directory of saved results")] = FOLDER,
    images: Annotated[Path, typer.Option(help="the directory of the charts")] = IMAGES,
) -> None:
    """Draw the charts and write the tables."""
    runs = load(results)
    images.mkdir(parents=True, exist_ok=True)
    for chart in CHARTS:
        (images / f"{chart.name}.svg").write_text(chart.draw(runs))
    PAGE.write_text(filled(PAGE.read_text(), runs))
    RESULTS.write_text(report(runs))


if __name__ == "__main__":
    typer.run(main)
