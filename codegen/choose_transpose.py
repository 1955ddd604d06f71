"""Pick the schedule of a copy whose sides are contiguous along different digits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

from codegen.ir import LoopNest, refs
from codegen.passes.normalise import int_size
from codegen.schedule import Schedule, TransposeSchedule
from codegen.tiles import LINE_BYTES

LANE_BYTES = 16

MOST_JOINED = 1 << 14
"""Rows or columns that one table lists: 128 KiB."""

TILE_LINES = 6
"""Lines each way of a tile that is stored at its places."""

SHARED_SETS = {1: (6, 6), 2: (2, 12), 4: (6, 6), 8: (2, 6), 16: (2, 6)}
"""The same where source rows share sets of the cache, by the bytes of an element: rows, columns."""

ALIAS_BYTES = 2048
"""Rows whose distance is a multiple of this share sets of the first cache, which has few ways for them."""

FAR_BYTES = 1 << 17
"""From this distance on between source rows a tile has half as many: each row is a page of its own."""

PANEL_COLUMNS = {1: 2048, 2: 4096, 4: 2048, 8: 1024, 16: 512}
"""Columns of a panel that is staged by long result rows, by the bytes of an element: long panels beat square
ones, as far as the buffer stays in the second cache."""

DENSE_BYTES = 1 << 17
"""A panel that is staged by short result rows."""

PADDED_COLUMNS = 1 << 13
"""Columns of such a panel where each has lines of its own in it: a MiB."""

LONG_ROW_BYTES = 2048
"""Result rows from this length on are staged one by one: what they lose at both ends is a line in 32."""


SHORT_SOURCE_BYTES = 512
"""Source runs below this make too little of a panel of two lines a result row."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop of the nest, strides in bytes."""

    axis: str
    extent: int
    src: int
    dst: int


