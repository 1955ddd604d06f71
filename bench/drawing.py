"""The look of charts: 700 pixels wide, on a white card, legible at 400 pixels.

Text stays text, in the reader's sans-serif font. The same figures give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log
from typing import Any

WIDTH = 700
MARGIN = 22
TEXT, MUTED, LINES = "#1f2328", "#59636e", "#d1d9e0"
COLORS = {
    "TileJIT": "#1f6feb",
    "NumPy": "#8c959f",
    "torch": "#e8702a",
    "jax": "#12a594",
    "MKL": "#9a6ee0",
    "numexpr": "#c9a400",
    "numba": "#cf4f8e",
    "memcpy": TEXT,
}
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
TITLE, LABEL, SMALL = 23, 18, 16
"""Font sizes in pixels."""
BAR, GAP = 19, 18
"""Height of a bar, and the gap between groups."""
ROW = 31
"""The distance between rows of dots."""


@dataclass(frozen=True, slots=True)
class Group:
    """Bars, or dots on one row: a label, a line below it, values by series, and a mark across all bars."""

    label: str
    note: str
    values: Mapping[str, float]
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Legend:
    """The header of a chart: a title, a line below it, names with their colors."""

    title: str
    subtitle: str
    colors: Mapping[str, str]
    mark: str = ""


def svg(draw: Callable[[Any], None], height: int, title: str) -> str:
    """The SVG text of the chart that `draw` draws on a figure of 700 by `height` pixels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import FancyBboxPatch

    looks = {
        "svg.hashsalt": "tilejit",
        "svg.fonttype": "none",
        "font.family": "DejaVu Sans",
        "font.size": LABEL,
        "text.color": TEXT,
        "axes.edgecolor": LINES,
        "axes.labelcolor": MUTED,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
    }
    with matplotlib.rc_context(looks):
        figure = pyplot.figure(figsize=(WIDTH / 72, height / 72), facecolor="none")
        card = FancyBboxPatch(
            (0.5, 0.5),
            WIDTH - 1,
            height - 1,
            boxstyle="round,pad=0,rounding_size=10",
            facecolor="white",
            edgecolor=LINES,
            linewidth=1,
            transform=None,
            zorder=-1,
        )
        figure.add_artist(card)
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return _finished(out.getvalue(), height, title)


def _finished(text: str, height: int, title: str) -> str:
    """The SVG with sizes in pixels, a title for screen readers, and the reader's own font."""
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<\?xml.*?\?>\s*<!DOCTYPE.*?>\s*", "", text, flags=re.DOTALL)
    text = text.replace(
        f'width="{WIDTH}pt" height="{height}pt"', f'width="{WIDTH}" height="{height}" role="img"'
    )
    text = re.sub(r"(<svg [^>]*>)", lambda head: f"{head[1]}\n <title>{escape(title)}</title>", text, count=1)
    return re.sub(r"[ \t]+$", "", text.replace("'DejaVu Sans'", FONTS), flags=re.MULTILINE)


