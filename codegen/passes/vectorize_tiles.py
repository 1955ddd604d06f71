"""Run the rows and columns of a tile as register blocks."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from codegen.analysis.bodies import flat
from codegen.ir.blocks import Block, block_shape
from codegen.ir.building import (
    Term,
    compare,
    greatest,
    index_of,
    least,
    let,
    loop,
    minus,
    plus,
    quotient,
    rest,
)
from codegen.ir.nodes import Alloc, Carried, For, If, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.ir.streams import Stream
from codegen.ir.values import Each, IndexValue, Op
from codegen.passes.lines import streaming, to_line
from codegen.passes.scalar_statement import moved_by_address
from codegen.passes.sides import first_sides, sides_of
from codegen.passes.super_vectors import CONVERTED, super_vector
from codegen.passes.tails import Vectors, clamped
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Diagonal, Stage
from codegen.schedule.loops import LaneReads
from codegen.support.lookups import expect

EDGE_BLOCK: Block = "16x64"
"""The blocks before the first line and after the last one, which are part of a line."""

OTHERS_OFFSET = "others_offset"
"""The local that holds the source offset of the other digits."""


def vectorize_tiles(body: Body, nest: CopyNest) -> Body:
    """Load blocks of a tile, transpose them in registers, and store them.

    before:  for column in column_tile..column_stop: for row in row_tile..row_stop:
               dst[column, row] = src[row, column]
    after:   for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
               dst[column, row] = transposed(src[row, column] [16, 16])

    A last block that would cross the edge begins earlier: row = min(row_block, rows - 16).

    If lines are streamed from the first one of each result row on, blocks begin where lines do:

    after:   head = -dst % 64 // 4; stop = rows - (rows - head) % 16           once
             rows 0..head if row_tile == 0, and rows stop..rows if row_stop == rows, through the cache
             for row in row_tile + head..min(row_stop + head, stop) step 16: …
    """
    found = (inner for x in flat(body) if (inner := _inner(x, nest)))
    scalar = expect(found, "the loops of a block", nest.order).body
    first_inner, dst = nest.order[len(nest.outer)], sides_of(nest).dst
    ends = _line_ends(nest) if _finds_lines(nest) else ()

    def changed(node: Statement) -> Body:
        if isinstance(node, View) and node.name == dst:
            return node, *ends
        if not isinstance(node, For):
            return (node,)
        inner = _inner(node, nest)
        edges = _edges(scalar, nest) if _finds_lines(nest) and node.index == first_inner else ()
        return *edges, _blocks(node, inner, nest) if inner else node

    made = rewrite_body(body, changed)
    if any(isinstance(x, Store) and x.array == CONVERTED for x in flat(made)):
        made = (Alloc(CONVERTED, prod(nest.lanes.values()) * nest.target.bits // 8), *made)
    return (*ends, *made) if dst == first_sides(nest).dst else made


def _inner(node: Statement, nest: CopyNest) -> For | None:
    """The inner one of two loops over the iterations of a block; None for other statements."""
    match node:
        case For(index, body=(For(inner) as inside,)) if {index, inner} == {*nest.lanes}:
            return inside
    return None


def _finds_lines(nest: CopyNest) -> bool:
    """Whether result rows may begin anywhere in a line, all alike."""
    return not nest.staged and any(x.form == "headed" for x in nest.obeying(Stream))


def _blocks(node: For, inside: For, nest: CopyNest) -> For:
    """The loops over the blocks of a tile."""
    if nest.reads:
        return _short_rows(node, inside, nest, nest.reads)

    def over(side: For, *body: Statement) -> For:
        """The loop over the blocks of one side."""
        size, (first,), (last,) = nest.lanes[side.index], side.lower, side.upper
        latest = minus(nest.axis(side.index).extent, size)
        if nest.stages_rows and side.index == "row":  # short result rows may have fewer rows than a block
            latest = greatest(latest, 0)
        if side.index == "row" and _finds_lines(nest):
            first, last = plus(first, "head"), least(plus(last, "head"), "stop")
        return clamped(replace(side, lower=(first,), upper=(last,)), Vectors(size, body), latest)

    block = _block(inside.body, nest)
    if any(x.separate for x in nest.obeying(Stage)):
        block = rewrite_body(block, _with_addresses)
    if not nest.obeying(Diagonal):
        return over(node, over(inside, *block))
    size, (first,), (last,) = nest.lanes["column"], node.lower, node.upper
    here = let("column", least("column_block", minus(nest.axis("column").extent, size)))
    down = _wrapping(over(inside, here, *block), size, first, last)
    return loop("diagonal", first, last, down, step=size)


def _block(scalar: Body, nest: CopyNest) -> Body:
    """block = src[row, column] [R, C]; dst[column, row] = transposed(block)"""
    return super_vector(streaming(scalar) if nest.stream and not nest.staged else scalar, nest.lanes)


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
    block = Vectors(rows, _block(node.body, nest))
    blocks = clamped(node, block, minus(nest.axis(node.index).extent, rows))
    closed = [compare(blocks.index, "ge", reads.closed_start), compare(blocks.index, "lt", reads.closed_stop)]
    if nest.others:
        closed.insert(0, compare(OTHERS_OFFSET, "ge", reads.open_offset))
    alone = (substituted(x, node.index, index_of("k")) for x in moved_by_address(columns.body))
    elements = loop("k", blocks.index, least(plus(blocks.index, rows), last), *alone)
    return replace(blocks, body=(If(tuple(closed), (replace(columns, body=(elements,)),), blocks.body),))


def _line_ends(nest: CopyNest) -> Body:
    """The first row that begins a line of the destination, and the one after the last line.

    If no element begins a line, no row does.
    """
    width, dst, count = nest.target.bits // 8, sides_of(nest).dst, nest.axis("row").extent
    begins = (compare(rest(dst, width), "eq", 0),) if width > 1 else ()
    head = let("head", quotient(to_line(dst), width))
    after = let("stop", minus(count, rest(minus(count, "head"), nest.lanes["row"])))
    return If(begins, (head,), (let("head", count),)) if begins else head, after


def _edges(scalar: Body, nest: CopyNest) -> tuple[Statement, ...]:
    """The rows of a tile before the first line of the destination and after the last, in narrow blocks."""
    rows, columns = block_shape(nest.target.bits // 8, EDGE_BLOCK)
    narrow, count = super_vector(scalar, {"row": rows, "column": columns}), nest.axis("row").extent
    (row_tile, *_), (column_tile, *_) = nest.tiles("row"), nest.tiles("column")

    def edge(first: Term, last: Term) -> For:
        """Blocks from one row to another."""
        across, down = loop("column", column_tile.index, "column_stop"), loop("row", first, last)
        inner = clamped(across, Vectors(columns, narrow), minus(nest.axis("column").extent, columns))
        return clamped(down, Vectors(rows, (inner,)), minus(count, rows))

    return (
        If((compare(row_tile.index, "eq", 0),), (edge(0, "head"),)),
        If((compare("row_stop", "eq", count),), (edge("stop", count),)),
    )


def _wrapping(down: For, columns: int, first: Term, stop: Term) -> For:
    """The loop over rows of blocks, which moves on by one column of blocks each time, around the tile."""
    following = plus("column_block", columns)
    inside = Op("lt", (IndexValue(following), IndexValue(index_of(stop))), "i1")
    wrapped = Op("select", (inside, IndexValue(following), IndexValue(index_of(first))), "i64")
    carried = Carried("column_block", IndexValue(index_of("diagonal")), wrapped)
    return replace(down, carried=(carried,))
