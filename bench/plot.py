"""Bars of GB/s with names, for TileJIT and its peers, with memcpy as a mark across them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.drawing import COLORS, LABEL, MARGIN, Group, Legend, bars, text_width
from bench.measure import Row
from bench.report import by_table
from bench.selection import PEERS

OURS = "TileJIT"
MOST_CASES = 24
"""More cases than this are drawn as the geometric means of their groups."""
LONGEST_NAME = 32
WIDEST_NAMES = 380
"""Pixels for the names, at most."""


def plot(rows: Sequence[Row], where: str, path: Path) -> None:
    """Write the picture as SVG. `where` names the machine and the date."""
    path.write_text(chart(rows, where))


def chart(rows: Sequence[Row], where: str) -> str:
    """The picture as text: a group of bars per case, or per group of cases if there are many."""
    sound = [row for row in rows if not row.problem]
    many = len(sound) > MOST_CASES
    gathered = _gathered(by_table(sound), many)
    groups = [_group(members, many) for members in gathered]
    series = dict.fromkeys(name for group in groups for name in group.values)
    what = "GB/s, geometric means of groups" if len(gathered) < len(sound) else "GB/s"
    legend = Legend(what, where, {name: COLORS[name] for name in COLORS if name in series}, "memcpy")
    names = [text for group in groups for text in (group.label, group.note) if text]
    left = MARGIN + 14 + max(text_width(name, LABEL) for name in names)
    return bars(legend, groups, left=min(WIDEST_NAMES, round(left)))


def _gathered(rows: Sequence[Row], many: bool) -> list[list[Row]]:
    """Each case alone, or the cases of each group."""
    if not many:
        return [[row] for row in rows]
    groups = dict.fromkeys((row.table, row.group) for row in rows)
    return [[row for row in rows if (row.table, row.group) == group] for group in groups]


def _group(rows: Sequence[Row], many: bool) -> Group:
    """The bars of one or several cases: GB/s, including memcpy."""
    first = rows[0]
    rates = {OURS: [row.rate for row in rows]}
    for name, label in PEERS.items():
        found = [
            row.moved_bytes / figure.seconds.median / 1e9
            for row in rows
            if (figure := row.peers.get(name)) is not None and figure.seconds is not None
        ]
        if found:
            rates[label] = found
    means = {name: statistics.geometric_mean(values) for name, values in rates.items()}
    memcpy = statistics.geometric_mean([row.memcpy_rate for row in rows])
    if many:
        label, note = first.group, "" if first.group == first.table else first.table
    else:
        label, note = _split(first.case)
    return Group(_cut(label), _cut(note or ("" if many else first.table)), means, memcpy)


def _split(name: str) -> tuple[str, str]:
    """A name on one line, or on two if it is long.

    "pack tpu f32[512,4096] T(8,128)" -> ("pack tpu f32[512,4096] T(8,128)", "")
    "unpack nested f32[512,4096] T(32,32)(16,16)" -> ("unpack nested f32[512,4096]", "T(32,32)(16,16)")
    """
    if len(name) <= LONGEST_NAME:
        return name, ""
    head = name[: LONGEST_NAME + 1].rpartition(" ")[0]
    return (head, name[len(head) + 1 :]) if head else (name, "")


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
