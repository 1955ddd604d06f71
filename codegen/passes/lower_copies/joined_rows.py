"""Lower interleaves of rows that are joined from digits shorter than a line.

Line k of the packed side begins at byte `line_offsets[k]`. Rows are contiguous and at least a line long. A
last block that would cross their end begins earlier and moves some elements again.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, let, loop, minus, plus, quotient, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.nodes import Blocks, For, If, Let, Statement, Streamed, View
from codegen.ir.values import Entries, Load
from codegen.passes.lower_copies.packed_rows import PackedRows
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.schedule.offset_tables import GROUP_COUNT, GROUP_TABLE, LINE_TABLE


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


def _blocks(rows: PackedRows, dst: str, src: str, *, streamed: tuple[Streamed, ...] = ()) -> For:
    """Blocks of a line of each row."""
    along, _ = rows.indices
    line = let("line", _line(rows, along))
    block = rows.block(dst, src, along, rows.line, table=Entries(LINE_TABLE, index_symbol("line")))
    how = Blocks(latest=minus(rows.length, rows.line), streamed=streamed)
    return loop(along, 0, rows.length, line, *block, step=rows.line, blocks=how)


def _line(rows: PackedRows, at: Term) -> Index:
    """The number of the packed line that holds element `at` of all rows."""
    if rows.line % rows.count:
        return quotient(times(at, rows.count), rows.line)
    return index_of(at) if rows.line == rows.count else quotient(at, rows.line // rows.count)


def deinterleaved_groups(rows: PackedRows, dst: str, src: str) -> If:
    """Deinterleave several groups of rows, whose elements alternate in the source.

    before:  dst[…] <- deinterleave src[…] of each group, packed lines by a table
    after:   for group in 0..group_count: deinterleave it
             or, if rows >= 256: the same, {staged}

    Long rows go through scratch, for all groups at the same time: see `stage_rows`.
    """
    is_short = compare(rows.length, "lt", ROW_BUFFER_BYTES // rows.width)
    each = loop("group", 0, GROUP_COUNT, *_group(dst, src), _blocks(rows, "dst_at", "src_at"))
    return If((is_short,), (each,), (replace(each, blocks=Blocks(staged=True)),))


def _group(dst: str, src: str) -> tuple[Statement, ...]:
    """The views of a group on both sides."""
    return (
        Let("group_src", Load(GROUP_TABLE, (times("group", 2),), "i64")),
        Let("group_dst", Load(GROUP_TABLE, (plus(times("group", 2), 1),), "i64")),
        View("src_at", src, index_symbol("group_src")),
        View("dst_at", dst, index_symbol("group_dst")),
    )
