"""Run the rows and columns of a tile as register blocks."""

from __future__ import annotations

from dataclasses import replace

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
    times,
)
from codegen.ir.nodes import Carried, For, If, Prefetch, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import Each, IndexValue, Op
from codegen.passes.lines import to_line
from codegen.passes.short_rows import short_rows
from codegen.passes.sides import first_sides, sides_of
from codegen.passes.stage_tiles import stored_in
from codegen.passes.tails import Vectors, clamped
from codegen.passes.transposed_blocks import (
    RegisterBlock,
    block_of,
    read_block,
    row_at,
    transposed_block,
)
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Diagonal, LanesBeyond, PrefetchTile

EDGE_BLOCK: Block = "16x64"
"""The blocks before the first line and after the last one, which are part of a line."""


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
    first_block = nest.order[-1 if nest.obeying(LanesBeyond) else -2]
    first_inner, dst = nest.order[len(nest.outer)], sides_of(nest).dst
    ends = _line_ends(nest) if _finds_lines(nest) else ()

    def changed(node: Statement) -> Body:
        if isinstance(node, View) and node.name == dst:
            return node, *ends
        if not isinstance(node, For):
            return (node,)
        is_block = node.index == first_block and not _is_drain(node, nest)
        edges = _edges(nest) if _finds_lines(nest) and node.index == first_inner else ()
        return *edges, _blocks(node, nest) if is_block else node

    made = rewrite_body(body, changed)
    return (*ends, *made) if dst == first_sides(nest).dst else made


def _is_drain(node: For, nest: CopyNest) -> bool:
    """Whether the loop stores what a panel holds; it has the index of the columns that fill the panel."""
    return nest.staged and not (isinstance(node.body[-1], For) and node.body[-1].index in nest.lanes)


def _finds_lines(nest: CopyNest) -> bool:
    """Whether result rows may begin anywhere in a line, all alike."""
    return not nest.staged and any(x.form == "headed" for x in nest.obeying(Stream))


def _blocks(node: For, nest: CopyNest) -> For:
    """The loops over the blocks of a tile."""
    b = block_of(nest)
    streamed = nest.stream and not nest.staged
    for lanes in nest.obeying(LanesBeyond):
        (first,), (last,), (dst, column) = node.lower, node.upper, stored_in(nest)
        sides, others = replace(sides_of(nest), dst=dst), bool(nest.others)
        span = first, last
        return short_rows(b, column, lanes.reads, sides, span, inside_others=others, streamed=streamed)

    def over(side: For, *body: Statement) -> For:
        """The loop over the blocks of one side."""
        size, (first,), (last,) = nest.lanes[side.index], side.lower, side.upper
        latest = minus(nest.axis(side.index).extent, size)
        if nest.panel and side.index == "row":  # short result rows may have fewer rows than a block
            latest = greatest(latest, 0)
        if side.index == "row" and _finds_lines(nest):
            first, last = plus(first, "head"), least(plus(last, "head"), "stop")
        return clamped(replace(side, lower=(first,), upper=(last,)), Vectors(size, body), latest)

    (inside,) = node.body
    assert isinstance(inside, For), "the loops of a block stand alone in each other"
    body = *_block(nest, b, streamed=streamed), *_requests(nest, b)
    if not nest.obeying(Diagonal):
        return over(node, over(inside, *body))
    size, (first,), (last,) = b.shape[1], node.lower, node.upper
    here = let("column", least("column_block", minus(nest.axis("column").extent, size)))
    down = _wrapping(over(inside, here, *body), size, first, last)
    return loop("diagonal", first, last, down, step=size)


def _line_ends(nest: CopyNest) -> Body:
    """The first row that begins a line of the destination, and the one after the last line.

    If no element begins a line, no row does.
    """
    b, dst, count = block_of(nest), sides_of(nest).dst, nest.axis("row").extent
    begins = (compare(rest(dst, b.width), "eq", 0),) if b.width > 1 else ()
    head = let("head", quotient(to_line(dst), b.width))
    after = let("stop", minus(count, rest(minus(count, "head"), b.shape[0])))
    return If(begins, (head,), (let("head", count),)) if begins else head, after


def _edges(nest: CopyNest) -> tuple[Statement, ...]:
    """The rows of a tile before the first line of the destination and after the last, in narrow blocks."""
    b = block_of(nest)
    narrow = replace(b, shape=block_shape(b.width, EDGE_BLOCK))
    (rows, columns), count = narrow.shape, nest.axis("row").extent
    (row_tile, *_), (column_tile, *_) = nest.tiles("row"), nest.tiles("column")

    def edge(first: Term, last: Term) -> For:
        """Blocks from one row to another."""
        across, down = loop("column", column_tile.index, "column_stop"), loop("row", first, last)
        block = Vectors(columns, _block(nest, narrow, streamed=False))
        inner = clamped(across, block, minus(nest.axis("column").extent, columns))
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


def _block(nest: CopyNest, b: RegisterBlock, *, streamed: bool) -> Body:
    """block = src[row, column] [R, C]; dst[column, row] = transposed(block)"""
    dst, column = stored_in(nest)
    block, value = transposed_block(b, sides_of(nest).src)
    at, step = row_at(column, "dst", index_of("column"))
    if nest.panel and nest.panel.separate and isinstance(step, int | str):
        step = Each(step)
    where, steps = (plus(at, times("row", b.width)),), (step, b.width)
    return *block, Store(dst, where, value, (0, 0), steps, streamed=streamed)


def _requests(nest: CopyNest, b: RegisterBlock) -> Body:
    """Each block that is streamed requests the same block of the next tile."""
    if nest.staged or not nest.obeying(PrefetchTile):
        return ()
    row, column = (minus(axis, nest.tiles(axis)[0].index) for axis in ("row", "column"))
    if nest.axis("row").src_table:
        row = plus("next_row", greatest(row, 0))  # a last block may begin before its tile, not the table
    return (Prefetch(read_block(b, "next_tile", row, column)),)
