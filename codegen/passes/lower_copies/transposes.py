"""Lower transposes: loops over tiles, and in each tile over register blocks."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, least, let, loop, minus, plus, times
from codegen.ir.index import Index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import (
    SCRATCH,
    Alloc,
    Blocks,
    Carried,
    Compare,
    For,
    If,
    IndexValue,
    Op,
    Prefetch,
    Statement,
    Store,
    View,
)
from codegen.passes.lower_copies.blocks import (
    CONVERTED,
    TILES,
    element_text,
    goes_through_scratch,
    other_loops,
    read_block,
    row_at,
    transposed_block,
)
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.passes.lower_copies.panels import TILE, in_panel, lower_panel
from codegen.passes.lower_copies.short_rows import OTHERS_OFFSET, lower_short_rows
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfers import COLUMN_TABLE, Loop, Size, TransposeTiles


def lower_transpose(transpose: TransposeTiles, sides: Sides) -> Lowered:
    """Loops over tiles; in each, blocks are loaded, transposed in registers and stored.

    before:  transpose dst <- src, rows x columns, tiles of 96x96 in blocks of 16x16
    after:   for i_tile in 0..rows step 96: for j_tile in 0..columns step 96:
               for j_block in j_tile..j_stop step 16: for i_block in i_tile..i_stop step 16:
                 dst[j, i] = transposed(src[i, j] [16, 16])

    A last block that would cross the edge begins earlier: i = min(i_block, rows - 16).
    """
    t = transpose
    body: tuple[Statement, ...] = (*_next_tile(t, sides), *_tile(t, _views(t, sides)))
    if other_loops(t):
        body = (*_opaque_views(t, sides), *body)
    for k, each in reversed(list(enumerate(t.loops))):
        body = (_loop(t, each, body, parallel=k == 0 and not sides.in_table),)
    tile, block = ("x".join(map(str, shape)) for shape in (t.tile, t.block))
    at = "".join(f"{x.axis}, " for x in t.loops if x.axis not in TILES)
    if t.lanes:
        tile, block = f"{t.tile[0]} rows", f"{block}, of which `columns` are stored"
    how = f"{'Panels' if t.staged else 'Tiles'} of {tile}, super-vectors of {block}"
    how += ", lines streamed" if t.stream else ""
    how += ", blocks at the end by elements" if t.lanes else ""
    how += "" if sides.in_table else f"; parallel over {TILES.get(t.loops[0].axis, (t.loops[0].axis,))[0]}"
    return Lowered(body, f"dst[{at}j, i] = {element_text(t, at)}", how, _prologue(t))


def _prologue(t: TransposeTiles) -> tuple[Statement, ...]:
    """The panel, and scratch for the rows of a block if conversions need it."""
    panel = (View("panel", SCRATCH, index_of(LINE_BYTES)),) if t.staged else ()
    if not goes_through_scratch(t):
        return panel
    return (*panel, Alloc(CONVERTED, t.block[0] * t.block[1] * t.width))


def _loop(t: TransposeTiles, around: Loop, body: tuple[Statement, ...], *, parallel: bool) -> For:
    """One loop of the nest; a parallel one runs from `begin` to `end`, which count its iterations."""
    if around.axis not in TILES:
        first, last = ("begin", "end") if parallel else (0, around.extent)
        return loop(around.axis, first, last, *body)
    index, side = TILES[around.axis]
    size, count = t.tile[side], (t.rows, t.columns)[side]
    stop = let(f"{index}_stop", least(plus(f"{index}_tile", size), count))
    if parallel:
        ends = times("begin", size), least(times("end", size), count)
    else:
        ends = index_of(0), index_of(count)
    return loop(f"{index}_tile", *ends, stop, *body, step=size)


def _others(t: TransposeTiles, side: str) -> Index:
    """The offset of the digits that are neither rows nor columns."""
    strides = {x.axis: x.src if side == "src" else x.dst for x in other_loops(t)}
    return plus(*(times(axis, stride) for axis, stride in strides.items()))


def _opaque_views(t: TransposeTiles, sides: Sides) -> tuple[Statement, ...]:
    """Both sides at this iteration of the loops over other digits."""
    src, dst = _others(t, "src"), _others(t, "dst")
    offset: tuple[Statement, ...] = ()
    if t.lanes:
        offset, src = (let(OTHERS_OFFSET, src),), index_of(OTHERS_OFFSET)
    views = View("src_tile", sides.src, src, opaque=True), View("dst_tile", sides.dst, dst, opaque=True)
    return (*offset, *views)


def _views(t: TransposeTiles, sides: Sides) -> tuple[str, str]:
    """The names of destination and source inside all loops."""
    return ("dst_tile", "src_tile") if other_loops(t) else (sides.dst, sides.src)


def _tile(t: TransposeTiles, views: tuple[str, str]) -> tuple[Statement, ...]:
    """What moves one tile."""
    if t.staged:
        dst, src = views
        return lower_panel(t, _tile(in_panel(t), (TILE, src)), dst)
    return lower_short_rows(t, t.lanes, *views) if t.lanes else _blocks(t, views)


def _blocks(t: TransposeTiles, views: tuple[str, str]) -> tuple[Statement, ...]:
    """The blocks of a tile, in the schedule's order."""
    rows, columns = t.block
    body: tuple[Statement, ...] = _block(t, views)

    def over(index: str, size: int, count: Size, *inside: Statement) -> For:
        """The loop over blocks of one side."""
        blocks = Blocks(latest=minus(count, size))
        return loop(index, f"{index}_tile", f"{index}_stop", *inside, step=size, blocks=blocks)

    if t.order == "rows":
        return (over("i", rows, t.rows, over("j", columns, t.columns, *body)),)
    if t.order == "columns":
        return (over("j", columns, t.columns, over("i", rows, t.rows, *body)),)
    j = let("j", least("j_block", minus(t.columns, columns)))
    down = over("i", rows, t.rows, j, *body)
    return (loop("diagonal", "j_tile", "j_stop", _wrapping(down, columns), step=columns),)


