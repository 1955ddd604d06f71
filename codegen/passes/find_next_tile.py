"""Find the next tile of a transpose, whose source is requested while this one is stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.sides import first_sides
from codegen.passes.tile_loops import next_tile, tile_loops
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import PrefetchTile


def find_next_tile(function: Function, nest: CopyNest) -> Function:
    """View the source where the next tile begins.

    before:  for row_tile in 0..rows step 96: for column_tile in 0..columns step 96: …
    after:   for row_tile in 0..rows step 96: for column_tile in 0..columns step 96:
               next_tile = src[row_tile, column_tile + 96] if column_stop < columns else src[row_tile + 96, 0]
               …

    Each block of `vectorize_axes` requests a block of it, and each line that leaves a panel requests a line.
    Tiles whose rows are shorter than a lane mostly follow each other, so hardware prefetches them.
    """
    if not nest.obeying(PrefetchTile):
        return function
    first, view = len(tile_loops(nest)[-1].before), next_tile(nest, first_sides(nest).src)

    def in_tiles(node: Statement) -> Body:
        if not isinstance(node, For) or node.index != nest.outer[-1]:
            return (node,)
        return (replace(node, body=(*node.body[:first], view, *node.body[first:])),)

    return replace(function, body=rewrite_body(function.body, in_tiles))
