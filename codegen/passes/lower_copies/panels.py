"""Lower staged transposes: a tile goes through a panel in cache, from which full lines are streamed."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.index import Index
from codegen.ir.nodes import Let, Load, Statement, View
from codegen.passes.lower_copies.blocks import element_row
from codegen.passes.lower_copies.row_buffers import Ahead, drain_row
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfers import COLUMN_TABLE, ROW_TABLE, TransposeTiles

TILE = "panel_tile"
"""The view of the panel that is indexed as the destination is: row j, element i."""


def in_panel(t: TransposeTiles) -> TransposeTiles:
    """The transpose of a tile into the panel, from `TILE` on."""
    return replace(t, column_step=t.panel_pitch, staged=False, stream=False)


def lower_panel(t: TransposeTiles, fill: tuple[Statement, ...], dst: str) -> tuple[Statement, ...]:
    """One tile: blocks are transposed into the panel, then each result row goes out in lines.

    after:   for j in blocks, i in blocks:  panel[j, i] = transposed(src[i, j] [16, 16])
             for j in j_first..j_stop:
               for x in lines of row j:     dst[j, x] = panel[j, x] [64] @streamed; prefetch the next tile

    The bytes after the last line wait in front of the panel's row, for the lines of the next tile of rows.

    `fill` transposes the tile of `in_panel`.
    """
    first, stop = _columns(t)
    before: tuple[Statement, ...] = ()
    if not t.lanes:
        before = (let("j_first", least("j_tile", minus(t.columns, t.block[1]))),)
    ahead = () if t.lanes else (let("tile_columns", minus("j_stop", "j_first")),)
    size = let("row_bytes", times(minus("i_stop", "i_tile"), t.width))
    origin = plus(times(first, -t.panel_pitch), times("i_tile", -t.width))
    drain = loop("j", first, stop, *_drained(t, dst))
    return (*before, View(TILE, "panel", origin), *fill, size, *ahead, drain)


def _columns(t: TransposeTiles) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    return (0, t.columns) if t.lanes else ("j_first", "j_stop")


def _drained(t: TransposeTiles, dst: str) -> tuple[Statement, ...]:
    """Store the tile's part of result row j."""
    held = View("held", "panel", times(minus("j", _columns(t)[0]), t.panel_pitch), opaque=True)
    row = element_row("dst_row", dst, t.column_step, COLUMN_TABLE, index_of("j"))
    at = View("out", "dst_row", times("i_tile", t.width), opaque=True)
    where, ahead = ((), None) if t.lanes else _ahead(t)
    ends = compare("i_tile", "eq", 0), compare("i_stop", "eq", t.rows)
    drained = drain_row("out", "held", "row_bytes", *ends, ahead)
    return *row, at, held, *where, *drained


def _ahead(t: TransposeTiles) -> tuple[tuple[Statement, ...], Ahead]:
    """For each line that goes out, request those of the next tile, whose elements are counted row by row."""
    rows, _ = t.tile
    number = let("element", times(minus("j", "j_first"), rows))
    row = let("ahead_row", quotient("element", "tile_columns"))
    column = let("ahead_column", minus("element", times("ahead_row", "tile_columns")))
    at: Index = times("ahead_column", t.source_width)
    before: tuple[Statement, ...] = (number, row, column)
    if isinstance(t.row_step, OffsetTable):
        offset = Let("ahead_offset", Load(ROW_TABLE, (plus("next_i", "ahead_row"),), "i64"))
        at, before = plus("ahead_offset", at), (*before, offset)
    else:
        at = plus(times("ahead_row", t.row_step), at)
    ratio, size = (t.source_width, t.width), rows * t.source_width
    return before, Ahead("next_tile", at, ratio, size, opaque=False)
