"""Figures as tables, and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.gains import Gain
from bench.measure import Row
from bench.peers import NAMES

RIVALS = ("numpy", "torch", "jax")
"""The peers that "over best peer" compares with; MKL has few of the cases."""


NOISY = 1.25
"""In a quiet case, the median round of memcpy takes less than this many times its fastest round."""
NOISY_SHARE = 0.1
"""A larger share of noisy cases calls for a note: 0.14 and 0.26 beside other work, 0.05 in a quieter run."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Geometric means for a group of rows.

    It also has the least share of memcpy, and the least ratio to the best peer.
    """

    table: str
    group: str
    cases: int
    failed: int
    mean: float
    least: float
    least_case: str
    peers: dict[str, float]
    over_best_peer: float | None


def over_best_peer(row: Row) -> float | None:
    """TileJIT's rate over that of the fastest peer; None if no peer was measured."""
    ratios = [row.peers[n].ratio for n in RIVALS if n in row.peers and not row.peers[n].problem]
    return min(ratios, default=None)


def noise_note(rows: Sequence[Row]) -> str:
    """One line if other work slowed memcpy down in many cases, or ""."""
    timed = [row for row in rows if not row.problem]
    noisy = sum(row.memcpy.median > NOISY * row.memcpy.least for row in timed)
    if noisy <= NOISY_SHARE * len(timed):
        return ""
    varied = f"memcpy varied by more than {NOISY - 1:.0%} in {noisy} of {len(timed)} cases"
    return f"{varied}; rerun on an idle machine"


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One summary per group in the order of the rows, and one per table with several groups."""
    found = []
    for table in dict.fromkeys(row.table for row in rows):
        members = [row for row in rows if row.table == table]
        groups = list(dict.fromkeys(row.group for row in members))
        found += [_summary(table, g, [row for row in members if row.group == g]) for g in groups]
        if len(groups) > 1:
            found.append(_summary(table, "all", members))
    return [summary for summary in found if summary is not None]


def _summary(table: str, group: str, members: list[Row]) -> Summary | None:
    """The summary of a group; None if every case failed."""
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
    )


def rows_table(title: str, rows: Iterable[Row], versions: dict[str, str]) -> Table:
    """One line per case."""
    heads = ("case", "MB", "ms", "min ms", "GB/s", "max GB/s", "memcpy GB/s", "share", "1st s")
    table = _table(title, heads, versions)
    for row in rows:
        if row.problem:
            table.add_row(row.case, *[""] * 7, row.problem.partition(":")[0])
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
            f"{row.first_seconds:.2f}",
            *(_ratio(row, name) for name in versions),
        )
    return table


def by_table(rows: Sequence[Row]) -> list[Row]:
    """The rows of each table together, in the order in which the tables begin."""
    order = {row.table: k for k, row in reversed([*enumerate(rows)])}
    return sorted(rows, key=lambda row: order[row.table])


def brief_table(rows: Sequence[Row], versions: dict[str, str]) -> Table:
    """An overview: one line per case, with little more than the speeds."""
    table = Table()
    for head in ("group", "case"):
        table.add_column(head, overflow="fold")
    for head in ("GB/s", "of memcpy", *(f"x {name}" for name in versions)):
        table.add_column(head, justify="right", no_wrap=True, min_width=len(head))
    for row in by_table(rows):
        group = row.group if row.group == row.table else f"{row.table}: {row.group}"
        speeds = (
            ("", row.problem.partition(":")[0]) if row.problem else (f"{row.rate:.1f}", f"{row.share:.2f}")
        )
        ratios = () if row.problem else (_ratio(row, name) for name in versions)
        table.add_row(group, row.case, *speeds, *ratios)
    return table


def summary_table(found: Iterable[Summary], versions: dict[str, str]) -> Table:
    """One line per group."""
    heads = ("group", "cases", "mean share", "least", "over best peer", "least in")
    table = _table("geometric means", heads, versions)
    for s in found:
        table.add_row(
            f"{s.table}: {s.group}",
            f"{s.cases}, {s.failed} failed" if s.failed else str(s.cases),
            f"{s.mean:.2f}",
            f"{s.least:.2f}",
            number(s.over_best_peer),
            s.least_case,
            *(number(s.peers.get(name)) for name in versions),
        )
    return table


def gains_table(gains: Iterable[Gain]) -> Table:
    """One line per case, comparing two threads with one."""
    heads = ("case", "MB", "GB/s, one", "GB/s, two", "gain", "memcpy's gain")
    table = _table("two threads against one", heads, {})
    for g in gains:
        if g.problem:
            table.add_row(g.case, *[""] * 4, g.problem.partition(":")[0])
            continue
        rates = (f"{g.moved_bytes / g.ours[n].median / 1e9:.1f}" for n in (1, 2))
        gained = f"{g.gain:.2f}", f"{g.memcpy_gain:.2f}"
        table.add_row(g.case, f"{g.moved_bytes / 1e6:.1f}", *rates, *gained)
    return table


def run_json(rows: Sequence[Row], gains: Sequence[Gain], **conditions: Any) -> dict[str, Any]:
    """One run in the form of `bench.saved`: conditions, cases, geometric means, two threads, failures."""
    sound = [row for row in rows if not row.problem]
    return {
        **conditions,
        "rows": [_row_json(row) for row in sound],
        "groups": [
            {"table": s.table, "group": s.group, "cases": s.cases, "share": s.mean, "least": s.least}
            | {"times": s.peers}
            for s in summaries(rows)
        ],
        "two_threads": [
            {"case": g.case, "gain": g.gain, "memcpy_gain": g.memcpy_gain} for g in gains if not g.problem
        ],
        "problems": [
            *({"table": r.table, "case": r.case, "problem": r.problem} for r in rows if r.problem),
            *(
                {"table": r.table, "case": r.case, "peer": name, "problem": peer.problem}
                for r in sound
                for name, peer in r.peers.items()
                if peer.problem
            ),
            *({"table": "two threads", "case": g.case, "problem": g.problem} for g in gains if g.problem),
        ],
    }


def _row_json(row: Row) -> dict[str, Any]:
    peers = {name: peer for name, peer in row.peers.items() if not peer.problem}
    return {
        "table": row.table,
        "group": row.group,
        "case": row.case,
        "mb": row.moved_bytes / 1e6,
        "gb_per_s": row.rate,
        "share": row.share,
        "times": {name: peer.ratio for name, peer in peers.items()},
        "seconds": row.ours.median,
        "fastest_seconds": row.ours.least,
        "memcpy_seconds": row.memcpy.median,
        "first_call_seconds": row.first_seconds,
        "peer_seconds": {name: peer.seconds.median for name, peer in peers.items() if peer.seconds},
    }


def _table(title: str, heads: Sequence[str], versions: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left")
    for head in heads:
        left = head in ("case", "group", "least in")
        table.add_column(head, justify="left" if left else "right", no_wrap=True)
    for name in versions:
        table.add_column(f"x {name}", justify="right", no_wrap=True)
    return table


def _ratio(row: Row, name: str) -> str:
    figure = row.peers.get(name)
    if figure is None:
        return ""
    return figure.problem.partition(":")[0] if figure.problem else f"{figure.ratio:.2f}"


def number(value: float | None) -> str:
    """Two decimals, or nothing for None."""
    return "" if value is None else f"{value:.2f}"
