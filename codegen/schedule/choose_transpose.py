"""Choose the schedule of a copy whose sides are contiguous along different digits.

There are three methods: streamed in place, where tiles are full lines of the destination; streamed from a
staging buffer, by long result rows or by dense short ones; and stored through the cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from codegen.ir.copies.dense_panels import joined_run
from codegen.ir.copies.tiles import Block, BlockOrder, block_shape
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import StridedBox
from codegen.schedule.machine import machine
from codegen.schedule.schedule import Schedule, TransposeSchedule
from codegen.schedule.transpose_box import TransposeBox, Walk, axes_of, prefixes, size_of

VectorSize: TypeAlias = int | tuple[int, int]

TILE_LINES = 6
"""Lines per tile in each direction, for tiles that are stored in place."""

SHARED_SETS = {1: (6, 6), 2: (2, 12), 4: (6, 12), 8: (8, 8), 16: (6, 6), 32: (8, 6), 64: (8, 6)}
"""The same (rows, columns) if source rows share cache sets, by element size in bytes. Measured on transposes
of 64-128 MB with rows of a power of two, Zen 5, 2026-11."""

NARROWED_SETS = (1, 12)
"""The same if elements become narrower: each row of a block is then two lines or more."""

ALIAS_BYTES = 2048
"""Rows whose distance is a multiple of this share L1 cache sets, which have few ways."""

SHARING_BYTES = 1024
"""The blocks of a tile share cache sets if their rows are at a multiple of this distance."""

LANE_SHARING_BYTES = 256
"""At a multiple of this distance, a line of a source row may be evicted before its other lanes are read."""

LINE_ROWS_ACROSS = 16
"""Lines across if result rows are one line: tiles with few rows need long rows to amortize their start."""

MANY_WAYS = 12
"""An L1 cache with this many ways holds the source rows of a panel that has one line per result row."""

MANY_REGISTERS = 32
"""With fewer vector registers, blocks spill, and columns that wait for the address of the one before cost 1.1
times as much time in panels of short result rows (AVX2 on Zen 4, 2026-11)."""

PANEL_COLUMNS = 256
"""Columns of a panel that is staged by long result rows."""

PANEL_LINES = 2
"""Lines of each result row in such a panel, on a cache with that many ways (Zen 5, 2026-11)."""

NARROW_LINES = 4
"""The same on a cache with fewer ways. There are more rows than ways, so their lines are evicted before the
next tile of rows, and longer runs of the destination pay (8 ways, Zen 4, 2026-11: 1.2 times as fast as 1)."""

MOST_LINES = 16
"""Maximum lines of each result row in a panel of the caller's size, so that it stays in the second cache."""

SET_BYTES = 4096
"""Rows about this far apart, or a multiple of it, share L1 cache sets."""

PANEL_LINES_TRIED = 1, 2, 4
"""Numbers of lines that tune=True measures."""

BANDED = (1, 2)
"""Element sizes in bytes for which such a panel is filled in bands: a "line" block has 64 or 32 source rows,
and rows of many pitches share L1 cache sets, which have 8 or 12 ways."""

DENSE_BYTES = 1 << 17
"""Bytes of a panel that is staged by short result rows."""

PADDED_COLUMNS = 1 << 13
"""Columns of such a panel if each starts on its own line: 1 MiB."""

PART_LINES = 6
"""Lines of each result row in a tile whose source rows are shorter than a lane."""

LAYERED_BYTES = 2048
"""Maximum bytes of the destination's runs for tiles that share one buffer."""

LONG_ROW_BYTES = 2048
"""Result rows of at least this length are staged one by one: the loss at both ends is 1 line in 32."""

SHORT_SOURCE_BYTES = 512
"""Source runs shorter than this are too small for a panel with two lines per result row."""


def transpose_schedule(
    nest: StridedBox, *, stream: bool, threads: int = 1, size: VectorSize | None = None
) -> Schedule | None:
    """The schedule, or None if the contiguous digits are too short to fill registers.

    `size` is the caller's tile size: (rows, columns), or one number for both.
    """
    box = TransposeBox.of(nest)
    found = _in_place(box) if stream else _cached(box)
    if stream and (found is None or (box.width == 1 and _crowded(box))):
        staged = _staged(box)
        # Blocks of bytes have 64 source rows in place, bands of a panel 16: 12 -> 15 GB/s (Zen 4, 2026-11).
        if found is None or (staged and staged.stage == "rows"):
            found = staged
    return None if found is None else _scheduled(box, found, threads, size)


