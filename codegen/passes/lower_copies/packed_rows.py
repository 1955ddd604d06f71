"""Blocks of an interleave: a few rows that are packed together on one side, some elements of each."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.building import Term, compare, index_of, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import index_symbol
from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Entries, If, Let, Load, Local, Op, Statement, Step, Store, View
from codegen.schedule.transfers import Interleave


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
        self, dst: str, src: str, at: Term, size: int, *, stream: bool = False, table: Entries | None = None
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
        return (
            Let("block", loaded),
            Store(dst, (write,), value, (0,) * len(made), steps, streamed=stream),
        )

    def elements(self, dst: str, src: str, first: Term) -> Statement:
        """Move single elements, from element `first` of each row on."""
        along, across = self.indices
        packed = plus(times(along, self.count * self.width), times(across, self.width))
        apart = plus(times(across, self.pitch), times(along, self.width))
        to, at = (packed, apart) if self.packs else (apart, packed)
        move = Store("to", (index_of(0),), Load("at", (index_of(0),), self.dtype))
        return loop(
            along,
            first,
            self.length,
            loop(across, 0, self.count, View("to", dst, to), View("at", src, at), move),
        )

    def blocks(
        self, dst: str, src: str, sizes: tuple[int, ...] | None = None, first: Term = 0
    ) -> tuple[Statement, ...]:
        """Move each row from element `first` on, by the largest blocks that fit; the last may begin earlier.

        if length >= 32:    for c in 0..length - 32 step 32: 32 of each; the last 32
        elif length >= 16:  the first 16; the last 16
        elif length >= 8:   the first 8; the last 8
        else:               single elements

        `sizes` are those of the blocks, largest first; all of them by default.
        """
        out: tuple[Statement, ...] = (self.elements(dst, src, first),)
        for size in reversed(self.sizes if sizes is None else sizes):
            fits = compare(minus(self.length, first), "ge", size)
            moved = self.lines(dst, src) if size == self.line else self.two_blocks(dst, src, first, size)
            out = (If((fits,), moved, out),)
        return out

    def lines(self, dst: str, src: str) -> tuple[Statement, ...]:
        """Move rows of a line at least: full blocks, then one more that overlaps the last."""
        along, _ = self.indices
        block = self.block(dst, src, along, self.line)
        return (
            let("last", minus(self.length, self.line)),
            loop(along, 0, "last", *block, step=self.line),
            *self.block(dst, src, "last", self.line),
        )

    def two_blocks(self, dst: str, src: str, first: Term, size: int) -> tuple[Statement, ...]:
        """Move rows of one or two blocks, which may overlap."""
        return (
            let("last", minus(self.length, size)),
            *self.block(dst, src, first, size),
            If((compare("last", "gt", first),), self.block(dst, src, "last", size)),
        )

    def full_blocks(self, dst: str, src: str) -> tuple[Statement, ...]:
        """Stream all full blocks; `whole` is the number of elements in them."""
        along, _ = self.indices
        return (
            let("whole", multiple(self.length, self.line)),
            loop(along, 0, "whole", *self.block(dst, src, along, self.line, stream=True), step=self.line),
        )

    def streamed(self, dst: str, src: str) -> tuple[Statement, ...]:
        """Stream full blocks; then, as far as they fill lines of the packed side, one smaller block each."""
        if not self.packs:
            return *self.full_blocks(dst, src), *self.blocks(dst, src, self.sizes[1:], index_symbol("whole"))
        out = [*self.full_blocks(dst, src)]
        done, sizes = "whole", self.sizes[1:]
        while sizes and sizes[0] * self.count * self.width % LINE_BYTES == 0:
            size, sizes = sizes[0], sizes[1:]
            fits = compare(rest(self.length, 2 * size), "ge", size)
            out.append(If((fits,), self.block(dst, src, done, size, stream=True)))
            done = f"whole_{size}s"
            out.append(let(done, multiple(self.length, size)))
        return *out, *self.blocks(dst, src, sizes, done)


def rows_of(stmt: Interleave) -> PackedRows:
    """The rows that an interleave packs together."""
    if stmt.side == "dst":
        count, length, pitch = stmt.rows, stmt.columns, stmt.row_step
    else:
        count, length, pitch = stmt.columns, stmt.rows, stmt.column_step
    if not isinstance(count, int):
        raise AssertionError("an interleave packs a known number of rows")
    return PackedRows(stmt.width, count, length, pitch, stmt.side == "dst")
