"""A slow, straightforward interpreter of nests: the oracle that kernels are compared with.

Buffers are NumPy uint8 arrays. Offsets are in the buffer's unit. One Python statement moves one element.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.copies.nodes import (
    Convert,
    CopyChunks,
    CopyRun,
    Elementwise,
    Fill,
    FillRun,
    Gather,
    Interleave,
    LoopNest,
    PackBits,
    Param,
    Ref,
    Reverse,
    Size,
    Store,
    Transfer,
    Transpose,
    TransposeTiles,
    UnpackBits,
)
from codegen.ir.copies.segments import MOVES
from codegen.ir.copies.tiles import (
    COLUMN,
    COLUMNS,
    DST,
    FIELDS,
    GRID_TABLES,
    GROUP_TABLE,
    LAYER_DST,
    LAYER_SRC,
    LAYERS,
    LINE_TABLE,
    ROW,
    ROWS,
    SRC,
    PackedLines,
    grid_tables,
)
from codegen.ir.lines import LINE_BYTES
from codegen.support.errors import KernelError

Bytes: TypeAlias = NDArray[np.uint8]
Tables: TypeAlias = Mapping[str, NDArray[np.int64]]


def interpret(
    nest: LoopNest,
    buffers: Mapping[str, Bytes],
    *,
    sizes: Mapping[str, int] | None = None,
    tables: Tables | None = None,
    fill: bytes = b"",
) -> None:
    """Run a nest, scalar or vectorized, on the bytes of its buffers.

    `sizes` holds the values of parameters, `tables` the offset tables, `fill` one element of padding.

    Raises:
        KernelError: the nest accesses a byte outside a buffer, or converts elements (tests check conversions
            against NumPy).
    """
    run = _Run(nest, buffers, dict(sizes or {}), tables or {}, fill)
    loops = [range(run.size(loop.extent)) for loop in nest.loops]
    axes = [loop.axis for loop in nest.loops]
    table = nest.table_loop
    for entry in range(run.size(table.count)) if table else [0]:
        for values in product(*loops):
            env = dict(zip(axes, values, strict=True))
            if table:
                env[table.axis] = entry
            run.statement(nest.innermost, env)


class _Run:
    def __init__(
        self, nest: LoopNest, buffers: Mapping[str, Bytes], sizes: dict[str, int], tables: Tables, fill: bytes
    ) -> None:
        self.nest, self.buffers, self.sizes, self.tables, self.fill = nest, buffers, sizes, tables, fill

    def size(self, size: Size) -> int:
        return self.sizes[size.name] if isinstance(size, Param) else size

    def offset(self, ref: Ref, env: dict[str, int]) -> int:
        offset = self.size(ref.const) + sum(self.size(s) * env[a] for a, s in ref.terms)
        return offset + sum(int(self.tables[name][env[axis]]) for name, axis in ref.tables)

    def read(self, buffer: str, offset: int, bits: int) -> int:
        """The element's bits as an unsigned number."""
        start = offset * self.nest.buffer(buffer).unit_bits
        data = self.region(buffer, start, bits)
        return int.from_bytes(bytes(data), "little") >> (start % 8) & ((1 << bits) - 1)

    def write(self, buffer: str, offset: int, bits: int, value: int) -> None:
        start = offset * self.nest.buffer(buffer).unit_bits
        data = self.region(buffer, start, bits)
        shift, mask = start % 8, (1 << bits) - 1
        merged = int.from_bytes(bytes(data), "little") & ~(mask << shift) | (value & mask) << shift
        data[:] = np.frombuffer(merged.to_bytes(len(data), "little"), np.uint8)

    def region(self, buffer: str, start: int, bits: int) -> Bytes:
        first, stop = start // 8, -(-(start + bits) // 8)
        if first < 0 or stop > len(self.buffers[buffer]):
            raise KernelError(f"interpret: {buffer} has no bytes {first} to {stop - 1}")
        return self.buffers[buffer][first:stop]

    def move(self, dst: int, src: int, dst_bits: int, src_bits: int) -> None:
        value = self.read("src", src, src_bits)
        if dst_bits == 1 < src_bits:
            value = int(value != 0)
        self.write("dst", dst, dst_bits, value)

    def statement(self, stmt: Transfer, env: dict[str, int]) -> None:
        match stmt:
            case Store(ref, value):
                src, dst = self.nest.buffers[0].element, self.nest.buffer("dst").element
                self.element(self.offset(ref, env), value, dst.bits, env, src.bits, 0)
            case CopyRun(dst, src, count):
                to, at, n = self.offset(dst, env), self.offset(src, env), self.size(count)
                for k in range(n):
                    self.move(to + k, at + k, 8, 8)
            case CopyChunks(dst, src, width, count, places):
                to, at = self.offset(dst, env), self.offset(src, env)
                known = places.digits or places.listed
                offsets = places.offsets if known else self.tables[LINE_TABLE]
                for k in range(self.size(count)):
                    self.move(to + k * width, at + int(offsets[k]), 8 * width, 8 * width)
            case Reverse(dst, src, width, length, count):
                to, at, run = self.offset(dst, env), self.offset(src, env), self.size(length)
                for c, k in product(range(self.size(count)), range(run)):
                    begin = c * run * width
                    self.move(to + begin + k * width, at + begin - k * width, 8 * width, 8 * width)
            case FillRun(dst, count):
                to, pattern = self.offset(dst, env), self.pattern()
                for k in range(self.size(count)):
                    self.write("dst", to + k, 8, pattern[k % len(pattern)])
            case Interleave():
                self.interleave(stmt, env)
            case Transpose():
                self.transpose(stmt, env)
            case TransposeTiles():
                self.transpose_tiles(stmt, env)
            case Gather():
                self.gather(stmt, env)
            case Elementwise():
                for k in range(self.size(stmt.count)):
                    to = self.offset(stmt.dst, env) + k * self.size(stmt.dst_step)
                    step = k * self.size(stmt.src_step)
                    self.element(to, stmt.value, stmt.dst_element.bits, env, stmt.src_element.bits, step)
            case PackBits(dst, src, bits, count, step, columns):
                to, at, column_bits = self.offset(dst, env) * 8, self.offset(src, env), self.size(count) * 8
                for c, k in product(range(self.size(columns)), range(column_bits // bits)):
                    byte = self.read("src", at + c + k * self.size(step), 8)
                    packed = int(byte != 0) if bits == 1 else byte
                    self.write_bits(to + c * column_bits + k * bits, bits, packed)
            case UnpackBits(dst, src, bits, count, step, columns):
                to, at, column_bits = self.offset(dst, env), self.offset(src, env) * 8, self.size(count) * 8
                for c, k in product(range(self.size(columns)), range(column_bits // bits)):
                    start = at + c * column_bits + k * bits
                    byte = int(self.region("src", start, bits)[0]) >> start % 8
                    self.write("dst", to + c + k * self.size(step), 8, byte & ((1 << bits) - 1))

    def element(
        self, dst: int, value: object, dst_bits: int, env: dict[str, int], src_bits: int, src_step: int
    ) -> None:
        match value:
            case Fill():
                self.write("dst", dst, dst_bits, int.from_bytes(self.fill, "little"))
            case Convert(load, source, target) if source.startswith("swap "):
                at = self.offset(load.ref, env) + src_step
                self.write("dst", dst, dst_bits, self.swapped(at, src_bits // 8))
            case Convert(_, source, target):
                raise KernelError(f"interpret: {source} to {target} is judged against NumPy")
            case _:
                at = self.offset(value.ref, env) + src_step  # type: ignore[attr-defined]
                self.move(dst, at, dst_bits, src_bits)

    def interleave(self, stmt: Interleave, env: dict[str, int]) -> None:
        to, at, width = self.offset(stmt.dst, env), self.offset(stmt.src, env), stmt.width
        if stmt.groups:
            known = stmt.groups.digits
            offsets = stmt.groups.offsets if known else self.tables[GROUP_TABLE].reshape(-1, 2)
            for src, dst in offsets.tolist():
                self.interleave_lines(stmt, to + dst, at + src)
            return
        if stmt.lines:
            self.interleave_lines(stmt, to, at)
            return
        for r, c in product(range(self.size(stmt.rows)), range(self.size(stmt.columns))):
            dst = to + c * self.size(stmt.column_step) + r * width
            src = at + r * self.size(stmt.row_step) + c * width
            self.move(dst, src, 8 * width, 8 * width)

    def interleave_lines(self, stmt: Interleave, to: int, at: int) -> None:
        """Move the packed side line by line, each at its offset in the table."""
        rows, columns, width = self.size(stmt.rows), self.size(stmt.columns), stmt.width
        known = stmt.lines is not None and stmt.lines.digits
        offsets = stmt.lines.offsets if stmt.lines and known else self.tables[LINE_TABLE]
        for r, c in product(range(rows), range(columns)):
            k = c * rows + r if stmt.side == "dst" else r * columns + c
            line, within = divmod(k * width, LINE_BYTES)
            packed = int(offsets[line]) + within
            if stmt.side == "dst":
                self.move(to + packed, at + r * self.size(stmt.row_step) + c * width, 8 * width, 8 * width)
            else:
                self.move(to + c * self.size(stmt.column_step) + r * width, at + packed, 8 * width, 8 * width)

    def transpose(self, stmt: Transpose, env: dict[str, int]) -> None:
        """Move tile by tile through the tables, so that these are checked too."""
        if stmt.convert and not stmt.convert.startswith("swap_"):
            raise KernelError(f"interpret: {stmt.convert} is judged against NumPy")
        to, at, width = self.offset(stmt.dst, env), self.offset(stmt.src, env), stmt.width
        if stmt.grid is None:
            tiles, row_offsets, column_offsets = (self.tables[name] for name in GRID_TABLES)
        else:
            tiles, row_offsets, column_offsets = grid_tables(stmt.grid)
        for tile in tiles.reshape(-1, FIELDS).tolist():
            rows = range(tile[ROW], tile[ROW] + tile[ROWS])
            columns = range(tile[COLUMN], tile[COLUMN] + tile[COLUMNS])
            layers = range(tile[LAYERS])
            for layer, (r, row), (c, column) in product(layers, enumerate(rows), enumerate(columns)):
                dst = to + tile[DST] + layer * tile[LAYER_DST] + int(column_offsets[column]) + r * width
                src = at + tile[SRC] + layer * tile[LAYER_SRC] + int(row_offsets[row])
                src += c * self.nest.buffers[0].element.bits // 8
                if stmt.convert:
                    self.write("dst", dst, 8 * width, self.swapped(src, width))
                else:
                    self.move(dst, src, 8 * width, 8 * width)

    def transpose_tiles(self, stmt: TransposeTiles, env: dict[str, int]) -> None:
        """Move element by element; tiles and blocks only change the order."""
        swaps = stmt.convert is not None and stmt.convert[0].startswith("swap ")
        if stmt.convert and not swaps:
            raise KernelError(f"interpret: {' to '.join(stmt.convert)} is judged against NumPy")
        to, at, width = self.offset(stmt.dst, env), self.offset(stmt.src, env), stmt.width
        rows, columns = self.size(stmt.rows), self.size(stmt.columns)
        starts = [
            step.offsets if isinstance(step, PackedLines) else np.arange(count) * self.size(step)
            for step, count in ((stmt.row_step, rows), (stmt.column_step, columns))
        ]
        others = [x for x in stmt.loops if x.axis not in ("rows", "columns")]
        for index in product(*(range(self.size(x.extent)) for x in others)):
            src = at + sum(k * self.size(x.src) for k, x in zip(index, others, strict=True))
            dst = to + sum(k * self.size(x.dst) for k, x in zip(index, others, strict=True))
            for r, c in product(range(rows), range(columns)):
                to_element = dst + int(starts[1][c]) + r * width
                element = src + int(starts[0][r]) + c * width
                if swaps:
                    self.write("dst", to_element, 8 * width, self.swapped(element, width))
                else:
                    self.move(to_element, element, 8 * width, 8 * width)

    def gather(self, stmt: Gather, env: dict[str, int]) -> None:
        """Run every move of each part, for every segment of the part."""
        if stmt.segments is None:
            raise AssertionError("interpret: a parametrized gather has no segments; run it with sizes")
        to, at, pattern = self.offset(stmt.dst, env), self.offset(stmt.src, env), self.pattern()
        for part in stmt.segments.parts:
            for src, dst in zip(*(x.tolist() for x in part.starts(0, part.count)), strict=True):
                for width, moves in zip(MOVES, part.moves, strict=True):
                    for (src_offset, dst_offset), k in product(moves.tolist(), range(width)):
                        if part.fills:
                            self.write("dst", to + dst + dst_offset + k, 8, pattern[k % len(pattern)])
                        else:
                            self.move(to + dst + dst_offset + k, at + src + src_offset + k, 8, 8)

    def swapped(self, at: int, width: int) -> int:
        return int.from_bytes(self.read("src", at, 8 * width).to_bytes(width, "big"), "little")

    def write_bits(self, start: int, bits: int, value: int) -> None:
        data = self.region("dst", start, bits)
        shift, mask = start % 8, (1 << bits) - 1
        data[0] = (int(data[0]) & ~(mask << shift) | (value & mask) << shift) & 0xFF

    def pattern(self) -> bytes:
        """One element of padding; for packed elements, a byte that repeats it."""
        bits = self.nest.buffer("dst").element.bits
        if bits >= 8:
            return self.fill
        byte = sum((self.fill[0] & ((1 << bits) - 1)) << k for k in range(0, 8, bits))
        return bytes([byte])
