"""Lower transposes of rows shorter than a lane: blocks read lanes, and store as many columns as there are."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, loop, minus, plus, times
from codegen.ir.nodes import Blocks, Compare, For, Narrow, Statement, Store
from codegen.passes.lower_copies.blocks import element_row, row_at, transposed_block
from codegen.passes.lower_copies.lowered import moved_element
from codegen.passes.lower_copies.tile_loops import other_loops
from codegen.schedule.transfers import COLUMN_TABLE, ROW_TABLE
from codegen.schedule.transposes import LaneReads, TransposeTiles

OTHERS_OFFSET = "others_offset"
"""The local that holds the source offset of the other digits."""


def lower_short_rows(t: TransposeTiles, reads: LaneReads, dst: str, src: str, blocks: Blocks) -> For:
    """One tile: a loop over blocks, without prefetches, because the rows are mostly adjacent.

    after:   for i in i_tile..i_stop step 64:      at most rows - 64
               dst[:columns, i] = transposed(src[i] [64, 16])[:columns]
             narrower where src_offset >= open_offset, i >= closed_start and i < closed_stop:
               for j in 0..columns: for row in i..i + count: dst[j, row] = src[row, j]

    Lanes of the blocks that the narrower body runs would end after the source: see `LaneReads`.
    """
    closed: tuple[Compare, ...] = (
        compare("i", "ge", reads.closed_start),
        compare("i", "lt", reads.closed_stop),
    )
    if other_loops(t):
        closed = (compare(OTHERS_OFFSET, "ge", reads.open_offset), *closed)
    elements = Narrow("count", (_elements(t, dst, src),), closed)
    blocks = replace(blocks, latest=minus(t.rows, t.block[0]), narrower=(elements,))
    first, stop = (f"i_{end}" for end in (t.outer.index, t.outer.stop))
    return loop("i", first, stop, *_block(t, dst, src), step=t.block[0], blocks=blocks)


def _block(t: TransposeTiles, dst: str, src: str) -> tuple[Statement, ...]:
    """block = src[i] [R, C]; dst[:columns, i] = transposed(block)[:columns]"""
    block, value = transposed_block(t, src, 0)
    at, step = row_at(t.column_step, COLUMN_TABLE, index_of(0))
    where, few = plus(at, times("i", t.width)), index_of(t.columns)
    return *block, Store(dst, (where,), value, (0, 0), (step, t.width), first=few)


def _elements(t: TransposeTiles, dst: str, src: str) -> Statement:
    """for j in 0..columns: for row in i..i + count: dst[j, row] = src[row, j]

    Views are opaque so that LLVM does not vectorize these few elements.
    """
    to = element_row("dst_j", dst, t.column_step, COLUMN_TABLE, index_of("j"), opaque=True)
    at = element_row("src_row", src, t.row_step, ROW_TABLE, index_of("row"), opaque=True)
    move = moved_element(t.width, "dst_j", times("row", t.width), "src_row", times("j", t.width))
    inner = loop("row", "i", plus("i", "count"), *at, *move)
    return loop("j", 0, t.columns, *to, inner)
