"""Choose the schedule of a copy whose sides are contiguous along different digits.

There are four methods: streamed in place, where tiles are full lines of the destination; streamed in place
where long result rows begin inside lines, whose bytes are carried from block to block; streamed from a block
of scratch, with parts of long result rows or with complete short ones; and stored through the cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from codegen.ir.blocks import Block, block_shape, transposed_shapes
from codegen.ir.lines import LINE_BYTES
from codegen.ir.streams import Stream
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.conditions import DEFAULT_CONDITIONS, Conditions
from codegen.schedule.directives import Directive, Stage, Tile
from codegen.schedule.machine import ALIAS_BYTES, SET_BYTES, machine
from codegen.schedule.schedule import Joined, Schedule
from codegen.schedule.staged_block import joined_run
from codegen.schedule.transpose_blocks import (
    STAGED_BYTES,
    STAGED_COLUMNS,
    block_directives,
    block_for,
    has_short_rows,
    joined_columns,
    joined_rows,
    prefixes,
    size_of,
    takes_special_blocks,
)
from codegen.schedule.transpose_loops import MANY_REGISTERS, WIDE_BYTES, crowding, scheduled

Axes: TypeAlias = tuple[Axis, ...]
"""Digits, most minor first."""

TILE_LINES = 6
"""Lines per tile in each direction, for tiles that are stored in place."""

SHARED_SETS = {1: (6, 6), 2: (2, 12), 4: (6, 12), 8: (8, 8), 16: (6, 6), 32: (8, 6), 64: (8, 6)}
"""The same (rows, columns) if source rows share cache sets, by element size in bytes. Measured on transposes
of 64-128 MB with rows of a power of two, Zen 5, 2026-11."""

NARROWED_SETS = (1, 12)
"""The same if elements become narrower: each row of a block is then two lines or more."""

LANE_SHARING_BYTES = {1: 1024, 2: 2048, 4: 1024, 8: 2048}
"""At a multiple of this distance, by element size, lines of rows may be evicted before their other lanes are
used."""

LINE_ROWS_ACROSS = 16
"""Lines across if result rows are one line: tiles with few rows need long rows to amortize their start."""

MANY_WAYS = 12
"""From this many ways on, an L1 cache holds the source rows of a staged tile."""

STAGED_LINES = 2
"""Lines of each long result row in a staged tile, on a cache with `MANY_WAYS` (Zen 5, 2026-11)."""

NARROW_LINES = 4
"""Lines of each long result row in a staged tile, on a cache with fewer ways.

There are more rows than ways, so their lines are evicted before the next tile of rows, and longer runs of the
destination pay (8 ways, Zen 4, 2026-11: 1.2 times as fast as 1)."""

FLAT_BYTES, FLAT_BYTES_OF_FEW = 2, 4
"""Largest elements for which staged tiles are filled in 16x64 blocks, with 32 registers and with 16.

A 64x64 block of them has 64 or 32 source rows: more than there are registers, and rows of many pitches share
L1 cache sets, which have 8 or 12 ways (u32 on AVX2, Zen 4, 2026-11: 1.0 to 1.3 times as fast). With 32
registers, 16x64 blocks also fill tiles of one line per source row: u32 is 1.1 to 1.4 times as fast there, but
0.4 to 1.4 times in tiles of several lines (Zen 4, 2026-12).
"""

LEAST_FILLED = 0.65
"""Rows of bytes that fill less of 64-row blocks, the last of which overlaps, go in 16x64 blocks.

68 or 80 rows are 1.3 times as fast that way, 100 and 129 as fast (Zen 4, 2026-11)."""

PART_BYTES = 1 << 13
"""Bytes of a staged tile of part of a digit: it stays in the first cache until it is written (Zen 4, 2026-11:
up to 1.25 times as fast as 128 KiB)."""

PADDED_COLUMNS = 1 << 13
"""Columns of such a tile if each starts on its own line: 1 MiB."""

HEADED_LINES = 16
"""Result rows of at least this many lines are streamed in place even if they begin inside a line. Their ends
go through the cache. Rows of 4, 8, 16, 32 and 227 lines run at 0.5, 0.8, 1.1, 1.5 and 1.3 to 2.1 times the
speed of a staged tile (elements of 2 to 8 bytes, 32 MB, Zen 4, 2026-11)."""

FEW_HEADED_LINES = 2
"""The same if staged tiles would have fewer columns than a line of the source: packing f32 {0,1:T(8,128)} is
2.1 times as fast."""

SHORT_ROW_LINES = 6
"""Lines of each result row in a tile whose source rows are shorter than a lane."""

LAYERED_BYTES = 2048
"""Maximum bytes of the destination's runs for tiles that share one buffer."""

