"""Conversions between any two element types, as in NumPy and ml_dtypes, for vectors and scalars.

Values are LLVM integers, float and double; shorter floats are integers that hold their bits. The processor's
flags afterwards match NumPy's loops, except for underflow where `to_half` rounds, and for bf16 to f16, which
never warns.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from codegen.ir.element_types import HALF_TYPES, INTEGER_TYPES
from codegen.simd.register.memory import F32, F64, I8, I16, I32, I64
from codegen.simd.register.values import lanes_like, number
from codegen.simd.vector.minifloats import (
    MINIFLOATS,
    at_least_one,
    from_half,
    least_of,
    narrowed,
    to_half,
    to_odd,
    widened,
)

NUMPYS = (*INTEGER_TYPES, "pred", "f16", "f32", "f64")
"""Types that NumPy converts itself, without ml_dtypes."""

_DOUBLE_INFINITY = 0x7FF << 52


def bits_of(name: str) -> int:
    """Bits of one element."""
    if name in MINIFLOATS:
        return MINIFLOATS[name].bits
    return {"pred": 8, "bf16": 16}.get(name) or int(name[1:])


def converted(builder: Any, value: Any, source: str, target: str) -> Any:
    """Convert an LLVM value from one element type to another."""
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
    """The value as an integer, float or double, and the name of its type then."""
    if source == "pred":
        if target not in NUMPYS:
            return value, "u8"  # ml_dtypes reads the byte as a number
        return _truth(builder, builder.icmp_unsigned("!=", value, number(value.type, 0))), "u8"
    if source in HALF_TYPES:
        return from_half(builder, value, source), "f32"
    if source in MINIFLOATS:
        return widened(builder, builder.zext(value, lanes_like(value, I32)), MINIFLOATS[source]), "f32"
    return value, source


def _from_number(builder: Any, value: Any, source: str, target: str) -> Any:
    if source == target:
        return value
    if target == "pred":
        zero = number(value.type, 0)
        compare = builder.icmp_unsigned if source in INTEGER_TYPES else builder.fcmp_unordered
        return _truth(builder, compare("!=", value, zero))
    if target in ("f32", "f64"):
        return _to_float(builder, value, source, target)
    if target in INTEGER_TYPES:
        convert = _to_integer if source in ("f32", "f64") else _resized
        return convert(builder, value, source, target)
    single = value if source == "f32" else _to_float(builder, value, source, "f32")
    if target in HALF_TYPES:
        return to_half(builder, single, target)
    return builder.trunc(narrowed(builder, single, MINIFLOATS[target]), lanes_like(value, I8))


def _truth(builder: Any, condition: Any) -> Any:
    return builder.zext(condition, lanes_like(condition, ir.IntType(8)))


def _to_float(builder: Any, value: Any, source: str, target: str) -> Any:
    kind = lanes_like(value, F32 if target == "f32" else F64)
    if source in INTEGER_TYPES:
        return (builder.sitofp if source.startswith("s") else builder.uitofp)(value, kind)
    return (builder.fpext if target == "f64" else builder.fptrunc)(value, kind)


def _resized(builder: Any, value: Any, source: str, target: str) -> Any:
    before, after = bits_of(source), bits_of(target)
    kind = lanes_like(value, ir.IntType(after))
    if before >= after:
        return builder.trunc(value, kind) if before > after else value
    return (builder.sext if source.startswith("s") else builder.zext)(value, kind)


def _to_integer(builder: Any, value: Any, source: str, target: str) -> Any:
    """Convert toward zero. Values out of range get the instruction's result, which also sets the flag.

    Shorter types convert through 32 bits and u32 through 64, as in compilers. LLVM leaves values out of range
    undefined, but `freeze` keeps the instruction's result. A comparison and a select would mask the flag.
    """
    if target == "u64":
        return _to_u64(builder, value)
    wide = 32 if bits_of(target) < 32 or target == "s32" else 64
    integer = _frozen(builder, builder.fptosi(value, lanes_like(value, ir.IntType(wide))))
    kind = lanes_like(value, ir.IntType(bits_of(target)))
    return builder.trunc(integer, kind) if bits_of(target) < wide else integer


def _to_u64(builder: Any, value: Any) -> Any:
    half = number(value.type, 2.0**63)
    high = builder.fcmp_ordered(">=", value, half)
    low = builder.select(high, builder.fsub(value, half), value)
    integer = _frozen(builder, builder.fptosi(low, lanes_like(value, I64)))
    return builder.select(high, builder.xor(integer, number(integer.type, -(1 << 63))), integer)


def _frozen(builder: Any, value: Any) -> Any:
    """LLVM's `freeze`, for which llvmlite has no method."""
    frozen = ir.instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(frozen)
    return frozen


def _brain_to_half(builder: Any, value: Any) -> Any:
    """Convert as ml_dtypes does: every NaN becomes the quiet NaN of its sign."""
    code = narrowed(builder, from_half(builder, value, "bf16"), MINIFLOATS["f16"])
    return builder.trunc(code, lanes_like(value, I16))


def _half_to_double(builder: Any, value: Any) -> Any:
    """Even a signaling NaN keeps all its bits: it converts as infinity, then its payload is added."""
    code = builder.zext(value, lanes_like(value, I32))

    def const(constant: int) -> Any:
        return number(code.type, constant)

    magnitude, sign = builder.and_(code, const(0x7FFF)), builder.and_(code, const(0x8000))
    capped = builder.or_(least_of(builder, magnitude, const(0x7C00)), sign)
    double = builder.fpext(widened(builder, capped, MINIFLOATS["f16"]), lanes_like(value, F64))
    bits = builder.bitcast(double, lanes_like(value, I64))
    is_nan = builder.icmp_unsigned(">", magnitude, const(0x7C00))
    payload = builder.select(is_nan, builder.and_(code, const(0x3FF)), const(0))
    high = builder.shl(builder.zext(payload, bits.type), number(bits.type, 42))
    return builder.bitcast(builder.or_(bits, high), double.type)


def _double_to_half(builder: Any, value: Any) -> Any:
    """Rounded once, through a float32 whose last bit records whether any bits were lost."""
    bits = builder.bitcast(value, lanes_like(value, I64))
    infinity = number(bits.type, _DOUBLE_INFINITY)
    magnitude = builder.and_(bits, number(bits.type, (1 << 63) - 1))
    capped = builder.bitcast(least_of(builder, magnitude, infinity), value.type)
    short = lanes_like(value, I16)
    out = to_half(builder, to_odd(builder, capped), "f16")
    payload = builder.and_(builder.lshr(magnitude, number(bits.type, 42)), number(bits.type, 0x3FF))
    payload = at_least_one(builder, builder.trunc(payload, short))
    is_nan = builder.icmp_unsigned(">", magnitude, infinity)
    out = builder.select(is_nan, builder.or_(payload, number(short, 0x7C00)), out)
    sign = builder.trunc(builder.lshr(bits, number(bits.type, 48)), short)
    return builder.or_(out, builder.and_(sign, number(short, 0x8000)))
