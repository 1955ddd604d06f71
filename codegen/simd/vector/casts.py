"""Casts between vector dtypes, with the same results as NumPy; splats and iotas."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.errors import TypingError

from codegen.ir.families import FLOATS, SIGNED
from codegen.simd.register.intrinsics import routine, typed_routine
from codegen.simd.register.values import (
    MASK,
    Lanewise,
    Vector,
    bits_of,
    by_lanes,
    element_kind,
    from_rows,
    lanes_like,
    like,
    number,
    repeated,
    row_by_row,
    rows_of,
    same_shape,
    shape,
)
from codegen.simd.vector.minifloats import from_half, to_odd, to_quiet_half


def splat(name: str, made: Vector) -> Any:
    """`splat_f32x16(x)`: a number in each lane, converted as by `cast`; `splat_f32x16x16(x)`: in each row."""

    def rule(kind: Any) -> Any:
        source, count = shape(kind)
        if count != 1:
            raise TypingError(f"{name}: expected a single number, got {kind}")

        def emit(builder: Any, value: Any) -> Any:
            row = repeated(builder, converted(builder, value, source, made.dtype), made.lanes)
            return from_rows(builder, [row] * made.rows)

        return made(kind), emit

    return routine(name, 1, rule)


def repeat(name: str, made: Vector) -> Any:
    """`repeated_f32x16x16(v)`: a vector in each row of a block."""

    def rule(kind: Any) -> Any:
        if kind != Vector(made.dtype, made.lanes):
            raise TypingError(f"{name}: expected {made.dtype}x{made.lanes}, got {kind}")
        return made(kind), lambda builder, row: from_rows(builder, [row] * made.rows)

    return routine(name, 1, rule)


def iota(name: str, made: Vector) -> Any:
    """`iota_i32x8()`: 0 to 7. i8 and u8 wrap around, and i1 keeps the lowest bit."""
    dtype, lanes = made.dtype, made.lanes
    numbers = [float(k) if dtype in FLOATS else k % (1 << bits_of(dtype)) for k in range(lanes)]
    constant: Any = ir.Constant(made.row, numbers if lanes > 1 else numbers[0])
    return typed_routine(name, made(), lambda builder: constant)


def cast(name: str, made: Vector) -> Any:
    """`cast_f64x8(v)`: convert eight numbers of any dtype to another; `cast_f64x8x8(block)`: each row.

    Integers keep their low bits. NaN and floats out of range convert as on x86 and in NumPy: to the smallest
    32-bit integer (64-bit for i64, u32, u64) truncated to the dtype, or to 0 if they are too large for u64.
    """

    def rule(kind: Any) -> Any:
        source, count = shape(kind)
        if count != made.lanes:
            raise TypingError(f"{name}: expected {made.lanes} lanes, got {kind}")
        vector = Vector(made.dtype, made.lanes)
        return vector(kind), lambda builder, value: converted(builder, value, source, made.dtype)

    def of_rows(kind: Any) -> Any:
        if rows_of(kind) != made.rows:
            raise TypingError(f"{name}: expected {made.rows} rows, got {kind}")
        return row_by_row(rule)(kind)

    return routine(name, 1, of_rows)


def converted(builder: Any, value: Any, source: str, target: str) -> Any:
    """Convert an LLVM value from one dtype to another."""
    if source == target:
        return value
    kind = lanes_like(value, element_kind(target))
    if target == MASK:
        zero = number(value.type, 0)
        return (
            builder.fcmp_unordered("!=", value, zero)
            if source in FLOATS
            else builder.icmp_unsigned("!=", value, zero)
        )
    if source in FLOATS:
        return _from_float(builder, value, source, target, kind)
    if target in FLOATS:
        return (builder.sitofp if source in SIGNED else builder.uitofp)(value, kind)
    if bits_of(source) == bits_of(target):
        return value
    if bits_of(source) > bits_of(target):
        return builder.trunc(value, kind)
    return (builder.sext if source in SIGNED else builder.zext)(value, kind)


def _from_float(builder: Any, value: Any, source: str, target: str, kind: Any) -> Any:
    if target in FLOATS:
        return (builder.fpext if target == "f64" else builder.fptrunc)(value, kind)
    if target == "u64":
        return _to_u64(builder, value, source)
    bits = 32 if bits_of(target) < 32 or target == "i32" else 64
    integer = _to_signed(builder, value, source, bits)
    return builder.trunc(integer, kind) if bits_of(target) < bits else integer


def _to_signed(builder: Any, value: Any, source: str, bits: int) -> Any:
    """Convert toward zero. Values out of range become the smallest integer; LLVM leaves them undefined.

    Copies use the instruction's own result instead, because it sets the flag. Loops do not check flags, and
    a comparison gives the same result on every CPU.
    """
    limit = 2.0 ** (bits - 1)
    below = -limit - 1 if source == "f64" and bits < 64 else -limit
    kind, least = value.type, lanes_like(value, ir.IntType(bits))
    above = builder.fcmp_ordered(">" if below != -limit else ">=", value, number(kind, below))
    fits = builder.and_(above, builder.fcmp_ordered("<", value, number(kind, limit)))
    integer = builder.fptosi(builder.select(fits, value, number(kind, 0.0)), least)
    return builder.select(fits, integer, number(least, -(1 << (bits - 1))))


def _to_u64(builder: Any, value: Any, source: str) -> Any:
    half = number(value.type, 2.0**63)
    high = builder.fcmp_ordered(">=", value, half)
    integer = _to_signed(builder, builder.select(high, builder.fsub(value, half), value), source, 64)
    top = number(integer.type, -(1 << 63))
    return builder.select(high, builder.xor(integer, top), integer)


def _rounded(half: str) -> Lanewise:
    def emit(builder: Any, dtype: str, value: Any) -> Any:
        return from_half(builder, to_quiet_half(builder, value, half), half)

    return emit


def _odd_routine(name: str) -> Any:
    """`round_to_odd_f32(v)`: f64 to f32, such that rounding it again, to f16, equals rounding once."""

    def rule(kind: Any) -> Any:
        _, lanes = same_shape(name, [kind], ("f64",))
        return like(kind, "f32", lanes)(kind), to_odd

    return routine(name, 1, row_by_row(rule))


NAMED = {
    "round_to_bf16": by_lanes("round_to_bf16", 1, _rounded("bf16"), ("f32",)),
    "round_to_f16": by_lanes("round_to_f16", 1, _rounded("f16"), ("f32",)),
    "round_to_odd_f32": _odd_routine("round_to_odd_f32"),
}
"""Floats rounded to values of shorter types, or in preparation for that."""
