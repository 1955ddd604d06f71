"""Tiles of a transpose that go through a panel in cache, from which full lines are streamed."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, times
from codegen.ir.nodes import Blocks, For, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.lower_copies.blocks import element_row
from codegen.passes.row_buffers import drain_row
from codegen.schedule.transfers import COLUMN_TABLE
from codegen.schedule.transposes import TransposeTiles

TILE = "panel_tile"
"""The view of the panel that is indexed as the destination is: row j, element i."""


def staged_tiles(node: For, t: TransposeTiles, dst: str) -> Body:
    """One tile: its blocks are stored in the panel instead, then each result row goes out in lines.

    before:  for j in blocks, i in blocks:  dst[j, i] = transposed(src[i, j] [16, 16])        {staged}
    after:   for j in blocks, i in blocks:  panel[j, i] = transposed(src[i, j] [16, 16])
             for j in j_first..j_stop:
               for x in lines of row j:     dst[j, x] = panel[j, x] [64] @streamed

    The bytes after the last line wait in front of the panel's row, for the lines of the next tile of rows.
    """
    first, stop = _columns(t)
    before: tuple[Statement, ...] = ()
    if not t.lanes:
        before = (let("j_first", least(f"j_{t.outer.index}", minus(t.columns, t.block[1]))),)
    i = f"i_{t.outer.index}"
    size = let("row_bytes", times(minus("i_stop", i), t.width))
    origin = plus(times(first, -t.panel_pitch), times(i, -t.width))
    drain = loop("j", first, stop, *_drained(t, dst), blocks=Blocks(ahead="rows"))
    return (*before, View(TILE, "panel", origin), _fill(node, t, dst), size, drain)


def _fill(node: For, t: TransposeTiles, dst: str) -> For:
    """The loop over the blocks of a tile, which stores them in the panel.

    dst[column_step*j + width*i] -> panel[panel_pitch*j + width*i]
    """

    def into_panel(statement: Statement) -> Body:
        match statement:
            case Store(array, steps=(_, width)) if array == dst:
                where = plus(times(0 if t.lanes else "j", t.panel_pitch), times("i", t.width))
                return (replace(statement, array=TILE, subscripts=(where,), steps=(t.panel_pitch, width)),)
            case Let(_, Load(array)) if array == COLUMN_TABLE:
                return ()
            case View(_, buffer) if buffer == dst:
                return (replace(statement, buffer=TILE, offset=times("j", t.panel_pitch)),)
        return (statement,)

    blocks = node.blocks or Blocks()
    narrower = tuple(replace(x, body=rewrite_body(x.body, into_panel)) for x in blocks.narrower)
    blocks = replace(blocks, narrower=narrower, staged=False)
    return replace(node, body=rewrite_body(node.body, into_panel), blocks=blocks)


def _columns(t: TransposeTiles) -> tuple[Term, Term]:
    """The first column of a tile, and the one after its last; a last block begins earlier."""
    return (0, t.columns) if t.lanes else ("j_first", "j_stop")


def _drained(t: TransposeTiles, dst: str) -> tuple[Statement, ...]:
    """Store the tile's part of result row j."""
    held = View("held", "panel", times(minus("j", _columns(t)[0]), t.panel_pitch), opaque=True)
    row = element_row("dst_row", dst, t.column_step, COLUMN_TABLE, index_of("j"))
    i = f"i_{t.outer.index}"
    at = View("out", "dst_row", times(i, t.width), opaque=True)
    ends = compare(i, "eq", 0), compare("i_stop", "eq", t.rows)
    return *row, at, held, *drain_row("out", "held", "row_bytes", *ends)