def transpose_schedule(nest: LoopNest, *, stream: bool, threads: int) -> Schedule | None:
    """The schedule where registers can be filled, or None where both contiguous digits are too short."""
    walks, width, source_width = _walks(nest), *_widths(nest)
    row = next(w for w in walks if w.dst == width)
    column = next(w for w in walks if w.src == source_width)
    found = None
    if stream:
        found = _direct(walks, row, column, width, source_width)
    if found is None:
        found = (
            _staged(walks, row, column, width, source_width)
            if stream
            else _plain(walks, row, column, width, source_width)
        )
    if found is None:
        return None
    taken = (*found.rows, *found.columns)
    others = sorted((w for w in walks if w.axis not in taken), key=lambda w: -abs(w.src))
    if threads > 1:
        found = _shared(found, walks, others, threads, LINE_BYTES // width)
    return Schedule("transpose", tuple(w.axis for w in others), (), transpose=found)


def misaligned(schedule: Schedule, nest: LoopNest) -> Schedule | None:
    """What to do instead where the destination does not begin on a line; None where it does not matter."""
    cut = schedule.transpose
    if cut is None or cut.stage or not cut.stream:
        return None
    walks, width, source_width = _walks(nest), *_widths(nest)
    row = next(w for w in walks if w.dst == width)
    column = next(w for w in walks if w.src == source_width)
    found = _staged(walks, row, column, width, source_width)
    if found is None:
        return replace(schedule, transpose=replace(cut, stream=False))
    taken = (*found.rows, *found.columns)
    others = sorted((w for w in walks if w.axis not in taken), key=lambda w: -abs(w.src))
    return replace(schedule, outer=tuple(w.axis for w in others), transpose=found)


def _walks(nest: LoopNest) -> list[Walk]:
    src, dst = refs(nest.innermost)
    if src is None:
        raise AssertionError("a transpose has a source")
    return [
        Walk(x.axis, int_size(x.extent), int_size(src.stride(x.axis)), int_size(dst.stride(x.axis)))
        for x in nest.loops
    ]


def _widths(nest: LoopNest) -> tuple[int, int]:
    return nest.buffer("dst").element.bits // 8, nest.buffer("src").element.bits // 8


def _chain(walks: list[Walk], first: Walk, side: str, width: int, without: tuple[Walk, ...]) -> list[Walk]:
    """The digits that follow each other without a hole on one side, most minor first."""
    chain, total = [first], first.extent
    while total <= MOST_JOINED:
        following = [
            w for w in walks if getattr(w, side) == total * width and w not in without and w not in chain
        ]
        if not following or total * following[0].extent > MOST_JOINED:
            break
        chain.append(following[0])
        total *= following[0].extent
    return chain


def _prefixes(chain: list[Walk]) -> list[tuple[Walk, ...]]:
    return [tuple(chain[: k + 1]) for k in range(len(chain))]


def _size(walks: tuple[Walk, ...] | list[Walk]) -> int:
    return prod(w.extent for w in walks)


def _block(columns: int, source_width: int) -> str:
    if columns * source_width >= LINE_BYTES:
        return "line"
    return "lane" if columns * source_width >= LANE_BYTES else "element"


def _filled(count: int, block: int) -> float:
    """The share of whole blocks that elements fill."""
    return count / (-(-count // block) * block)


def _direct(
    walks: list[Walk], row: Walk, column: Walk, width: int, source_width: int
) -> TransposeSchedule | None:
    """Lines stored past the cache at their places: all result rows must be whole lines that begin on one."""
    side, best = LINE_BYTES // width, None
    for rows in _prefixes(_chain(walks, row, "dst", width, (column,))):
        r = _size(rows)
        if r % side or any(w.dst % LINE_BYTES for w in walks if w not in rows):
            continue
        columns = tuple(_chain(walks, column, "src", source_width, rows))
        for k, c in enumerate(accumulate((w.extent for w in columns), int.__mul__)):
            if c >= TILE_LINES * side:
                columns = columns[: k + 1]
                break
        c, wide = _size(columns), TILE_LINES * side
        if c * source_width < LINE_BYTES or (len(rows) > 1 and c < 2 * side):
            continue
        score = min(r, 2 * side) / 2 / side * (0.8 + 0.2 * min(r, 3 * side) / 3 / side)
        score *= min(c, wide) / wide * _filled(c, side)
        key = score, -len(rows)
        if best is None or key > best[0]:
            down, across = TILE_LINES // 2 if abs(row.src) >= FAR_BYTES else TILE_LINES, TILE_LINES
            block = "lane"
            if row.src % ALIAS_BYTES == 0:
                (down, across), block = SHARED_SETS[width], "line"
            tile = down * side, across * side
            best = key, TransposeSchedule(_axes(rows), _axes(columns), tile, "", True, block)
    return best[1] if best else None


def _staged(
    walks: list[Walk], row: Walk, column: Walk, width: int, source_width: int
) -> TransposeSchedule | None:
    rows = tuple(_chain(walks, row, "dst", width, (column,)))
    columns = tuple(_chain(walks, column, "src", source_width, rows))
    r, c = _size(rows), _size(columns)
    block = _block(c, source_width)
    if block == "element":
        return None
    if r * width >= LONG_ROW_BYTES and c * source_width >= SHORT_SOURCE_BYTES:
        tile = (r, PANEL_COLUMNS[width])
        return TransposeSchedule(_axes(rows), _axes(columns), tile, "rows", True, block)
    return _dense(rows, columns, width, source_width, stream=True)


def _dense(
    rows: tuple[Walk, ...], columns: tuple[Walk, ...], width: int, source_width: int, *, stream: bool
) -> TransposeSchedule | None:
    """Panels of whole column digits, as many as fit, or pieces of the first; None where that is too short."""
    run = _size(rows) * width
    most = max(DENSE_BYTES // run, LINE_BYTES // source_width)
    if columns[0].dst != run:
        most = min(most, PADDED_COLUMNS)
    kept = 1
    while kept < len(columns) and _size(columns[: kept + 1]) <= most:
        kept += 1
    columns = columns[:kept]
    side, block = LINE_BYTES // source_width, _block(_size(columns), source_width)
    if block == "element":
        return None
    wide = _size(columns) if kept > 1 else max(most // side * side, side)
    return TransposeSchedule(
        _axes(rows),
        _axes(columns),
        (_size(rows), wide),
        "dense",
        stream,
        block,
    )


def _plain(
    walks: list[Walk], row: Walk, column: Walk, width: int, source_width: int
) -> TransposeSchedule | None:
    """Blocks stored at their places; rows shorter than a line are staged."""
    side, best = LINE_BYTES // width, None
    for rows in _prefixes(_chain(walks, row, "dst", width, (column,))):
        columns = tuple(_chain(walks, column, "src", source_width, rows))
        r, c = _size(rows), _size(columns)
        key = _filled(r, side) * _filled(c, side if c >= side else max(side // 4, 1)), -len(rows)
        if best is None or key > best[0]:
            best = key, rows, columns
    if best is None:
        return None
    _, rows, columns = best
    r, block = _size(rows), _block(_size(columns), source_width)
    if block == "element":
        return None
    if r < side:
        return _dense(rows, columns, width, source_width, stream=False)
    return TransposeSchedule(
        _axes(rows), _axes(columns), (TILE_LINES * side, TILE_LINES * side), "", False, block
    )


def _shared(
    found: TransposeSchedule, walks: list[Walk], others: list[Walk], threads: int, side: int
) -> TransposeSchedule:
    """Narrower tiles where there would be too few for all threads."""
    extents = {w.axis: w.extent for w in walks}
    rows, columns = (prod(extents[a] for a in axes) for axes in (found.rows, found.columns))
    tiles = _size(others) * -(-rows // found.tile[0]) * -(-columns // found.tile[1])
    if tiles >= 4 * threads or len(found.columns) > 1:
        return found
    wanted = -(-columns * tiles // (4 * threads * -(-columns // found.tile[1])))
    return replace(found, tile=(found.tile[0], max(-(-wanted // side) * side, side)))


def _axes(walks: tuple[Walk, ...]) -> tuple[str, ...]:
    return tuple(w.axis for w in walks)
