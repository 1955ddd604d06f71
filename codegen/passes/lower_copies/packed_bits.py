"""Lower the packing and unpacking of elements of 1, 2 or 4 bits: runs, columns, strided elements."""

from __future__ import annotations

from codegen.ir.building import Term, index_of, loop, times
from codegen.ir.index import Index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Call, For, Let, Narrow, Statement, Store, View
from codegen.ir.streams import Stream
from codegen.ir.values import Load, Op
from codegen.passes.lower_copies.lowered import Lowered, Sides, named
from codegen.passes.lower_copies.packed_columns import PackedColumns
from codegen.schedule.limits import PACKED_SHORT_BYTES
from codegen.schedule.transfer_loops import Size
from codegen.schedule.transfers import PackBits, UnpackBits
from codegen.support.dataclasses import dataclass

WORD_BYTES = 8
"""Packed bytes of the super-vectors after the last full line."""


def lower_packing(stmt: PackBits, sides: Sides) -> Lowered:
    """Pack 8 / bits elements, a byte each, into each of `count` bytes.

    before:  dst <- count bytes of 2 elements each, packed from src
    after:   for x in 0..count step 64: dst[x] = packed_4(src[2*x] [128]) [64]
             narrower: 8 bytes, any number of bytes
    """
    return _lowered(stmt, stmt.src_step, sides)


def lower_unpacking(stmt: UnpackBits, sides: Sides) -> Lowered:
    """Unpack each of `count` bytes into 8 / bits elements, a byte each.

    before:  dst <- count bytes of 2 elements each, unpacked from src
    after:   for x in 0..count step 32: dst[2*x] = unpacked_4(src[x] [32]) [64]
             narrower: 8 bytes, any number of bytes
    """
    return _lowered(stmt, stmt.dst_step, sides)


def _lowered(stmt: PackBits | UnpackBits, step: Size, sides: Sides) -> Lowered:
    packs, bits, dst, src = isinstance(stmt, PackBits), stmt.bits, sides.dst, sides.src
    if stmt.columns != 1:
        if not isinstance(stmt.count, int):
            raise AssertionError("the bytes of a column are known")
        columns = PackedColumns(bits, packs, stmt.count, step)
        ahead = stmt.schedule.prefetch_bytes
        return columns.lowered(dst, src, stmt.columns, stream=stmt.stream, prefetch_bytes=ahead)
    group, count = 8 // bits, stmt.count
    if step != 1:
        column = PackedColumns(bits, packs, 1, step)
        body: tuple[Statement, ...] = (_strided(column, dst, src, count),)
        how = f"Elements {step} bytes apart"
    else:
        run = _Run(bits, packs, stmt.schedule.prefetch_bytes)
        body = (run.loop(dst, src, count, stream=stmt.stream),)
        how = "Super-vectors of 64 bytes"
    loose = f"{{at}}{group}*x : {group}*x + {group}"
    what = f"dst[{{at}}x] = packed_{bits}(src[{loose}])"
    if not packs:
        what = f"dst[{loose}] = unpacked_{bits}(src[{{at}}x])"
    return Lowered(body, f"{what}, x < {count} bytes", how)


def _strided(column: PackedColumns, dst: str, src: str, count: int | str) -> Statement:
    """Pack or unpack byte by byte: the elements of a byte are a column of a few rows."""
    group = 8 // column.bits
    loose = times(times("x", group), column.step)
    to, at = ("x", loose) if column.packs else (loose, "x")
    return loop("x", 0, count, *column.block(dst, src, to, at, 1))


@dataclass(frozen=True, slots=True)
class _Run:
    """Contiguous elements of `bits` bits that are packed, or unpacked; offsets count packed bytes."""

    bits: int
    packs: bool
    prefetch_bytes: int

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

    def loop(self, dst: str, src: str, count: int | str, *, stream: bool) -> For:
        """Full lines of the destination, then words, then bytes."""
        narrower = [Narrow(WORD_BYTES, self.block(dst, src, WORD_BYTES))] * (self.line > WORD_BYTES)
        narrower.append(Narrow("left", self.part(dst, src, "left")))
        size = 1 if self.packs else self.group
        way = Stream("headed", PACKED_SHORT_BYTES // size, self.prefetch_bytes)
        blocks = Blocks(tuple(narrower), streamed=(way,) if stream else ())
        return loop("x", 0, count, *self.block(dst, src, self.line), step=self.line, blocks=blocks)

    def block(self, dst: str, src: str, size: int) -> tuple[Statement, ...]:
        """dst[x] = packed(src[x]), `size` packed bytes."""
        (to, begin), loose = self.offsets("x"), size * self.group
        before, after = (loose, size) if self.packs else (size, loose)
        name = f"{'packed' if self.packs else 'unpacked'}_{self.bits}"
        block = Op(name, (Load(src, (begin,), "bits8", (before,), (0,), (1,)),), "bits8", (after,))
        return Let("block", block), Store(dst, (to,), named("block", block), (0,), (1,))

    def part(self, dst: str, src: str, count: Term) -> tuple[Statement, ...]:
        """Fewer bytes than a line, from x on."""
        name, (to, at) = f"{'pack' if self.packs else 'unpack'}_part_{self.bits}", self.offsets("x")
        ends = View(f"{dst}_at", dst, to), View(f"{src}_at", src, at)
        return *ends, Call(name, (ends[0].name, ends[1].name, index_of(count)))
