"""Floor division and modulo of vectors, with Python's rules, and NumPy's for zero divisors."""

from __future__ import annotations

from typing import Any

from codegen.ir.families import FLOATS
from codegen.simd.register.memory import F32, F64
from codegen.simd.register.values import bits_of, is_signed, lanes_like, llvm_function, number


def quotient_and_rest(builder: Any, dtype: str, a: Any, b: Any) -> tuple[Any, Any]:
    """a // b and a % b of integers. Both are 0 where b is 0, and the smallest integer // -1 is itself."""
    zero, one = number(a.type, 0), number(a.type, 1)
    by_zero = builder.icmp_unsigned("==", b, zero)
    unsafe = by_zero
    if is_signed(dtype):
        least = builder.icmp_unsigned("==", a, number(a.type, -(1 << (bits_of(dtype) - 1))))
        minus = builder.icmp_unsigned("==", b, number(a.type, -1))
        unsafe = builder.or_(by_zero, builder.and_(least, minus))
    divisor = builder.select(unsafe, one, b)
    quotient = _toward_zero(builder, dtype, a, divisor)
    rest = builder.sub(a, builder.mul(quotient, divisor))
    if is_signed(dtype):
        differ = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
        lower = builder.and_(differ, builder.icmp_unsigned("!=", rest, zero))
        quotient = builder.select(lower, builder.sub(quotient, one), quotient)
        rest = builder.select(lower, builder.add(rest, divisor), rest)
    return builder.select(by_zero, zero, quotient), rest


def _toward_zero(builder: Any, dtype: str, a: Any, b: Any) -> Any:
    """Divide toward zero, by float division up to 32 bits: processors have no vector integer division.

    Rounding never moves a quotient to the next integer: that is farther than one part in 2**bits, and the
    float is at least twice as precise.
    """
    bits, signed = bits_of(dtype), is_signed(dtype)
    if bits > 32:
        return (builder.sdiv if signed else builder.udiv)(a, b)
    floats = lanes_like(a, F32 if bits < 32 else F64)
    to, back = (builder.sitofp, builder.fptosi) if signed else (builder.uitofp, builder.fptoui)
    return back(builder.fdiv(to(a, floats), to(b, floats)), a.type)


def floor_divided(builder: Any, dtype: str, a: Any, b: Any) -> Any:
    """`floordiv(a, b)`. Floats follow NumPy, which starts from fmod's remainder."""
    if dtype not in FLOATS:
        return quotient_and_rest(builder, dtype, a, b)[0]
    zero, one = number(a.type, 0.0), number(a.type, 1.0)
    _, lowered = _float_rest(builder, a, b)
    exact = builder.fdiv(builder.fsub(a, builder.frem(a, b)), b)
    exact = builder.select(lowered, builder.fsub(exact, one), exact)
    whole = llvm_function(builder, "llvm.floor", exact)
    up = builder.fcmp_ordered(">", builder.fsub(exact, whole), number(a.type, 0.5))
    whole = builder.select(up, builder.fadd(whole, one), whole)
    signed_zero = llvm_function(builder, "llvm.copysign", zero, builder.fdiv(a, b))
    whole = builder.select(builder.fcmp_unordered("!=", exact, zero), whole, signed_zero)
    return builder.select(builder.fcmp_ordered("==", b, zero), builder.fdiv(a, b), whole)


def modulo(builder: Any, dtype: str, a: Any, b: Any) -> Any:
    """`modulo(a, b)`, with the sign of b."""
    if dtype not in FLOATS:
        return quotient_and_rest(builder, dtype, a, b)[1]
    rest, _ = _float_rest(builder, a, b)
    return rest


def _float_rest(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a % b with the sign of b, and whether fmod's remainder had the other sign."""
    zero = number(a.type, 0.0)
    rest = builder.frem(a, b)
    nonzero = builder.fcmp_unordered("!=", rest, zero)
    differ = builder.xor(builder.fcmp_ordered("<", b, zero), builder.fcmp_ordered("<", rest, zero))
    lowered = builder.and_(nonzero, differ)
    moved = builder.select(lowered, builder.fadd(rest, b), rest)
    moved = builder.select(nonzero, moved, llvm_function(builder, "llvm.copysign", zero, b))
    return builder.select(builder.fcmp_ordered("==", b, zero), rest, moved), lowered
