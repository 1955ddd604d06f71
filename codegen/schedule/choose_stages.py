"""Choose which copies between two layouts run in blocks, each unpacked into cache and packed from there.

The decision looks at the copy in one pass: its boxes, the schedules of their nests, and their tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.schedule.choose_grid import common_grid, pitched_map, stays_in_cache, stays_near
from codegen.schedule.choose_transpose import MANY_WAYS
from codegen.schedule.machine import machine
from codegen.schedule.staging import BoxSchedule, SinglePass, Staging, bytes_held

MOST_STAGED_WIDTH = 4
"""Wider elements are staged fast enough."""

SHORT_PART_BYTES = 8
"""Transposes of source rows up to this length repeatedly read the lines that the rows share."""

SHORT_ROW_BYTES = LINE_BYTES
"""Shorter rows are split into parts of lines. Writing these costs more than going through the cache."""

SMALL_TILE_BYTES = 1024
"""Tiles of a transpose up to this size touch a page each; longer ones need no blocks."""

SHORT_PACKED = 2
"""Rows of up to this many elements are too short for an interleave. Rows of 4 are 1.6 times as fast in one
pass (one case of record-zen-4-avx512, 2026-12)."""

SHORT_CHUNK_BYTES = 4 * LINE_BYTES
"""Bytes that an interleave writes in one place. Lines cut shorter ones: most are written in two parts.
s8 T(32,1) to T(4,1) on odd shapes: 0.38 of memcpy, 0.5 to 0.6 in blocks (Sapphire Rapids, 2026-11)."""


def box_staging(copy: SinglePass) -> Staging | None:
    """The copy of elements as they are in blocks; None if one pass is as fast, or if no blocks fit.

    Blocks are boxes after which both layouts repeat, so a few programs serve all of them. The same bytes move
    through memory as in one pass, because the array in cache is small.
    """
    if copy.choice is None and not goes_in_boxes(copy.boxes, streams=copy.streams):
        return None
    layouts, itemsize = (copy.src, copy.dst), bytes_held(copy.source)
    grid = common_grid(copy.src.dims, layouts, itemsize, copy.part, far=copy.streams)
    if grid is None or not stays_in_cache(grid.extents, itemsize):
        return None
    near = copy.streams and stays_near(grid.extents, itemsize)
    cached = partial(pitched_map, element=copy.source)
    return copy.in_blocks(grid, cached, ahead=near)


def goes_in_boxes(boxes: Sequence[BoxSchedule], *, streams: bool) -> bool:
    """Whether a copy between two layouts is faster as blocks of the array, each unpacked and packed.

    Interleaves of a copy that stays in the last cache are not: they run at 0.30 to 0.94 of memcpy, and blocks
    at 0.17 to 0.38 (2 to 8 MB, Zen 4, 2026-11).

    streams: whether the copy outgrows the caches
    """
    if not boxes:
        return False
    largest = max(boxes, key=lambda box: box.bytes_moved)
    if largest.schedule.packed and not streams:
        return False
    return moves_little(largest) or moves_small_tiles(largest)


def moves_little(largest: BoxSchedule) -> bool:
    """Whether most bytes move a few at a time, through a table of offsets or as parts of lines.

    That runs at 0.02 to 0.45 of memcpy, blocks at 0.4 to 0.75 (Zen 5, 2026-11). Dense staging runs at 0.65 to
    0.95, blocks at 0.65 to 1.0 (Sapphire Rapids).
    """
    return bool(largest.tables or largest.schedule.stream) and _is_short(largest)


def moves_small_tiles(largest: BoxSchedule) -> bool:
    """Whether most bytes move in transposed tiles of a KiB or two, far apart on both sides.

    That runs at 0.4 to 0.65 of memcpy, blocks at 0.7 to 0.95 (Sapphire Rapids, 2026-11).
    """
    cut, box = largest.schedule, largest.box
    if largest.tables or not cut.transposes or cut.short or not cut.stream:
        return False
    narrow = cut.lanes["column"] <= max(LANE_BYTES // largest.width, 1)
    return narrow and _is_small(prod(cut.counts(box.extents)) * largest.width)


def _is_small(tile_bytes: int) -> bool:
    """Whether tiles of a transpose are too small to be moved on their own, on a cache with many ways.

    With 8 ways, they are not: f32 T(16,1) to {0,1:T(16,1)} runs at 1.3 of memcpy, in blocks at 0.5. From
    {0,1:T(16,1)} to T(6,1), tiles run at 0.7 to 1.1, blocks at 0.45 (Zen 4, AVX2 and AVX-512, 2026-11).
    """
    return tile_bytes <= SMALL_TILE_BYTES and machine().first_cache_ways >= MANY_WAYS


def _is_short(moved: BoxSchedule) -> bool:
    schedule, width = moved.schedule, moved.width
    if schedule.short:
        return schedule.counts(moved.box.extents)[1] * width <= SHORT_PART_BYTES
    if schedule.transposes:
        small = bool(moved.tables) or _is_small(prod(schedule.tile(moved.box.extents)) * width)
        return schedule.stages_rows and width <= MOST_STAGED_WIDTH and small
    if schedule.packed and schedule.stream:
        if schedule.joins_rows or _moves_lines(moved):
            return False
        long = moved.box.extents[schedule.loops[0].axes[0]]
        return (
            long * width < SHORT_ROW_BYTES
            if schedule.packed == "src"
            else long <= SHORT_PACKED or _is_cut(moved)
        )
    return bool(schedule.packed) or schedule.moves_elements or moved.box.converts


def _moves_lines(moved: BoxSchedule) -> bool:
    """Whether rows are deinterleaved into full lines, one row after the other.

    for i in 64: for column in 4: for row in 16:  dst[64*i + 16*column + row] = src[64*i + column + 4*row]

    That runs at 0.9 to 1.9 of memcpy, blocks at 0.35 to 0.75 (Zen 4, AVX2, 2026-11).
    """
    box, schedule = moved.box, moved.schedule
    if schedule.packed != "src":
        return False
    rows, columns = (box.axis(name) for name in schedule.inner)
    chunk = columns.extent * rows.extent * moved.width
    follow = columns.dst == rows.extent * moved.width
    steps = [x.dst for x in box.axes if x.name not in schedule.inner and x.extent > 1]
    entries = [offset for table in moved.tables for offset in table.dst(np.arange(table.extent)).tolist()]
    return follow and all(size % LINE_BYTES == 0 for size in (chunk, box.dst, *steps, *entries))


def _is_cut(moved: BoxSchedule) -> bool:
    """Whether an interleave writes few bytes in one place, which may begin anywhere in a line."""
    box, inner = moved.box, moved.schedule.inner
    steps = [x.dst for x in box.axes if x.name not in inner and x.extent > 1]
    chunk = prod(box.extents[axis] for axis in inner) * moved.width
    return chunk < SHORT_CHUNK_BYTES and any(step * moved.width % LINE_BYTES for step in steps)
