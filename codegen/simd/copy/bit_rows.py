"""Packing rows of one element per byte, column by column, and unpacking them.

A column of 8/bits * count rows becomes `count` bytes, and the columns follow each other without gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.ir.lines import LINE_BYTES
from codegen.schedule.schedule import COLUMN_BYTES
from codegen.simd.copy.bit_runs import splat, spread
from codegen.simd.copy.row_buffers import CHUNK_BYTES, LEAST_BYTES, ROW_PITCH, drain_row, row_buffer
from codegen.simd.register.bits import PACKERS, UNPACKERS, WIDTHS
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.interleaves import unzip_rows, zip_rows
from codegen.simd.register.memory import (
    I8,
    I64,
    element_pointer,
    load,
    prefetch,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.register.networks import exchange_lanes
from codegen.simd.register.shuffles import shuffle, unpack

BLOCK, SMALL = 64, 16
"""Columns of a full block, and of one for the rest."""

PREFETCH_COLUMNS = 256
"""Prefetch distance in each source row."""


def _row(builder: Any, base: Any, step: Any, number: int) -> Any:
    return builder.add(base, builder.mul(step, ir.Constant(I64, number)))


def _joined(builder: Any, rows: list[Any], bits: int) -> Any:
    """One vector of packed bytes from 8/bits rows; the first row is in the low bits."""
    kind, lanes = rows[0].type, vector(16, rows[0].type.count // 2)
    out: Any = None
    for k, row in enumerate(rows):
        if bits == 1:
            shifted = builder.lshr(builder.bitcast(_top_bits(builder, row), lanes), splat(lanes, 7 - k))
            value = builder.and_(shifted, splat(lanes, 0x0101 << k))
        else:
            kept = builder.and_(builder.bitcast(row, lanes), splat(lanes, spread(bits, 16)))
            value = builder.shl(kept, splat(lanes, k * bits))
        out = value if out is None else builder.or_(out, value)
    return builder.bitcast(out, kind)


def _top_bits(builder: Any, row: Any) -> Any:
    """Bytes whose top bit is set where the source is nonzero. Comparisons would go through mask registers."""
    kind = ir.FunctionType(row.type, [row.type, row.type])
    name = f"llvm.uadd.sat.v{row.type.count}i8"
    # llvmlite's declare_intrinsic cannot name vector types.
    add = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(add, [row, splat(row.type, 0x7F)])


def _zipped(builder: Any, rows: list[Any]) -> list[Any]:
    """Interleave rows of one line each, so that the elements of a column are adjacent.

    Bytes stay within their 16-byte lanes until the lanes are put in order: an in-lane unpack is one
    instruction, a shuffle of full lines is ten.
    """
    return _in_order(builder, _rotated(builder, rows, len(rows).bit_length() - 1))


def _unzipped(builder: Any, lines: list[Any]) -> list[Any]:
    """The rows that `_zipped` interleaved."""
    return _rotated(builder, _out_of_order(builder, lines), 4)


def _rotated(builder: Any, registers: list[Any], stages: int) -> list[Any]:
    """Each stage rotates the bits of (register, byte in lane) by one. log2(registers) stages zip, 4 unzip."""
    half = len(registers) // 2
    for _ in range(stages if half else 0):
        registers = [
            unpack(builder, registers[k // 2], registers[k // 2 + half], k & 1, 1)
            for k in range(len(registers))
        ]
    return registers


def _in_order(builder: Any, registers: list[Any]) -> list[Any]:
    """Lines from 1, 2 or 4 registers, where lane l of register q is quarter q + registers * l."""
    if len(registers) == 2:
        return _selected(builder, registers, ((0, 4, 1, 5), (2, 6, 3, 7)))
    return exchange_lanes(builder, registers) if len(registers) == 4 else registers


def _out_of_order(builder: Any, lines: list[Any]) -> list[Any]:
    """The registers that `_in_order` took."""
    if len(lines) == 2:
        return _selected(builder, lines, ((0, 2, 4, 6), (1, 3, 5, 7)))
    return exchange_lanes(builder, lines) if len(lines) == 4 else lines


def _selected(builder: Any, lines: list[Any], selections: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Lines selected from the eight lanes of two lines."""
    a, b = (builder.bitcast(line, vector(64, 8)) for line in lines)
    made = [
        shuffle(builder, a, b, [2 * lane + half for lane in selection for half in (0, 1)])
        for selection in selections
    ]
    return [builder.bitcast(line, vector(8, LINE_BYTES)) for line in made]


