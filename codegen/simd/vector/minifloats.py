"""Conversions between 8- and 16-bit floats and float32, for vectors and scalars.

They use integer arithmetic, because no CPU level has instructions for all formats. Copies call `from_half`,
`to_half`, `widened` and `narrowed`, which produce the same bits as NumPy and ml_dtypes. They set the
processor's overflow and invalid flags only where documented. Loops do not check flags, and write halves with
`to_quiet_half`.
"""

from __future__ import annotations

from typing import Any, Literal

from codegen.simd.register.memory import F32, I16, I32
from codegen.simd.register.values import lanes_like, llvm_function, number
from codegen.support.dataclasses import dataclass

INFINITY = 0x7F800000


@dataclass(frozen=True, slots=True)
class Minifloat:
    """Bits of the exponent and the mantissa, the exponent's bias, and the codes of NaN and infinity.

    "ieee" has infinities and NaNs as in IEEE 754. "fn" has one NaN of either sign and no infinity. "fnuz" has
    one NaN, with the code of minus zero.
    """

    exponent: int
    mantissa: int
    bias: int
    specials: Literal["ieee", "fn", "fnuz"] = "ieee"

    @property
    def bits(self) -> int:
        """Bits of one number, with the sign."""
        return 1 + self.exponent + self.mantissa

    @property
    def magnitude(self) -> int:
        """The bits below the sign, all set."""
        return (1 << (self.bits - 1)) - 1

    @property
    def exponents(self) -> int:
        """An exponent of all ones, at its bit position."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def beyond(self) -> int:
        """The code after that of the largest number, without a sign."""
        return {"ieee": self.exponents, "fn": self.magnitude, "fnuz": self.magnitude + 1}[self.specials]

    @property
    def nan(self) -> int:
        """The quiet NaN, without a sign except for "fnuz"."""
        return self.exponents | 1 << (self.mantissa - 1) if self.specials == "ieee" else self.beyond


MINIFLOATS = {
    "f16": Minifloat(5, 10, 15),
    "f8e5m2": Minifloat(5, 2, 15),
    "f8e4m3": Minifloat(4, 3, 7),
    "f8e3m4": Minifloat(3, 4, 3),
    "f8e4m3fn": Minifloat(4, 3, 7, "fn"),
    "f8e4m3fnuz": Minifloat(4, 3, 8, "fnuz"),
    "f8e4m3b11fnuz": Minifloat(4, 3, 11, "fnuz"),
    "f8e5m2fnuz": Minifloat(5, 2, 16, "fnuz"),
}


def least_of(builder: Any, value: Any, bound: Any) -> Any:
    """The smaller of two unsigned integers."""
    return builder.select(builder.icmp_unsigned("<", value, bound), value, bound)


def at_least_one(builder: Any, payload: Any) -> Any:
    """Keep a payload nonzero: with zero the NaN would be an infinity."""
    none = builder.icmp_unsigned("==", payload, number(payload.type, 0))
    return builder.select(none, number(payload.type, 1), payload)


def from_half(builder: Any, value: Any, half: str) -> Any:
    """Convert the bits of a bf16 or f16 to float32. It is exact, and a NaN keeps its payload."""
    code = builder.zext(value, lanes_like(value, I32))
    if half == "f16":
        return widened(builder, code, MINIFLOATS["f16"])
    return builder.bitcast(builder.shl(code, number(code.type, 16)), lanes_like(value, F32))


def to_half(builder: Any, single: Any, half: str) -> Any:
    """Convert float32 to the bits of a bf16 or f16, rounded to nearest even, as ml_dtypes and NumPy do.

    For bf16, a NaN becomes the quiet NaN of its sign, and a signaling NaN sets the invalid flag. For f16, a
    NaN keeps its sign and the upper bits of its payload, and too large a value sets the overflow flag.
    """
    if half == "f16":
        code = _numpys_f16(builder, single)
    else:
        is_nan = builder.fcmp_unordered("uno", single, single)
        code = _bf16(builder, builder.bitcast(single, lanes_like(single, I32)), is_nan)
    return builder.trunc(code, lanes_like(single, I16))


def to_quiet_half(builder: Any, single: Any, half: str) -> Any:
    """The same numbers in fewer steps, ignoring flags. NaNs are quiet, and those of f16 keep a payload."""
    bits = builder.bitcast(single, lanes_like(single, I32))

    def const(value: int) -> Any:
        return number(bits.type, value)

    magnitude = builder.and_(bits, const(0x7FFFFFFF))
    is_nan = builder.icmp_unsigned(">", magnitude, const(INFINITY))
    if half == "bf16":
        code = _bf16(builder, bits, is_nan)
    else:
        kind = MINIFLOATS["f16"]
        payload = builder.and_(builder.lshr(magnitude, const(13)), const(0x3FF))
        nan = builder.or_(payload, const(kind.nan))
        code = builder.select(is_nan, nan, _nearest(builder, magnitude, kind, with_flags=False))
        code = builder.or_(builder.and_(builder.lshr(bits, const(16)), const(0x8000)), code)
    return builder.trunc(code, lanes_like(single, I16))


def to_odd(builder: Any, value: Any) -> Any:
    """Convert f64 to f32 toward zero, and set the last bit if any bits were lost.

    The nearest float is one step too large if its magnitude exceeds the number's. Its bits minus one are the
    next float toward zero.
    """
    single = lanes_like(value, F32)
    bits = lanes_like(value, I32)
    near = builder.fptrunc(value, single)
    back = builder.fpext(near, value.type)
    code = builder.bitcast(near, bits)
    lost = builder.fcmp_ordered("!=", back, value)
    size, least = (llvm_function(builder, "llvm.fabs", x) for x in (back, value))
    above = builder.and_(lost, builder.fcmp_ordered(">", size, least))
    code = builder.select(above, builder.sub(code, number(bits, 1)), code)
    code = builder.or_(code, builder.zext(lost, bits))
    return builder.bitcast(code, single)


def narrowed(builder: Any, single: Any, kind: Minifloat) -> Any:
    """Convert float32 to the 32-bit code of a shorter float, rounded to nearest even, as ml_dtypes does.

    Values that are too large become infinity or NaN. NaNs become quiet; signaling ones set the invalid flag.
    """
    bits = builder.bitcast(single, lanes_like(single, I32))

    def const(value: int) -> Any:
        return number(bits.type, value)

    out = _nearest(builder, builder.and_(bits, const(0x7FFFFFFF)), kind)
    out = builder.select(builder.fcmp_unordered("uno", single, single), const(kind.nan), out)
    sign = builder.and_(builder.lshr(bits, const(32 - kind.bits)), const(kind.magnitude + 1))
    if kind.specials == "fnuz":
        sign = builder.select(builder.icmp_unsigned("==", out, const(0)), const(0), sign)
    return builder.or_(out, sign)


def widened(builder: Any, code: Any, kind: Minifloat) -> Any:
    """Convert the code in the low bits of 32 to float32, exactly. 8-bit NaNs become quiet, with their sign.

    f16 NaNs keep their payload, as in NumPy. The AVX2 instruction would quiet them, and SSE2 has none.
    """

    def const(value: int) -> Any:
        return number(code.type, value)

    single = lanes_like(code, F32)
    magnitude, rebias = builder.and_(code, const(kind.magnitude)), const((127 - kind.bias) << 23)
    normal = builder.add(builder.shl(magnitude, const(23 - kind.mantissa)), rebias)
    above = builder.bitcast(builder.add(normal, const(1 << 23)), single)
    least = builder.bitcast(const((128 - kind.bias) << 23), single)
    subnormal = builder.bitcast(builder.fsub(above, least), code.type)
    is_small = builder.icmp_unsigned("<", magnitude, const(1 << kind.mantissa))
    wide = builder.select(is_small, subnormal, normal)
    if kind.specials == "ieee":
        is_special = builder.icmp_unsigned(">=", magnitude, const(kind.exponents))
        special = builder.add(normal, rebias) if kind == MINIFLOATS["f16"] else const(INFINITY)
        wide = builder.select(is_special, special, wide)
        is_nan = builder.icmp_unsigned(">", magnitude, const(kind.exponents))
    else:
        full = magnitude if kind.specials == "fn" else code
        is_nan = builder.icmp_unsigned("==", full, const(kind.nan))
    if kind.bits == 8:
        wide = builder.select(is_nan, const(0x7FC00000), wide)
    sign = builder.shl(builder.and_(code, const(kind.magnitude + 1)), const(32 - kind.bits))
    return builder.bitcast(builder.or_(wide, sign), single)


def _bf16(builder: Any, bits: Any, is_nan: Any) -> Any:
    """Convert the bits of a float32 to the 32-bit code of a bf16."""

    def const(value: int) -> Any:
        return number(bits.type, value)

    high = builder.lshr(bits, const(16))
    odd = builder.and_(high, const(1))
    rounded = builder.lshr(builder.add(builder.add(bits, const(0x7FFF)), odd), const(16))
    quiet = builder.or_(builder.and_(high, const(0x8000)), const(0x7FC0))
    return builder.select(is_nan, quiet, rounded)


def _numpys_f16(builder: Any, single: Any) -> Any:
    """Convert float32 to the 32-bit code of an f16, with NumPy's NaNs and overflow flag.

    The product overflows if a finite number rounds to 2**16 or more. Its exponent is all ones exactly when
    the f16's is. Underflow sets no flag.
    """
    kind = MINIFLOATS["f16"]
    bits = builder.bitcast(single, lanes_like(single, I32))

    def const(value: int) -> Any:
        return number(bits.type, value)

    magnitude = builder.and_(bits, const(0x7FFFFFFF))
    finite = builder.icmp_unsigned("<", magnitude, const(INFINITY))
    largest = builder.select(finite, const(0x7F000000), const(INFINITY))
    rounded = builder.and_(_rounded(builder, magnitude, kind), const(~0x1FFF & 0xFFFFFFFF))
    rounded = least_of(builder, rounded, largest)
    scale = builder.bitcast(const((127 + 112) << 23), single.type)
    product = builder.fmul(builder.bitcast(rounded, single.type), scale)
    scaled = builder.lshr(builder.bitcast(product, bits.type), const(13))
    out = _with_small(builder, magnitude, builder.sub(scaled, const((255 - 31) << 10)), kind)
    payload = builder.and_(builder.lshr(magnitude, const(13)), const(0x3FF))
    is_nan = builder.icmp_unsigned(">", magnitude, const(INFINITY))
    out = builder.select(is_nan, builder.or_(at_least_one(builder, payload), const(kind.exponents)), out)
    return builder.or_(out, builder.and_(builder.lshr(bits, const(16)), const(0x8000)))


def _nearest(builder: Any, magnitude: Any, kind: Minifloat, *, with_flags: bool = True) -> Any:
    """The code of a number other than NaN, without its sign. Too large numbers get the code `beyond`."""

    def const(value: int) -> Any:
        return number(magnitude.type, value)

    rebased = builder.sub(_rounded(builder, magnitude, kind), const((127 - kind.bias) << 23))
    normal = builder.lshr(rebased, const(23 - kind.mantissa))
    out = _with_small(builder, magnitude, normal, kind, with_flags=with_flags)
    return least_of(builder, out, const(kind.beyond))


def _rounded(builder: Any, magnitude: Any, kind: Minifloat) -> Any:
    """The bits of a float32 plus half a step of the shorter float, minus one if the shorter code is even."""
    shift = 23 - kind.mantissa
    odd = builder.and_(builder.lshr(magnitude, number(magnitude.type, shift)), number(magnitude.type, 1))
    return builder.add(builder.add(magnitude, number(magnitude.type, (1 << (shift - 1)) - 1)), odd)


def _with_small(
    builder: Any, magnitude: Any, normal: Any, kind: Minifloat, *, with_flags: bool = True
) -> Any:
    """Round numbers below the smallest normal one by an addition whose sum ends at the last bit of the code.

    with_flags: the flags matter, so a signaling NaN must not reach the addition.
    """
    least = number(magnitude.type, (128 - kind.bias) << 23)
    magic = number(magnitude.type, (127 - kind.bias + 23 - kind.mantissa + 1) << 23)
    single = lanes_like(magnitude, F32)
    capped = builder.bitcast(least_of(builder, magnitude, least) if with_flags else magnitude, single)
    total = builder.bitcast(builder.fadd(capped, builder.bitcast(magic, single)), magnitude.type)
    is_small = builder.icmp_unsigned("<", magnitude, least)
    return builder.select(is_small, builder.sub(total, magic), normal)