def _wrapping(down: For, columns: int) -> For:
    """The loop over rows of blocks, which moves on by one column of blocks each time, around the tile.

    Blocks of one row, and blocks of one column, share cache sets at many pitches.
    """
    following = plus("j_block", columns)
    inside = Op("lt", (IndexValue(following), IndexValue(index_of("j_stop"))), "i1")
    wrapped = Op("select", (inside, IndexValue(following), IndexValue(index_of("j_tile"))), "i64")
    carried = Carried("j_block", IndexValue(index_of("diagonal")), wrapped)
    return replace(down, carried=(carried,))


def _block(t: TransposeTiles, views: tuple[str, str]) -> tuple[Statement, ...]:
    """block = src[i, j] [R, C]; dst[j, i] = transposed(block)"""
    dst, src = views
    block, value = transposed_block(t, src)
    at, step = row_at(t.column_step, COLUMN_TABLE, index_of("j"))
    store = Store(dst, (plus(at, times("i", t.width)),), value, (0, 0), (step, t.width), streamed=t.stream)
    ahead: tuple[Statement, ...] = ()
    if t.stream:
        i, j = (minus(x, f"{x}_tile") for x in "ij")
        i = plus("next_i", i) if isinstance(t.row_step, OffsetTable) else i
        ahead = (Prefetch(read_block(t, "next_tile", i, j)),)
    elif t.prefetch_bytes:
        later = plus("j", t.prefetch_bytes // t.source_width)
        ahead = (Prefetch(read_block(t, src, index_of("i"), later)),)
    return (*block, store, *ahead)


def _next_tile(t: TransposeTiles, sides: Sides) -> tuple[Statement, ...]:
    """Where the next tile begins, whose lines are requested while this one is stored.

    The innermost loop moves on, or begins again while the one around it moves on.
    """
    if not t.stream or t.lanes:
        return ()
    inner = t.loops[-1]
    if len(t.loops) == 1:
        return _begins(t, sides, {})
    again = _begins(t, sides, {t.loops[-2].axis: 1, inner.axis: 0})
    return (If((_has_next(t, inner),), _begins(t, sides, {inner.axis: 1}), again),)


def _has_next(t: TransposeTiles, around: Loop) -> Compare:
    if around.axis in TILES:
        index, side = TILES[around.axis]
        return compare(f"{index}_stop", "lt", (t.rows, t.columns)[side])
    return compare(plus(around.axis, 1), "lt", around.extent)


def _begins(t: TransposeTiles, sides: Sides, moved: dict[str, int]) -> tuple[Statement, ...]:
    """The first element of a tile; `moved` is 1 for a loop that moves on, 0 for one that begins again.

    With a table of rows, the first row is an index into it, and not in the address.
    """

    def first(axis: str) -> Index:
        index, side = TILES.get(axis, (axis, 0))
        here = f"{index}_tile" if axis in TILES else index
        step = t.tile[side] if axis in TILES else 1
        return index_of(0) if moved.get(axis) == 0 else plus(here, step if moved.get(axis) else 0)

    offset = times(first("columns"), t.source_width)
    for x in t.loops:
        if x.axis not in TILES:
            offset = plus(offset, times(first(x.axis), x.src))
    if isinstance(t.row_step, OffsetTable):
        return (let("next_i", first("rows")), View("next_tile", sides.src, offset))
    return (View("next_tile", sides.src, plus(offset, times(first("rows"), t.row_step))),)
