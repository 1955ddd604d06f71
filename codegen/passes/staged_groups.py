"""Several groups of packed rows at the same time: their chunks go through scratch in source order."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.nodes import For, Statement, View
from codegen.ir.rewriting import Body
from codegen.passes.row_buffers import (
    ROW_PITCH,
    ROWS,
    chunk_rows,
    drained,
)
from codegen.passes.sides import Sides, sides_of
from codegen.passes.staged_rows import filling
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.offset_tables import CHUNK_BYTES, GROUP_COUNT, GROUP_RUN


def staged_groups(node: For, nest: CopyNest) -> Body:
    """Deinterleave the same elements of all groups, chunk by chunk, so that the source is read in order.

    before:  for group in 0..group_count:
               for row in 0..rows: for column in 0..2: dst_at[4*row + pitch*column] = src_at[…]
    after:   for number in chunks of rows:
               for part in runs of the chunk: for group in 0..group_count:
                 for row in past..past + run_rows: for column in 0..2: held[4*row + 384*column] = src_at[…]
               for group in 0..group_count: for column in 0..2:
                 drain the row from scratch

    `run` elements, at least a line, are contiguous; less than a line at the end joins the run before it.
    """
    src_offset, dst_offset, src, dst, _ = node.body
    assert isinstance(src, View), "a group has a view of the source"
    assert isinstance(dst, View), "a group has a view of the destination"
    long, width = nest.loops[0], nest.target.bits // 8
    length, line, most = long.extent, nest.lanes[long.axis], CHUNK_BYTES // width
    fill, drain = _fill(nest, (src_offset, src)), _drain(nest, dst)
    return (
        let("run", least(GROUP_RUN, most)),
        let("chunk", times(quotient(most, "run"), "run")),
        loop(
            "number",
            0,
            plus(quotient(minus(length, line), "chunk"), 1),
            let("first", times("number", "chunk")),
            *chunk_rows("chunk_rows", minus(length, "first"), "chunk", line),
            let("chunk_bytes", times("chunk_rows", width)),
            fill,
            loop("group", 0, GROUP_COUNT, dst_offset, *drain),
        ),
    )


def _fill(nest: CopyNest, source: tuple[Statement, ...]) -> Statement:
    """Deinterleave the rows of a chunk into scratch in source order, run by run."""
    (long, short), width = nest.loops, nest.target.bits // 8
    line, rows = nest.lanes[long.axis], nest.lanes[short.axis]
    held = plus(times("group", rows * ROW_PITCH), times("first", -width))
    return loop(
        "part",
        0,
        plus(quotient(minus("chunk_rows", line), "run"), 1),
        let("part_first", times("part", "run")),
        *chunk_rows("run_rows", minus("chunk_rows", "part_first"), "run", line),
        let("past", plus("first", "part_first")),
        loop(
            "group",
            0,
            GROUP_COUNT,
            *source,
            View("held", ROWS, held, opaque=True),
            filling(nest, Sides("held", sides_of(nest).src), index_of("past"), plus("past", "run_rows")),
        ),
    )


def _drain(nest: CopyNest, dst: View) -> Body:
    """Drain the chunk of a group's rows."""
    long, short = nest.loops
    length, count, pitch = long.extent, nest.lanes[short.axis], short.dst
    run = drained(
        "dst_row",
        "held",
        "chunk_bytes",
        (compare("first", "eq", 0), compare(plus("first", "chunk_rows"), "eq", length)),
    )
    row = plus(times("group", count), "column")
    columns = loop(
        "column",
        0,
        count,
        View("dst_row", dst.name, times("column", pitch), opaque=True),
        View("held", ROWS, times(row, ROW_PITCH), opaque=True),
        *run,
    )
    return replace(dst, offset=plus(dst.offset, times("first", nest.target.bits // 8))), columns
