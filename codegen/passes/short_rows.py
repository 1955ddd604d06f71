"""Lower transposes of rows shorter than a lane: blocks read lanes, and store as many columns as there are."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, loop, minus, plus, times
from codegen.ir.nodes import Compare, For, If, Store
from codegen.ir.rewriting import Body
from codegen.passes.sides import Sides, moved_element
from codegen.passes.tails import Vectors, clamped
from codegen.passes.transposed_blocks import RegisterBlock, element_row, row_at, transposed_block
from codegen.schedule.loops import LaneReads, Loop

OTHERS_OFFSET = "others_offset"
"""The local that holds the source offset of the other digits."""


def short_rows(
    b: RegisterBlock,
    column: Loop,
    reads: LaneReads,
    sides: Sides,
    span: tuple[Term, Term],
    *,
    inside_others: bool,
    streamed: bool,
) -> For:
    """The loop over the blocks of some rows, without prefetches, because the rows are mostly adjacent.

    after:   for row_block in row_tile..row_stop step 64:
               if src_offset >= open_offset and closed_start <= row_block < closed_stop:
                 for column in 0..columns: for k in row_block..min(row_block + 64, row_stop):
                   dst[column, k] = src[k, column]
               else: row = min(row_block, rows - 64)
                 dst[:columns, row] = transposed(src[row] [64, 16])[:columns]

    Lanes of the blocks that move element by element would end after the source: see `LaneReads`.

    Args:
        b: the blocks.
        column: the loop over columns, which are apart in the destination.
        reads: which blocks may read lanes.
        sides: the views that the loop reads and writes.
        span: the first row, and the one after the last.
        inside_others: whether loops over other digits are around this one.
        streamed: whether blocks bypass the cache.
    """
    closed: tuple[Compare, ...] = (
        compare("row_block", "ge", reads.closed_start),
        compare("row_block", "lt", reads.closed_stop),
    )
    if inside_others:
        closed = (compare(OTHERS_OFFSET, "ge", reads.open_offset), *closed)
    block = Vectors(b.shape[0], _block(b, column, sides, streamed=streamed))
    blocks = clamped(loop("row", *span), block, minus(b.rows.extent, b.shape[0]))
    stop = least(plus(blocks.index, b.shape[0]), span[1])
    return replace(blocks, body=(If(closed, _elements(b, column, sides, blocks.index, stop), blocks.body),))


def _block(b: RegisterBlock, column: Loop, sides: Sides, *, streamed: bool) -> Body:
    """block = src[row] [R, C]; dst[:columns, row] = transposed(block)[:columns]"""
    block, value = transposed_block(b, sides.src, 0)
    at, step = row_at(column, "dst", index_of(0))
    where, few = plus(at, times("row", b.width)), index_of(column.extent)
    return *block, Store(sides.dst, (where,), value, (0, 0), (step, b.width), first=few, streamed=streamed)


def _elements(b: RegisterBlock, column: Loop, sides: Sides, first: Term, stop: Term) -> Body:
    """for column in 0..columns: for k in first..stop: dst[column, k] = src[k, column]

    Views are opaque so that LLVM does not vectorize these few elements.
    """
    to = element_row("dst_column", sides.dst, column, "dst", index_of("column"), opaque=True)
    at = element_row("src_row", sides.src, b.rows, "src", index_of("k"), opaque=True)
    move = moved_element(b.width, "dst_column", times("k", b.width), "src_row", times("column", b.width))
    inner = loop("k", first, stop, *at, *move)
    return (loop("column", 0, column.extent, *to, inner),)
