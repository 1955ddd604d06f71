"""Lower interleaves of rows that are joined from digits shorter than a line.

Line k of the packed side begins at byte `line_offsets[k]`. Rows are contiguous and at least a line long. A
last block that would cross their end begins earlier and moves some elements again.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import (
    Term,
    compare,
    index_of,
    least,
    let,
    loop,
    minus,
    plus,
    quotient,
    times,
)
from codegen.ir.index import Index, index_symbol
from codegen.ir.nodes import Blocks, Entries, For, If, Let, Load, Statement, Streamed, View
from codegen.passes.lower_copies.packed_rows import PackedRows
from codegen.passes.lower_copies.row_buffers import (
    ROW_PITCH,
    ROWS,
    Ahead,
    chunk_rows,
    drain_row,
    prefetch_in_drain,
)
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.schedule.offset_tables import (
    CHUNK_BYTES,
    GROUP_AHEAD,
    GROUP_COUNT,
    GROUP_RUN,
    GROUP_TABLE,
    LINE_TABLE,
)


def joined_rows(rows: PackedRows, dst: str, src: str, *, stream: bool) -> For:
    """Interleave or deinterleave rows, with packed lines at the offsets of a table.

    before:  dst <- interleave src, 2 rows of columns u16, packed lines by a table
    after:   for column in 0..columns step 32:     at most columns - 32
               line = column // 16
               block = src[2*column] [2, 32]
               dst[line_offsets[line..]] = interleaved(block) [2, 32]

    Streamed packed lines are either all aligned or all unaligned: their offsets are multiples of a line.
    """
    streamed = (Streamed("full" if rows.packs else "begun"),) if stream else ()
    return _blocks(rows, dst, src, streamed=streamed)


def _blocks(
    rows: PackedRows, dst: str, src: str, *, first: Term = 0, streamed: tuple[Streamed, ...] = ()
) -> For:
    """Blocks of a line of each row; the table is that of rows that begin at element `first`."""
    along, _ = rows.indices
    line = let("line", _line(rows, plus(along, first)))
    block = rows.block(dst, src, along, rows.line, table=Entries(LINE_TABLE, index_symbol("line")))
    how = Blocks(latest=minus(rows.length, rows.line), streamed=streamed)
    return loop(along, 0, rows.length, line, *block, step=rows.line, blocks=how)


def _line(rows: PackedRows, at: Term) -> Index:
    """The number of the packed line that holds element `at` of all rows."""
    if rows.line % rows.count:
        return quotient(times(at, rows.count), rows.line)
    return index_of(at) if rows.line == rows.count else quotient(at, rows.line // rows.count)


def deinterleave_groups(rows: PackedRows, dst: str, src: str) -> tuple[Statement, ...]:
    """Deinterleave several groups of rows at the same time, so that the source is read in order.

    before:  for group in group_count: dst[…] <- deinterleave src[…], packed lines by a table
    after:   if rows < 256: for group in group_count: deinterleave it
             else:
               for number in chunks of rows:
                 for part in runs of the chunk: for group in group_count: deinterleave the run into scratch
                 for group in group_count: for column in 2: drain the row from scratch

    `run` elements, at least a line, are contiguous; a rest below a line belongs to the run before.
    """
    is_short = compare(rows.length, "lt", ROW_BUFFER_BYTES // rows.width)
    plain = loop("group", 0, GROUP_COUNT, *_group(dst, src), _blocks(rows, "dst_at", "src_at"))
    most = CHUNK_BYTES // rows.width
    chunks = plus(quotient(minus(rows.length, rows.line), "chunk"), 1)
    through = (
        let("run", least(GROUP_RUN, most)),
        let("chunk", times(quotient(most, "run"), "run")),
        let("last_line", plus(_line(rows, rows.length), -1)),
        loop(
            "number",
            0,
            chunks,
            let("first", times("number", "chunk")),
            *chunk_rows("chunk_rows", minus(rows.length, "first"), "chunk", rows.line),
            let("chunk_bytes", times("chunk_rows", rows.width)),
            _fill(rows, src),
            _drain(rows, dst, src),
        ),
    )
    return (If((is_short,), (plain,), through),)


def _group(dst: str, src: str) -> tuple[Statement, ...]:
    """The views of a group on both sides."""
    return (
        Let("group_src", Load(GROUP_TABLE, (times("group", 2),), "i64")),
        Let("group_dst", Load(GROUP_TABLE, (plus(times("group", 2), 1),), "i64")),
        View("src_at", src, index_symbol("group_src")),
        View("dst_at", dst, index_symbol("group_dst")),
    )


def _fill(rows: PackedRows, src: str) -> Statement:
    """Deinterleave the rows of a chunk into scratch in source order, run by run."""
    inside = replace(rows, length="run_rows", pitch=ROW_PITCH)
    group = plus(times("group", rows.count * ROW_PITCH), times("part_first", rows.width))
    return loop(
        "part",
        0,
        plus(quotient(minus("chunk_rows", rows.line), "run"), 1),
        let("part_first", times("part", "run")),
        *chunk_rows("run_rows", minus("chunk_rows", "part_first"), "run", rows.line),
        let("past", plus("first", "part_first")),
        loop(
            "group",
            0,
            GROUP_COUNT,
            Let("group_src", Load(GROUP_TABLE, (times("group", 2),), "i64")),
            View("src_at", src, index_symbol("group_src")),
            View("held", ROWS, group, opaque=True),
            _blocks(inside, "held", "src_at", first="past"),
        ),
    )


def _drain(rows: PackedRows, dst: str, src: str) -> Statement:
    """Drain the chunk of all rows, and prefetch what follows it in source order.

    A table has the elements and the bytes that each row prefetches ahead.
    """
    drained = drain_row(
        "dst_row",
        "held",
        "chunk_bytes",
        compare("first", "eq", 0),
        compare(plus("first", "chunk_rows"), "eq", rows.length),
    )
    row = plus(times("group", rows.count), "column")
    columns = loop(
        "column",
        0,
        rows.count,
        View("dst_row", "dst_at", times("column", rows.pitch), opaque=True),
        View("held", ROWS, times(row, ROW_PITCH), opaque=True),
        Let("ahead", Load(GROUP_AHEAD, (times(row, 2),), "i64")),
        Let("within", Load(GROUP_AHEAD, (plus(times(row, 2), 1),), "i64")),
        let("after", plus("first", "chunk_rows", "ahead")),
        let("line", least(_line(rows, "after"), "last_line")),
        Let("next_line", Load(LINE_TABLE, (index_symbol("line"),), "i64")),
        *prefetch_in_drain(drained, Ahead(src, plus("next_line", "within"))),
    )
    offset = Let("group_dst", Load(GROUP_TABLE, (plus(times("group", 2), 1),), "i64"))
    chunk = View("dst_at", dst, plus("group_dst", times("first", rows.width)))
    return loop("group", 0, GROUP_COUNT, offset, chunk, columns)
