"""Result rows that begin anywhere in a line: they go through scratch, which is drained in full lines."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, let, loop, minus, plus, rest, times
from codegen.ir.element_types import bits_of
from codegen.ir.nodes import Blocks, For, Let, Statement, Store, View
from codegen.ir.rewriting import on_buffers
from codegen.ir.values import Each
from codegen.ir.visit import coefficient, loads
from codegen.passes.row_buffers import (
    ROW_PITCH,
    ROWS,
    Ahead,
    chunk_rows,
    drain_row,
    prefetch_in_drain,
)
from codegen.schedule.offset_tables import CHUNK_BYTES


def through_scratch(node: For) -> For:
    """Move chunks of all rows into scratch, then drain it row by row.

    before:  for x in 0..count step 16: dst[4*x] = deinterleaved_2(src[8*x] [32]) [2, 16]
    after:   for chunk in 0..count - 15 step 64:
               chunk_rows = 64, or the rest of the rows, if there is less than a line more
               src_chunk = src + 8*chunk
               for x in 0..chunk_rows step 16:     at most chunk_rows - 16
                 scratch_rows[4*x] = deinterleaved_2(src_chunk[8*x] [32]) [2, 16]
               for row in 0..2: drain the row from scratch_rows[384*row]; prefetch the next chunk

    Several groups of rows are staged at the same time: see `staged_groups`.
    """
    (store,) = (x for x in node.body if isinstance(x, Store))
    (count,), (load,) = node.upper, (x for s in node.body if isinstance(s, Let) for x in loads(s.value))
    rows, width = store.value.shape[0], bits_of(store.value.dtype) // 8
    size, packed = CHUNK_BYTES // width, coefficient(load.subscripts[0], node.index)
    pitch = store.steps[0].step if isinstance(store.steps[0], Each) else store.steps[0]
    if not packed or not isinstance(pitch, int | str):
        raise AssertionError("expected rows that are packed in the source, and a pitch apart in the result")
    lines = packed // width  # of CHUNK_BYTES each that the next chunk reads
    row = index_of("row") if lines == rows else rest("row", lines)
    drained = drain_row(
        "dst_row",
        "held",
        "chunk_bytes",
        compare("chunk", "eq", 0),
        compare(plus("chunk", "chunk_rows"), "eq", count),
    )
    next_chunk = Ahead("src_chunk", plus(times("chunk_rows", packed), times(row, CHUNK_BYTES)))
    return loop(
        "chunk",
        0,
        minus(count, node.step - 1),
        *chunk_rows("chunk_rows", minus(count, "chunk"), size, node.step),
        let("chunk_bytes", times("chunk_rows", width)),
        View("src_chunk", load.array, times("chunk", packed), opaque=True),
        _fill(node),
        loop(
            "row",
            0,
            rows,
            View("dst_row", store.array, plus(times("row", pitch), times("chunk", width)), opaque=True),
            View("held", ROWS, times("row", ROW_PITCH), opaque=True),
            *prefetch_in_drain(drained, next_chunk),
        ),
        step=size,
    )


def _fill(node: For) -> For:
    """The loop over the blocks of a chunk, at least one, from the source into scratch."""

    def block(statement: Statement) -> Statement:
        match statement:
            case Let(value=value):
                return on_buffers(statement, {load.array: "src_chunk" for load in loads(value)})
            case Store(steps=(step, *others)):
                pitch = replace(step, step=ROW_PITCH) if isinstance(step, Each) else ROW_PITCH
                return replace(statement, array=ROWS, steps=(pitch, *others))
        raise AssertionError(f"staged_rows: no rule for {type(statement).__name__} in a block")

    blocks = Blocks(latest=minus("chunk_rows", node.step))
    return replace(node, upper=(index_of("chunk_rows"),), body=tuple(map(block, node.body)), blocks=blocks)