def transpose_candidates(
    nest: StridedBox, first: Schedule, *, threads: int, size: VectorSize | None
) -> tuple[Schedule, ...]:
    """Distinct schedules that are worth measuring, `first` first: different stores and different tiles."""
    box = TransposeBox.of(nest)
    methods = [cut for cut in (_in_place(box), _staged(box), _cached(box)) if cut is not None]
    cuts = [first.transpose, *methods] if first.transpose else methods
    if first.transpose and size is None:
        cut = first.transpose
        rows, columns = cut.tile
        shapes = [(rows, columns // 2), (rows, 2 * columns)]
        if not cut.stage:
            shapes += [(rows // 2, columns), (2 * rows, columns)]
        if cut.layers:
            cuts += [replace(cut, together=n) for n in (cut.together // 2, 2 * cut.together) if n]
        if cut.stage == "rows":
            cuts += [replace(cut, lines=n) for n in PANEL_LINES_TRIED if n != cut.lines]
        if not cut.layers and (len(cut.columns) == 1 or not cut.stage):
            cuts += [replace(cut, tile=tile) for tile in shapes if min(tile) > 0]
    others = [_scheduled(box, cut, threads, size) for cut in cuts[1:]]
    return tuple(dict.fromkeys([first, *others]))


def misaligned(schedule: Schedule, nest: StridedBox, size: VectorSize | None) -> Schedule | None:
    """The schedule for a destination that is not line-aligned; None if alignment does not matter.

    `size` is the caller's tile size, as in `transpose_schedule`.
    """
    cut = schedule.transpose
    if cut is None or cut.stage or not cut.stream:
        return None
    box = TransposeBox.of(nest)
    return _scheduled(box, _staged(box) or replace(cut, stream=False), 1, size)


def _in_place(box: TransposeBox) -> TransposeSchedule | None:
    """Lines streamed in place: result rows must be full, aligned lines."""
    side, wide, best = box.side, TILE_LINES * box.side, None
    for rows in prefixes(box.chain(box.row, "dst", (box.column,))):
        r = size_of(rows)
        if r % side or any(w.dst % LINE_BYTES for w in box.walks if w not in rows):
            continue
        columns = tuple(box.chain(box.column, "src", rows))
        enough = next((p for p in prefixes(list(columns)) if size_of(p) >= wide), columns)
        c = size_of(enough)
        part = box.is_part(c)
        if (c < side and not part) or (len(rows) > 1 and c < 2 * side and not part):
            continue
        # At least two lines in each direction, better three, and few partial lines: tuned on 57 permutations.
        score = min(r, 2 * side) / 2 / side * (0.8 + 0.2 * min(r, 3 * side) / 3 / side)
        key = score * min(c, wide) / wide * _filled(c, side), -len(rows)
        if best is None or key > best[0]:
            best = key, rows, enough
    if best is None:
        return None
    _, rows, columns = best
    if box.is_part(size_of(columns)):
        tile = PART_LINES * side, size_of(columns)
        return TransposeSchedule(axes_of(rows), axes_of(columns), tile, "", True, "part")
    down, across = TILE_LINES, LINE_ROWS_ACROSS if size_of(rows) == side else TILE_LINES
    block: Block = "lane"
    if box.row.src % ALIAS_BYTES == 0:
        (down, across), block = SHARED_SETS[box.width], "line"
        if box.source_width > box.width:
            down, across = NARROWED_SETS
    tile = down * side, across * side
    return TransposeSchedule(axes_of(rows), axes_of(columns), tile, "", True, block)


def _staged(box: TransposeBox) -> TransposeSchedule | None:
    """Streamed through a buffer, for any alignment of result rows."""
    rows = tuple(box.chain(box.row, "dst", (box.column,)))
    columns = tuple(box.chain(box.column, "src", rows))
    r, c = size_of(rows), size_of(columns)
    block = box.block(r, c)
    if block is None:
        return None
    long = r * box.width >= LONG_ROW_BYTES and c * box.source_width >= SHORT_SOURCE_BYTES
    fitting = [p for p in prefixes(list(rows)) if size_of(p) * box.width * box.side <= DENSE_BYTES]
    if not long and fitting and len(fitting) < len(rows) and size_of(fitting[-1]) >= box.side:
        # A panel of lines would have too few columns; stage a dense part of each result row instead.
        rows = fitting[-1]
        return _dense(box, rows, tuple(box.chain(box.column, "src", rows)), stream=True)
    if r >= box.side and (long or r * box.width * box.side > DENSE_BYTES):
        if block == "line" and box.width in BANDED and box.is_special:
            block = "band"
        wide, lines = _panel(box)
        return TransposeSchedule(axes_of(rows), axes_of(columns), (r, wide), "rows", True, block, lines=lines)
    return _dense(box, rows, columns, stream=True)


def _panel(box: TransposeBox) -> tuple[int, int]:
    """The columns of a panel of long result rows, and the lines per result row."""
    lines = NARROW_LINES if machine().first_cache_ways < MANY_WAYS else PANEL_LINES
    return PANEL_COLUMNS, lines


def _crowded(box: TransposeBox) -> bool:
    """Whether source rows share sets of an L1 cache with few ways."""
    pitch = abs(box.row.src)
    distance = min(pitch % SET_BYTES, -pitch % SET_BYTES)
    return pitch > LINE_BYTES > distance and machine().first_cache_ways < MANY_WAYS


def _dense(
    box: TransposeBox, rows: tuple[Walk, ...], columns: tuple[Walk, ...], *, stream: bool
) -> TransposeSchedule | None:
    """Dense panels of as many full column digits as fit, or of a part of the first; None if too short."""
    run = size_of(rows) * box.width
    most = max(DENSE_BYTES // run, box.side)
    if columns[0].dst != run:
        most = min(most, PADDED_COLUMNS)
    kept = 1
    while kept < len(columns) and size_of(columns[: kept + 1]) <= most:
        kept += 1
    columns = columns[:kept]
    block = box.block(size_of(rows), size_of(columns))
    if block is None:
        return None
    wide = size_of(columns) if kept > 1 else max(most // box.side * box.side, box.side)
    cut = TransposeSchedule(axes_of(rows), axes_of(columns), (size_of(rows), wide), "dense", stream, block)
    return _layered(box, cut, rows, columns) if wide >= size_of(columns) else cut


def _layered(
    box: TransposeBox, cut: TransposeSchedule, rows: tuple[Walk, ...], columns: tuple[Walk, ...]
) -> TransposeSchedule:
    """Put several tiles in one buffer if their result rows are contiguous: this makes longer runs."""
    in_order = size_of(rows) < block_shape(box.width, cut.block)[0]
    row_bytes = size_of(rows) * box.width
    run, _ = joined_run(row_bytes, [(w.extent, w.dst) for w in columns], in_order=in_order)
    layers = next((w for w in box.walks if w.dst == run and w not in (*rows, *columns)), None)
    most = min(DENSE_BYTES // (row_bytes * size_of(columns)), LAYERED_BYTES // run)
    if layers is None or most < 2:
        return cut
    return replace(cut, layers=layers.axis, together=min(most, layers.extent))


def _cached(box: TransposeBox) -> TransposeSchedule | None:
    """Blocks stored in place through the cache; rows shorter than a line are staged."""
    side, best = box.side, None
    for rows in prefixes(box.chain(box.row, "dst", (box.column,))):
        columns = tuple(box.chain(box.column, "src", rows))
        r, c = size_of(rows), size_of(columns)
        key = _filled(r, side) * _filled(c, side if c >= side else max(side // 4, 1)), -len(rows)
        if best is None or key > best[0]:
            best = key, rows, columns
    if best is None:
        return None
    _, rows, columns = best
    block = box.block(size_of(rows), size_of(columns))
    if block is None:
        return None
    if size_of(rows) < side:
        return _dense(box, rows, columns, stream=False)
    if block == "line" and not box.converts and not _shares_sets(box, LANE_SHARING_BYTES):
        block = "lane"
    tile = TILE_LINES * side, TILE_LINES * side
    return TransposeSchedule(axes_of(rows), axes_of(columns), tile, "", False, block)


def _shares_sets(box: TransposeBox, distance: int) -> bool:
    """Whether the rows of either side are a multiple of a distance apart."""
    return any(pitch % distance == 0 for pitch in (box.row.src, box.column.dst))


def _scheduled(box: TransposeBox, cut: TransposeSchedule, threads: int, size: VectorSize | None) -> Schedule:
    taken = (*cut.rows, *cut.columns, cut.layers)
    others = sorted((w for w in box.walks if w.axis not in taken), key=lambda w: -abs(w.src))
    if size is not None:
        cut = _resized(box, cut, size if isinstance(size, tuple) else (size, size))
    elif threads > 1:
        cut = _shared(box, cut, size_of(others), threads)
    cut = with_loops(box, _in_blocks(box, cut, even=size is None), threads)
    return Schedule("transpose", tuple(w.axis for w in others), (), transpose=cut)


FAR_PREFETCH_BYTES = 2 * LINE_BYTES
"""Prefetch distance in the 64 rows of a block of bytes, which are more than the hardware prefetcher tracks.
It makes transposes from memory into cache 1.5 times as fast (Zen 5, 2026-11)."""

TRIPS_PER_THREAD = 8
"""Trips of the parallel loop for each thread, so that shares are about even."""


def with_loops(box: TransposeBox, cut: TransposeSchedule, threads: int = 1) -> TransposeSchedule:
    """The schedule with its loops around blocks, and the order of the blocks.

    Past the cache, loops are sorted by the distance between their iterations in the source, so that the next
    tile mostly follows in memory. In cache, tiles are innermost, so that few kernels serve all shapes. If the
    first loop has too few iterations for all threads, the one with most comes first.
    """
    if cut.stage == "dense":
        separate = machine().registers < MANY_REGISTERS
        return replace(cut, loops=_in_order(_panel_steps(box, cut), threads), separate=separate)
    walks = {w.axis: w for w in box.walks}
    rows, columns = (tuple(walks[axis] for axis in axes) for axes in (cut.rows, cut.columns))
    taken = (*cut.rows, *cut.columns)
    steps = {w.axis: (abs(w.src), w.extent) for w in box.walks if w.axis not in taken}
    if cut.block != "part" or (cut.stage and not steps):
        steps["columns"] = cut.tile[1] * box.source_width, -(-size_of(columns) // cut.tile[1])
    if not cut.stage:
        steps["rows"] = _row_step(rows, cut.tile[0]), -(-size_of(rows) // cut.tile[0])
    innermost = () if cut.stream else tuple(axis for axis in ("rows", "columns") if axis in steps)
    loops = _in_order(steps, threads, innermost)
    if cut.stage:
        order: BlockOrder = "rows" if cut.block == "band" else "columns"
        return replace(cut, loops=(*loops, "rows"), order=order, tile=(cut.lines * box.side, cut.tile[1]))
    order = _block_order(box, cut)
    is_far = order == "rows" and cut.block == "line" and box.source_width == box.width
    ahead = FAR_PREFETCH_BYTES if is_far else 0
    return replace(cut, loops=loops, order=order, prefetch_bytes=ahead)


def _in_order(
    steps: dict[str, tuple[int, int]], threads: int, innermost: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The loops of `steps` (source bytes from one iteration to the next, iterations) in order."""
    loops = sorted(steps, key=lambda axis: -steps[axis][0])
    loops = [*(axis for axis in loops if axis not in innermost), *innermost]
    most = max(loops, key=lambda axis: steps[axis][1])
    if threads > 1 and steps[loops[0]][1] < min(TRIPS_PER_THREAD * threads, steps[most][1]):
        loops.remove(most)
        loops.insert(0, most)
    return tuple(loops)


def _panel_steps(box: TransposeBox, cut: TransposeSchedule) -> dict[str, tuple[int, int]]:
    """The same for loops over panels of short result rows; one that runs once is innermost."""
    taken, panels = (*cut.rows, *cut.columns, cut.layers), -(-box.counts(cut)[1] // cut.tile[1])
    steps = {w.axis: (abs(w.src), w.extent) for w in box.walks if w.axis not in taken}
    for w in box.walks:
        if w.axis == cut.layers:
            steps["layers"] = abs(w.src) * cut.together, -(-w.extent // cut.together)
    steps["columns"] = cut.tile[1] * box.source_width if panels > 1 else 0, panels
    return steps


def _block_order(box: TransposeBox, cut: TransposeSchedule) -> BlockOrder:
    """Diagonally where rows of either side share cache sets: the blocks of a row or column would, too.

    Blocks of bytes are so large that the lines of one are evicted before the next, down a column.
    """
    if cut.stream or cut.block == "part":
        return "columns"
    if _shares_sets(box, SHARING_BYTES):
        return "diagonals"
    return "rows" if box.width == 1 else "columns"


def _row_step(rows: tuple[Walk, ...], tile: int) -> int:
    """The distance in the source from one tile of rows to the next."""
    joined = 1
    for row in rows:
        joined *= row.extent
        if joined > tile:
            return abs(row.src) * tile * row.extent // joined
    return max(abs(row.src) for row in rows)


def _in_blocks(box: TransposeBox, cut: TransposeSchedule, *, even: bool) -> TransposeSchedule:
    """Round tiles up to full blocks, or to the box: blocks are the smallest unit, and buffers hold a tile.

    Tiles without a buffer are literals of the kernel, so they do not depend on the box.
    """
    (rows, columns), (all_rows, all_columns) = cut.tile, box.counts(cut)
    if cut.stage != "dense":
        if even and cut.stream and not cut.stage and cut.block != "part":
            rows, columns = _even(all_rows, rows), _even(all_columns, columns)
        wide = all_columns if cut.block == "part" else -(-columns // box.side) * box.side
        return replace(cut, tile=(-(-rows // box.side) * box.side, wide))
    rows = min(-(-rows // box.side) * box.side, all_rows)
    if cut.stage == "dense":
        columns = -(-all_columns // -(-all_columns // columns))
    columns = min(-(-columns // box.side) * box.side, all_columns)
    return replace(cut, tile=(rows, columns))


MOST_EVEN = 4
"""The most tiles in a direction that are made even; a narrow last one matters little among more."""


def _even(count: int, tile: int) -> int:
    """The size of even tiles, if there are few: a tile requests as many columns of the next as it has itself.

    64, 48 -> 32    300, 96 -> 75    1000, 96 -> 96    10, 96 -> 96
    """
    tiles = -(-count // tile)
    return -(-count // tiles) if 1 < tiles <= MOST_EVEN else tile


def _resized(box: TransposeBox, cut: TransposeSchedule, size: tuple[int, int]) -> TransposeSchedule:
    """Tiles of the caller's size, limited so that their buffer stays in cache."""
    rows, columns = size
    if cut.stage == "rows":
        lines = min(-(-rows // box.side), MOST_LINES)
        return replace(cut, tile=(rows, min(columns, PANEL_COLUMNS)), lines=lines)
    if cut.stage == "dense":
        most = max(DENSE_BYTES // (cut.tile[0] * box.width) // box.side * box.side, box.side)
        takes_all_columns = len(cut.columns) > 1 or cut.layers
        return cut if takes_all_columns else replace(cut, tile=(cut.tile[0], min(columns, most)))
    return replace(cut, tile=(rows, columns))


def _shared(box: TransposeBox, cut: TransposeSchedule, others: int, threads: int) -> TransposeSchedule:
    """Narrower tiles if there would be too few for all threads."""
    rows, columns = box.counts(cut)
    across = -(-columns // cut.tile[1])
    if cut.layers:
        extent = next(w.extent for w in box.walks if w.axis == cut.layers)
        return replace(cut, together=max(1, min(cut.together, others * extent // (4 * threads))))
    tiles = others * -(-rows // cut.tile[0]) * across
    if tiles >= 4 * threads or (cut.stage == "dense" and len(cut.columns) > 1):
        return cut
    if cut.stage != "dense":
        return _halved(box, cut, others, threads)
    wanted = -(-columns * tiles // (4 * threads * across))
    return replace(cut, tile=(cut.tile[0], max(-(-wanted // box.side) * box.side, box.side)))


def _halved(box: TransposeBox, cut: TransposeSchedule, others: int, threads: int) -> TransposeSchedule:
    """Half the columns, as long as there are too few tiles, so that sizes of tiles stay few."""
    rows, columns = box.counts(cut)
    while cut.tile[1] >= 2 * box.side:
        if others * -(-rows // cut.tile[0]) * -(-columns // cut.tile[1]) >= 4 * threads:
            break
        cut = replace(cut, tile=(cut.tile[0], cut.tile[1] // 2 // box.side * box.side))
    return cut


def _filled(count: int, block: int) -> float:
    """The fill ratio of `count` elements in full blocks."""
    return count / (-(-count // block) * block)
