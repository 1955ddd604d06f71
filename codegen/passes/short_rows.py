"""Lower transposes of rows shorter than a lane: blocks read lanes, and store as many columns as there are."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, loop, minus, plus, times
from codegen.ir.nodes import Blocks, Compare, For, Narrow, Statement, Store
from codegen.passes.sides import Sides, moved_element
from codegen.passes.transposed_blocks import RegisterBlock, element_row, row_at, transposed_block
from codegen.schedule.loops import LaneReads, Loop

OTHERS_OFFSET = "others_offset"
"""The local that holds the source offset of the other digits."""

PLAIN = Blocks()


def short_rows(
    b: RegisterBlock,
    column: Loop,
    reads: LaneReads,
    sides: Sides,
    span: tuple[Term, Term],
    *,
    inside_others: bool,
    blocks: Blocks = PLAIN,
) -> For:
    """The loop over the blocks of some rows, without prefetches, because the rows are mostly adjacent.

    after:   for row in row_tile..row_stop step 64:      at most rows - 64
               dst[:columns, row] = transposed(src[row] [64, 16])[:columns]
             narrower where src_offset >= open_offset, row >= closed_start and row < closed_stop:
               for column in 0..columns: for k in row..row + count: dst[column, k] = src[k, column]

    Lanes of the blocks that the narrower body runs would end after the source: see `LaneReads`.

    Args:
        b: the blocks.
        column: the loop over columns, which are apart in the destination.
        reads: which blocks may read lanes.
        sides: the views that the loop reads and writes.
        span: the first row, and the one after the last.
        inside_others: whether loops over other digits are around this one.
        blocks: what passes do with the loop.
    """
    closed: tuple[Compare, ...] = (
        compare("row", "ge", reads.closed_start),
        compare("row", "lt", reads.closed_stop),
    )
    if inside_others:
        closed = (compare(OTHERS_OFFSET, "ge", reads.open_offset), *closed)
    elements = Narrow("count", (_elements(b, column, sides),), closed)
    blocks = replace(blocks, latest=minus(b.rows.extent, b.shape[0]), narrower=(elements,))
    return loop("row", *span, *_block(b, column, sides), step=b.shape[0], blocks=blocks)


def _block(b: RegisterBlock, column: Loop, sides: Sides) -> tuple[Statement, ...]:
    """block = src[row] [R, C]; dst[:columns, row] = transposed(block)[:columns]"""
    block, value = transposed_block(b, sides.src, 0)
    at, step = row_at(column, "dst", index_of(0))
    where, few = plus(at, times("row", b.width)), index_of(column.extent)
    return *block, Store(sides.dst, (where,), value, (0, 0), (step, b.width), first=few)


def _elements(b: RegisterBlock, column: Loop, sides: Sides) -> Statement:
    """for column in 0..columns: for k in row..row + count: dst[column, k] = src[k, column]

    Views are opaque so that LLVM does not vectorize these few elements.
    """
    to = element_row("dst_column", sides.dst, column, "dst", index_of("column"), opaque=True)
    at = element_row("src_row", sides.src, b.rows, "src", index_of("k"), opaque=True)
    move = moved_element(b.width, "dst_column", times("k", b.width), "src_row", times("column", b.width))
    inner = loop("k", "row", plus("row", "count"), *at, *move)
    return loop("column", 0, column.extent, *to, inner)
