"""Order the loops of a transposed copy: those around its tiles, and those over the blocks of a tile."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_directives import later_entries
from codegen.schedule.conditions import Conditions
from codegen.schedule.directives import Diagonal, Prefetch, Reorder, Stage, Tile
from codegen.schedule.loops import int_size
from codegen.schedule.machine import ALIAS_BYTES, SET_BYTES, machine
from codegen.schedule.schedule import Schedule
from codegen.schedule.transpose_blocks import STAGED_BYTES, STAGED_COLUMNS
from codegen.schedule.transpose_tiles import MOST_STAGED_LINES, given_size, tiles_of_lines, tiles_of_rows

SHARING_BYTES = 1024
"""The blocks of a tile share cache sets if their rows are at a multiple of this distance."""

WIDE_BYTES = 8
"""Blocks of such elements run diagonally at every pitch, so that they share a kernel: the order costs them no
time, but up to 8 % with narrower elements in cache (Zen 4, 2026-11)."""

MANY_REGISTERS = 32
"""With fewer vector registers, blocks spill, and columns that wait for the address of the one before cost 1.1
times as much time in staged tiles of short result rows (AVX2 on Zen 4, 2026-11)."""


def scheduled(box: StridedBox, cut: Schedule, when: Conditions) -> Schedule:
    """The schedule of a cut, in super-vectors of the caller's size, or enough tiles for all threads."""
    if when.tile:
        cut = _in_tiles(box, cut, *when.tile)
    others = [x for x in box.axes if x.name not in cut.inner]
    find, order = (tiles_of_rows, _with_loops_of_rows) if cut.stages_rows else (tiles_of_lines, _with_loops)
    tiles = find(box, cut, others, when)
    cut = order(box, cut.changed(*tiles, without=(Reorder, Diagonal, Prefetch)), others, when.threads)
    names = {x.name for x in others}
    outer = tuple(name for name in cut.order if name in names)
    directives = *cut.directives, *later_entries(box, cut)
    sized = given_size(box, cut, when)
    return replace(cut, outer=outer, directives=directives, sized=sized)


def crowding(box: StridedBox) -> tuple[float, float]:
    """Source and result rows of a register block, as multiples of those whose lines an L1 cache holds.

    1025x1025 f32, rows 4100 bytes apart -> (2, 2): 16 lines in one set of 8 ways

    The lines are in few sets if rows are a multiple of some KiB apart, or nearly.
    """
    rows = min(box.row.extent, box.per_line)
    return _in_few_sets(abs(box.row.src), rows), _in_few_sets(abs(box.column.dst), rows)


