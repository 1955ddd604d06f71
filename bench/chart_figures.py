"""The charts of the documentation, drawn from saved figures as SVG."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import geometric_mean

from bench.drawing import COLORS, Group, Legend, bars, dots
from bench.line_charts import KIB, MIB, PERCENT, Line, Points, lines
from bench.saved import Figure, latest
from bench.selection import (
    MAIN,
    MOVES,
    PEERS,
    RIVALS,
    SUMMARY,
    Runs,
    by_kind,
    cold_start_run,
    expressions_run,
    mean_on,
    routine_times,
    routines_run,
    vector_sizes_run,
    where,
)

OURS = "TileJIT"


def speed(runs: Runs) -> str:
    """GB/s for each kind of copy, for TileJIT and its peers."""
    groups = [
        Group(
            label,
            note,
            {
                OURS: geometric_mean([f.gb_per_s for f in cases]),
                **{PEERS[p]: geometric_mean([f.gb_per_s / f.times[p] for f in cases]) for p in RIVALS},
            },
            geometric_mean([f.gb_per_s / f.share for f in cases]),
        )
        for label, note, cases in by_kind(runs)
    ]
    subtitle = f"GB/s read and written, geometric means. {where([latest(runs, 'formats', MAIN)])}"
    return bars(Legend("Large copies on one thread", subtitle, _colors(groups), "memcpy"), groups, " GB/s")


def copies(runs: Runs) -> str:
    """Shares of memcpy by group, for TileJIT and its peers."""
    groups = []
    for name, group, label, _ in SUMMARY:
        run = latest(runs, name, MAIN)
        cases = [f for f in run.table(name) if group in (f.group, "all")]
        peers = {
            PEERS[p]: geometric_mean([f.share_of(p) for f in measured])
            for p in PEERS
            if (measured := [f for f in cases if p in f.times])
        }
        groups.append(Group(label, "", {OURS: run.mean(name, group).share, **peers}))
    legend = Legend(
        "Every group of cases", "Share of memcpy (1 = its speed), geometric means", _colors(groups)
    )
    return dots(legend, groups, (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2))


def machines(runs: Runs) -> str:
    """TileJIT's share of memcpy by group, on each machine."""
    colors = {"Zen 4": COLORS[OURS], "Zen 5": "#0b2f66", "Zen 3": "#79b4ff"}
    groups, lowest = [], {}
    for name, group, label, _ in (*SUMMARY, *MOVES):
        means = {m: mean for m in colors if (mean := mean_on(runs, m, name, group))}
        groups.append(Group(label, "", {machine: mean.share for machine, mean in means.items()}))
        lowest |= {(label, machine): mean.least for machine, mean in means.items()}
    subtitle = "TileJIT's share of memcpy: geometric mean (dot), slowest case (end of the line)"
    return dots(Legend("Three machines", subtitle, colors), groups, (0.2, 0.5, 1, 2), lowest)


def fresh(runs: Runs) -> str:
    """GB/s with `out=` and into new memory, for TileJIT and NumPy."""
    cases = latest(runs, "fresh outputs", MAIN).table("fresh outputs")
    found: dict[str, dict[str, Figure]] = {}
    for figure in cases:
        case, _, memory = figure.case.rpartition(", ")
        found.setdefault(case, {})[memory] = figure
    names = {
        "TileJIT, out=": ("out= given", "", COLORS[OURS]),
        "TileJIT, new": ("fresh", "", "#8fbcff"),
        "NumPy, out=": ("out= given", "numpy", COLORS["NumPy"]),
        "NumPy, new": ("fresh", "numpy", "#c9ced4"),
    }
    groups = []
    for case, by_memory in found.items():
        dtype, dims, what = case.split()
        values = {
            name: figure.gb_per_s / (figure.times[peer] if peer else 1)
            for name, (memory, peer, _) in names.items()
            for figure in (by_memory[memory],)
        }
        groups.append(Group(f"{'Copy' if what == 'flat' else 'Transpose'}", f"{dtype} {dims}", values))
    legend = Legend(
        "New results cost page faults",
        "GB/s read and written; out=: into memory that has been used before",
        {name: color for name, (_, _, color) in names.items()},
    )
    return bars(legend, groups, " GB/s", left=150)


def sizes(runs: Runs) -> str:
    """GB/s of packs from 4 KiB to 64 MiB, for TileJIT and the NumPy recipe."""
    cases = latest(runs, "sizes").table("sizes")
    series = {
        "TileJIT, out=": ("out= given", "", Line(COLORS[OURS])),
        "TileJIT, new": ("fresh", "", Line(COLORS[OURS], dashed=True)),
        "NumPy, out=": ("out= given", "numpy", Line(COLORS["NumPy"])),
        "NumPy, new": ("fresh", "numpy", Line(COLORS["NumPy"], dashed=True)),
    }
    panels = {
        title: {
            name: [
                (_array_bytes(f), f.gb_per_s / (f.times[peer] if peer else 1))
                for f in cases
                if f" {dtype}[" in f.case and tiles in f.case and f.group == f"pack, {memory}"
            ]
            for name, (memory, peer, _) in series.items()
        }
        for dtype, tiles, title in (
            ("f32", " T(8,128),", "Pack f32 into T(8,128): runs of 512 bytes"),
            ("bf16", " T(8,128)(2,1),", "Pack bf16 into T(8,128)(2,1): rows interleaved in pairs"),
        )
    }
    subtitle = "GB/s read and written, by bytes of the array; new: with a new result"
    return lines("Small arrays", subtitle, {name: line for name, (*_, line) in series.items()}, panels)