def _split(builder: Any, packed: Any, bits: int) -> list[Any]:
    """The 8/bits rows of a vector of packed bytes."""
    lanes = vector(16, packed.type.count // 2)
    mask, pairs = splat(lanes, spread(bits, 16)), builder.bitcast(packed, lanes)
    return [
        builder.bitcast(builder.and_(builder.lshr(pairs, splat(lanes, shift)), mask), packed.type)
        for shift in range(0, 8, bits)
    ]


def _packer(bits: int, count: int, columns: int, stream: bool) -> Any:
    """Pack `columns` columns. The streaming version also prefetches as many columns of the source."""
    group = 8 // bits

    def emit(builder: Any, dst: Any, src: Any, row_step: Any) -> None:
        rows = []
        for k in range(count * group):
            address = _row(builder, src, row_step, k)
            if stream:
                ahead = element_pointer(builder, address, ir.Constant(I64, PREFETCH_COLUMNS), I8)
                prefetch(builder, builder.ptrtoint(ahead, I64), level=1)
            rows.append(load(builder, address, vector(8, columns)))
        packed = [_joined(builder, rows[k : k + group], bits) for k in range(0, len(rows), group)]
        lines = _zipped(builder, packed) if columns == LINE_BYTES else [zip_rows(builder, packed)]
        for k, line in enumerate(lines):
            address = builder.add(dst, ir.Constant(I64, k * LINE_BYTES))
            (store_streaming if stream else store)(builder, line, address)

    return statement(emit, 3, f"join_rows_{columns}_{count}_u{bits}")


def _unpacker(bits: int, count: int, columns: int, stream: bool) -> Any:
    def emit(builder: Any, dst: Any, src: Any, row_step: Any) -> None:
        if columns == LINE_BYTES:
            lines = [
                load(builder, builder.add(src, ir.Constant(I64, k * LINE_BYTES)), vector(8, LINE_BYTES))
                for k in range(count)
            ]
            rows = _unzipped(builder, lines)
        else:
            rows = unzip_rows(builder, load(builder, src, vector(8, columns * count)), count)
        if stream:
            for k in range(0, columns * count, LINE_BYTES):
                prefetch(builder, builder.add(src, ir.Constant(I64, PREFETCH_COLUMNS * count + k)))
        for k, row in enumerate(x for packed in rows for x in _split(builder, packed, bits)):
            (store_streaming if stream else store)(builder, row, _row(builder, dst, row_step, k))

    return statement(emit, 3, f"part_rows_{columns}_{count}_u{bits}")


def _pack_rows(bits: int, count: int) -> Callable[..., None]:
    block, small = (_packer(bits, count, columns, False) for columns in (BLOCK, SMALL))
    return _rows(block, small, PACKERS[f"pack_bits_{bits}"], count, dst_step=count, src_step=1)


def _unpack_rows(bits: int, count: int) -> Callable[..., None]:
    block, small = (_unpacker(bits, count, columns, False) for columns in (BLOCK, SMALL))
    return _rows(block, small, UNPACKERS[f"unpack_bits_{bits}"], count, dst_step=1, src_step=count)


def _rows(
    block: Any, small: Any, scalar: Any, count: int, *, dst_step: int, src_step: int
) -> Callable[..., None]:
    """The routine over all columns; dst_step and src_step are the bytes from one column to the next."""

    @for_kernels
    def rows(dst, src, columns, row_step):
        """Full blocks, then small ones, then one more that overlaps the last."""
        if columns < SMALL:
            for c in range(columns):
                scalar(dst + c * dst_step, src + c * src_step, count, row_step)
            return
        whole = columns & -BLOCK
        for c in range(0, whole, BLOCK):
            block(dst + c * dst_step, src + c * src_step, row_step)
        last = columns - SMALL
        for c in range(whole, columns, SMALL):
            c = min(c, last)
            small(dst + c * dst_step, src + c * src_step, row_step)

    return rows


def _stream_pack_rows(bits: int, count: int, plain: Any) -> Callable[..., None]:
    block = _packer(bits, count, BLOCK, True)

    @for_kernels
    def stream_pack_rows(dst, src, columns, row_step):
        whole = columns & -BLOCK if dst & 63 == 0 else 0
        for c in range(0, whole, BLOCK):
            block(dst + c * count, src + c, row_step)
        if whole < columns:
            plain(dst + whole * count, src + whole, columns - whole, row_step)

    return stream_pack_rows


def _stream_unpack_rows(bits: int, count: int, plain: Any) -> Callable[..., None]:
    block, rows = _unpacker(bits, count, BLOCK, True), 8 // bits * count
    buffered = row_buffer(rows)

    @for_kernels
    def by_buffer(dst, src, columns, row_step):
        buffer = buffered()
        for c in range(0, columns, CHUNK_BYTES):
            end = min(c + CHUNK_BYTES, columns)
            plain(buffer, src + c * count, end - c, ROW_PITCH)
            for r in range(rows):
                low, ahead = dst + r * row_step + c, src + end * count + r % count * CHUNK_BYTES
                drain_row(low, low + end - c, buffer + r * ROW_PITCH, c == 0, end == columns, ahead)

    @for_kernels
    def stream_unpack_rows(dst, src, columns, row_step):
        whole = columns & -BLOCK if (dst | row_step) & 63 == 0 else 0
        if whole == 0 and columns >= LEAST_BYTES:
            by_buffer(dst, src, columns, row_step)
            return
        for c in range(0, whole, BLOCK):
            block(dst + c, src + c * count, row_step)
        if whole < columns:
            plain(dst + whole, src + whole * count, columns - whole, row_step)

    return stream_unpack_rows


def _family() -> dict[str, Any]:
    """Packing and unpacking, plain and streaming, by their names in kernels."""
    out: dict[str, Any] = {}
    for bits in WIDTHS:
        for count in COLUMN_BYTES:
            for name, make, streaming in (
                (f"pack_rows_{bits}_{count}", _pack_rows, _stream_pack_rows),
                (f"unpack_rows_{bits}_{count}", _unpack_rows, _stream_unpack_rows),
            ):
                out[name] = make(bits, count)
                out[f"stream_{name}"] = streaming(bits, count, out[name])
    return out


BIT_ROWS = _family()
