"""Packing elements of 1, 2 and 4 bits in registers, and unpacking them: pure functions of LLVM values.

`codegen/ir/packed_bits.py` defines them. Columns of 64 rows use networks of in-lane shuffles.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from codegen.ir.lines import LINE_BYTES
from codegen.ir.packed_bits import PACKED_BITS, column_rows
from codegen.simd.register.interleaves import unzip_rows, zip_rows
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.memory import I32, vector
from codegen.simd.register.networks import exchange_lanes
from codegen.simd.register.shuffles import shuffle, unpack
from codegen.simd.register.values import Vector, as_one, from_lines, from_one, lines_of, vector_type


def _packed(bits: int) -> Any:
    """packed_4(elements)."""
    name = f"packed_{bits}"

    def rule(operand: Any) -> tuple[Any, Emit]:
        given = vector_type(operand, name)
        kind = Vector("u8", given.rows * given.lanes * bits // 8)
        return kind(operand), lambda builder, value: from_one(
            builder, kind, _packed_parts(builder, value, bits)
        )

    return routine(name, 1, rule)


def _packed_parts(builder: Any, value: Any, bits: int) -> Any:
    if bits == 1:
        return _joined_flags(builder, lines_of(builder, value))
    return packed_bytes(builder, as_one(builder, value), bits)


def packed_bytes(builder: Any, elements: Any, bits: int) -> Any:
    """Pack a vector of loose elements."""
    if bits == 1:
        return _joined_flags(builder, [elements])
    count = elements.type.count * bits // 8
    lanes = vector(64 // bits, count)
    value = builder.and_(builder.bitcast(elements, lanes), splat(lanes, spread(bits, 64 // bits)))
    for shift in {4: (4,), 2: (6, 12)}[bits]:
        value = builder.or_(value, builder.lshr(value, splat(lanes, shift)))
    return builder.trunc(value, vector(8, count))


def _joined_flags(builder: Any, parts: list[Any]) -> Any:
    """One bit per element, set if it is not zero; at most 64 elements per part."""
    step = parts[0].type.count // 8
    words = vector(8 * step, len(parts))
    joined: Any = ir.Constant(words, ir.Undefined)
    for k, part in enumerate(parts):
        flags = builder.icmp_unsigned("!=", part, splat(part.type, 0))
        word = builder.bitcast(flags, words.element)
        joined = builder.insert_element(joined, word, ir.Constant(I32, k))
    return builder.bitcast(joined, vector(8, step * len(parts)))


def _unpacked(bits: int) -> Any:
    """unpacked_4(bytes)."""
    name = f"unpacked_{bits}"

    def rule(operand: Any) -> tuple[Any, Emit]:
        given = vector_type(operand, name)
        kind = Vector("u8", given.rows * given.lanes * 8 // bits)

        def emit(builder: Any, value: Any) -> Any:
            return from_one(builder, kind, unpacked_bytes(builder, as_one(builder, value), bits))

        return kind(operand), emit

    return routine(name, 1, rule)


def unpacked_bytes(builder: Any, packed: Any, bits: int) -> Any:
    """Unpack a vector of packed bytes to one element per byte."""
    count = packed.type.count
    wide = vector(8, count * 8 // bits)
    if bits == 1:
        bit = ir.Constant(wide, [1 << k % 8 for k in range(8 * count)])
        repeated = shuffle(builder, packed, packed, [k // 8 for k in range(8 * count)])
        flags = builder.icmp_unsigned("!=", builder.and_(repeated, bit), splat(wide, 0))
        return builder.zext(flags, wide)
    lanes = vector(64 // bits, count)
    value = builder.zext(packed, lanes)
    for shift, mask in {4: ((4, 0x0F0F),), 2: ((12, 0x000F000F), (6, 0x03030303))}[bits]:
        moved = builder.or_(value, builder.shl(value, splat(lanes, shift)))
        value = builder.and_(moved, splat(lanes, mask))
    return builder.bitcast(value, wide)


def _packed_from_rows(bits: int) -> Any:
    """packed_4_from_rows(rows): rows of 64 elements, of 16, or of one."""
    name = f"packed_{bits}_from_rows"

    def rule(operand: Any) -> tuple[Any, Emit]:
        given = vector_type(operand, name)
        kind = Vector("u8", given.rows * given.lanes * bits // 8)

        def emit(builder: Any, value: Any) -> Any:
            rows = lines_of(builder, value)
            if given.lanes == 1:
                return from_one(builder, kind, _packed_column(builder, rows, bits))
            step = 8 // bits
            packed = [_joined(builder, rows[k : k + step], bits) for k in range(0, len(rows), step)]
            if given.lanes < LINE_BYTES:
                return from_one(builder, kind, zip_rows(builder, packed))
            return from_lines(builder, kind, _zipped(builder, packed))

        return kind(operand), emit

    return routine(name, 1, rule)


def _unpacked_into_rows(bits: int, rows: int) -> Any:
    """unpacked_4_into_8_rows(line): columns of packed bytes, 64 of them, 16, or one."""
    name, count = f"unpacked_{bits}_into_{rows}_rows", rows * bits // 8

    def rule(operand: Any) -> tuple[Any, Emit]:
        given = vector_type(operand, name)
        kind = Vector("u8", given.rows * given.lanes // count, rows)

        def emit(builder: Any, value: Any) -> Any:
            if kind.lanes == 1:
                return from_lines(builder, kind, _unpacked_column(builder, as_one(builder, value), bits))
            if kind.lanes < LINE_BYTES:
                packed = unzip_rows(builder, as_one(builder, value), count)
            else:
                packed = _unzipped(builder, lines_of(builder, value))
            return from_lines(builder, kind, [row for each in packed for row in _split(builder, each, bits)])

        return kind(operand), emit

    return routine(name, 1, rule)


def _packed_column(builder: Any, rows: list[Any], bits: int) -> Any:
    """The bytes of one column as an integer."""
    kind = ir.IntType(len(rows) * bits)
    out: Any = ir.Constant(kind, 0)
    for k, row in enumerate(rows):
        byte = builder.bitcast(row, ir.IntType(8))
        if bits == 1:
            byte = builder.zext(builder.icmp_unsigned("!=", byte, ir.Constant(byte.type, 0)), byte.type)
        else:
            byte = builder.and_(byte, ir.Constant(byte.type, (1 << bits) - 1))
        wide = byte if kind.width == 8 else builder.zext(byte, kind)
        out = builder.or_(out, builder.shl(wide, ir.Constant(kind, k * bits)))
    return out


def _unpacked_column(builder: Any, packed: Any, bits: int) -> list[Any]:
    """The elements of one column of packed bytes."""
    word = builder.bitcast(packed, ir.IntType(8 * packed.type.count))
    mask = ir.Constant(word.type, (1 << bits) - 1)
    out = []
    for at in range(0, word.type.width, bits):
        value = builder.and_(builder.lshr(word, ir.Constant(word.type, at)), mask)
        out.append(value if word.type.width == 8 else builder.trunc(value, ir.IntType(8)))
    return out


def splat(kind: Any, value: int) -> Any:
    """A vector constant with the same number in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def spread(bits: int, lane_bits: int) -> int:
    """A mask of the low `bits` bits of every byte of a lane."""
    return sum(((1 << bits) - 1) << k for k in range(0, lane_bits, 8))


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


PACKED_BIT_OPERATIONS = {
    **{f"packed_{bits}": _packed(bits) for bits in PACKED_BITS},
    **{f"unpacked_{bits}": _unpacked(bits) for bits in PACKED_BITS},
    **{f"packed_{bits}_from_rows": _packed_from_rows(bits) for bits in PACKED_BITS},
    **{
        f"unpacked_{bits}_into_{rows}_rows": _unpacked_into_rows(bits, rows)
        for bits in PACKED_BITS
        for rows in column_rows(bits)
    },
}
"""By their names in kernels."""
