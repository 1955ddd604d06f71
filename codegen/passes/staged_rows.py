"""Result rows that begin anywhere in a line: they go through scratch, which is drained in full lines."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, let, loop, minus, plus, times
from codegen.ir.index import Index
from codegen.ir.nodes import For, View
from codegen.passes.row_buffers import (
    ROW_PITCH,
    ROWS,
    chunk_rows,
    drained,
)
from codegen.passes.scalar_statement import inner_loops
from codegen.passes.sides import Sides, sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import int_size
from codegen.schedule.offset_tables import CHUNK_BYTES


def through_scratch(node: For, nest: CopyNest) -> For:
    """Move chunks of all rows into scratch, then drain it row by row.

    before:  for x in 0..count: for row in 0..2: dst[4*x + pitch*row] = src[8*x + 4*row]
    after:   for chunk in 0..count - 15 step 64:
               chunk_rows = 64, or the rest of the rows, if there is less than a line more
               src_chunk = src + 8*chunk
               for x in 0..chunk_rows: for row in 0..2: scratch_rows[4*x + 384*row] = src_chunk[8*x + 4*row]
               for row in 0..2: drain the row from scratch_rows[384*row]

    Several groups of rows are staged at the same time: see `staged_groups`.
    """
    (long, short), sides, (first,), (last,) = nest.loops, sides_of(nest), node.lower, node.upper
    rows, lanes = nest.lanes[short.axis], nest.lanes[long.axis]
    width, packed = nest.target.bits // 8, int_size(long.src)
    run = drained(
        "dst_row",
        "held",
        "chunk_bytes",
        (compare("chunk", "eq", first), compare(plus("chunk", "chunk_rows"), "eq", last)),
    )
    result = plus(times(short.axis, short.dst), times("chunk", width))
    return loop(
        "chunk",
        first,
        minus(last, lanes - 1),
        *chunk_rows("chunk_rows", minus(last, "chunk"), CHUNK_BYTES // width, lanes),
        let("chunk_bytes", times("chunk_rows", width)),
        View("src_chunk", sides.src, times("chunk", packed), opaque=True),
        filling(nest, Sides(ROWS, "src_chunk"), index_of(0), index_of("chunk_rows")),
        loop(
            short.axis,
            0,
            rows,
            View("dst_row", sides.dst, result, opaque=True),
            View("held", ROWS, times(short.axis, ROW_PITCH), opaque=True),
            *run,
        ),
        step=CHUNK_BYTES // width,
    )


def filling(nest: CopyNest, sides: Sides, first: Index, last: Index) -> For:
    """The loops of a nest whose rows are in scratch; at least a super-vector of each is moved."""
    long, short = nest.loops
    held = replace(nest, loops=(long, replace(short, dst=ROW_PITCH)))
    (made,) = inner_loops(held, sides)
    assert isinstance(made, For), "a nest has a loop over rows"
    return replace(made, lower=(first,), upper=(last,), fewest=nest.lanes[long.axis])
