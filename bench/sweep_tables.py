"""The figures of `python -m bench sweep`: a table, and a line chart by elements per super-vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10, prod

from rich.console import RenderableType
from rich.table import Table

from bench.drawing import COLORS
from bench.line_charts import Across, Line, Points, lines
from bench.measure import Row
from bench.saved import Figure, latest
from bench.selection import Runs
from bench.sweep import AUTO, SUITE, best_of

ENOUGH = 0.95
"""The share of the best rate that "auto" should reach."""

ELEMENTS = Across(log10, lambda value: f"{value:g}", (16, 64, 256, 1024, 4096, 16384))
ONE, TWO = "one dimension", "two dimensions"


def tables(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """GB/s at each size, and how "auto" compares to the best of them."""
    out = Table(title="virtual_vector_size, GB/s of the fastest round", title_justify="left")
    out.add_column("workload")
    names = list(dict.fromkeys(row.case.partition(" = ")[0] for row in rows))
    for name in names:
        out.add_column(name, justify="right")
    out.add_column("best")
    out.add_column("auto / best", justify="right")
    least: list[float] = []
    for workload, own, best, auto in best_of(rows):
        rates = {row.case.partition(" = ")[0]: f"{row.rate:.1f}" for row in own}
        share = "" if auto is None else f"{auto.rate / best.rate:.2f}"
        least += [] if auto is None else [auto.rate / best.rate]
        out.add_row(workload, *(rates.get(name, "") for name in names), best.case, share)
    yield out
    if least:
        enough = sum(share >= ENOUGH for share in least)
        yield f'"auto" reaches {ENOUGH} of the best size in {enough} of {len(least)} workloads'


def chart(runs: Runs) -> str:
    """The speed of each size relative to "auto", by its elements."""
    run = latest(runs, SUITE)
    figures = run.table(SUITE)
    panels: dict[str, dict[str, Points]] = {}
    for name in dict.fromkeys(figure.group for figure in figures):
        own = [figure for figure in figures if figure.group == name]
        auto = next((figure.gb_per_s for figure in own if figure.case == AUTO), None)
        if auto is None:
            continue
        found = {title: _points([f for f in own if kind_of(f) == title], auto) for title in (ONE, TWO)}
        panels[name] = {title: points for title, points in found.items() if points}
    looks = {ONE: Line(COLORS["TileJIT"]), TWO: Line(COLORS["torch"], dashed=True)}
    subtitle = "Times as fast as auto, by elements of a super-vector"
    return lines("Virtual vector sizes", subtitle, looks, panels, across=ELEMENTS, ratios=True)


def _points(figures: Sequence[Figure], auto: float) -> Points:
    """The fastest size for each number of elements, relative to "auto"."""
    found: dict[float, float] = {}
    for figure in figures:
        elements = elements_of(figure)
        found[elements] = max(figure.gb_per_s / auto, found.get(elements, 0.0))
    return sorted(found.items())


def kind_of(figure: Figure) -> str:
    """ "one" or "two" dimensions, or "" for auto."""
    return "" if figure.case == AUTO else TWO if "x" in figure.case else ONE


def elements_of(figure: Figure) -> float:
    """256 -> 256    32x256 -> 8192    2*hw = 32 -> 32"""
    return float(prod(map(int, figure.case.rpartition(" = ")[2].split("x"))))