def recipes(runs: Runs) -> str:
    """Speedup of packs, unpacks and relayouts over the NumPy recipe, by size."""
    run = latest(runs, "sizes")
    cases = [f for f in run.table("sizes") if "numpy" in f.times]
    colors = {"pack": COLORS[OURS], "unpack": COLORS["torch"], "relayout": COLORS["jax"]}
    series = {
        f"{operation}, {label}": (f"{operation}, {memory}", Line(color, dashed=memory == "fresh"))
        for memory, label in (("out= given", "out="), ("fresh", "new"))
        for operation, color in colors.items()
        if any(f.group == f"{operation}, {memory}" for f in cases)
    }
    panels = {
        title: {name: by_size(cases, group, kind) for name, (group, _) in series.items()}
        for title, kind in (("Geometric mean of the formats", geometric_mean), ("Slowest format", min))
    }
    subtitle = f"Times as fast as NumPy, by size. {where([run])}"
    looks = {name: line for name, (_, line) in series.items()}
    return lines("Against the NumPy recipe", subtitle, looks, panels, ratios=True)


def by_size(cases: Sequence[Figure], group: str, kind: Callable[[list[float]], float]) -> Points:
    """Array sizes, and the mean or the least ratio to NumPy at each size."""
    times: dict[float, list[float]] = {}
    for figure in cases:
        if figure.group == group:
            times.setdefault(_array_bytes(figure), []).append(figure.times["numpy"])
    return [(size, kind(times[size])) for size in sorted(times)]


def cliffs(runs: Runs) -> str:
    """The distribution of large and small random copies: sorted ratios to memcpy and to NumPy."""
    run = latest(runs, "cliffs")
    cases = run.table("cliffs")
    groups = {f"{group} ({sum(f.group == group for f in cases)} cases)": group for group in CLIFFS}
    panels = {
        "Share of memcpy": {
            name: sorted_points([f.share for f in cases if f.group == group])
            for name, group in groups.items()
        },
        "Times as fast as NumPy": {
            name: sorted_points([f.times["numpy"] for f in cases if f.group == group and "numpy" in f.times])
            for name, group in groups.items()
        },
    }
    looks = {name: Line(CLIFFS[group], dots=False) for name, group in groups.items()}
    subtitle = f"The slowest at the left. {where([run])}"
    found = {title: panel for title, panel in panels.items() if any(panel.values())}
    return lines("Random permutations of random shapes", subtitle, looks, found, across=PERCENT, ratios=True)


CLIFFS = {"from 4 MiB": COLORS[OURS], "below 4 MiB": COLORS["torch"]}


def sorted_points(values: Sequence[float]) -> Points:
    """The percentiles from 0 to 100, as points."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return [(percent, ordered[round(percent / 100 * last)]) for percent in range(101)] if ordered else []


def _array_bytes(figure: Figure) -> float:
    """The array size in the case's name.

    Older cases lack it and have no padding, so there it is half of the bytes moved.
    """
    found = re.search(r", (\d+) ([KM]iB),", figure.case)
    return int(found[1]) * {"KiB": KIB, "MiB": MIB}[found[2]] if found else figure.mb * 1e6 / 2


def cold_start(runs: Runs) -> str:
    """Milliseconds for a process's first copies, beside `import numpy`."""
    run = cold_start_run(runs)
    groups = [
        Group(step, "", {"NumPy" if step == "import numpy" else OURS: ms})
        for step, ms in run.cold_start_ms.items()
    ]
    subtitle = f"Medians of fresh processes. {where([run])}"
    return bars(Legend("Cold start", subtitle, _colors(groups)), groups, " ms", left=270)


def routines(runs: Runs) -> str:
    """Speedup of TileJIT's versions of NumPy's routines over NumPy, by size."""
    legend = Legend(
        "NumPy's routines, by size of the array",
        "Times as fast as NumPy, geometric means",
        {OURS: COLORS[OURS]},
        "NumPy",
    )
    times = routine_times(routines_run(runs))
    groups = [Group(size.replace(" tr", ", tr"), "", {OURS: ratio}, 1.0) for size, ratio in times.items()]
    return bars(legend, groups)


def expressions(runs: Runs) -> str:
    """Speedup of `elementwise` over its peers, by number of elements."""
    run = expressions_run(runs)
    groups = []
    for count in dict.fromkeys(e.elements for e in run.expressions):
        cases = [e for e in run.expressions if e.elements == count]
        times = {
            EXPRESSION_PEERS[name]: geometric_mean([e.times[name] for e in cases if name in e.times])
            for name in EXPRESSION_PEERS
        }
        groups.append(Group(f"{count:,}", "elements", times, 1.0))
    subtitle = "TileJIT's speed as a multiple of each library's, geometric means"
    return bars(Legend("Expressions and sums", subtitle, _colors(groups), "1"), groups, left=130)


EXPRESSION_PEERS = {"numpy": "NumPy", "numexpr": "numexpr", "torch": "torch", "jax": "jax", "numba": "numba"}


def vector_sizes(runs: Runs) -> str:
    """GB/s of one loop nest by `virtual_vector_size`."""
    colors = {"float32": COLORS[OURS], "float64": "#8fbcff"}
    by_size: dict[str, dict[str, float]] = {}
    for dtype, points in vector_sizes_run(runs).vector_sizes.items():
        for size, rate in points:
            by_size.setdefault(size, {})[dtype] = rate
    groups = [Group(size, "", values) for size, values in by_size.items()]
    legend = Legend("Size of the super-vector", "a+b+1+2 of 1000x1000, GB/s read and written", colors)
    return bars(legend, groups, left=110)


def _colors(groups: Sequence[Group]) -> dict[str, str]:
    return {name: COLORS[name] for name in COLORS if any(name in group.values for group in groups)}
