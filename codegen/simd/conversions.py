"""Any element type as any other, as NumPy and ml_dtypes convert; lanes of a vector and single numbers alike.

Numbers come and go as LLVM has them: integers, float and double; shorter floats as integers of their bits.
The processor's flags afterwards are those of NumPy's loops, but for underflow where `halved` rounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from codegen.simd.memory import F32, F64, I16, I32, I64
from codegen.simd.minifloats import MINIFLOATS, halved, least_of, narrowed, widened
from codegen.simd.vector_casts import to_odd
from codegen.simd.vectors import lanes_like, number

INTEGERS = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
NUMPYS = (*INTEGERS, "pred", "f16", "f32", "f64")
"""What NumPy converts itself, not ml_dtypes."""

_SINGLE_INFINITY, _DOUBLE_INFINITY = 0x7F800000, 0x7FF << 52


def bits_of(name: str) -> int:
    """Bits that one element takes."""
    if name in MINIFLOATS:
        return MINIFLOATS[name].bits
    return {"pred": 8, "bf16": 16}.get(name) or int(name[1:])


def converted(builder: Any, value: Any, source: str, target: str) -> Any:
    """LLVM value to LLVM value."""
    match source, target:
        case "f16", "f64":
            return _half_to_double(builder, value)
        case "f64", "f16":
            return _double_to_half(builder, value)
        case "f16", "pred":
            magnitude = builder.and_(value, number(value.type, 0x7FFF))
            return _truth(builder, builder.icmp_unsigned("!=", magnitude, number(value.type, 0)))
        case "bf16", "f16":
            return _brain_to_half(builder, value)
    value, kind = _as_number(builder, value, source, target)
    return _from_number(builder, value, kind, target)


def _as_number(builder: Any, value: Any, source: str, target: str) -> tuple[Any, str]:
    """What is neither an integer nor float nor double, as one of them, and which it is then."""
    if source == "pred":
        if target not in NUMPYS:
            return value, "u8"
        return _truth(builder, builder.icmp_unsigned("!=", value, number(value.type, 0))), "u8"
    if source == "bf16":
        wide = builder.zext(value, lanes_like(value, I32))
        shifted = builder.shl(wide, number(wide.type, 16))
        return builder.bitcast(shifted, lanes_like(value, F32)), "f32"
    if source in MINIFLOATS:
        return widened(builder, builder.zext(value, lanes_like(value, I32)), MINIFLOATS[source]), "f32"
    return value, source


def _from_number(builder: Any, value: Any, source: str, target: str) -> Any:
    if source == target:
        return value
    if target == "pred":
        zero = number(value.type, 0)
        compare = builder.icmp_unsigned if source in INTEGERS else builder.fcmp_unordered
        return _truth(builder, compare("!=", value, zero))
    if target in ("f32", "f64"):
        return _to_float(builder, value, source, target)
    if target in INTEGERS:
        whole = _to_integer if source in ("f32", "f64") else _resized
        return whole(builder, value, source, target)
    single = value if source == "f32" else _to_float(builder, value, source, "f32")
    if target == "bf16":
        return _to_bf16(builder, single)
    short = lanes_like(value, ir.IntType(bits_of(target)))
    code = halved(builder, single) if target == "f16" else narrowed(builder, single, MINIFLOATS[target])
    return builder.trunc(code, short)


def _truth(builder: Any, condition: Any) -> Any:
    return builder.zext(condition, lanes_like(condition, ir.IntType(8)))


def _to_float(builder: Any, value: Any, source: str, target: str) -> Any:
    kind = lanes_like(value, F32 if target == "f32" else F64)
    if source in INTEGERS:
        return (builder.sitofp if source.startswith("s") else builder.uitofp)(value, kind)
    return (builder.fpext if target == "f64" else builder.fptrunc)(value, kind)


def _resized(builder: Any, value: Any, source: str, target: str) -> Any:
    before, after = bits_of(source), bits_of(target)
    kind = lanes_like(value, ir.IntType(after))
    if before >= after:
        return builder.trunc(value, kind) if before > after else value
    return (builder.sext if source.startswith("s") else builder.zext)(value, kind)


def _to_integer(builder: Any, value: Any, source: str, target: str) -> Any:
    """Towards zero, and what the instruction makes of numbers that do not fit: it also sets the flag.

    Of 32 bits for the shorter types, of 64 for u32, as compilers have it. LLVM promises no result there, but
    frozen it is the instruction's; a comparison and a choice instead would mask the flag away.
    """
    if target == "u64":
        return _to_u64(builder, value)
    wide = 32 if bits_of(target) < 32 or target == "s32" else 64
    whole = _frozen(builder, builder.fptosi(value, lanes_like(value, ir.IntType(wide))))
    kind = lanes_like(value, ir.IntType(bits_of(target)))
    return builder.trunc(whole, kind) if bits_of(target) < wide else whole


def _to_u64(builder: Any, value: Any) -> Any:
    half = number(value.type, 2.0**63)
    high = builder.fcmp_ordered(">=", value, half)
    low = builder.select(high, builder.fsub(value, half), value)
    whole = _frozen(builder, builder.fptosi(low, lanes_like(value, I64)))
    return builder.select(high, builder.xor(whole, number(whole.type, -(1 << 63))), whole)


def _frozen(builder: Any, value: Any) -> Any:
    """LLVM's `freeze`, for which llvmlite has no method."""
    frozen = ir.instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(frozen)
    return frozen


