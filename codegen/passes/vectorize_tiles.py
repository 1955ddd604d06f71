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
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Carried, For, If, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import IndexValue, Op
from codegen.passes.lower_copies.blocks import RegisterBlock, block_of, row_at, transposed_block
from codegen.passes.lower_copies.short_rows import short_rows
from codegen.schedule.directives import Ahead, Diagonal, LanesBeyond
from codegen.schedule.transfers import Moves

EDGE_BLOCK: Block = "16x64"
"""The blocks before the first line and after the last one, which are part of a line."""


def vectorize_tiles(body: Body, moves: Moves, views: tuple[str, str]) -> Body:
    """Load blocks of a tile, transpose them in registers, and store them.

    before:  for column in column_tile..column_stop: for row in row_tile..row_stop:
               dst[column, row] = src[row, column]
    after:   for column in column_tile..column_stop step 16: for row in row_tile..row_stop step 16:
               dst[column, row] = transposed(src[row, column] [16, 16])

    A last block that would cross the edge begins earlier: row = min(row_block, rows - 16).

    If lines are streamed from the first one of each result row on, blocks begin where lines do:

    after:   head = -dst % 64 // 4; stop = rows - (rows - head) % 16
             rows 0..head if row_tile == 0, and rows stop..rows if row_stop == rows, through the cache
             for row in row_tile + head..min(row_stop + head, stop) step 16: …
    """
    first_block = moves.order[-1 if moves.obeying(LanesBeyond) else -2]
    first_inner = moves.order[len(moves.outer)]

    def changed(node: Statement) -> Body:
        if not isinstance(node, For):
            return (node,)
        if node.index == first_block:
            node = _blocks(node, moves, views)
        if _finds_lines(moves) and node.index in (first_inner, "diagonal"):
            return *_edges(moves, views), node
        return (node,)

    return rewrite_body(body, changed)


def _finds_lines(moves: Moves) -> bool:
    """Whether result rows may begin anywhere in a line, all alike."""
    return not moves.staged and any(x.form == "headed" for x in moves.obeying(Stream))


def _blocks(node: For, moves: Moves, views: tuple[str, str]) -> For:
    """The loops over the blocks of a tile."""
    b = block_of(moves)
    streamed = (Stream("given"),) if moves.stream and not moves.staged else ()
    ahead = sum(x.distance_bytes for x in moves.obeying(Ahead))
    inner = Blocks(streamed=streamed, prefetch_bytes=ahead)
    for lanes in moves.obeying(LanesBeyond):
        (first,), (last,), column = node.lower, node.upper, moves.axis("column")
        others = bool(moves.around)
        return short_rows(b, column, lanes.reads, views, (first, last), inside_others=others, blocks=inner)

    def over(side: For, blocks: Blocks, *body: Statement) -> For:
        """The loop over the blocks of one side."""
        size, (first,), (last,) = moves.lanes[side.index], side.lower, side.upper
        latest = minus(moves.axis(side.index).extent, size)
        if moves.panel and side.index == "row":  # short result rows may have fewer rows than a block
            latest = greatest(latest, 0)
        blocks = replace(blocks, latest=latest)
        if side.index == "row" and _finds_lines(moves):
            first, last = plus(first, "head"), least(plus(last, "head"), "stop")
        return replace(side, lower=(first,), upper=(last,), step=size, body=body, blocks=blocks)

    (inside,) = node.body
    assert isinstance(inside, For), "the loops of a block stand alone in each other"
    body = _block(moves, b, views)
    if not moves.obeying(Diagonal):
        return over(node, Blocks(), over(inside, inner, *body))
    size, (first,), (last,) = b.shape[1], node.lower, node.upper
    here = let("column", least("column_block", minus(moves.axis("column").extent, size)))
    down = _wrapping(over(inside, inner, here, *body), size, first, last)
    return loop("diagonal", first, last, down, step=size)


def _edges(moves: Moves, views: tuple[str, str]) -> tuple[Statement, ...]:
    """The rows of a tile before the first line of the destination and after the last one, in narrow blocks.

    If no element begins a line, these are all rows.
    """
    b, (dst, _) = block_of(moves), views
    narrow = replace(b, shape=block_shape(b.width, EDGE_BLOCK))
    (rows, columns), count = narrow.shape, moves.axis("row").extent
    (row_tile, *_), (column_tile, *_) = moves.tiles("row"), moves.tiles("column")

    def edge(first: Term, last: Term) -> For:
        """Blocks from one row to another."""
        across = Blocks(latest=minus(moves.axis("column").extent, columns))
        body = _block(moves, narrow, views)
        inner = loop("column", column_tile.index, "column_stop", *body, step=columns, blocks=across)
        return loop("row", first, last, inner, step=rows, blocks=Blocks(latest=minus(count, rows)))

    begins = (compare(rest(dst, b.width), "eq", 0),) if b.width > 1 else ()
    head = let("head", quotient(rest(times(dst, -1), LINE_BYTES), b.width))
    after = let("stop", minus(count, rest(minus(count, "head"), b.shape[0])))
    return (
        If(begins, (head,), (let("head", count),)) if begins else head,
        after,
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


def _block(moves: Moves, b: RegisterBlock, views: tuple[str, str]) -> Body:
    """block = src[row, column] [R, C]; dst[column, row] = transposed(block)"""
    dst, src = views
    block, value = transposed_block(b, src)
    at, step = row_at(moves.axis("column"), "dst", index_of("column"))
    store = Store(dst, (plus(at, times("row", b.width)),), value, (0, 0), (step, b.width))
    return *block, store
