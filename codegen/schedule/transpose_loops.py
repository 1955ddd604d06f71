"""Size the tiles of a transposed copy, and order the loops around them."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis
from codegen.schedule.machine import ALIAS_BYTES, SET_BYTES, machine
from codegen.schedule.schedule import BlockOrder, Schedule, TileSize, TransposeSchedule, VectorSize
from codegen.schedule.transpose_box import DENSE_BYTES, PANEL_COLUMNS, TransposeBox, size_of
from codegen.schedule.transpose_strips import MOST_PANEL_LINES, given_size, in_strips

SHARING_BYTES = 1024
"""The blocks of a tile share cache sets if their rows are at a multiple of this distance."""

WIDE_BYTES = 8
"""Blocks of such elements run diagonally at every pitch, so that they share a kernel: the order costs them no
time, but up to 8 % with narrower elements in cache (Zen 4, 2026-11)."""

MANY_REGISTERS = 32
"""With fewer vector registers, blocks spill, and columns that wait for the address of the one before cost 1.1
times as much time in panels of short result rows (AVX2 on Zen 4, 2026-11)."""


def scheduled(box: TransposeBox, cut: TransposeSchedule, threads: int, size: VectorSize | None) -> Schedule:
    """The schedule of a cut, in super-vectors of the caller's size, or enough tiles for all threads."""
    tile = size if isinstance(size, TileSize) else None
    if tile:
        cut = _resized(box, cut, (tile.rows, tile.columns))
    taken = (*cut.rows, *cut.columns, cut.layers)
    others = sorted((x for x in box.axes if x.name not in taken), key=lambda x: -abs(x.src))
    if threads > 1 and not tile:
        cut = _shared(box, cut, size_of(others), threads)
    cut = _in_blocks(box, cut, even=size is None, given=tile is not None)
    if isinstance(size, int | tuple):
        cut = in_strips(box, cut, size if isinstance(size, tuple) else (size, size))
    cut = with_loops(box, cut, threads)
    given = None if size is None else given_size(box, cut, size)
    return Schedule("transpose", tuple(x.name for x in others), (), transpose=cut, sized=given)


def shares_sets(box: TransposeBox, distance: int) -> bool:
    """Whether the rows of either side are a multiple of a distance apart."""
    return any(pitch % distance == 0 for pitch in (box.row.src, box.column.dst))


FAR_PREFETCH_BYTES = 2 * LINE_BYTES
"""Prefetch distance in the 64 rows of a block of bytes, which are more than the hardware prefetcher tracks.
It makes transposes from memory into cache 1.5 times as fast (Zen 5, 2026-11)."""

TRIPS_PER_THREAD = 8
"""Trips of the parallel loop for each thread, so that shares are about even."""


