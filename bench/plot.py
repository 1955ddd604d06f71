"""The roofline of copies, memcpy being the roof: GB/s over size, and every case's share of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import Row
from bench.timing import caches, interleaved, memcpy

SMALLEST_BYTES = 1 << 15
TABLE_WIDTH = 0.8
PEER = {"s": 9, "color": "black", "marker": "x", "linewidths": 0.6}


def roof(rounds: int, threads: int, most_bytes: int) -> list[tuple[int, float]]:
    """Bytes moved and GB/s of memcpy, doubling from what fits L1 to `most_bytes` or the next above."""
    points: list[tuple[int, float]] = []
    size = SMALLEST_BYTES
    while not points or points[-1][0] < most_bytes:
        copy = memcpy(size // 2, threads)
        copy()
        points.append((size, size / interleaved({"memcpy": copy}, rounds)["memcpy"].median / 1e9))
        size *= 2
    return points


def plot(rows: Sequence[Row], points: Sequence[tuple[int, float]], title: str, path: Path) -> None:
    """Write the picture as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tilejit"
    from matplotlib import pyplot

    sound = [row for row in rows if not row.problem]
    figure, (sizes, shares) = pyplot.subplots(1, 2, figsize=(15, 6), layout="constrained")
    figure.suptitle(title, fontsize=9)
    _draw_sizes(sizes, sound, points)
    _draw_shares(shares, sound)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def _draw_sizes(axes: Any, rows: Sequence[Row], points: Sequence[tuple[int, float]]) -> None:
    """GB/s over the bytes of a copy."""
    axes.plot(*zip(*points, strict=True), color="black", linewidth=1.5, label="memcpy")
    for number, table in enumerate(_tables(rows)):
        members = [row for row in rows if row.table == table]
        x, y = [row.moved_bytes for row in members], [row.rate for row in members]
        axes.scatter(x, y, s=18, alpha=0.7, color=f"C{number}", label=table)
    for name, size in caches().items():
        axes.axvline(size, color="0.8", linewidth=0.8, zorder=0)
        where = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        axes.annotate(name, (size, 1), xytext=(2, -10), **where)
    axes.set(xscale="log", yscale="log", xlabel="bytes read and written", ylabel="GB/s")
    axes.legend(fontsize=8)


def _draw_shares(axes: Any, rows: Sequence[Row]) -> None:
    """Each case's share of the memcpy that took turns with it; its best peer below or above."""
    tables = _tables(rows)
    for number, table in enumerate(tables):
        members = [row for row in rows if row.table == table]
        x = [number + TABLE_WIDTH * ((k + 0.5) / len(members) - 0.5) for k in range(len(members))]
        axes.scatter(x, [row.share for row in members], s=18, alpha=0.7, color=f"C{number}")
        rivals = [(at, share) for at, row in zip(x, members, strict=True) if (share := _best_peer(row))]
        if rivals:
            axes.scatter(*zip(*rivals, strict=True), **PEER, label="" if number else "best peer of each case")
    axes.axhline(1, color="black", linewidth=1.5)
    axes.set(yscale="log", ylabel="share of memcpy")
    axes.set_xticks(range(len(tables)), tables, rotation=20, fontsize=8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def _tables(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.table for row in rows))


def _best_peer(row: Row) -> float:
    """The share of memcpy that the fastest peer reaches; 0 without one."""
    return max((peer.share for peer in row.peers.values() if not peer.problem), default=0.0)
