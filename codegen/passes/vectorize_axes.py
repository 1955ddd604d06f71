"""Run loops of a copy as the lanes of super-vectors, with the tails that its directives name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from codegen.analysis.bodies import flat
from codegen.ir.blocks import Block, block_shape
from codegen.ir.building import Term, compare, greatest, index_of, least, let, loop, minus, plus
from codegen.ir.nodes import MANY, Alloc, Call, Carried, For, Function, If, Let, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.ir.values import Each, IndexValue, Load, Local, Op
from codegen.passes.fence_streams import streams
from codegen.passes.scalar_statement import moved_by_address
from codegen.passes.sides import FILL
from codegen.passes.super_vectors import CONVERTED, PATTERN, rest_of, super_vector
from codegen.passes.tails import Vectors, clamped, followed, obeyed
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import CopyBlock, Diagonal, Stage
from codegen.schedule.loops import LaneReads

EDGE_BLOCK: Block = "16x64"
"""The blocks of rows that are part of a line, where others are lines that bypass the cache."""

OTHERS_OFFSET = "others_offset"
"""The local that holds the source offset of the other digits."""


def vectorize_axes(function: Function, nest: CopyNest) -> Function:
    """Run iterations of some loops at once, as the lanes of super-vectors.

    before:  for column in 0..columns: for row in 0..2: dst[4*column + 2*row] = src[2*column + row_src*row]
    after:   if columns >= 32:                       Vectorize(column=32, row=2)
               for column in 0..columns - 32 step 32:
                 block = src[2*column] [2, 32]
                 dst[4*column] = interleaved(block) [64]
               the same at columns - 32
             elif columns >= 16: 16 at once, and again at columns - 16 if there are more
             …                                       Tail("column", "shift", sizes=(16, 8, 1))

    The lanes of a load and a store are those that are adjacent in memory. Where they differ, an instruction
    changes their order: see `lane_orders`. Two loops in tiles run as blocks: see `_blocks`.

    A loop that has fewer iterations than a super-vector runs narrower ones only, and one that has exactly as
    many as one of them becomes its body. Super-vectors go past the cache where single elements did.
    """
    lanes = {*nest.lanes}

    def widened(node: Statement) -> Body:
        match node:
            case For(outer, body=(For(inner) as inside,)) if nest.transposes and {outer, inner} == lanes:
                return (_blocks(node, inside, nest),)
            case For(index, step=1) if not nest.transposes and index == nest.loops[0].axis:
                return _widened(node, nest)
        return (node,)

    body = rewrite_body(function.body, widened)
    if any(isinstance(x, Store) and x.array == CONVERTED for x in flat(body)):
        body = (Alloc(CONVERTED, prod(nest.lanes.values()) * nest.target.bits // 8), *body)
    if nest.fills:
        low, high = (Local(name, "i64") for name in FILL)
        body = (Let(PATTERN.name, Op("repeated_line", (low, high), PATTERN.dtype, PATTERN.shape)), *body)
    return replace(function, body=body)


def _widened(loop: For, nest: CopyNest) -> Body:
    """The outermost inner loop, over super-vectors."""
    tail, full = nest.tail(loop.index), Vectors(nest.lanes[loop.index], super_vector(loop.body, nest.lanes))
    bodies = (full, *(_fewer(loop, nest.lanes, size) for size in (tail.sizes if tail else ())))
    if any(prod(x.value.shape) > prod(nest.lanes.values()) for x in full.body if isinstance(x, Store)):
        return followed(loop, bodies, 1)  # the last one also stores lanes after those of its iterations
    made = obeyed(loop, bodies, tail)
    for long in nest.obeying(CopyBlock) if loop.most == MANY else ():
        (store,) = loop.body
        assert isinstance(store, Store), "the bytes of a run are moved as they are"
        assert isinstance(store.value, Load), "the bytes of a run are moved as they are"
        block = Call("copy_block", (store.array, store.value.array, *loop.upper))
        made = (If((compare(loop.upper[0], "ge", long.least),), (block,), made),)
    return made


def _fewer(loop: For, lanes: Mapping[str, int], size: int | str) -> Vectors:
    """Fewer iterations at once; single ones as they are, if their elements are only moved."""
    if isinstance(size, str):
        return Vectors(0, rest_of(loop.body, lanes))
    if size == 1 and (alone := moved_by_address(loop.body)) != loop.body:
        return Vectors(1, alone)
    return Vectors(size, super_vector(loop.body, {**lanes, loop.index: size}))


def _blocks(node: For, inside: For, nest: CopyNest) -> For:
    """Load blocks of a tile, transpose them in registers, and store them.

    before:  for column in column_tile..column_stop: for row in row_tile..row_stop:
               dst[column, row] = src[row, column]
    after:   for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
               dst[column, row] = transposed(src[row, column] [16, 16])

    A last block that would cross the edge begins earlier: row = min(row_block, rows - 16).
    """
    if nest.reads:
        return _short_rows(node, inside, nest, nest.reads)
    is_edge = nest.stream and not nest.staged and not streams(inside.body)
    narrow = zip(("row", "column"), block_shape(nest.target.bits // 8, EDGE_BLOCK), strict=True)
    lanes = dict(narrow) if is_edge else nest.lanes

    def over(side: For, *body: Statement) -> For:
        """The loop over the blocks of one side."""
        size = lanes[side.index]
        latest = minus(nest.axis(side.index).extent, size)
        if nest.stages_rows and side.index == "row":  # short result rows may have fewer rows than a block
            latest = greatest(latest, 0)
        return clamped(side, Vectors(size, body), latest)

    block = super_vector(inside.body, lanes)
    if any(x.separate for x in nest.obeying(Stage)):
        block = rewrite_body(block, _with_addresses)
    if is_edge or not nest.obeying(Diagonal):
        return over(node, over(inside, *block))
    size, (first,), (last,) = lanes["column"], node.lower, node.upper
    here = let("column", least("column_block", minus(nest.axis("column").extent, size)))
    down = _wrapping(over(inside, here, *block), size, first, last)
    return loop("diagonal", first, last, down, step=size)


def _with_addresses(node: Statement) -> Body:
    """A store that computes the address of each of its rows."""
    match node:
        case Store(steps=(int() | str() as pitch, step)):
            return (replace(node, steps=(Each(pitch), step)),)
    return (node,)


def _short_rows(node: For, columns: For, nest: CopyNest, reads: LaneReads) -> For:
    """The loop over the blocks of some rows that are shorter than a lane: they store the columns that exist.

    There are no prefetches, because the rows are mostly adjacent.

    after:   for row_block in row_tile..row_stop step 64:
               if src_offset >= open_offset and closed_start <= row_block < closed_stop:
                 for column in 0..columns: for k in row_block..min(row_block + 64, row_stop):
                   dst[column, k] = src[k, column]
               else: row = min(row_block, rows - 64)
                 dst[:columns, row] = transposed(src[row] [64, 16])[:columns]

    Lanes of the blocks that move element by element would end after the source: see `LaneReads`.
    """
    rows, (last,) = nest.lanes[node.index], node.upper
    block = Vectors(rows, super_vector(node.body, nest.lanes))
    blocks = clamped(node, block, minus(nest.axis(node.index).extent, rows))
    closed = [compare(blocks.index, "ge", reads.closed_start), compare(blocks.index, "lt", reads.closed_stop)]
    if nest.others:
        closed.insert(0, compare(OTHERS_OFFSET, "ge", reads.open_offset))
    alone = (substituted(x, node.index, index_of("k")) for x in moved_by_address(columns.body))
    elements = loop("k", blocks.index, least(plus(blocks.index, rows), last), *alone)
    return replace(blocks, body=(If(tuple(closed), (replace(columns, body=(elements,)),), blocks.body),))


def _wrapping(down: For, columns: int, first: Term, stop: Term) -> For:
    """The loop over rows of blocks, which moves on by one column of blocks each time, around the tile."""
    following = plus("column_block", columns)
    inside = Op("lt", (IndexValue(following), IndexValue(index_of(stop))), "i1")
    wrapped = Op("select", (inside, IndexValue(following), IndexValue(index_of(first))), "i64")
    carried = Carried("column_block", IndexValue(index_of("diagonal")), wrapped)
    return replace(down, carried=(carried,))
