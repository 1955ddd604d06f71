"""Lower the packing and unpacking of columns: a byte holds 8 / bits elements of a column."""

from __future__ import annotations

from codegen.ir.building import Term, index_of, loop, times
from codegen.ir.index import Index
from codegen.ir.nodes import Blocks, Let, Narrow, Store
from codegen.ir.packed_bits import COLUMNS
from codegen.ir.streams import Stream
from codegen.ir.values import Each, Load, Op
from codegen.passes.lower_copies.lowered import Lowered, named
from codegen.schedule.limits import ROW_BUFFER_BYTES
from codegen.support.dataclasses import dataclass

_, SMALL, BLOCK = COLUMNS
"""Columns of a full block, and of one for the rest."""


@dataclass(frozen=True, slots=True)
class PackedColumns:
    """Columns of `count` bytes of packed elements, which follow each other; rows are `step` bytes apart."""

    bits: int
    packs: bool
    count: int
    step: int | str

    @property
    def rows(self) -> int:
        """Rows of loose elements."""
        return self.count * 8 // self.bits

    def lowered(
        self, dst: str, src: str, columns: int | str, *, stream: bool, prefetch_bytes: int
    ) -> Lowered:
        """All columns in blocks of 64.

        before:  dst <- columns columns of 4 bytes of 2 elements each, packed from src
        after:   for x in 0..columns step 64:
                   dst[4*x] = packed_4_from_rows(src[x] [8, 64]) [256]
                 narrower: 16 and single columns

        Unpacked rows that do not begin lines go through scratch, unless they are short.
        """
        name, loose, packed = f"packed_{self.bits}", f"0 : {self.rows}, x", f"x, 0 : {self.count}"
        what = f"dst[{{at}}{packed}] = {name}(src[{{at}}{loose}])"
        if not self.packs:
            what = f"dst[{{at}}{loose}] = un{name}(src[{{at}}{packed}])"
        how = f"Blocks of {self.rows}x{BLOCK}"
        few, one = (Narrow(n, self.block(dst, src, *self.offsets("x"), n)) for n in (SMALL, 1))
        ways = [Stream("begun", prefetch_bytes=prefetch_bytes)] * stream
        if stream and not self.packs:
            ways.append(Stream("staged", ROW_BUFFER_BYTES))
        blocks = Blocks((few, one), compact=True, streamed=tuple(ways))
        body = loop(
            "x", 0, columns, *self.block(dst, src, *self.offsets("x"), BLOCK), step=BLOCK, blocks=blocks
        )
        return Lowered((body,), f"{what}, x < {columns}", how)

    def offsets(self, at: Term) -> tuple[Index, Index]:
        """The offsets of a column on both sides: destination, source."""
        loose, packed = index_of(at), times(at, self.count)
        return (packed, loose) if self.packs else (loose, packed)

    def block(self, dst: str, src: str, to: Term, at: Term, columns: int) -> tuple[Let, Store]:
        """Pack or unpack some columns, whose offsets on both sides are given."""
        if self.packs:
            loose = self._loose(src, at, columns)
            block = Op(f"packed_{self.bits}_from_rows", (loose,), "bits8", (columns * self.count,))
            store = Store(dst, (index_of(to),), named("block", block), (0,), (1,))
        else:
            line = self._line(src, at, columns)
            name = f"unpacked_{self.bits}_into_{self.rows}_rows"
            block = Op(name, (line,), "bits8", (self.rows, columns))
            value, steps = named("block", block), (Each(self.step), 1)
            store = Store(dst, (index_of(to),), value, (0, 0), steps)
        return Let("block", block), store

    def _loose(self, src: str, at: Term, columns: int) -> Load:
        """Some columns of all rows of loose elements."""
        return Load(src, (index_of(at),), "bits8", (self.rows, columns), (0, 0), (Each(self.step), 1))

    def _line(self, src: str, at: Term, columns: int) -> Load:
        """Some columns of packed bytes."""
        return Load(src, (index_of(at),), "bits8", (columns * self.count,), (0,), (1,))