def with_loops(box: TransposeBox, cut: TransposeSchedule, threads: int = 1) -> TransposeSchedule:
    """The schedule with its loops around blocks, and the order of the blocks.

    Past the cache, loops are sorted by the distance between their iterations in the source, so that the next
    tile mostly follows in memory. In cache, tiles are innermost, so that few kernels serve all shapes. If the
    first loop has too few iterations for all threads, the one with most comes first. Where long rows are
    staged, the tiles of rows of a panel follow each other: the bytes after the last full line of a result row
    wait in the panel for the next tile.
    """
    if cut.stage == "dense":
        loops = _in_order(_panel_steps(box, cut), threads)
        separate = machine().registers < MANY_REGISTERS
        return replace(cut, loops=loops, separate=separate, requests=_requests(box, cut))
    rows, columns = (tuple(map(box.axis, names)) for names in (cut.rows, cut.columns))
    taken = (*cut.rows, *cut.columns)
    steps = {x.name: (abs(x.src), x.extent) for x in box.axes if x.name not in taken}
    tall, wide = cut.around(cut.tile)
    if cut.block != "short" or (cut.stage and not steps):
        steps["columns"] = wide * box.source_width, -(-size_of(columns) // wide)
    if not cut.stage:
        steps["rows"] = _row_step(rows, tall), -(-size_of(rows) // tall)
    innermost = () if cut.stream else tuple(axis for axis in ("rows", "columns") if axis in steps)
    loops = _in_order(steps, threads, innermost)
    if cut.stage:
        order: BlockOrder = "rows" if cut.block == "16x64" else "columns"
        return replace(cut, loops=(*loops, "rows"), order=order, tile=(cut.lines * box.side, cut.tile[1]))
    order = _block_order(box, cut)
    is_far = order == "rows" and cut.block == "64x64" and box.source_width == box.width
    ahead = FAR_PREFETCH_BYTES if is_far else 0
    return replace(cut, loops=loops, order=order, prefetch_bytes=ahead)


def with_outer_loops(cut: TransposeSchedule, names: tuple[str, ...]) -> TransposeSchedule:
    """The schedule with more loops around all others."""
    return replace(cut, loops=(*names, *cut.loops))


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
    steps = {x.name: (abs(x.src), x.extent) for x in box.axes if x.name not in taken}
    for x in box.axes:
        if x.name == cut.layers:
            steps["layers"] = abs(x.src) * cut.together, -(-x.extent // cut.together)
    steps["columns"] = cut.tile[1] * box.source_width if panels > 1 else 0, panels
    return steps


def _requests(box: TransposeBox, cut: TransposeSchedule) -> int:
    """Lines to prefetch per line written: short source rows touch more lines than they fill.

    Rounded up, at least 2: the partial lines at both ends of a run request none, and the rows at the end of a
    panel would be left (u32 [4000,28,80] (0,2,1), Zen 4, 2026-11: 0.57 of memcpy with 1, 0.85 with 2).
    """
    row_bytes = min(cut.tile[1], box.counts(cut)[1]) * box.source_width
    touched = -(-row_bytes // LINE_BYTES) + 1
    return -(-touched * LINE_BYTES // row_bytes)


def _block_order(box: TransposeBox, cut: TransposeSchedule) -> BlockOrder:
    """By rows, except for blocks of large elements: diagonally where rows of either side share cache sets.

    Blocks by rows fill the lines of a result row one after the other. Blocks of bytes are so large that the
    lines of one are evicted before the next, down a column. Where result rows nearly share sets, a line that
    two blocks of a row share is evicted between them (Zen 4, 2026-11: u32 [511,300] (1,0) 0.41 of memcpy by
    rows, 0.81 by columns).

    Single lines streamed to result rows that share sets wait for each other. Several lines of each result row
    pay there, as long as source lines stay in the first cache until all their blocks have run (Zen 4,
    2026-11: u32 [4096,4112] (1,0) 1.29 of memcpy by rows, 1.65 by columns; u16 [8192,4128] 1.03 and 1.35).
    Bytes gain nothing, and elements of 16 bytes lose a tenth on AVX2.
    """
    if cut.block == "short" or (cut.stream and cut.block == "64x64"):
        return "columns"
    if cut.stream and box.width >= WIDE_BYTES and not shares_sets(box, SHARING_BYTES):
        return "columns"
    if cut.stream and 1 < box.width < WIDE_BYTES and _single_lines_wait(box, cut):
        return "columns"
    if cut.block != "64x64" and box.width > 1 and _nearly_shares_sets(box):
        return "columns"
    if cut.block != "64x64" or (box.width <= 2 and not box.converts):
        return "rows"
    return "diagonals" if box.width >= WIDE_BYTES or shares_sets(box, SHARING_BYTES) else "columns"


def _single_lines_wait(box: TransposeBox, cut: TransposeSchedule) -> bool:
    """Whether result rows share cache sets, and the first cache holds a line of each source row of a tile."""
    sets = SET_BYTES // max(gcd(box.row.src, SET_BYTES), LINE_BYTES)
    return box.column.dst % ALIAS_BYTES == 0 and sets * machine().first_cache_ways >= cut.tile[0]


def _nearly_shares_sets(box: TransposeBox) -> bool:
    """Whether result rows share cache sets and begin at different offsets in their lines."""
    pitch = abs(box.column.dst)
    return 0 < min(pitch % ALIAS_BYTES, -pitch % ALIAS_BYTES) < LINE_BYTES


def _row_step(rows: tuple[Axis, ...], count: int) -> int:
    """The distance in the source from that many rows to the next ones."""
    joined = 1
    for row in rows:
        joined *= row.extent
        if joined > count:
            return abs(row.src) * count * row.extent // joined
    return max(abs(row.src) for row in rows)


def _in_blocks(box: TransposeBox, cut: TransposeSchedule, *, even: bool, given: bool) -> TransposeSchedule:
    """Round tiles up to full blocks, or to the box: blocks are the smallest unit, and buffers hold a tile.

    Tiles without a buffer are literals of the kernel. With super-vectors of the caller's size they are not
    made even, and do not depend on the box; neither do panels of a given size.
    """
    (rows, columns), (all_rows, all_columns) = cut.tile, box.counts(cut)
    if cut.stage != "dense":
        if even and cut.stream and not cut.stage and cut.block != "short":
            rows, columns = _even(all_rows, rows), _even(all_columns, columns)
        wide = all_columns if cut.block == "short" else -(-columns // box.side) * box.side
        return replace(cut, tile=(-(-rows // box.side) * box.side, wide))
    rows = min(-(-rows // box.side) * box.side, all_rows)
    if not given:
        columns = -(-all_columns // -(-all_columns // columns))
    columns = -(-columns // box.side) * box.side
    return replace(cut, tile=(rows, columns if given else min(columns, all_columns)))


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
        lines = min(-(-rows // box.side), MOST_PANEL_LINES)
        return replace(cut, tile=(rows, min(columns, PANEL_COLUMNS)), lines=lines)
    if cut.stage == "dense":
        return _resized_panels(box, cut, columns)
    return replace(cut, tile=(rows, columns))


def _resized_panels(box: TransposeBox, cut: TransposeSchedule, columns: int) -> TransposeSchedule:
    """Dense panels of the caller's columns: the joined digits that fit, or a part of the first one.

    Panels keep more digits if blocks would not be full otherwise.
    """
    rows, wide = box.counts(cut)
    if cut.layers and columns >= wide:
        cut = replace(cut, together=min(cut.together, columns // wide))
    elif columns < wide:
        for kept in range(len(cut.columns), 0, -1):
            fewer = replace(cut, columns=cut.columns[:kept], layers="", together=1)
            wide = box.counts(fewer)[1]
            block = box.block(rows, wide)
            if block is None:
                break
            cut = replace(fewer, block=block, tile=(cut.tile[0], wide))
            if wide <= columns:
                break
    if len(cut.columns) > 1:
        return cut
    most = max(DENSE_BYTES // (cut.tile[0] * box.width) // box.side * box.side, box.side)
    return replace(cut, tile=(cut.tile[0], min(columns, most)))


def _shared(box: TransposeBox, cut: TransposeSchedule, others: int, threads: int) -> TransposeSchedule:
    """Narrower tiles if there would be too few for all threads."""
    rows, columns = box.counts(cut)
    across = -(-columns // cut.tile[1])
    if cut.layers:
        extent = box.axis(cut.layers).extent
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