LONG_ROW_BYTES = 2048
"""Result rows of at least this length are staged one by one: the loss at both ends is 1 line in 32."""

CARRIED_COLUMNS = 1 << 11
"""Columns of a tile whose lines are carried, 64 bytes for each: the second cache holds them."""

CARRIED_LINES = 4
"""Lines of each result row in such a tile if elements have `WIDE_BYTES`; one of others. 4 lines are 1.1 times
as fast as 2, and 2 are 1.1 times as fast as 1, in 14 cases of record-zen-4-avx512; u32 with 2 lines has 0.95
of the speed with 1 (66 MB, Zen 4, 2026-11)."""

CARRIED_CROWDING = 4 / 3
"""Lines are carried if blocks have at most so many source rows, in those that the first cache holds.

Shares of memcpy of 33 to 67 MB, staged and carried, with source rows 8 KiB and an element apart: u8 0.50 and
0.42, u16 0.57 and 0.52, u32 0.67 and 0.68, u64 0.65 and 0.86. At other pitches: u8 0.50 and 0.57, u16 0.58
and 0.75, u32 0.74 and 0.93, u64 0.80 and 1.15 (8 ways, Zen 4, 2026-11). C prototypes at such pitches: u16
0.5 both, u32 0.6 and 0.75, u64 0.58 and 0.88 (12 ways, Emerald Rapids, 2026-11)."""

SHORT_SOURCE_BYTES = 512
"""Source runs shorter than this are too small for a staged tile with two lines per result row."""


def transpose_schedule(
    box: StridedBox, when: Conditions = DEFAULT_CONDITIONS, *, stream: bool
) -> Schedule | None:
    """The schedule, or None if the contiguous digits are too short to fill registers."""
    found = _in_place(box) if stream else _cached(box)
    if stream and (found is None or _may_be_staged(box, found)):
        staged = _staged(box)
        if found is None and staged and not staged.stages_rows and _gains_by_carrying(box, when):
            found = _carried(box) or staged
        elif found is None or (staged and _is_better_staged(found, staged)):
            found = staged
    return None if found is None else scheduled(box, found, when)


def _may_be_staged(box: StridedBox, in_place: Schedule) -> bool:
    """Whether a transpose that can be streamed in place may be faster through a buffer."""
    return in_place.short or (box.width == 1 and _crowded(box))


def _is_better_staged(in_place: Schedule, staged: Schedule) -> bool:
    """Whether such a transpose is faster through a buffer.

    Short source rows that are joined in a staged tile are read once: 2.5 to 5 times as fast. Blocks of bytes
    have 64 source rows in place, staged ones 16: 12 -> 15 GB/s (Zen 4, 2026-11).
    """
    if in_place.short:
        return not staged.short and len(staged.columns) > 1
    return not staged.stages_rows


def _gains_by_carrying(box: StridedBox, when: Conditions) -> bool:
    """Whether a transpose whose result rows begin anywhere in a line is faster in place than staged."""
    return when.size is None and crowding(box)[0] <= CARRIED_CROWDING


def methods(box: StridedBox, when: Conditions, *, stream: bool) -> tuple[Schedule, ...]:
    """The methods for one kind of store: in place or staged past the cache, else one of them through it."""
    carried = None if when.size else _carried(box)
    cuts = (_in_place(box), carried, _staged(box)) if stream else (_cached(box),)
    return tuple(cut for cut in cuts if cut is not None)


def misaligned_transpose(schedule: Schedule, box: StridedBox, when: Conditions) -> Schedule | None:
    """The schedule for a destination that is not line-aligned; None if alignment does not matter."""
    if schedule.staged or Stream("given") not in schedule.directives:
        return None
    return scheduled(box, _staged(box) or schedule.changed(without=(Stream,)), when)


def _transpose(box: StridedBox, rows: Axes, columns: Axes, block: Block, *directives: Directive) -> Schedule:
    """A transpose of such register blocks, with more directives."""
    row, column = (tuple(x.name for x in axes) for axes in (rows, columns))
    loops = Joined("row", row), Joined("column", column)
    return Schedule((), loops, (*directives, *block_directives(box.width, block)))


def _tiles(rows: int, columns: int) -> tuple[Tile, Tile]:
    """Tiles of that size."""
    return Tile("row", rows), Tile("column", columns)


