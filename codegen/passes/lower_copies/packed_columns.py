"""Lower the packing of columns: 8 / bits elements of each row below each other become a byte, or back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import Index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Each, If, Let, Load, Op, Prefetch, Statement, Store, View
from codegen.ir.packed_bits import COLUMNS
from codegen.passes.lower_copies.lowered import Lowered, named
from codegen.passes.lower_copies.row_buffers import ROW_PITCH, ROWS, Ahead, drain_row, scratch_rows
from codegen.schedule.limits import PREFETCH_COLUMNS, ROW_BUFFER_BYTES
from codegen.schedule.offset_tables import CHUNK_BYTES

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

    def lowered(self, dst: str, src: str, columns: int | str, *, stream: bool) -> Lowered:
        """All columns in blocks of 64, the rest in blocks of 16, the last of which overlaps.

        before:  dst <- columns columns of 4 bytes of 2 elements each, packed from src
        after:   for x in 0..columns // 64 * 64 step 64:
                   dst[4*x] = packed_4_from_rows(src[x] [8, 64]) [256]
                 the same with 16 columns; fewer than 16 columns are packed one by one
        """
        name, loose, packed = f"packed_{self.bits}", f"0 : {self.rows}, x", f"x, 0 : {self.count}"
        what = f"dst[{{at}}, {packed}] = {name}(src[{{at}}, {loose}])"
        if not self.packs:
            what = f"dst[{{at}}, {loose}] = un{name}(src[{{at}}, {packed}])"
        how = f"Blocks of {self.rows}x{BLOCK}{', streamed' * stream}"
        body = self.streamed(dst, src, columns) if stream else self.plain(dst, src, columns)
        scratch = scratch_rows(self.rows) if stream and not self.packs else ()
        return Lowered(body, f"{what}, x < {columns}", how, scratch)

    def offsets(self, at: Term) -> tuple[Index, Index]:
        """The offsets of a column on both sides: destination, source."""
        loose, packed = index_of(at), times(at, self.count)
        return (packed, loose) if self.packs else (loose, packed)

    def block(
        self, dst: str, src: str, to: Term, at: Term, columns: int, *, stream: bool = False
    ) -> tuple[Let, Store]:
        """Pack or unpack some columns, whose offsets on both sides are given."""
        if self.packs:
            loose = self._loose(src, at, columns)
            block = Op(f"packed_{self.bits}_from_rows", (loose,), "bits8", (columns * self.count,))
            store = Store(dst, (index_of(to),), named("block", block), (0,), (1,), streamed=stream)
        else:
            line = self._line(src, at, columns)
            name = f"unpacked_{self.bits}_into_{self.rows}_rows"
            block = Op(name, (line,), "bits8", (self.rows, columns))
            value, steps = named("block", block), (Each(self.step), 1)
            store = Store(dst, (index_of(to),), value, (0, 0), steps, streamed=stream)
        return Let("block", block), store

    def _loose(self, src: str, at: Term, columns: int) -> Load:
        """Some columns of all rows of loose elements."""
        return Load(src, (index_of(at),), "bits8", (self.rows, columns), (0, 0), (Each(self.step), 1))

    def _line(self, src: str, at: Term, columns: int) -> Load:
        """Some columns of packed bytes."""
        return Load(src, (index_of(at),), "bits8", (columns * self.count,), (0,), (1,))

    def plain(self, dst: str, src: str, columns: Term) -> tuple[Statement, ...]:
        """Full blocks, then small ones, the last of which overlaps; or single columns."""
        whole = multiple(columns, BLOCK)
        full = loop("x", 0, whole, *self.block(dst, src, *self.offsets("x"), BLOCK), step=BLOCK)
        return self._ladder(dst, src, columns, whole, full)

    def _ladder(
        self, dst: str, src: str, columns: Term, whole: Term, *full: Statement
    ) -> tuple[Statement, ...]:
        start = let("at", least("x", minus(columns, SMALL)))
        few = loop("x", whole, columns, start, *self.block(dst, src, *self.offsets("at"), SMALL), step=SMALL)
        single = loop("x", 0, columns, *self.block(dst, src, *self.offsets("x"), 1))
        return (If((compare(columns, "ge", SMALL),), (*full, few), (single,)),)

    def streamed(self, dst: str, src: str, columns: int | str) -> tuple[Statement, ...]:
        """Full blocks past the cache if they begin on lines; otherwise without, or through scratch."""
        tests = [compare(rest(dst, LINE_BYTES), "eq", 0)]
        if not self.packs:
            tests.append(compare(rest(self.step, LINE_BYTES), "eq", 0))
        to, at = self.offsets("whole")
        block, store = self.block(dst, src, *self.offsets("x"), BLOCK, stream=True)
        ends = View("dst_end", dst, to), View("src_end", src, at)
        few = let("few", minus(columns, "whole"))
        body = (
            let("whole", multiple(columns, BLOCK)),
            loop("x", 0, "whole", block, self._prefetch(src), store, step=BLOCK),
            *ends,
            few,
            *self._ladder("dst_end", "src_end", "few", 0),
        )
        otherwise = self.plain(dst, src, columns)
        if not self.packs:
            is_long = compare(columns, "ge", ROW_BUFFER_BYTES)
            otherwise = (If((is_long,), (self._through_scratch(dst, src, columns),), otherwise),)
        return (If(tuple(tests), body, otherwise),)

    def _prefetch(self, src: str) -> Prefetch:
        """As many columns of the source, PREFETCH_COLUMNS ahead.

        It follows the loads of a block, which would otherwise wait for up to 32 lines.
        """
        _, ahead = self.offsets(plus("x", PREFETCH_COLUMNS))
        return Prefetch(self._loose(src, ahead, BLOCK) if self.packs else self._line(src, ahead, BLOCK))

    def _through_scratch(self, dst: str, src: str, columns: int | str) -> Statement:
        """Unpack chunks of all rows into scratch, then drain it row by row.

        for chunk in 0..columns step 256:
          scratch_rows <- unpack src[4*chunk], chunk_columns columns
          for row in 0..8: drain the row from scratch_rows[384*row]
        """
        inside = replace(self, step=ROW_PITCH)
        ahead = plus(times("chunk_columns", self.count), times(rest("row", self.count), CHUNK_BYTES))
        ends = plus("chunk", "chunk_columns")
        return loop(
            "chunk",
            0,
            columns,
            let("chunk_columns", least(minus(columns, "chunk"), CHUNK_BYTES)),
            View("src_chunk", src, times("chunk", self.count), opaque=True),
            *inside.plain(ROWS, "src_chunk", "chunk_columns"),
            loop(
                "row",
                0,
                self.rows,
                View("dst_row", dst, plus(times("row", self.step), "chunk"), opaque=True),
                View("held", ROWS, times("row", ROW_PITCH), opaque=True),
                *drain_row(
                    "dst_row",
                    "held",
                    "chunk_columns",
                    compare("chunk", "eq", 0),
                    compare(ends, "eq", columns),
                    Ahead("src_chunk", ahead),
                ),
            ),
            step=CHUNK_BYTES,
        )
