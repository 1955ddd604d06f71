"""Vectors of one dtype as another, as NumPy converts; splats and counts."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.errors import TypingError

from codegen.simd.memory import F32, I16, I32, widened_half
from codegen.simd.vectors import (
    FLOATS,
    MASK,
    NUMBA,
    SIGNED,
    Emit,
    Vector,
    bits_of,
    by_lanes,
    element_kind,
    lane,
    lanes_like,
    like,
    llvm_function,
    llvm_kind,
    number,
    repeated,
    routine_of,
    same_shape,
    shape,
)

I1 = ir.IntType(1)


def splat(name: str, dtype: str, lanes: int) -> Any:
    """`splat_f32x16(x)`: a number, converted as `cast` does, in each lane."""

    def rule(kind: Any) -> Any:
        source, count = shape(kind)
        if count != 1:
            raise TypingError(f"{name} of {kind}, which is no single number")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return repeated(builder, converted(builder, args[0], source, dtype), lanes)

        return Vector(dtype, lanes)(kind), generate

    return routine_of(name, 1, rule)


def iota(name: str, dtype: str, lanes: int) -> Any:
    """`iota_i32x8()`: 0 to 7; an i8 counts round and round, i1 is the lowest bit."""
    kind = llvm_kind(dtype, lanes)
    numbers = [float(k) if dtype in FLOATS else k % (1 << bits_of(dtype)) for k in range(lanes)]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(kind, numbers if lanes > 1 else numbers[0])

    return routine_of(name, 0, lambda: (Vector(dtype, lanes)(), generate))


def cast(name: str, dtype: str, lanes: int) -> Any:
    """`cast_f64x8(v)`: eight numbers of any dtype as another.

    Integers keep their low bits. A float that does not fit, NaN too, becomes what x86 and NumPy make of it:
    the least integer of 32 bits (64 for i64, u32, u64) cut to the dtype's, and 0 if it is too large for u64.
    """

    def rule(kind: Any) -> Any:
        source, count = shape(kind)
        if count != lanes:
            raise TypingError(f"{name} of {kind}, which has {count} lanes")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return converted(builder, args[0], source, dtype)

        return Vector(dtype, lanes)(kind), generate

    return routine_of(name, 1, rule)


def lane_routine(name: str) -> Any:
    """`first_lane(v)`: a number of Numba's."""

    def rule(kind: Any) -> Any:
        dtype, _ = shape(kind)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return lane(builder, args[0], 0)

        return NUMBA[dtype](kind), generate

    return routine_of(name, 1, rule)


def converted(builder: Any, value: Any, source: str, target: str) -> Any:
    """LLVM value to LLVM value."""
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
    whole = _to_signed(builder, value, source, bits)
    return builder.trunc(whole, kind) if bits_of(target) < bits else whole


def _to_signed(builder: Any, value: Any, source: str, bits: int) -> Any:
    """Towards zero; what does not fit becomes the least integer, which LLVM alone would leave open."""
    limit = 2.0 ** (bits - 1)
    below = -limit - 1 if source == "f64" and bits < 64 else -limit
    kind, least = value.type, lanes_like(value, ir.IntType(bits))
    above = builder.fcmp_ordered(">" if below != -limit else ">=", value, number(kind, below))
    fits = builder.and_(above, builder.fcmp_ordered("<", value, number(kind, limit)))
    whole = builder.fptosi(builder.select(fits, value, number(kind, 0.0)), least)
    return builder.select(fits, whole, number(least, -(1 << (bits - 1))))


def _to_u64(builder: Any, value: Any, source: str) -> Any:
    half = number(value.type, 2.0**63)
    high = builder.fcmp_ordered(">=", value, half)
    whole = _to_signed(builder, builder.select(high, builder.fsub(value, half), value), source, 64)
    top = number(whole.type, -(1 << 63))
    return builder.select(high, builder.xor(whole, top), whole)


def from_half(builder: Any, value: Any, half: str) -> Any:
    """Bits of bf16 or f16 as f32; exact."""
    bits = builder.zext(value, lanes_like(value, I32))
    if half == "f16":
        return widened_half(builder, bits)
    return builder.bitcast(builder.shl(bits, number(bits.type, 16)), lanes_like(value, F32))


