"""Line charts: panels stacked vertically, with a common horizontal scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil, floor, log10
from typing import Any

from bench.drawing import (
    LABEL,
    LINES,
    MARGIN,
    MUTED,
    SMALL,
    TEXT,
    WIDTH,
    Legend,
    canvas,
    draw_legend,
    svg,
    text_width,
)

Points = Sequence[tuple[float, float]]
Panels = Mapping[str, Mapping[str, Points]]
"""Points by series, by the title of the panel."""

PANEL, BETWEEN = 210, 62
"""Height of the drawing area of one panel, and the gap between two."""
FIRST_PANEL, LEGEND_LINE = 142, 26
"""The top of the first panel below a legend of one line, and the height of each further line."""
LEFT, RIGHT = 66, WIDTH - MARGIN - 24
KIB, MIB = 1 << 10, 1 << 20
RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True, slots=True)
class Line:
    """The style of one series of points."""

    color: str
    dashed: bool = False
    dots: bool = True


@dataclass(frozen=True, slots=True)
class Across:
    """The horizontal scale: the position and text of values, and which ones have labels."""

    place: Callable[[float], float]
    text: Callable[[float], str]
    labels: tuple[float, ...] = ()
    """Without any, every value that a point has."""


def bytes_text(size: float) -> str:
    """4 KiB, 16 MiB"""
    whole = round(size / KIB)
    return f"{whole} KiB" if whole < 1024 else f"{round(size / MIB)} MiB"


SIZES = Across(log10, bytes_text)
PERCENT = Across(float, lambda value: f"{value:g} %", (0, 25, 50, 75, 100))


def lines(
    title: str,
    subtitle: str,
    series: Mapping[str, Line],
    panels: Panels,
    *,
    across: Across = SIZES,
    ratios: bool = False,
) -> str:
    """Points joined by lines.

    The scales of sizes and rates are logarithmic, and all panels share them. Ratios have a scale in each
    panel, with a line at 1.
    """
    legend = list(_legend_lines(series))
    top = FIRST_PANEL + LEGEND_LINE * (len(legend) - 1)
    height = top + len(panels) * (PANEL + BETWEEN)
    decades = _decades([y for _, y in _all_points(panels)])

    def draw(figure: Any) -> None:
        axes = canvas(figure, height)
        draw_legend(axes, Legend(title, subtitle, {}))
        for k, names in enumerate(legend):
            _draw_legend_line(axes, {name: series[name] for name in names}, 88 + LEGEND_LINE * k)
        for k, (name, panel) in enumerate(panels.items()):
            ceiling = top + k * (PANEL + BETWEEN)
            axes.text(LEFT, ceiling - 6, name, fontsize=LABEL, fontweight="bold")
            ticks = _ratio_ticks([y for _, y in _all_points({name: panel})]) if ratios else decades
            scales = _scales(panels, across, ticks, ceiling + PANEL)
            _draw_grid(axes, panel, scales, mark=1.0 if ratios else None)
            _draw_series(axes, panel, series, scales)

    return svg(draw, height, f"{title}: {subtitle}")


@dataclass(frozen=True, slots=True)
class _Scales:
    """The pixels of a panel whose floor is at that height, and its labels at the left and below."""

    x: Callable[[float], float]
    y: Callable[[float], float]
    floor: float
    ticks: Sequence[float]
    across: Across


def _scales(panels: Panels, across: Across, ticks: Sequence[float], floor_y: float) -> _Scales:
    places = [across.place(x) for x, _ in _all_points(panels)] + [across.place(x) for x in across.labels]
    first, wide = min(places), (max(places) - min(places)) or 1.0
    lowest, tall = log10(ticks[0]), log10(ticks[-1] / ticks[0])
    return _Scales(
        lambda x: LEFT + (across.place(x) - first) / wide * (RIGHT - LEFT),
        lambda y: floor_y - (log10(y) - lowest) / tall * PANEL,
        floor_y,
        ticks,
        across,
    )


def _draw_grid(axes: Any, panel: Mapping[str, Points], scales: _Scales, mark: float | None) -> None:
    for tick in scales.ticks:
        y = scales.y(tick)
        looks = {"color": MUTED, "linewidth": 1.5} if tick == mark else {"color": LINES, "linewidth": 1}
        axes.plot([LEFT, RIGHT], [y, y], **looks)
        axes.text(LEFT - 8, y + 5, f"{tick:g}", fontsize=SMALL, color=MUTED, ha="right")
    for x in scales.across.labels or sorted({x for points in panel.values() for x, _ in points}):
        where = scales.x(x), scales.floor + 20
        axes.text(*where, scales.across.text(x), fontsize=SMALL - 1, color=MUTED, ha="center")


def _draw_series(axes: Any, panel: Mapping[str, Points], series: Mapping[str, Line], scales: _Scales) -> None:
    for label, points in panel.items():
        look = series[label]
        xs, ys = [scales.x(x) for x, _ in points], [scales.y(y) for _, y in points]
        axes.plot(xs, ys, color=look.color, linewidth=2.5, linestyle=_style(look))
        if look.dots:
            axes.plot(xs, ys, "o", color=look.color, markersize=6, markeredgecolor="white")


def _all_points(panels: Panels) -> Iterator[tuple[float, float]]:
    return chain.from_iterable(points for panel in panels.values() for points in panel.values())


def _decades(values: Sequence[float]) -> list[float]:
    lowest, highest = floor(log10(min(values))), ceil(log10(max(values)))
    return [10.0**decade for decade in range(lowest, max(highest, lowest + 1) + 1)]


def _ratio_ticks(values: Sequence[float]) -> list[float]:
    """From the tick below all values to the one above them, including 1 and at least one neighbor of it.

    (0.7, 3.0) -> 0.5, 1, 2, 5
    """
    least, most = min(*values, 0.99), max(*values, 1.01)
    below = [tick for tick in RATIOS if tick <= least]
    above = [tick for tick in RATIOS if tick >= most]
    first, last = (below or [min(values)])[-1], (above or [max(values)])[0]
    return [first, *(tick for tick in RATIOS if first < tick < last), last]


def _legend_lines(series: Mapping[str, Line]) -> Iterator[list[str]]:
    """The names in lines, as many per line as fit."""
    names: list[str] = []
    used = 0.0
    for name in series:
        wide = _entry_width(name)
        if names and used + wide > WIDTH - 2 * MARGIN:
            yield names
            names, used = [], 0.0
        names.append(name)
        used += wide
    yield names


def _draw_legend_line(axes: Any, series: Mapping[str, Line], y: float) -> None:
    x = float(MARGIN)
    for name, look in series.items():
        axes.plot([x, x + 26], [y, y], color=look.color, linewidth=3, linestyle=_style(look))
        axes.text(x + 32, y + 6, name, fontsize=LABEL - 1, color=TEXT)
        x += _entry_width(name)


def _entry_width(name: str) -> float:
    return 32 + text_width(name, LABEL - 1) + 14


def _style(look: Line) -> Any:
    return (0, (5, 3)) if look.dashed else "-"
