"""Lower the packing of elements of 1, 2 or 4 bits, and their unpacking: runs, columns, strided elements."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.building import Term, compare, index_of, let, loop, minus, multiple, plus, rest, times
from codegen.ir.index import FloorDiv, Index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, If, Let, Load, Op, Prefetch, Statement, Store, View
from codegen.passes.lower_copies.lowered import Lowered, Sides, named
from codegen.passes.lower_copies.packed_columns import PackedColumns
from codegen.schedule.limits import PACKED_PREFETCH_BYTES, PACKED_SHORT_BYTES
from codegen.schedule.transfers import PackBits, Size, UnpackBits

WORD_BYTES = 8
"""Packed bytes of the super-vectors after the last full line."""


def lower_packing(stmt: PackBits, sides: Sides) -> Lowered:
    """Pack 8 / bits elements, a byte each, into each of `count` bytes.

    before:  dst <- count bytes of 2 elements each, packed from src
    after:   for x in 0..count // 64 * 64 step 64: dst[x] = packed_4(src[2*x] [128]) [64]
             the same with 8 bytes, then the last 8 bytes
    """
    return _lowered(stmt, stmt.src_step, sides)


def lower_unpacking(stmt: UnpackBits, sides: Sides) -> Lowered:
    """Unpack each of `count` bytes into 8 / bits elements, a byte each.

    before:  dst <- count bytes of 2 elements each, unpacked from src
    after:   for x in 0..count // 32 * 32 step 32: dst[2*x] = unpacked_4(src[x] [32]) [64]
             the same with 8 bytes, then the last 8 bytes
    """
    return _lowered(stmt, stmt.dst_step, sides)


def _lowered(stmt: PackBits | UnpackBits, step: Size, sides: Sides) -> Lowered:
    packs, bits, dst, src = isinstance(stmt, PackBits), stmt.bits, sides.dst, sides.src
    if stmt.columns != 1:
        if not isinstance(stmt.count, int):
            raise AssertionError("the bytes of a column are known")
        columns = PackedColumns(bits, packs, stmt.count, step)
        return columns.lowered(dst, src, stmt.columns, stream=stmt.stream)
    group, count = 8 // bits, stmt.count
    if step != 1:
        column = PackedColumns(bits, packs, 1, step)
        body: tuple[Statement, ...] = (_strided(column, dst, src, count),)
        how = f"Elements {step} bytes apart"
    else:
        run = _Run(bits, packs)
        body = run.streamed(dst, src, count) if stmt.stream else run.plain(dst, src, count)
        how = f"Super-vectors of 64 bytes{', streamed' * stmt.stream}"
    loose = f"{{at}}, {group}*x : {group}*x + {group}"
    what = f"dst[{{at}}, x] = packed_{bits}(src[{loose}])"
    if not packs:
        what = f"dst[{loose}] = unpacked_{bits}(src[{{at}}, x])"
    return Lowered(body, f"{what}, x < {count} bytes", how)


def _strided(column: PackedColumns, dst: str, src: str, count: int | str) -> Statement:
    """Byte by byte: its elements are a column of a few rows."""
    group = 8 // column.bits
    loose = times(times("x", group), column.step)
    to, at = ("x", loose) if column.packs else (loose, "x")
    return loop("x", 0, count, *column.block(dst, src, to, at, 1))


@dataclass(frozen=True, slots=True)
class _Run:
    """Contiguous elements of `bits` bits that are packed, or unpacked; offsets count packed bytes."""

    bits: int
    packs: bool

    @property
    def group(self) -> int:
        """Elements of a byte."""
        return 8 // self.bits

    @property
    def line(self) -> int:
        """Packed bytes for which the destination is a line."""
        return LINE_BYTES if self.packs else LINE_BYTES * self.bits // 8

    def offsets(self, at: Term) -> tuple[Index, Index]:
        """The offsets on both sides: destination, source."""
        packed, loose = index_of(at), times(at, self.group)
        return (packed, loose) if self.packs else (loose, packed)

    def block(
        self, dst: str, src: str, at: Term, size: int, *, stream: bool = False
    ) -> tuple[Statement, ...]:
        """dst[at] = packed(src[at]), `size` packed bytes."""
        (to, begin), loose = self.offsets(at), size * self.group
        before, after = (loose, size) if self.packs else (size, loose)
        name = f"{'packed' if self.packs else 'unpacked'}_{self.bits}"
        block = Op(name, (Load(src, (begin,), "bits8", (before,), (0,), (1,)),), "bits8", (after,))
        return Let("block", block), Store(dst, (to,), named("block", block), (0,), (1,), streamed=stream)

    def part(self, dst: str, src: str, count: Term) -> Call:
        """Fewer bytes than a line."""
        name = f"{'pack' if self.packs else 'unpack'}_part_{self.bits}"
        return Call(name, (dst, src, index_of(count)))

    def plain(self, dst: str, src: str, count: int | str) -> tuple[Statement, ...]:
        """Full lines of the destination, then words, then one more word that overlaps the last."""
        lines, last = multiple(count, self.line), minus(count, WORD_BYTES)
        body: list[Statement] = [loop("x", 0, lines, *self.block(dst, src, "x", self.line), step=self.line)]
        if self.line > WORD_BYTES:
            word = self.block(dst, src, "x", WORD_BYTES)
            body.append(loop("x", lines, last, *word, step=WORD_BYTES))
        rest_ = compare(rest(count, self.line), "ne", 0)
        body.append(If((rest_,), self.block(dst, src, last, WORD_BYTES)))
        return (If((compare(count, "ge", WORD_BYTES),), tuple(body), (self.part(dst, src, count),)),)

    def streamed(self, dst: str, src: str, count: int | str) -> tuple[Statement, ...]:
        """Full lines past the cache, between the bytes before and after them."""
        size = 1 if self.packs else self.group
        to_line = rest(times(dst, -1), LINE_BYTES)
        head = to_line if self.packs else FloorDiv(to_line, self.group)
        tests = [compare(times(count, size), "ge", PACKED_SHORT_BYTES)]
        if not self.packs:  # else no element begins on a line
            tests.append(compare(rest(dst, size), "eq", 0))
        stop = plus("head", multiple(minus(count, "head"), self.line))
        to, at = self.offsets("stop")
        ends = View("dst_end", dst, to), View("src_end", src, at)
        body = (
            let("head", head),
            let("stop", stop),
            self.part(dst, src, "head"),
            loop("x", "head", "stop", *self.prefetched_block(dst, src), step=self.line),
            *ends,
            self.part("dst_end", "src_end", minus(count, "stop")),
        )
        return (If(tuple(tests), body, self.plain(dst, src, count)),)

    def prefetched_block(self, dst: str, src: str) -> tuple[Statement, ...]:
        """A streamed line, and prefetches of as many bytes of the source."""
        _, ahead = self.offsets("x")
        size = self.line * self.group if self.packs else self.line
        load = Load(src, (plus(ahead, PACKED_PREFETCH_BYTES),), "bits8", (size,), (0,), (1,))
        return Prefetch(load), *self.block(dst, src, "x", self.line, stream=True)
