"""Tiles of a transpose that go through a panel in cache, from which full lines are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, least, let, loop, minus, plus, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, For, Function, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.ir.values import Load
from codegen.passes.panel_requests import before_requests, columns_of, requesting_rows
from codegen.passes.panel_runs import drained_runs, run_sizes
from codegen.passes.row_buffers import drained
from codegen.passes.scalar_statement import offset_along
from codegen.passes.sides import sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import OffsetTable

TILE = "panel_tile"
"""The view of the panel that is indexed as the destination is: its rows are columns."""


def stage_tiles(function: Function, nest: CopyNest) -> Function:
    """Store the elements of each tile in a panel instead, then store each result row in lines.

    before:  for column, row in a tile:    dst[column, row] = src[row, column]
    after:   for column, row in a tile:    panel[column, row] = src[row, column]
             for column in column_first..column_stop:
               for x in lines of a column: dst[column, x] = panel[column, x] [64] @streamed

    The bytes after the last line wait in front of the panel's row, for the lines of the next tile of rows.

    Short result rows are in a tile as a whole, and leave it in runs of contiguous columns: see `panel_runs`.
    Blocks of `vectorize_axes` may have more rows than they have elements. The extra bytes land in the next
    column of the panel, and are overwritten with that column.
    """
    dst, first_inner = sides_of(nest).dst, nest.order[len(nest.outer)]

    def staged(node: Statement) -> Body:
        if isinstance(node, For) and node.index == first_inner:
            return _staged(node, nest, dst)
        return (node,)

    body = rewrite_body(function.body, staged)
    return replace(function, body=(*_panel(nest), *body))


def _panel(nest: CopyNest) -> Body:
    """The panel; one of long rows has a line in front, for the bytes that wait."""
    if nest.panel:
        row_bytes = let("row_bytes", times(nest.axis("row").extent, nest.target.bits // 8))
        return Alloc("panel", nest.scratch_bytes, "scratch"), row_bytes
    held = Alloc("panel_memory", nest.scratch_bytes, "scratch")
    return held, View("panel", held.name, index_of(LINE_BYTES))


def _staged(node: For, nest: CopyNest, dst: str) -> Body:
    """One tile: blocks go into the panel, and result rows out of it.

    Layers fill the panel one by one. Their view of the destination moves out of the loop, to the first one.
    """
    first, stop = columns_of(nest)
    before, filled = list[Statement](), _fill(node, nest, dst)
    if not nest.short:
        (tile, *_), latest = nest.tiles("column"), minus(nest.axis("column").extent, nest.lanes["column"])
        before.append(let("column_first", least(tile.first, latest)))
    if nest.panel is None:
        drain = loop("column", first, stop, *_drained(nest, dst))
        size = let("row_bytes", times(minus("row_stop", nest.tiles("row")[0].index), nest.target.bits // 8))
        return *before, View(TILE, "panel", _origin(nest)), *filled, size, *before_requests(nest), drain
    before += run_sizes(nest)
    view = View(TILE, "panel", _origin(nest))
    if node.index != "layer":
        return *before, view, *filled, *drained_runs(nest, dst)
    (tile,), (layers,) = nest.tiles("layer"), filled
    assert isinstance(layers, For), "layers fill the panel in a loop"
    at_layer = plus(view.offset, times(minus("layer", tile.first), "layer_bytes"))
    (result,) = (x for x in node.body if isinstance(x, View) and x.name == dst)
    body = (replace(view, offset=at_layer), *(x for x in layers.body if x != result))
    first_layer = substituted(result, "layer", index_symbol(tile.first))
    return *before, replace(layers, body=body), first_layer, *drained_runs(nest, dst)


def _origin(nest: CopyNest) -> Index:
    """Where the panel would begin if it held all rows and columns."""
    first, _ = columns_of(nest)
    if nest.panel is None:
        rows = times(nest.tiles("row")[0].index, -(nest.target.bits // 8))
        return plus(times(first, -nest.panel_pitch), rows)
    if isinstance(nest.panel.pitch, OffsetTable):  # it holds all columns
        return index_of(0)
    return times(times(first, -1), nest.panel.pitch)


def _fill(node: For, nest: CopyNest, dst: str) -> Body:
    """The scalar loops of a tile, which store their elements in the panel.

    dst[column_dst*column + width*row] -> panel[panel_pitch*column + width*row]
    """
    pitch = nest.panel.pitch if nest.panel else nest.panel_pitch
    held = Loop("panel", dst_table=pitch) if isinstance(pitch, OffsetTable) else Loop("panel", dst=pitch)
    before, column = offset_along(held, "dst", "column")
    to = plus(column, times("row", nest.target.bits // 8))

    def into_panel(statement: Statement) -> Body:
        match statement:
            case Store(array) if array == dst:
                return *before, replace(statement, array=TILE, subscripts=(to,))
            case Let(_, Load(array)) if array == nest.axis("column").table_name:
                return ()
        return (statement,)

    return rewrite_body((node,), into_panel)


def _drained(nest: CopyNest, dst: str) -> tuple[Statement, ...]:
    """Store the tile's part of a result row."""
    held = View("held", "panel", times(minus("column", columns_of(nest)[0]), nest.panel_pitch), opaque=True)
    before, offset = offset_along(nest.axis("column"), "dst", "column")
    result, row = View("dst_row", dst, offset), nest.tiles("row")[0].index
    at = View("out", "dst_row", times(row, nest.target.bits // 8), opaque=True)
    ends = compare(row, "eq", 0), compare("row_stop", "eq", nest.axis("row").extent)
    return requesting_rows(nest, (*before, result, at, held, *drained("out", "held", "row_bytes", ends)))
