"""Figures as Markdown: the summary for the README, and every case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.gains import Gain
from bench.measure import Row
from bench.peers import NAMES
from bench.report import number, summaries


def summary(rows: Sequence[Row], gains: Sequence[Gain]) -> str:
    """Geometric means of the groups, and what two threads gain."""
    heads = ["group", "cases", "share of memcpy, geometric mean", "asked", "least", "asked"]
    heads += ["of the best peer, least", "asked"]
    body = [
        [
            f"{s.table}: {s.group}",
            str(s.cases),
            f"{s.mean:.2f}",
            number(s.goal and s.goal.mean),
            f"{s.least:.2f}",
            number(s.goal and s.goal.least),
            number(s.over_best_peer),
            number(s.goal and s.goal.of_best_peer),
            *(f"{s.peers[n]:.1f}" if n in s.peers else "" for n in NAMES),
        ]
        for s in summaries(rows)
    ]
    text = _table([*heads, *(f"times {name}" for name in NAMES)], body)
    if gains:
        text += "\n" + _table(
            ["two threads against one", "gain", "memcpy's gain"],
            [[g.case, f"{g.gain:.2f}", f"{g.memcpy_gain:.2f}"] for g in gains if not g.problem],
        )
    return text


def cases(rows: Iterable[Row]) -> str:
    """A line a case: what was asked where something was, and how many times as fast as each peer."""
    heads = ["case", "MB", "GB/s", "share of memcpy", "asked", *(f"times {name}" for name in NAMES)]
    return _table(heads, [_case(row) for row in rows])


def _case(row: Row) -> list[str]:
    if row.problem:
        return [row.case, "", row.problem.partition(":")[0], "", "", *[""] * len(NAMES)]
    ratios = (row.peers.get(name) for name in NAMES)
    return [
        row.case,
        f"{row.moved_bytes / 1e6:.0f}",
        f"{row.rate:.1f}",
        f"{row.share:.2f}",
        number(row.target),
        *("" if r is None or r.problem else f"{r.ratio:.1f}" for r in ratios),
    ]


def report(rows: Sequence[Row], gains: Sequence[Gain], head: str) -> str:
    """The whole document."""
    parts = [f"# Measured\n\n{head}\n", summary(rows, gains)]
    for table in dict.fromkeys(row.table for row in rows):
        parts.append(f"## {table}\n\n{cases(row for row in rows if row.table == table)}")
    return "\n".join(parts)


def _table(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    return "".join(_lines(heads, body))


def _lines(heads: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |\n"
    yield f"|{'---|' * len(heads)}\n"
    for cells in body:
        yield f"| {' | '.join(cells)} |\n"