def _to_bf16(builder: Any, single: Any) -> Any:
    """To nearest even; a NaN keeps its sign and becomes the quiet one, and one that signals sets the flag."""
    bits = builder.bitcast(single, lanes_like(single, I32))

    def const(value: int) -> Any:
        return number(bits.type, value)

    high = builder.lshr(bits, const(16))
    odd = builder.and_(high, const(1))
    rounded = builder.lshr(builder.add(builder.add(bits, const(0x7FFF)), odd), const(16))
    quiet = builder.or_(builder.and_(high, const(0x8000)), const(0x7FC0))
    is_nan = builder.fcmp_unordered("uno", single, single)
    return builder.trunc(builder.select(is_nan, quiet, rounded), lanes_like(bits, I16))


def _brain_to_half(builder: Any, value: Any) -> Any:
    """As ml_dtypes: every NaN becomes the quiet one of its sign."""
    wide = builder.shl(builder.zext(value, lanes_like(value, I32)), number(lanes_like(value, I32), 16))
    magnitude = builder.and_(wide, number(wide.type, 0x7FFFFFFF))
    is_nan = builder.icmp_unsigned(">", magnitude, number(wide.type, _SINGLE_INFINITY))
    sign = builder.and_(wide, number(wide.type, 0x80000000))
    quiet = builder.or_(sign, number(wide.type, 0x7FC00000))
    single = builder.bitcast(builder.select(is_nan, quiet, wide), lanes_like(value, F32))
    return builder.trunc(halved(builder, single), lanes_like(value, I16))


def _half_to_double(builder: Any, value: Any) -> Any:
    """A NaN keeps all its bits, one that signals too: an infinity with its payload joined again."""
    code = builder.zext(value, lanes_like(value, I32))

    def const(number_of: int) -> Any:
        return number(code.type, number_of)

    magnitude, sign = builder.and_(code, const(0x7FFF)), builder.and_(code, const(0x8000))
    capped = builder.or_(least_of(builder, magnitude, const(0x7C00)), sign)
    double = builder.fpext(widened(builder, capped, MINIFLOATS["f16"]), lanes_like(value, F64))
    bits = builder.bitcast(double, lanes_like(value, I64))
    is_nan = builder.icmp_unsigned(">", magnitude, const(0x7C00))
    payload = builder.select(is_nan, builder.and_(code, const(0x3FF)), const(0))
    high = builder.shl(builder.zext(payload, bits.type), number(bits.type, 42))
    return builder.bitcast(builder.or_(bits, high), double.type)


def _double_to_half(builder: Any, value: Any) -> Any:
    """Rounded once, by way of a float32 that remembers in its last bit whether anything was lost."""
    bits = builder.bitcast(value, lanes_like(value, I64))
    infinity = number(bits.type, _DOUBLE_INFINITY)
    magnitude = builder.and_(bits, number(bits.type, (1 << 63) - 1))
    number_of = builder.bitcast(least_of(builder, magnitude, infinity), value.type)
    short = lanes_like(value, I16)
    out = builder.trunc(halved(builder, to_odd(builder, number_of)), short)
    payload = builder.and_(builder.lshr(magnitude, number(bits.type, 42)), number(bits.type, 0x3FF))
    payload = builder.trunc(payload, short)
    none = builder.icmp_unsigned("==", payload, number(short, 0))
    payload = builder.select(none, number(short, 1), payload)
    is_nan = builder.icmp_unsigned(">", magnitude, infinity)
    out = builder.select(is_nan, builder.or_(payload, number(short, 0x7C00)), out)
    sign = builder.trunc(builder.lshr(bits, number(bits.type, 48)), short)
    return builder.or_(out, builder.and_(sign, number(short, 0x8000)))