def _in_place(box: StridedBox) -> Schedule | None:
    """Lines streamed in place: result rows must be full, aligned lines."""
    side, wide, best = box.per_line, TILE_LINES * box.per_line, None
    for rows in prefixes(joined_rows(box)):
        r = size_of(rows)
        if r % side or any(x.dst % LINE_BYTES for x in box.axes if x not in rows):
            continue
        columns = joined_columns(box, rows)
        enough = next((p for p in prefixes(columns) if size_of(p) >= wide), columns)
        c = size_of(enough)
        short = has_short_rows(box, c)
        if (c < side and not short) or (len(rows) > 1 and c < 2 * side and not short):
            continue
        # At least two lines in each direction, better three, and few partial lines: tuned on 57 permutations.
        score = min(r, 2 * side) / 2 / side * (0.8 + 0.2 * min(r, 3 * side) / 3 / side)
        key = score * min(c, wide) / wide * _filled(c, side), -len(rows)
        if best is None or key > best[0]:
            best = key, rows, enough
    if best is None:
        return None
    _, rows, columns = best
    if has_short_rows(box, size_of(columns)):
        return _transpose(box, rows, columns, "short", Tile("row", SHORT_ROW_LINES * side), Stream("given"))
    down, across = TILE_LINES, LINE_ROWS_ACROSS if size_of(rows) == side else TILE_LINES
    block: Block = "64x16"
    if box.row.src % ALIAS_BYTES == 0:
        (down, across) = SHARED_SETS[box.width]
        if box.converts or box.width > 8 or machine().registers >= MANY_REGISTERS:
            block = "64x64"
        if box.source_width > box.width:
            down, across = NARROWED_SETS
    stream = Stream("headed" if _finds_lines(box, rows, columns) else "given")
    return _transpose(box, rows, columns, block, *_tiles(down * side, across * side), stream)


def _finds_lines(box: StridedBox, rows: Axes, columns: Axes) -> bool:
    """Whether result rows are also streamed in place if they begin inside lines.

    Their ends are written in narrow blocks, which do not convert. Prefetches may look for rows after those of
    the next tile, which a table of rows does not have.
    """
    if len(rows) > 1 or not _takes_flat(box) or size_of(columns) < box.per_line:
        return False
    staged = _staged(box)
    narrow = staged is None or size_of(tuple(x for x in box.axes if x.name in staged.columns)) < box.per_line
    return size_of(rows) >= (FEW_HEADED_LINES if narrow else HEADED_LINES) * box.per_line


def _staged(box: StridedBox) -> Schedule | None:
    """Streamed through a buffer, for any alignment of result rows."""
    rows = joined_rows(box)
    columns = joined_columns(box, rows)
    r, c = size_of(rows), size_of(columns)
    block = block_for(box, r, c)
    if block is None:
        return None
    long = r * box.width >= LONG_ROW_BYTES and c * box.source_width >= SHORT_SOURCE_BYTES
    fitting = [p for p in prefixes(rows) if size_of(p) * box.width * box.per_line <= STAGED_BYTES]
    if not long and fitting and len(fitting) < len(rows) and size_of(fitting[-1]) >= box.per_line:
        # A tile of lines would have too few columns; stage a digit of each result row instead.
        rows = fitting[-1]
        return _complete_rows(box, rows, joined_columns(box, rows), stream=True)
    if r >= box.per_line and (long or r * box.width * box.per_line > STAGED_BYTES):
        if block == "64x64" and (_fills_flat(box) or (_crowded(box) and _takes_flat(box))):
            block = "16x64"
        lines = NARROW_LINES if machine().first_cache_ways < MANY_WAYS else STAGED_LINES
        tiles = _tiles(lines * box.per_line, STAGED_COLUMNS)
        return _transpose(box, rows, columns, block, *tiles, Stage(), Stream("headed"))
    return _complete_rows(box, rows, columns, stream=True)


def _carried(box: StridedBox) -> Schedule | None:
    """Streamed in place, wherever result rows begin: registers join bytes of a block and of the one before.

    Rows and columns are those of one digit, because the blocks of a result row follow each other.
    """
    side, row, column = box.per_line, box.row, box.column
    fits = min(row.extent, column.extent) >= side and (side, side) in transposed_shapes(box.width)
    long = row.extent * box.width >= LONG_ROW_BYTES and column.extent * box.source_width >= SHORT_SOURCE_BYTES
    if not machine().joins_bytes or box.converts or not fits or not long:
        return None
    lines = CARRIED_LINES if box.width >= WIDE_BYTES else 1
    tiles = _tiles(lines * side, CARRIED_COLUMNS)
    return _transpose(box, (row,), (column,), "64x64", *tiles, Stream("carried"))


def _crowded(box: StridedBox) -> bool:
    """Whether source rows share sets of an L1 cache with few ways."""
    pitch = abs(box.row.src)
    distance = min(pitch % SET_BYTES, -pitch % SET_BYTES)
    return pitch > LINE_BYTES > distance and machine().first_cache_ways < MANY_WAYS


