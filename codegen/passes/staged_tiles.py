"""Tiles of a transpose that go through a panel in cache, from which full lines are streamed."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, times
from codegen.ir.nodes import Blocks, For, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.lower_copies.blocks import element_row
from codegen.passes.row_buffers import drain_row
from codegen.schedule.directives import LanesBeyond
from codegen.schedule.transfers import Moves

TILE = "panel_tile"
"""The view of the panel that is indexed as the destination is: its rows are columns."""


def staged_tiles(node: For, moves: Moves, dst: str) -> Body:
    """One tile: its blocks are stored in the panel instead, then each result row goes out in lines.

    before:  for column, row in blocks:    dst[column, row] = transposed(src[row, column] [16, 16])  {staged}
    after:   for column, row in blocks:    panel[column, row] = transposed(src[row, column] [16, 16])
             for column in column_first..column_stop:
               for x in lines of a column: dst[column, x] = panel[column, x] [64] @streamed

    The bytes after the last line wait in front of the panel's row, for the lines of the next tile of rows.
    """
    (first, stop), width = _columns(moves), moves.target.bits // 8
    before: tuple[Statement, ...] = ()
    if not moves.obeying(LanesBeyond):
        (tile, *_), latest = moves.tiles("column"), minus(moves.axis("column").extent, moves.lanes["column"])
        before = (let("column_first", least(tile.index, latest)),)
    row = moves.tiles("row")[0].index
    size = let("row_bytes", times(minus("row_stop", row), width))
    origin = plus(times(first, -moves.panel_pitch), times(row, -width))
    drain = loop("column", first, stop, *_drained(moves, dst), blocks=Blocks(ahead="rows"))
    return (*before, View(TILE, "panel", origin), _fill(node, moves, dst), size, drain)


def _fill(node: For, moves: Moves, dst: str) -> For:
    """The loop over the blocks of a tile, which stores them in the panel.

    dst[column_dst*column + width*row] -> panel[panel_pitch*column + width*row]
    """
    pitch, column = moves.panel_pitch, 0 if moves.obeying(LanesBeyond) else "column"

    def into_panel(statement: Statement) -> Body:
        match statement:
            case Store(array, steps=(_, width)) if array == dst:
                where = plus(times(column, pitch), times("row", moves.target.bits // 8))
                return (replace(statement, array=TILE, subscripts=(where,), steps=(pitch, width)),)
            case Let(_, Load(array)) if array == moves.axis("column").table_name:
                return ()
            case View(_, buffer) if buffer == dst:
                return (replace(statement, buffer=TILE, offset=times("column", pitch)),)
        return (statement,)

    blocks = node.blocks or Blocks()
    narrower = tuple(replace(x, body=rewrite_body(x.body, into_panel)) for x in blocks.narrower)
    blocks = replace(blocks, narrower=narrower, staged=False)
    return replace(node, body=rewrite_body(node.body, into_panel), blocks=blocks)


def _columns(moves: Moves) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    if moves.obeying(LanesBeyond):
        return 0, moves.axis("column").extent
    return "column_first", "column_stop"


def _drained(moves: Moves, dst: str) -> tuple[Statement, ...]:
    """Store the tile's part of a result row."""
    held = View("held", "panel", times(minus("column", _columns(moves)[0]), moves.panel_pitch), opaque=True)
    result = element_row("dst_row", dst, moves.axis("column"), "dst", index_of("column"))
    row = moves.tiles("row")[0].index
    at = View("out", "dst_row", times(row, moves.target.bits // 8), opaque=True)
    ends = compare(row, "eq", 0), compare("row_stop", "eq", moves.axis("row").extent)
    return *result, at, held, *drain_row("out", "held", "row_bytes", *ends)
