"""Blocks of an interleave: a few rows that are packed together on one side, some elements of each."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, loop, plus, rest, times
from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, For, If, Let, Narrow, Statement, Store, Streamed
from codegen.ir.values import Entries, Load, Local, Op, Step
from codegen.passes.lower_copies.lowered import moved_element
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.schedule.transfers import Interleave
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackedRows:
    """The rows of an interleave that are packed together on one side, and separate on the other.

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
    def dtype(self) -> str:
        """Elements are only moved."""
        return f"bits{8 * self.width}"

    @property
    def line(self) -> int:
        """Elements of a line."""
        return LINE_BYTES // self.width

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of each row in a block, largest first: the shapes that interleaves take."""
        shapes = instruction("interleaved").shapes[8 * self.width]
        return tuple(columns for rows, columns in shapes if rows == self.count)

    @property
    def indices(self) -> tuple[str, str]:
        """The names of the loops along the rows and across them."""
        return ("column", "row") if self.packs else ("row", "column")

    def block(
        self, dst: str, src: str, at: Term, size: int, table: Entries | None = None
    ) -> tuple[Statement, ...]:
        """Move `size` elements of each row, from element `at` on.

        block = src[at] [2, 32]      dst[2*at] = interleaved(block) [64]
        block = src[2*at] [64]       dst[at] = deinterleaved_2(block) [2, 32]

        With a table, the lines of the packed side are at its entries.
        """
        packed = (table, self.width) if table else (self.width,)
        apart: tuple[Step, ...] = (self.pitch, self.width)
        shape = (self.count, size)
        flat = shape if table else (self.count * size,)
        near = index_of(0) if table else times(at, self.count * self.width)
        far = times(at, self.width)
        name = "interleaved" if self.packs else f"deinterleaved_{self.count}"
        read, steps, given = (far, apart, shape) if self.packs else (near, packed, flat)
        loaded = Load(src, (read,), self.dtype, given, (0,) * len(given), steps)
        write, steps, made = (near, packed, flat) if self.packs else (far, apart, shape)
        value = Op(name, (Local("block", self.dtype, given),), self.dtype, made)
        return Let("block", loaded), Store(dst, (write,), value, (0,) * len(made), steps)

    def loop(self, dst: str, src: str, *, stream: bool = False) -> For:
        """All elements of each row, in blocks of a line of each, then in narrower ones.

        Deinterleaved rows that do not begin lines go through scratch, unless they are short.
        """
        along, _ = self.indices
        line, *sizes = (Narrow(n, self.block(dst, src, along, n)) for n in self.sizes)
        streamed = (Streamed("begun"),) if stream else ()
        if stream and not self.packs:
            streamed = (*streamed, Streamed("staged", ROW_BUFFER_BYTES // self.width))
        blocks = Blocks((*sizes, Narrow(1, (self.elements(dst, src),))), streamed=streamed)
        return loop(along, 0, self.length, *line.body, step=self.line, blocks=blocks)

    def in_one_block(self, dst: str, src: str, *, stream: bool) -> tuple[Statement, ...]:
        """All elements of rows that are lines, one after the other.

        block = src[0] [64]
        if dst % 64 == 0: dst[0] = deinterleaved_4(block) [4, 16] @streamed
        else: dst[0] = deinterleaved_4(block) [4, 16]
        """
        assert isinstance(self.length, int), "the length of rows in one block is a literal"
        *before, store = self.block(dst, src, 0, self.length)
        assert isinstance(store, Store), "a block ends in its store"
        if self.count * self.length * self.width == LINE_BYTES:
            value = Op("rows_in_line", (store.value,), self.dtype, (self.line,))
            store = replace(store, value=value, dims=(0,), steps=(self.width,))
        if not stream:
            return (*before, store)
        begins_line = compare(rest(dst, LINE_BYTES), "eq", 0)
        return (*before, If((begins_line,), (replace(store, streamed=True),), (store,)))

    def elements(self, dst: str, src: str) -> Statement:
        """Move one element of each row."""
        along, across = self.indices
        packed = plus(times(along, self.count * self.width), times(across, self.width))
        apart = plus(times(across, self.pitch), times(along, self.width))
        to, at = (packed, apart) if self.packs else (apart, packed)
        return loop(across, 0, self.count, *moved_element(self.width, dst, to, src, at))


def rows_of(stmt: Interleave) -> PackedRows:
    """The rows that an interleave packs together."""
    if stmt.side == "dst":
        count, length, pitch = stmt.rows, stmt.columns, stmt.row_step
    else:
        count, length, pitch = stmt.columns, stmt.rows, stmt.column_step
    if not isinstance(count, int):
        raise AssertionError("an interleave packs a known number of rows")
    return PackedRows(stmt.width, count, length, pitch, stmt.side == "dst")
