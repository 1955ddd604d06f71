"""Figures as tables, and as JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from bench.gains import TARGET, Gain
from bench.measure import Row
from bench.peers import NAMES, NOT_INSTALLED

RIVALS = ("numpy", "torch", "jax")
"""The peers of which the best must not be faster."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Shares of memcpy wanted of a group: geometric mean, least; and of the best peer, in each case.

    None where nothing is asked.
    """

    mean: float | None = None
    least: float | None = None
    of_best_peer: float | None = None


GOALS = {
    ("permutations", "all"): Goal(1.0, 0.65, 0.95),
    ("formats", "even shapes"): Goal(0.95, 0.6),
    ("formats", "uneven shapes"): Goal(0.85, 0.55),
    ("relayout", "all"): Goal(0.85, 0.5),
    ("dropin", "1 KiB"): Goal(of_best_peer=0.5),
    ("dropin", "1 KiB plans"): Goal(of_best_peer=1.0),
    **{("dropin", size): Goal(of_best_peer=0.95) for size in ("64 KiB", "1 MiB", "8 MiB", "64 MiB")},
    ("dropin", "64 MiB transposed"): Goal(of_best_peer=0.95),
}


@dataclass(frozen=True, slots=True)
class Summary:
    """Geometric means of a group of rows; the least share of memcpy, the least ratio to the best peer."""

    table: str
    group: str
    cases: int
    failed: int
    mean: float
    least: float
    least_case: str
    peers: dict[str, float]
    over_best_peer: float | None
    goal: Goal | None

    @property
    def reached(self) -> bool | None:
        """Whether all parts of the goal are; None without one."""
        if self.goal is None:
            return None
        goal = self.goal
        pairs = (self.mean, goal.mean), (self.least, goal.least), (self.over_best_peer, goal.of_best_peer)
        return not self.failed and all(found >= asked for found, asked in pairs if None not in (found, asked))


def over_best_peer(row: Row) -> float | None:
    """Our rate over that of the fastest rival; None where none was measured."""
    ratios = [row.peers[n].ratio for n in RIVALS if n in row.peers and not row.peers[n].problem]
    return min(ratios, default=None)


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One a group in the order of the rows, and one for a whole table of several groups."""
    found = []
    for table in dict.fromkeys(row.table for row in rows):
        members = [row for row in rows if row.table == table]
        groups = list(dict.fromkeys(row.group for row in members))
        found += [_summary(table, g, [row for row in members if row.group == g]) for g in groups]
        if len(groups) > 1:
            found.append(_summary(table, "all", members))
    return [summary for summary in found if summary is not None]


def _summary(table: str, group: str, members: list[Row]) -> Summary | None:
    """None where every case failed."""
    rows = [row for row in members if not row.problem]
    if not rows:
        return None
    shares = [row.share for row in rows]
    ratios = {
        name: [row.peers[name].ratio for row in rows if name in row.peers and not row.peers[name].problem]
        for name in NAMES
    }
    best = [ratio for row in rows if (ratio := over_best_peer(row)) is not None]
    least = min(rows, key=lambda row: row.share)
    return Summary(
        table,
        group,
        len(rows),
        len(members) - len(rows),
        statistics.geometric_mean(shares),
        least.share,
        least.case,
        {name: statistics.geometric_mean(values) for name, values in ratios.items() if values},
        min(best, default=None),
        GOALS.get((table, group)),
    )


def rows_table(title: str, rows: Iterable[Row], versions: dict[str, str]) -> Table:
    """One line a case."""
    heads = ("case", "MB", "ms", "min ms", "GB/s", "max GB/s", "memcpy GB/s", "share", "target", "", "1st s")
    table = _table(title, heads, versions)
    for row in rows:
        if row.problem:
            table.add_row(row.case, *[""] * 8, row.problem.partition(":")[0])
            continue
        table.add_row(
            row.case,
            f"{row.moved_bytes / 1e6:.1f}",
            f"{row.ours.median * 1e3:.3g}",
            f"{row.ours.least * 1e3:.3g}",
            f"{row.rate:.1f}",
            f"{row.best_rate:.1f}",
            f"{row.memcpy_rate:.1f}",
            f"{row.share:.2f}",
            number(row.target),
            _yes(row.reached),
            f"{row.first_seconds:.2f}",
            *(_ratio(row, name) for name in NAMES),
        )
    return table


def summary_table(found: Iterable[Summary], versions: dict[str, str]) -> Table:
    """One line a group."""
    heads = ("group", "cases", "mean share", "target", "least", "target", "over best peer", "target", "")
    table = _table("geometric means", (*heads, "least in"), versions)
    for s in found:
        goal = s.goal
        table.add_row(
            f"{s.table}: {s.group}",
            f"{s.cases}, {s.failed} failed" if s.failed else str(s.cases),
            f"{s.mean:.2f}",
            number(goal and goal.mean),
            f"{s.least:.2f}",
            number(goal and goal.least),
            number(s.over_best_peer),
            number(goal and goal.of_best_peer),
            _yes(s.reached),
            s.least_case,
            *(number(s.peers.get(name)) for name in NAMES),
        )
    return table


def gains_table(gains: Iterable[Gain]) -> Table:
    """One line a case of two threads against one."""
    heads = ("case", "MB", "GB/s, one", "GB/s, two", "gain", "memcpy's gain", "target", "")
    table = _table("two threads against one", heads, {})
    for g in gains:
        if g.problem:
            table.add_row(g.case, *[""] * 6, g.problem.partition(":")[0])
            continue
        rates = (f"{g.moved_bytes / g.ours[n].median / 1e9:.1f}" for n in (1, 2))
        wanted = TARGET if g.reached is not None else None
        gained = f"{g.gain:.2f}", f"{g.memcpy_gain:.2f}", number(wanted), _yes(g.reached)
        table.add_row(g.case, f"{g.moved_bytes / 1e6:.1f}", *rates, *gained)
    return table


def as_json(rows: Sequence[Row], gains: Sequence[Gain], **head: Any) -> dict[str, Any]:
    """Everything that was measured, seconds included; what is derived stands beside it."""
    return {
        **head,
        "rows": [
            _plain(
                asdict(r) | ({} if r.problem else {"GB/s": r.rate, "share": r.share, "reached": r.reached})
            )
            for r in rows
        ],
        "groups": [asdict(s) | {"reached": s.reached} for s in summaries(rows)],
        "two_threads": [
            asdict(g) | ({} if g.problem else {"gain": g.gain, "memcpy_gain": g.memcpy_gain}) for g in gains
        ],
    }


def _plain(value: Any) -> Any:
    """The same without NaNs, which JSON has no word for."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _table(title: str, heads: Sequence[str], versions: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left")
    for head in heads:
        left = head in ("case", "group", "least in", "")
        table.add_column(head, justify="left" if left else "right", no_wrap=True)
    for name in versions:
        missing = versions[name] == NOT_INSTALLED
        table.add_column(
            f"{name}\n{NOT_INSTALLED}" if missing else f"x {name}", justify="right", no_wrap=True
        )
    return table


def _ratio(row: Row, name: str) -> str:
    figure = row.peers.get(name)
    if figure is None:
        return ""
    return figure.problem.partition(":")[0] if figure.problem else f"{figure.ratio:.2f}"


def number(value: float | None) -> str:
    """Two digits behind the point; nothing for None."""
    return "" if value is None else f"{value:.2f}"


def _yes(reached: bool | None) -> str:
    return "" if reached is None else "yes" if reached else "NO"
