"""Split loops over super-vectors of a copy into full ones and the tails that its directives name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from codegen.ir.blocks import Block, block_shape
from codegen.ir.building import Term, compare, greatest, index_of, least, let, loop, minus, plus
from codegen.ir.nodes import MANY, Call, Carried, For, Function, If, Statement, Store
from codegen.ir.rewriting import Body, in_sizes, resized, rewrite_body, substituted
from codegen.ir.values import IndexValue, Load, Op
from codegen.passes.fence_streams import streams
from codegen.passes.scalar_statement import moved_by_address
from codegen.passes.select_moves import selected
from codegen.passes.super_vectorize import runs_as_lanes, widened
from codegen.passes.tails import LEFT, Vectors, clamped, followed, obeyed
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import CopyBlock, Diagonal
from codegen.schedule.loops import LaneReads

EDGE_BLOCK: Block = "16x64"
"""The blocks of rows that are part of a line, where others are lines that bypass the cache."""

OTHERS_OFFSET = "others_offset"
"""The local that holds the source offset of the other digits."""


def peel_vectors(function: Function, nest: CopyNest) -> Function:
    """Run full super-vectors, then the tail, as the directives say.

    before:  for column in 0..columns step 32: for row in 0..2 step 2:
               dst[4*column + 2*row] = src[2*column + row_src*row] [32, 2]
    after:   if columns >= 32:
               for column in 0..columns - 32 step 32: dst[4*column] = src[2*column] [32, 2]
               the same at columns - 32
             elif columns >= 16: 16 at once, and again at columns - 16 if there are more
             …                                       Tail("column", "shift", sizes=(16, 8, 1))

    Two loops in tiles run as blocks: see `_blocks`. A loop that has fewer iterations than a super-vector runs
    narrower ones only, and one that has exactly as many as one of them becomes its body. A part of a
    super-vector stays a loop of one iteration.
    """

    def peeled(node: Statement) -> Body:
        if not runs_as_lanes(node, nest.lanes):
            return (node,)
        match node.body:
            case (For() as inside,) if nest.transposes:
                return _blocks(node, inside, nest)
        return _vectors(node, nest)

    return replace(function, body=rewrite_body(function.body, peeled))


def _vectors(node: For, nest: CopyNest) -> Body:
    """The outermost loop of a super-vector of one dimension of memory."""
    tail, single, full = nest.tail(node.index), in_sizes(node, 1, 0), Vectors(node.size, flattened(node.body))
    bodies = (full, *(_fewer(node, size) for size in (tail.sizes if tail else ())))
    if any(
        prod(x.value.shape) > prod(nest.lanes.values()) for x in selected(full.body) if isinstance(x, Store)
    ):
        return followed(single, bodies, 1)  # the last one also stores lanes after those of its iterations
    made = obeyed(single, bodies, tail)
    for long in nest.obeying(CopyBlock) if node.most == MANY else ():
        (store,) = node.body
        assert isinstance(store, Store), "the bytes of a run are moved as they are"
        assert isinstance(store.value, Load), "the bytes of a run are moved as they are"
        block = Call("copy_block", (store.array, store.value.array, *node.upper))
        made = (If((compare(node.upper[0], "ge", long.least),), (block,), made),)
    return made


def _fewer(node: For, size: int | str) -> Vectors:
    """Fewer iterations at once; single ones by their addresses, if their elements are only moved.

    Those that are left are a part of a super-vector: for x_left in 0..left step 64: dst[x + x_left] = … [64]
    """
    if isinstance(size, str):
        index = f"{node.index}_left"
        body = (substituted(x, node.index, plus(node.index, index)) for x in flattened(node.body))
        return Vectors(0, (replace(loop(index, 0, LEFT, *body, step=node.size), size=node.size),))
    if size == 1 and (moved := moved_by_address(_scalar(node))) != _scalar(node):
        return Vectors(1, moved)
    return Vectors(size, flattened(tuple(resized(x, size, 0) for x in node.body)))


def super_vector(node: For, lanes: Mapping[str, int]) -> Body:
    """The selected statements of some iterations of a loop and all of those in it."""
    return selected(flattened(widened(node, lanes).body))


def flattened(body: Body) -> Body:
    """A body with the only iterations of the loops in it."""

    def only(node: Statement) -> Body:
        if not isinstance(node, For):
            return (node,)
        return tuple(substituted(x, node.index, *node.lower) for x in node.body)

    return rewrite_body(body, only)


def _scalar(node: For) -> Body:
    """One iteration of a loop over super-vectors, and all of the loops in it."""
    body = in_sizes(node, 1, 0).body
    return rewrite_body(body, lambda x: (in_sizes(x, 1, 0) if isinstance(x, For) else x,))


def _blocks(node: For, inside: For, nest: CopyNest) -> Body:
    """The loops over the blocks of a tile.

    before:  for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
               dst[column, row] = src[row, column] [16, 16]
    after:   for column_block in column_tile..column_stop step 16: column = min(column_block, columns - 16)
               for row_block in row_tile..row_stop step 16: row = min(row_block, rows - 16)
                 dst[column, row] = src[row, column] [16, 16]

    A last block that would cross the edge begins earlier. Loops that have exactly the iterations of a block
    become its body.
    """
    if nest.reads:
        return (_short_rows(node, inside, nest, nest.reads),)
    if all(x.fewest == x.most == nest.lanes[x.index] for x in (node, inside)):
        return flattened((node,))
    is_edge = nest.stream and not nest.staged and not streams(inside.body)
    narrow = zip(("row", "column"), block_shape(nest.target.bits // 8, EDGE_BLOCK), strict=True)
    lanes, block = dict(narrow) if is_edge else nest.lanes, inside.body
    for position, each in enumerate((node, inside)):
        block = tuple(resized(x, lanes[each.index], position) for x in block)

    def over(side: For, *body: Statement) -> For:
        """The loop over the blocks of one side."""
        size = lanes[side.index]
        latest = minus(nest.axis(side.index).extent, size)
        if nest.stages_rows and side.index == "row":  # short result rows may have fewer rows than a block
            latest = greatest(latest, 0)
        return clamped(in_sizes(side, 1, 0), Vectors(size, body), latest)

    if is_edge or not nest.obeying(Diagonal):
        return (over(node, over(inside, *block)),)
    size, (first,), (last,) = lanes["column"], node.lower, node.upper
    here = let("column", least("column_block", minus(nest.axis("column").extent, size)))
    down = _wrapping(over(inside, here, *block), size, first, last)
    return (loop("diagonal", first, last, down, step=size),)


def _short_rows(node: For, columns: For, nest: CopyNest, reads: LaneReads) -> For:
    """The loop over the blocks of some rows that are shorter than a lane: they store the columns that exist.

    There are no prefetches, because the rows are mostly adjacent.

    after:   for row_block in row_tile..row_stop step 64:
               if src_offset >= open_offset and closed_start <= row_block < closed_stop:
                 for column in 0..columns: for k in row_block..min(row_block + 64, row_stop):
                   dst[column, k] = src[k, column]
               else: row = min(row_block, rows - 64)
                 for column in 0..columns step 16: dst[column, row] = src[row, column] [64, 16]

    Lanes of the blocks that move element by element would end after the source: see `LaneReads`.
    """
    rows, (last,) = node.size, node.upper
    blocks = clamped(
        in_sizes(node, 1, 0), Vectors(rows, node.body), minus(nest.axis(node.index).extent, rows)
    )
    closed = [compare(blocks.index, "ge", reads.closed_start), compare(blocks.index, "lt", reads.closed_stop)]
    if nest.others:
        closed.insert(0, compare(OTHERS_OFFSET, "ge", reads.open_offset))
    (single,) = _scalar(node)
    assert isinstance(single, For), "columns are a loop"
    alone = (substituted(x, node.index, index_of("k")) for x in moved_by_address(single.body))
    elements = loop("k", blocks.index, least(plus(blocks.index, rows), last), *alone)
    return replace(blocks, body=(If(tuple(closed), (replace(single, body=(elements,)),), blocks.body),))


def _wrapping(down: For, columns: int, first: Term, stop: Term) -> For:
    """The loop over rows of blocks, which moves on by one column of blocks each time, around the tile."""
    following = plus("column_block", columns)
    inside = Op("lt", (IndexValue(following), IndexValue(index_of(stop))), "i1")
    wrapped = Op("select", (inside, IndexValue(following), IndexValue(index_of(first))), "i64")
    carried = Carried("column_block", IndexValue(index_of("diagonal")), wrapped)
    return replace(down, carried=(carried,))
