"""Which copies go block by block: those that move a few bytes at a time, or in small tiles far apart."""

from __future__ import annotations

from math import prod

from codegen import CopyProgram, Launch
from tilejit.memory import LINE_BYTES

MOST_DENSE_BYTES = 4
"""Wider elements are staged in panels fast enough."""

SHORT_PART_BYTES = 8
"""Transposes of source rows up to this length read again and again the lines that those share."""

SHORT_ROW_BYTES = LINE_BYTES
"""Rows below this are taken apart into parts of lines: to write those costs more than a way through cache."""

SMALL_TILE_BYTES = 1024
"""Tiles of a transpose up to which a page is touched for each of them; longer ones need no blocks."""

SHORT_PACKED = 4
"""Elements of rows that an interleave makes too little of."""

SHORT_PIECE_BYTES = 4 * LINE_BYTES
"""What an interleave writes at one place; where lines cut shorter ones, most are written in two parts.
s8 T(32,1) to T(4,1) on odd shapes: 0.38 of memcpy, 0.5 to 0.6 in blocks (Sapphire Rapids, 2026-11)."""


def moves_little(program: CopyProgram) -> bool:
    """Whether most bytes move a few at a time, through a table of places or as parts of lines.

    That runs at 0.02 to 0.45 of memcpy, blocks at 0.4 to 0.75 (Zen 5, 2026-11); what is staged densely at
    0.65 to 0.95, blocks at 0.65 to 1.0 (Sapphire Rapids).
    """
    launches = [x for x in program.launches if x.fill is None]
    if not launches:
        return False
    largest = max(launches, key=_bytes_of)
    schedule = largest.step.schedule
    streams = schedule.stream or bool(schedule.transpose and schedule.transpose.stream)
    return bool(largest.tables or streams) and _is_short(largest)


def moves_small_tiles(program: CopyProgram) -> bool:
    """Whether most bytes move in transposed tiles of a KiB or two, far apart on both sides.

    That runs at 0.4 to 0.65 of memcpy, blocks at 0.7 to 0.95 (Sapphire Rapids, 2026-11).
    """
    launches = [x for x in program.launches if x.fill is None]
    largest = max(launches, key=_bytes_of) if launches else None
    cut = largest.step.schedule.transpose if largest else None
    if largest is None or largest.tables or cut is None or cut.block != "lane" or not cut.stream:
        return False
    box = largest.step.box
    tile = prod(box.extents[axis] for axis in (*cut.rows, *cut.columns))
    return tile * box.target.bits // 8 <= SMALL_TILE_BYTES


def _bytes_of(launch: Launch) -> int:
    return prod(t.extent for t in launch.tables) * launch.step.box.size_bytes


def _is_short(launch: Launch) -> bool:
    schedule, width = launch.step.schedule, launch.step.box.target.bits // 8
    cut = schedule.transpose
    if cut and cut.block == "part":
        return cut.tile[1] * width <= SHORT_PART_BYTES
    if cut:
        small = bool(launch.tables) or prod(cut.tile) * width <= SMALL_TILE_BYTES
        return cut.stage == "dense" and width <= MOST_DENSE_BYTES and small
    if schedule.mode == "interleave" and schedule.stream:
        apart = schedule.interleave == "src"
        long = launch.step.box.extents[schedule.inner[apart]]
        is_short = long * width < SHORT_ROW_BYTES if apart else long <= SHORT_PACKED or _is_cut(launch)
        return is_short and len(schedule.inner) == 2
    return schedule.mode in ("elements", "interleave")


def _is_cut(launch: Launch) -> bool:
    """Whether what an interleave writes at one place is short, and begins anywhere in a line."""
    box, inner = launch.step.box, launch.step.schedule.inner
    width = box.target.bits // 8
    steps = [x.dst for x in box.axes if x.name not in inner and x.extent > 1]
    piece = prod(box.extents[axis] for axis in inner) * width
    return piece < SHORT_PIECE_BYTES and any(step * width % LINE_BYTES for step in steps)
