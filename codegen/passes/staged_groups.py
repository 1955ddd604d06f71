"""Several groups of packed rows at the same time: their chunks go through scratch in source order."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.element_types import bits_of
from codegen.ir.index import Index, index_symbol, substitute_index
from codegen.ir.nodes import Blocks, For, Let, Statement, Store, View
from codegen.ir.rewriting import Body, substituted
from codegen.ir.values import IndexValue, Load
from codegen.passes.row_buffers import (
    ROW_PITCH,
    ROWS,
    Ahead,
    chunk_rows,
    drain_row,
    prefetch_in_drain,
)
from codegen.schedule.offset_tables import CHUNK_BYTES, GROUP_AHEAD, GROUP_COUNT, GROUP_RUN, LINE_TABLE


def staged_groups(node: For) -> Body:
    """Deinterleave the same elements of all groups, chunk by chunk, so that the source is read in order.

    before:  for group in 0..group_count:
               for row in 0..rows step 16: dst_at[4*row] = deinterleaved_2(src_at[…]) [2, 16]
    after:   for number in chunks of rows:
               for part in runs of the chunk: for group in 0..group_count:
                 for row in 0..run_rows step 16: held[4*row] = deinterleaved_2(src_at[…]) [2, 16]
               for group in 0..group_count: for column in 0..2:
                 drain the row from scratch; prefetch what follows the chunk in source order

    `run` elements, at least a line, are contiguous; less than a line at the end joins the run before it.
    """
    src_offset, dst_offset, src, dst, rows = node.body
    assert isinstance(src, View), "a group has a view of the source"
    assert isinstance(dst, View), "a group has a view of the destination"
    assert isinstance(rows, For), "a group is a loop over blocks"
    (length,), line, width = rows.upper, rows.step, _width(rows)
    most = CHUNK_BYTES // width
    fill, drain = _fill(rows, (src_offset, src)), _drain(rows, dst, src.buffer)
    return (
        let("run", least(GROUP_RUN, most)),
        let("chunk", times(quotient(most, "run"), "run")),
        let("last_line", plus(_line(rows, length), -1)),
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


def _store(rows: For) -> Store:
    """What a block of rows stores."""
    (store,) = (x for x in rows.body if isinstance(x, Store))
    return store


def _width(rows: For) -> int:
    """The bytes of an element."""
    return bits_of(_store(rows).value.dtype) // 8


def _line(rows: For, at: Term) -> Index:
    """The number of the packed line that holds element `at` of all rows."""
    match rows.body[0]:
        case Let("line", IndexValue(index)):
            return substitute_index(index, rows.index, index_of(at))
    raise AssertionError("expected a block that begins with the number of its line")


def _fill(rows: For, source: tuple[Statement, ...]) -> Statement:
    """Deinterleave the rows of a chunk into scratch in source order, run by run."""
    store, line = _store(rows), rows.step
    group = plus(times("group", store.value.shape[0] * ROW_PITCH), times("part_first", _width(rows)))
    number, block, _ = rows.body
    number = substituted(number, rows.index, plus(rows.index, "past"))
    body = number, block, replace(store, array="held", steps=(ROW_PITCH, *store.steps[1:]))
    blocks = Blocks(latest=minus("run_rows", line))
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
            View("held", ROWS, group, opaque=True),
            replace(rows, upper=(index_of("run_rows"),), body=body, blocks=blocks),
        ),
    )


def _drain(rows: For, dst: View, src: str) -> Body:
    """Drain the chunk of a group's rows, and prefetch what follows it in source order.

    A table has the elements and the bytes that each row prefetches ahead.
    """
    (length,), count, pitch = rows.upper, _store(rows).value.shape[0], _store(rows).steps[0]
    assert isinstance(pitch, int | str), "rows are a pitch apart in the result"
    drained = drain_row(
        "dst_row",
        "held",
        "chunk_bytes",
        compare("first", "eq", 0),
        compare(plus("first", "chunk_rows"), "eq", length),
    )
    row = plus(times("group", count), "column")
    columns = loop(
        "column",
        0,
        count,
        View("dst_row", dst.name, times("column", pitch), opaque=True),
        View("held", ROWS, times(row, ROW_PITCH), opaque=True),
        Let("ahead", Load(GROUP_AHEAD, (times(row, 2),), "i64")),
        Let("within", Load(GROUP_AHEAD, (plus(times(row, 2), 1),), "i64")),
        let("after", plus("first", "chunk_rows", "ahead")),
        let("line", least(_line(rows, "after"), "last_line")),
        Let("next_line", Load(LINE_TABLE, (index_symbol("line"),), "i64")),
        *prefetch_in_drain(drained, Ahead(src, plus("next_line", "within"))),
    )
    return replace(dst, offset=plus(dst.offset, times("first", _width(rows)))), columns