def _in_few_sets(pitch: int, rows: int) -> float:
    """Rows at that pitch as a multiple of those whose lines are held, one line of each."""
    sets = SET_BYTES // LINE_BYTES
    apart = 1
    while apart <= SET_BYTES // LINE_BYTES:
        distance = min(pitch % (SET_BYTES // apart), -pitch % (SET_BYTES // apart))
        sets = min(sets, apart * max(1, rows * distance // LINE_BYTES))
        apart *= 2
    return rows / (machine().first_cache_ways * sets)


def shares_sets(box: StridedBox, distance: int) -> bool:
    """Whether the rows of either side are a multiple of a distance apart."""
    return any(pitch % distance == 0 for pitch in (box.row.src, box.column.dst))


FAR_PREFETCH_BYTES = 2 * LINE_BYTES
"""Prefetch distance in the 64 rows of a block of bytes, which are more than the hardware prefetcher tracks.
It makes transposes from memory into cache 1.5 times as fast (Zen 5, 2026-11)."""

CARRIED_PREFETCH_BYTES, CARRIED_STRIP_BYTES = 512, 1 << 12
"""Prefetch distance along the source rows of carried blocks in tiles of at least that many bytes.

Narrower ones request the next tile, which runs at 0.6 to 0.96 of memcpy instead of 0.45 to 0.84 (source rows
of 600 to 3,200 bytes, u8 to u64, Zen 4, 2026-11). The others gain 1.1 times by the distance (66 MB)."""

TRIPS_PER_THREAD = 8
"""Trips of the parallel loop for each thread, so that shares are about even."""


def _with_loops(box: StridedBox, cut: Schedule, others: list[Axis], threads: int) -> Schedule:
    """The cut with its loops around blocks, and the order of the blocks.

    Past the cache, loops are sorted by the distance between their iterations in the source, so that the next
    tile mostly follows in memory. In cache, tiles are innermost, so that few kernels serve all shapes. If the
    first loop has too few iterations for all threads, the one with most comes first. Where long rows are
    staged or carried, the tiles of rows follow each other: the bytes after the last full line of a result row
    wait in scratch for the next tile.
    """
    (rows, columns), steps = cut.counts(box.extents), _steps(others)
    (row, *_), across = cut.tiles("row"), cut.tiles("column")[:1]
    for x in across:
        wide = columns if cut.short else int_size(x.size)
        steps[x.index] = wide * box.source_width, -(-columns // wide)
    if cut.stream and not cut.short:
        wide = min(cut.tile(box.extents)[1], columns) * box.source_width
        is_wide = cut.carried and wide >= CARRIED_STRIP_BYTES
        cut = cut.changed(Prefetch("column", CARRIED_PREFETCH_BYTES) if is_wide else Prefetch("tile", 1))
    if cut.staged or cut.carried:
        outer = *_in_order(steps, threads), row.index
        return in_blocks(cut, outer, along_rows=cut.lanes["row"] < box.per_line)
    tall = int_size(row.size)
    steps[row.index] = _row_step(tuple(map(box.axis, cut.rows)), tall), -(-rows // tall)
    innermost = () if cut.stream else (row.index, *(x.index for x in across))
    along_rows, wide_blocks = _runs_along_rows(box, cut), _has_wide_blocks(box, cut)
    diagonal = wide_blocks and not cut.stream and not along_rows
    diagonal = diagonal and (box.width >= WIDE_BYTES or shares_sets(box, SHARING_BYTES))
    if along_rows and wide_blocks and box.source_width == box.width:
        cut = cut.changed(Prefetch("column", FAR_PREFETCH_BYTES))
    return in_blocks(cut, _in_order(steps, threads, innermost), along_rows=along_rows, diagonal=diagonal)


def in_blocks(
    cut: Schedule, outer: tuple[str, ...], *, along_rows: bool = False, diagonal: bool = False
) -> Schedule:
    """The cut with blocks down the columns first, along the rows first, or diagonally, inside outer loops.

    Diagonals change both rows and columns with each block.
    """
    down = ("row", "column") if along_rows else ("column", "row")
    inner = [x for axis in down for x in cut.tiles(axis)[1:]]
    order = Reorder((*outer, *(x.index for x in inner), *(("row",) if cut.short else down)))
    return cut.changed(order, *[Diagonal()] * diagonal, without=(Diagonal,))


def _with_loops_of_rows(box: StridedBox, cut: Schedule, others: list[Axis], threads: int) -> Schedule:
    """The same for staged tiles of complete result rows; a loop over one tile is innermost.

    Each block requests the same block of the next tile. Compared to requests for each line that is stored,
    u8 with 33 and 200 rows and u32 with 60 rows are 1.5 times as fast, u64 with 5 rows 1.25 times. Batches of
    small matrices, such as u32 [4000,28,80] (0,2,1), take 1.1 to 1.25 times as long (Zen 3, 2026-11).
    """
    steps, (_, columns), (_, wide) = _steps(others), cut.counts(box.extents), cut.tile(box.extents)
    for x in cut.tiles("layer"):
        layers = box.axis(*cut.layers)
        steps[x.index] = abs(layers.src) * cut.together, -(-layers.extent // cut.together)
    tiles = -(-columns // wide)
    steps[cut.tiles("column")[0].index] = wide * box.source_width if tiles > 1 else 0, tiles
    requests = [Prefetch("tile", 1)] * (not cut.short)
    cut = cut.changed(Stage(separate=machine().registers < MANY_REGISTERS), *requests)
    return in_blocks(cut, (*_in_order(steps, threads), *(x.axis for x in cut.tiles("layer"))))


def _in_tiles(box: StridedBox, cut: Schedule, rows: int, columns: int) -> Schedule:
    """The cut in tiles of the caller's size, as far as the cache holds them; those of joined digits stay."""
    side = box.per_line
    if cut.stages_rows:
        most = STAGED_BYTES // (cut.counts(box.extents)[0] * box.width) // side
        tile = Tile("column", min(-(-columns // side), max(most, 1)) * side)
        return cut if len(cut.columns) > 1 or cut.layers else cut.changed(tile)
    if cut.staged:
        rows, columns = min(rows, MOST_STAGED_LINES * side), min(columns, STAGED_COLUMNS)
    return cut.changed(Tile("row", rows), Tile("column", columns))


def _steps(others: list[Axis]) -> dict[str, tuple[int, int]]:
    """Source bytes from one iteration to the next, and iterations, of each axis."""
    return {x.name: (abs(x.src), x.extent) for x in others}


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


def _runs_along_rows(box: StridedBox, cut: Schedule) -> bool:
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
    wide = _has_wide_blocks(box, cut)
    if cut.short or (cut.stream and wide):
        return False
    if cut.stream and box.width >= WIDE_BYTES and not shares_sets(box, SHARING_BYTES):
        return False
    if cut.stream and 1 < box.width < WIDE_BYTES and _single_lines_wait(box, cut):
        return False
    if not wide and box.width > 1 and _nearly_shares_sets(box):
        return False
    return not wide or (box.width <= 2 and not box.converts)


def _has_wide_blocks(box: StridedBox, cut: Schedule) -> bool:
    """Whether blocks have lines of both sides."""
    return min(cut.lanes.values()) == box.per_line


def _single_lines_wait(box: StridedBox, cut: Schedule) -> bool:
    """Whether result rows share cache sets, and the first cache holds a line of each source row of a tile."""
    sets = SET_BYTES // max(gcd(box.row.src, SET_BYTES), LINE_BYTES)
    return box.column.dst % ALIAS_BYTES == 0 and sets * machine().first_cache_ways >= cut.tile(box.extents)[0]


def _nearly_shares_sets(box: StridedBox) -> bool:
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
