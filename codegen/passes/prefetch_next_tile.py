"""Prefetch the source of the next tile of a transpose while lines of this one are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import greatest, let, minus, plus, quotient, times
from codegen.ir.nodes import Blocks, For, Function, Let, Prefetch, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.panel_requests import request_next_panel
from codegen.passes.row_buffers import Ahead, prefetch_in_drain
from codegen.passes.sides import first_sides
from codegen.passes.tile_loops import next_tile, tile_loops
from codegen.passes.transposed_blocks import block_of, read_block
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import int_size


def prefetch_next_tile(function: Function, nest: CopyNest) -> Function:
    """Request a part of the next tile for each block, or for each line, that leaves the cache.

    before:  for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:      {ahead = tile}
               for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
                 dst[column, row] = transposed(src[row, column] [16, 16]) streamed
    after:   for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               next_tile = src[row_tile, column_tile + 96] if column_stop < columns else src[row_tile + 96, 0]
               for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
                 dst[column, row] = transposed(src[row, column] [16, 16]) streamed
                 prefetch next_tile[row - row_tile, column - column_tile] [16, 16]

    Tiles whose rows are shorter than a lane mostly follow each other, so hardware prefetches them.
    """

    def in_tiles(node: Statement) -> Body:
        match node:
            case For(blocks=Blocks(ahead="tile")):
                return (_in_tile(node, nest),)
        return (node,)

    return replace(function, body=rewrite_body(function.body, in_tiles))


def _in_tile(node: For, nest: CopyNest) -> For:
    """The innermost loop over tiles, whose body requests the next one."""

    def with_requests(node: Statement) -> Body:
        match node:
            case For(blocks=Blocks(ahead="runs")):
                return request_next_panel(nest, node)
            case For(blocks=Blocks(ahead="rows")):
                return _drained_row(nest, node)
            case For() if not nest.staged:
                return (_block(nest, node),)
        return (node,)

    first = len(tile_loops(nest)[-1].before)
    body = (
        *node.body[:first],
        next_tile(nest, first_sides(nest).src),
        *rewrite_body(node.body[first:], with_requests),
    )
    return replace(node, body=body)


def _block(nest: CopyNest, node: For) -> For:
    """Each block that is stored requests the same block of the next tile."""
    if not any(isinstance(x, Store) and x.streamed for x in node.body):
        return node
    row, column = (minus(axis, nest.tiles(axis)[0].index) for axis in ("row", "column"))
    if nest.axis("row").src_table:
        row = plus("next_row", greatest(row, 0))  # a last block may begin before its tile, not the table
    return replace(node, body=(*node.body, Prefetch(read_block(block_of(nest), "next_tile", row, column))))


def _drained_row(nest: CopyNest, node: For) -> Body:
    """Each line that leaves the panel requests a line of the next tile, counting its elements by rows."""
    b, rows = block_of(nest), int_size(nest.tiles("row")[0].size)
    columns = let("tile_columns", minus("column_stop", "column_first"))
    number = let("element", times(minus("column", "column_first"), rows))
    row = let("ahead_row", quotient("element", "tile_columns"))
    column = let("ahead_column", minus("element", times("ahead_row", "tile_columns")))
    at, before = times("ahead_column", b.source_width), [number, row, column]
    if b.rows.src_table:
        entry = Load(b.rows.table_name, (plus("next_row", "ahead_row"),), "i64")
        before.append(Let("ahead_offset", entry))
        at = plus("ahead_offset", at)
    else:
        at = plus(times("ahead_row", b.rows.src), at)
    ahead = Ahead("next_tile", at, (b.source_width, b.width), rows * b.source_width, opaque=False)
    return columns, replace(node, body=(*before, *prefetch_in_drain(node.body, ahead)))