def _complete_rows(box: StridedBox, rows: Axes, columns: Axes, *, stream: bool) -> Schedule | None:
    """Complete result rows, staged, of as many full column digits as fit, or of a part of the first.

    None if they are too short.
    """
    run = size_of(rows) * box.width
    most = max(STAGED_BYTES // run, box.per_line)
    if columns[0].dst != run:
        most = min(most, PADDED_COLUMNS)
    kept = 1
    while kept < len(columns) and size_of(columns[: kept + 1]) <= most:
        kept += 1
    columns = columns[:kept]
    block = block_for(box, size_of(rows), size_of(columns))
    if block is None:
        return None
    if kept == 1:
        most = min(most, PART_BYTES // run)
    wide = size_of(columns) if kept > 1 else max(most // box.per_line * box.per_line, box.per_line)
    if wide < size_of(columns) <= 2 * wide and size_of(columns) * run <= STAGED_BYTES:
        wide = size_of(columns)  # 16 of 24 columns, then 8, would read the lines of source rows twice
    if block == "64x64" and (_fills_flat(box) or (wide == box.per_line and _takes_flat(box))):
        block = "16x64"
    how = Tile("column", wide), Stage(), Stream("headed" if stream else "aligned")
    cut = _transpose(box, rows, columns, block, *how)
    return _layered(box, cut, rows, columns) if wide >= size_of(columns) else cut


def _layered(box: StridedBox, cut: Schedule, rows: Axes, columns: Axes) -> Schedule:
    """Put several tiles in one buffer if their result rows are contiguous: this makes longer runs."""
    row_bytes, in_order = size_of(rows) * box.width, size_of(rows) < cut.lanes["row"]
    run, _ = joined_run(row_bytes, [(x.extent, x.dst) for x in columns], in_order=in_order)
    layers = next((x for x in box.axes if x.dst == run and x not in (*rows, *columns)), None)
    most = min(STAGED_BYTES // (row_bytes * size_of(columns)), LAYERED_BYTES // run)
    if layers is None or most < 2:
        return cut
    tile = Tile("layer", min(most, layers.extent))
    loops = Joined("layer", (layers.name,)), *cut.loops
    return replace(cut, loops=loops, directives=(tile, *cut.directives))


def _cached(box: StridedBox) -> Schedule | None:
    """Blocks stored in place through the cache; rows shorter than a line are staged."""
    side, best = box.per_line, None
    for rows in prefixes(joined_rows(box)):
        columns = joined_columns(box, rows)
        r, c = size_of(rows), size_of(columns)
        filled = _filled(r, side) * _filled(c, side if c >= side else max(side // 4, 1))
        key = filled, min(r, side), -len(rows)
        if best is None or key > best[0]:
            best = key, rows, columns
    if best is None:
        return None
    _, rows, columns = best
    block = block_for(box, size_of(rows), size_of(columns))
    if block is None:
        return None
    if size_of(rows) < side:
        return _complete_rows(box, rows, columns, stream=False)
    if block == "64x64" and not box.converts and not _needs_wide_blocks(box):
        sparse = box.width == 1 and _filled(size_of(rows), side) < LEAST_FILLED and _takes_flat(box)
        block = "16x64" if sparse else "64x16"
    return _transpose(box, rows, columns, block, *_tiles(TILE_LINES * side, TILE_LINES * side))


def _fills_flat(box: StridedBox) -> bool:
    """Whether staged tiles are filled in blocks of few source rows."""
    most = FLAT_BYTES if machine().registers >= MANY_REGISTERS else FLAT_BYTES_OF_FEW
    return box.width <= most and _takes_flat(box)


def _takes_flat(box: StridedBox) -> bool:
    """Whether registers can transpose 16x64 blocks of its elements."""
    return takes_special_blocks(box) and block_shape(box.width, "16x64") in transposed_shapes(box.width)


def _needs_wide_blocks(box: StridedBox) -> bool:
    """Whether rows share so many cache sets that a line must be used completely while it is there.

    Otherwise narrow blocks, row by row, are faster (Zen 4, 2026-11, shares of memcpy): u16 1280x1280 0.58 and
    0.66, u64 700x700 0.47 and 0.75, on AVX2 u16 512x512 0.40 and 0.61, u32 256x256 0.78 and 1.2. With shared
    sets they are slower: u8 1024x1024 0.46 and 0.34, u64 512x512 0.63 and 0.47.
    """
    distance = LANE_SHARING_BYTES.get(box.width)
    if distance is None:  # registers do not transpose narrow blocks of these elements
        return True
    if box.width == 4 and machine().registers < MANY_REGISTERS:
        return False  # wide blocks of these elements spill, which costs more
    if box.width <= 2:
        return box.row.src % distance == 0
    return all(pitch % distance == 0 for pitch in (box.row.src, box.column.dst))


def _filled(count: int, block: int) -> float:
    """The fill ratio of `count` elements in full blocks."""
    return count / (-(-count // block) * block)
