"""Prefetch the source of the next tile of a transpose while lines of this one are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import greatest, let, minus, plus, quotient, times
from codegen.ir.nodes import Blocks, For, Function, Let, Prefetch, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.lower_copies.blocks import read_block
from codegen.passes.lower_copies.lowered import sides_of
from codegen.passes.lower_copies.tile_loops import next_tile, tile_loops
from codegen.passes.panel_requests import request_next_panel
from codegen.passes.row_buffers import Ahead, prefetch_in_drain
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfers import ROW_TABLE, TransferNest
from codegen.schedule.transposes import Transpose, TransposeRuns, TransposeTiles


def prefetch_next_tile(function: Function, nest: TransferNest) -> Function:
    """Request a part of the next tile for each block, or for each line, that leaves the cache.

    before:  for i_tile in 0..rows step 96: for j_tile in 0..columns step 96:      {ahead = tile}
               for j in j_tile..j_stop step 16: for i in i_tile..i_stop step 16:
                 dst[j, i] = transposed(src[i, j] [16, 16]) streamed
    after:   for i_tile in 0..rows step 96: for j_tile in 0..columns step 96:
               next_tile = src[i_tile, j_tile + 96] if j_stop < columns else src[i_tile + 96, 0]
               for j in j_tile..j_stop step 16: for i in i_tile..i_stop step 16:
                 dst[j, i] = transposed(src[i, j] [16, 16]) streamed
                 prefetch next_tile[i - i_tile, j - j_tile] [16, 16]

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
    assert isinstance(t, Transpose), "tiles are those of transposes"

    def with_requests(node: Statement) -> Body:
        match node:
            case For(blocks=Blocks(ahead="runs")) if isinstance(t, TransposeRuns):
                return request_next_panel(t, node)
            case For(blocks=Blocks(ahead="rows")) if isinstance(t, TransposeTiles):
                return _drained_row(t, node)
            case For() if isinstance(t, TransposeTiles) and not t.staged:
                return (_block(t, node),)
        return (node,)

    first = len(tile_loops(t)[-1].before)
    body = *node.body[:first], next_tile(t, src), *rewrite_body(node.body[first:], with_requests)
    return replace(node, body=body)


def _block(t: TransposeTiles, node: For) -> For:
    """Each block that is stored requests the same block of the next tile."""
    if not any(isinstance(x, Store) and x.streamed for x in node.body):
        return node
    i, j = (minus(x, f"{x}_{t.outer.index}") for x in "ij")
    if isinstance(t.row_step, OffsetTable):
        i = plus("next_i", greatest(i, 0))  # a last block may begin before its tile, not before the table
    return replace(node, body=(*node.body, Prefetch(read_block(t, "next_tile", i, j))))


def _drained_row(t: TransposeTiles, node: For) -> Body:
    """Each line that leaves the panel requests a line of the next tile, counting its elements by rows."""
    rows, _ = t.tile
    columns = let("tile_columns", minus("j_stop", "j_first"))
    number = let("element", times(minus("j", "j_first"), rows))
    row = let("ahead_row", quotient("element", "tile_columns"))
    column = let("ahead_column", minus("element", times("ahead_row", "tile_columns")))
    at, before = times("ahead_column", t.source_width), [number, row, column]
    if isinstance(t.row_step, OffsetTable):
        before.append(Let("ahead_offset", Load(ROW_TABLE, (plus("next_i", "ahead_row"),), "i64")))
        at = plus("ahead_offset", at)
    else:
        at = plus(times("ahead_row", t.row_step), at)
    ahead = Ahead("next_tile", at, (t.source_width, t.width), rows * t.source_width, opaque=False)
    return columns, replace(node, body=(*before, *prefetch_in_drain(node.body, ahead)))
