"""Lower transposes of rows shorter than a lane: blocks read lanes, and store as many columns as there are."""

from __future__ import annotations

from codegen.ir.building import compare, index_of, least, let, loop, minus, plus, times
from codegen.ir.nodes import Blocks, Compare, For, If, Statement, Store
from codegen.passes.lower_copies.blocks import element_row, row_at, transposed_block
from codegen.passes.lower_copies.lowered import moved_element
from codegen.passes.lower_copies.tile_loops import other_loops
from codegen.schedule.transfers import COLUMN_TABLE, ROW_TABLE
from codegen.schedule.transposes import LaneReads, TransposeTiles

OTHERS_OFFSET = "src_offset"
"""The local that holds the source offset of the other digits."""


def lower_short_rows(
    t: TransposeTiles, reads: LaneReads, dst: str, src: str, blocks: Blocks | None = None
) -> For:
    """One tile: a loop over blocks, without prefetches, because the rows are mostly adjacent.

    after:   for i_block in i_tile..i_stop step 64:
               if src_offset >= open_offset and i_block >= closed_start and i_block < closed_stop:
                 for j in 0..columns: for i in i_block..i_block + 64: dst[j, i] = src[i, j]
               else: dst[:columns, i] = transposed(src[i] [64, 16])[:columns]

    Lanes of the blocks that the test names would end after the source: see `LaneReads`.
    """
    closed: tuple[Compare, ...] = (
        compare("i_block", "ge", reads.closed_start),
        compare("i_block", "lt", reads.closed_stop),
    )
    if other_loops(t):
        closed = (compare(OTHERS_OFFSET, "ge", reads.open_offset), *closed)
    either = If(closed, (_elements(t, dst, src),), _block(t, dst, src))
    return loop("i_block", "i_tile", "i_stop", either, step=t.block[0], blocks=blocks)


def _block(t: TransposeTiles, dst: str, src: str) -> tuple[Statement, ...]:
    """block = src[i] [R, C]; dst[:columns, i] = transposed(block)[:columns]"""
    i = let("i", least("i_block", minus(t.rows, t.block[0])))
    block, value = transposed_block(t, src, 0)
    at, step = row_at(t.column_step, COLUMN_TABLE, index_of(0))
    where, few = plus(at, times("i", t.width)), index_of(t.columns)
    store = Store(dst, (where,), value, (0, 0), (step, t.width), first=few)
    return i, *block, store


def _elements(t: TransposeTiles, dst: str, src: str) -> Statement:
    """for j in 0..columns: for i in i_block..i_block + 64: dst[j, i] = src[i, j]

    Views are opaque so that LLVM does not vectorize these few elements.
    """
    to = element_row("dst_j", dst, t.column_step, COLUMN_TABLE, index_of("j"), opaque=True)
    at = element_row("src_i", src, t.row_step, ROW_TABLE, index_of("i"), opaque=True)
    move = moved_element(t.width, "dst_j", times("i", t.width), "src_i", times("j", t.width))
    stop = least(plus("i_block", t.block[0]), "i_stop")
    inner = loop("i", "i_block", stop, *at, *move)
    return loop("j", 0, t.columns, *to, inner)