def canvas(figure: Any, height: int) -> Any:
    """Axes over the whole figure, in pixels from the top left."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    axes.axis("off")
    return axes


def legend_height(legend: Legend) -> int:
    """The pixels that the legend takes above the chart."""
    return 106 if legend.colors else 74


def draw_legend(axes: Any, legend: Legend) -> None:
    """Draw the title, and the colors with their names."""
    axes.text(MARGIN, 38, legend.title, fontsize=TITLE, fontweight="bold")
    axes.text(MARGIN, 64, legend.subtitle, fontsize=SMALL, color=MUTED)
    x = float(MARGIN)
    for name, color in legend.colors.items():
        axes.add_patch(_box(x, 80, 15, 15, color))
        axes.text(x + 21, 94, name, fontsize=LABEL)
        x += 21 + text_width(name, LABEL) + 20
    if legend.mark:
        axes.plot([x + 6, x + 6], [78, 97], color=TEXT, linewidth=2)
        axes.text(x + 15, 94, legend.mark, fontsize=LABEL)


def bars(legend: Legend, groups: Sequence[Group], unit: str = "", left: int = 196) -> str:
    """Horizontal bars with values at their ends. A mark goes across all bars of its group."""
    top = legend_height(legend) + 14
    heights = [BAR * len(group.values) + GAP for group in groups]
    height = top + sum(heights) + 10
    longest = max(max([*group.values.values(), group.mark or 0]) for group in groups)
    scale = (WIDTH - left - MARGIN - 10 * (max(4, len(f"{longest:.1f}")) + len(unit))) / longest

    def draw(figure: Any) -> None:
        axes = canvas(figure, height)
        draw_legend(axes, legend)
        y = top
        for group, tall in zip(groups, heights, strict=True):
            _group_label(axes, group, y + (tall - GAP) / 2, left)
            for k, (name, value) in enumerate(group.values.items()):
                strong = name.startswith("TileJIT")
                row = y + BAR * k
                axes.add_patch(_box(left, row + 1, value * scale, BAR - 2, legend.colors[name]))
                end = f"{value:.1f}{unit if strong else ''}"
                weight = "bold" if strong else "normal"
                axes.text(
                    left + value * scale + 6, row + BAR - 5, end, fontsize=SMALL, fontweight=weight, zorder=4
                )
                if group.mark is not None:  # a mark behind a value would look like a strikethrough
                    wide = text_width(end, SMALL) * (1.12 if strong else 1)
                    axes.add_patch(_box(left + value * scale + 3, row, wide + 6, BAR, "white", 3))
            if group.mark is not None:
                at = left + group.mark * scale
                axes.plot([at, at], [y - 3, y + tall - GAP + 3], color=TEXT, linewidth=2)
            y += tall

    return svg(draw, height, f"{legend.title}: {legend.subtitle}")


def _group_label(axes: Any, group: Group, middle: float, left: int) -> None:
    lift = 3 if group.note else -6
    axes.text(left - 14, middle - lift, group.label, fontsize=LABEL, ha="right")
    if group.note:
        axes.text(left - 14, middle + 17, group.note, fontsize=SMALL - 2, color=MUTED, ha="right")


def dots(
    legend: Legend,
    groups: Sequence[Group],
    ticks: Sequence[float],
    lowest: Mapping[tuple[str, str], float] | None = None,
    left: int = 226,
) -> str:
    """A row per group, a dot per series on a logarithmic scale, and a line at 1.

    Args:
        legend: the header.
        groups: the rows.
        ticks: the labeled values of the scale.
        lowest: the lower end of a thin line, by label and series.
    """
    top = legend_height(legend) + 18
    height = top + ROW * len(groups) + 40
    right = WIDTH - MARGIN - 14
    scale = (right - left) / log(ticks[-1] / ticks[0])

    def at(value: float) -> float:
        return left + scale * log(max(value, ticks[0]) / ticks[0])

    def draw(figure: Any) -> None:
        axes = canvas(figure, height)
        draw_legend(axes, legend)
        bottom = top + ROW * len(groups)
        for tick in ticks:
            one = tick == 1
            axes.plot(
                [at(tick)] * 2, [top - 6, bottom], color=TEXT if one else LINES, linewidth=1.5 if one else 1
            )
            axes.text(at(tick), bottom + 20, f"{tick:g}", fontsize=SMALL, color=MUTED, ha="center")
        for k, group in enumerate(groups):
            y = top + ROW * k + ROW / 2 - 3
            axes.text(left - 14, y + 5, group.label, fontsize=LABEL - 2, ha="right")
            axes.plot([left, right], [y, y], color=LINES, linewidth=0.6)
            taken: list[float] = []
            for j, (name, value) in enumerate(group.values.items()):
                color, x = legend.colors[name], at(value)
                if lowest:
                    shift = 6.0 * (j - (len(group.values) - 1) / 2)
                    axes.plot([at(lowest[group.label, name]), x], [y + shift] * 2, color=color, linewidth=2)
                else:
                    shift = 5.0 * (-1) ** len(taken) if any(abs(x - other) < 9 for other in taken) else 0.0
                    taken.append(x)
                axes.plot([x], [y + shift], "o", color=color, markersize=9, markeredgecolor="white")

    return svg(draw, height, f"{legend.title}: {legend.subtitle}")


def _box(x: float, y: float, width: float, height: float, color: str, zorder: float = 1) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=color, linewidth=0, zorder=zorder)


def text_width(text: str, size: float) -> float:
    """The width of a text in pixels, in the widest font that readers may have."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size=size).get_extents().width)
