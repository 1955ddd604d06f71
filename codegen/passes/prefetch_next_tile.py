"""Prefetch the source of the next tile of a transpose while lines of this one are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import greatest, let, minus, plus, quotient, times
from codegen.ir.nodes import Blocks, For, Function, Let, Prefetch, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.lower_copies.blocks import block_of, read_block
from codegen.passes.lower_copies.lowered import sides_of
from codegen.passes.lower_copies.tile_loops import next_tile, tile_loops
from codegen.passes.panel_requests import request_next_panel
from codegen.passes.row_buffers import Ahead, prefetch_in_drain
from codegen.schedule.transfer_loops import int_size
from codegen.schedule.transfers import Moves, TransferNest


def prefetch_next_tile(function: Function, nest: TransferNest) -> Function:
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


def _in_tile(node: For, nest: TransferNest) -> For:
    """The innermost loop over tiles, whose body requests the next one."""
    t, src = nest.transfer, sides_of(nest).src
    assert isinstance(t, Moves), "tiles are those of moves"

    def with_requests(node: Statement) -> Body:
        match node:
            case For(blocks=Blocks(ahead="runs")):
                return request_next_panel(t, node)
            case For(blocks=Blocks(ahead="rows")):
                return _drained_row(t, node)
            case For() if not t.staged:
                return (_block(t, node),)
        return (node,)

    first = len(tile_loops(t)[-1].before)
    body = *node.body[:first], next_tile(t, src), *rewrite_body(node.body[first:], with_requests)
    return replace(node, body=body)


def _block(moves: Moves, node: For) -> For:
    """Each block that is stored requests the same block of the next tile."""
    if not any(isinstance(x, Store) and x.streamed for x in node.body):
        return node
    row, column = (minus(axis, moves.tiles(axis)[0].index) for axis in ("row", "column"))
    if moves.axis("row").src_table:
        row = plus("next_row", greatest(row, 0))  # a last block may begin before its tile, not the table
    return replace(node, body=(*node.body, Prefetch(read_block(block_of(moves), "next_tile", row, column))))


def _drained_row(moves: Moves, node: For) -> Body:
    """Each line that leaves the panel requests a line of the next tile, counting its elements by rows."""
    b, rows = block_of(moves), int_size(moves.tiles("row")[0].size)
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
