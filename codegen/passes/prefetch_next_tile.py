"""Prefetch the source of the next tile of a transpose while lines of this one are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import greatest, minus, plus
from codegen.ir.nodes import For, Function, Prefetch, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.sides import first_sides
from codegen.passes.tile_loops import next_tile, tile_loops
from codegen.passes.transposed_blocks import block_of, read_block
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import PrefetchTile


def prefetch_next_tile(function: Function, nest: CopyNest) -> Function:
    """Request a part of the next tile for each block, or for each line, that leaves the cache.

    before:  for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
                 dst[column, row] = transposed(src[row, column] [16, 16])
    after:   for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               next_tile = src[row_tile, column_tile + 96] if column_stop < columns else src[row_tile + 96, 0]
               for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
                 dst[column, row] = transposed(src[row, column] [16, 16])
                 prefetch next_tile[row - row_tile, column - column_tile] [16, 16]

    Tiles whose rows are shorter than a lane mostly follow each other, so hardware prefetches them.
    """
    if not nest.obeying(PrefetchTile):
        return function

    def in_tiles(node: Statement) -> Body:
        return (_in_tile(node, nest),) if isinstance(node, For) and node.index == nest.outer[-1] else (node,)

    return replace(function, body=rewrite_body(function.body, in_tiles))


def _in_tile(node: For, nest: CopyNest) -> For:
    """The innermost loop over tiles, whose body requests the next one."""

    def with_requests(node: Statement) -> Body:
        if isinstance(node, For) and node.blocks is not None and node.blocks.streamed:
            return (_block(nest, node),)
        return (node,)

    first = len(tile_loops(nest)[-1].before)
    view = next_tile(nest, first_sides(nest).src)
    body = *node.body[:first], view, *rewrite_body(node.body[first:], with_requests)
    return replace(node, body=body)


def _block(nest: CopyNest, node: For) -> For:
    """Each block that is streamed requests the same block of the next tile."""
    row, column = (minus(axis, nest.tiles(axis)[0].index) for axis in ("row", "column"))
    if nest.axis("row").src_table:
        row = plus("next_row", greatest(row, 0))  # a last block may begin before its tile, not the table
    return replace(node, body=(*node.body, Prefetch(read_block(block_of(nest), "next_tile", row, column))))