def to_half(builder: Any, value: Any, half: str) -> Any:
    """f32 as bits of bf16 or f16, to nearest, to even between two."""
    bits = builder.bitcast(value, lanes_like(value, I32))
    out = (_bf16_bits if half == "bf16" else _f16_bits)(builder, bits)
    return builder.trunc(out, lanes_like(value, I16))


def _bf16_bits(builder: Any, bits: Any) -> Any:
    """A NaN keeps its sign and becomes the quiet one, as in ml_dtypes."""

    def const(value: int) -> Any:
        return number(bits.type, value)

    high = builder.lshr(bits, const(16))
    odd = builder.and_(high, const(1))
    rounded = builder.lshr(builder.add(builder.add(bits, const(0x7FFF)), odd), const(16))
    quiet = builder.or_(builder.and_(high, const(0x8000)), const(0x7FC0))
    magnitude = builder.and_(bits, const(0x7FFFFFFF))
    return builder.select(builder.icmp_unsigned(">", magnitude, const(0x7F800000)), quiet, rounded)


def _f16_bits(builder: Any, bits: Any) -> Any:
    """In integers: SSE2 has no instruction for it. A NaN keeps its sign and its payload's upper bits.

    What is below the least normal number is rounded by a float addition, at whose sum's last bit f16 ends.
    """

    def const(value: int) -> Any:
        return number(bits.type, value)

    single = lanes_like(bits, F32)
    sign = builder.and_(builder.lshr(bits, const(16)), const(0x8000))
    magnitude = builder.and_(bits, const(0x7FFFFFFF))
    odd = builder.and_(builder.lshr(magnitude, const(13)), const(1))
    rebased = builder.sub(builder.add(builder.add(magnitude, const(0xFFF)), odd), const((127 - 15) << 23))
    out = builder.lshr(rebased, const(13))
    magic = const((127 - 15 + 23 - 10 + 1) << 23)
    sums = builder.fadd(builder.bitcast(magnitude, single), builder.bitcast(magic, single))
    small = builder.sub(builder.bitcast(sums, bits.type), magic)
    out = builder.select(builder.icmp_unsigned("<", magnitude, const(113 << 23)), small, out)
    out = builder.select(builder.icmp_unsigned(">=", magnitude, const((127 + 16) << 23)), const(0x7C00), out)
    payload = builder.and_(builder.lshr(magnitude, const(13)), const(0x3FF))
    nan = builder.or_(payload, const(0x7E00))
    out = builder.select(builder.icmp_unsigned(">", magnitude, const(0x7F800000)), nan, out)
    return builder.or_(sign, out)


def _rounded(half: str) -> Emit:
    def emit(builder: Any, dtype: str, value: Any) -> Any:
        return from_half(builder, to_half(builder, value, half), half)

    return emit


def to_odd(builder: Any, value: Any) -> Any:
    """f64 as f32: towards zero, with the last bit set where anything was lost.

    A float is too large by one step where it is not the number and larger; its bits less one are the lower.
    """
    single = lanes_like(value, F32)
    bits = lanes_like(value, I32)
    near = builder.fptrunc(value, single)
    back = builder.fpext(near, value.type)
    whole = builder.bitcast(near, bits)
    lost = builder.fcmp_ordered("!=", back, value)
    size, least = (llvm_function(builder, "llvm.fabs", x) for x in (back, value))
    above = builder.and_(lost, builder.fcmp_ordered(">", size, least))
    whole = builder.select(above, builder.sub(whole, number(bits, 1)), whole)
    whole = builder.or_(whole, builder.zext(lost, bits))
    return builder.bitcast(whole, single)


def _odd_routine(name: str) -> Any:
    """`round_to_odd_f32(v)`: f64 as f32 that may be rounded once more, to f16, as if for the first time."""

    def rule(kind: Any) -> Any:
        _, lanes = same_shape(name, [kind], ("f64",))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return to_odd(builder, args[0])

        return like(kind, "f32", lanes)(kind), generate

    return routine_of(name, 1, rule)


NAMED = {
    "round_to_bf16": by_lanes("round_to_bf16", 1, _rounded("bf16"), ("f32",)),
    "round_to_f16": by_lanes("round_to_f16", 1, _rounded("f16"), ("f32",)),
    "round_to_odd_f32": _odd_routine("round_to_odd_f32"),
    "first_lane": lane_routine("first_lane"),
}
"""Floats rounded to what the shorter types can hold or for that; and one lane as a number."""
