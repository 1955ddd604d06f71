"""Lower interleaves of rows that are joined from digits shorter than a line.

Line k of the packed side begins at byte `line_offsets[k]`. Rows are contiguous and at least a line long. A
last block that would cross their end begins earlier and moves some elements again.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, index_of, let, loop, minus, plus, quotient, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, For, If, Let, Statement, Store, View
from codegen.ir.streams import Stream
from codegen.ir.values import Entries, Load, Local, Op, Step
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.schedule.offset_tables import GROUP_COUNT, GROUP_TABLE, LINE_TABLE
from codegen.schedule.transfers import Interleave
from codegen.support.dataclasses import dataclass


def lower_interleave(stmt: Interleave, sides: Sides) -> Lowered:
    """Interleave or deinterleave rows, with packed lines at the offsets of a table.

    before:  dst <- interleave src, 2 rows of columns u16, packed lines by a table
    after:   for column in 0..columns step 32:     at most columns - 32
               line = column // 16
               block = src[2*column] [2, 32]
               dst[line_offsets[line..]] = interleaved(block) [2, 32]

    Streamed packed lines are either all aligned or all unaligned: their offsets are multiples of a line.
    """
    rows = _rows(stmt)
    what = (
        f"dst[{{at}}column, row] = src[{{at}}row, column], row < {stmt.rows}, "
        f"column < {stmt.columns}, u{8 * stmt.width}"
    )
    how = f"Super-vectors of {rows.count}x{rows.line}, {'interleaved' if rows.packs else 'deinterleaved'}"
    if stmt.groups:
        body: Statement = _deinterleaved_groups(rows, sides.dst, sides.src)
        how += f" into scratch for all groups at once; packed lines at {LINE_TABLE}"
        return Lowered((body,), what.replace("{at}", "{at}group, "), how)
    streamed = (Stream("full" if rows.packs else "begun"),) if stmt.stream else ()
    body = _blocks(rows, sides.dst, sides.src, streamed=streamed)
    return Lowered((body,), what, f"{how}; packed lines at {LINE_TABLE}")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that are packed together on one side, and separate on the other.

    Attributes:
        width: bytes of an element.
        count: the number of rows, a literal.
        length: elements of each row.
        pitch: bytes from one separate row to the next.
        packs: whether the destination is the packed side, so that rows are interleaved.
    """

    width: int
    count: int
    length: int | str
    pitch: int | str
    packs: bool

    @property
    def line(self) -> int:
        """Elements of a line."""
        return LINE_BYTES // self.width

    def block(self, dst: str, src: str, at: str) -> tuple[Statement, ...]:
        """Move a line of each row, from element `at` on.

        block = src[at] [2, 32]                       dst[line_offsets[line..]] = interleaved(block) [2, 32]
        block = src[line_offsets[line..]] [2, 32]     dst[at] = deinterleaved_2(block) [2, 32]
        """
        dtype, shape = f"bits{8 * self.width}", (self.count, self.line)
        lines: tuple[Step, ...] = (Entries(LINE_TABLE, index_symbol("line")), self.width)
        packed, apart = (index_of(0), lines), (times(at, self.width), (self.pitch, self.width))
        (read, from_), (write, to) = (apart, packed) if self.packs else (packed, apart)
        loaded = Load(src, (read,), dtype, shape, (0, 0), from_)
        name = "interleaved" if self.packs else f"deinterleaved_{self.count}"
        value = Op(name, (Local("block", dtype, shape),), dtype, shape)
        return Let("block", loaded), Store(dst, (write,), value, (0, 0), to)

    def line_of(self, at: str) -> Index:
        """The number of the packed line that holds element `at` of all rows."""
        if self.line % self.count:
            return quotient(times(at, self.count), self.line)
        return index_of(at) if self.line == self.count else quotient(at, self.line // self.count)


def _rows(stmt: Interleave) -> _Rows:
    """The rows that an interleave packs together."""
    if stmt.side == "dst":
        count, length, pitch = stmt.rows, stmt.columns, stmt.row_step
    else:
        count, length, pitch = stmt.columns, stmt.rows, stmt.column_step
    if not isinstance(count, int):
        raise AssertionError("an interleave packs a known number of rows")
    return _Rows(stmt.width, count, length, pitch, stmt.side == "dst")


def _blocks(rows: _Rows, dst: str, src: str, *, streamed: tuple[Stream, ...] = ()) -> For:
    """Blocks of a line of each row."""
    along = "column" if rows.packs else "row"
    block = let("line", rows.line_of(along)), *rows.block(dst, src, along)
    how = Blocks(latest=minus(rows.length, rows.line), streamed=streamed)
    return loop(along, 0, rows.length, *block, step=rows.line, blocks=how)


def _deinterleaved_groups(rows: _Rows, dst: str, src: str) -> If:
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
