"""Floats of 8 and 16 bits from and to float32, in integers: no CPU level has instructions for all of them.

Lanes of a vector and single numbers alike. Nothing here sets the processor's flags but where that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from codegen.simd.memory import F32, I32, widened_half
from codegen.simd.vectors import lanes_like, number

INFINITY = 0x7F800000


@dataclass(frozen=True, slots=True)
class Minifloat:
    """Bits of the exponent and of the mantissa, the exponent's bias, and which codes are no numbers.

    "ieee" has infinities and NaNs as IEEE 754, "fn" one NaN of either sign and no infinity, "fnuz" one NaN
    in the place of minus zero.
    """

    exponent: int
    mantissa: int
    bias: int
    specials: Literal["ieee", "fn", "fnuz"] = "ieee"

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return 1 + self.exponent + self.mantissa

    @property
    def magnitude(self) -> int:
        """The bits below the sign, all set."""
        return (1 << (self.bits - 1)) - 1

    @property
    def exponents(self) -> int:
        """An exponent of all ones, in its place."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def beyond(self) -> int:
        """What stands behind the largest number, without a sign."""
        return {"ieee": self.exponents, "fn": self.magnitude, "fnuz": self.magnitude + 1}[self.specials]

    @property
    def nan(self) -> int:
        """The quiet NaN, without a sign but for "fnuz"."""
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


def narrowed(builder: Any, single: Any, kind: Minifloat) -> Any:
    """float32 as the 32-bit code of a number of 8 bits, to nearest even, as ml_dtypes rounds.

    What is too large becomes infinity, or NaN. A NaN becomes the quiet one; one that signals sets the flag.
    """
    bits = builder.bitcast(single, lanes_like(single, I32))

    def const(value: int) -> Any:
        return number(bits.type, value)

    magnitude = builder.and_(bits, const(0x7FFFFFFF))
    rounded = _rounded(builder, magnitude, kind)
    rebased = builder.sub(rounded, const((127 - kind.bias) << 23))
    normal = builder.lshr(rebased, const(23 - kind.mantissa))
    out = least_of(builder, _with_small(builder, magnitude, normal, kind), const(kind.beyond))
    out = builder.select(builder.fcmp_unordered("uno", single, single), const(kind.nan), out)
    sign = builder.and_(builder.lshr(bits, const(32 - kind.bits)), const(kind.magnitude + 1))
    if kind.specials == "fnuz":
        sign = builder.select(builder.icmp_unsigned("==", out, const(0)), const(0), sign)
    return builder.or_(out, sign)


def halved(builder: Any, single: Any) -> Any:
    """float32 as the 32-bit code of a float16, as NumPy rounds; sets the flag of an overflow as NumPy does.

    A NaN keeps its sign and the upper bits of its payload. The product overflows where a finite number
    rounds to 2**16 or more, and its exponent is all ones just where that of the float16 is. No flag tells of
    an underflow.
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
    out = builder.select(is_nan, builder.or_(_at_least_one(builder, payload), const(kind.exponents)), out)
    return builder.or_(out, builder.and_(builder.lshr(bits, const(16)), const(0x8000)))


def _at_least_one(builder: Any, payload: Any) -> Any:
    """A NaN whose payload is lost would be an infinity."""
    none = builder.icmp_unsigned("==", payload, number(payload.type, 0))
    return builder.select(none, number(payload.type, 1), payload)


def _rounded(builder: Any, magnitude: Any, kind: Minifloat) -> Any:
    """The bits of a float32 with half a step of the shorter one added, less a bit where that is even."""
    shift = 23 - kind.mantissa
    odd = builder.and_(builder.lshr(magnitude, number(magnitude.type, shift)), number(magnitude.type, 1))
    return builder.add(builder.add(magnitude, number(magnitude.type, (1 << (shift - 1)) - 1)), odd)


def _with_small(builder: Any, magnitude: Any, normal: Any, kind: Minifloat) -> Any:
    """What is below the least normal number is rounded by an addition, at whose sum's last bit codes end."""
    least = number(magnitude.type, (128 - kind.bias) << 23)
    magic = number(magnitude.type, (127 - kind.bias + 23 - kind.mantissa + 1) << 23)
    single = lanes_like(magnitude, F32)
    capped = builder.bitcast(least_of(builder, magnitude, least), single)
    total = builder.bitcast(builder.fadd(capped, builder.bitcast(magic, single)), magnitude.type)
    is_small = builder.icmp_unsigned("<", magnitude, least)
    return builder.select(is_small, builder.sub(total, magic), normal)


def widened(builder: Any, code: Any, kind: Minifloat) -> Any:
    """The code in the low bits of 32 as a float32; exact, and a NaN of 8 bits the quiet one of its sign."""
    if kind == MINIFLOATS["f16"]:
        return widened_half(builder, code)

    def const(value: int) -> Any:
        return number(code.type, value)

    single = lanes_like(code, F32)
    magnitude = builder.and_(code, const(kind.magnitude))
    normal = builder.add(builder.shl(magnitude, const(23 - kind.mantissa)), const((127 - kind.bias) << 23))
    above = builder.bitcast(builder.add(normal, const(1 << 23)), single)
    least = builder.bitcast(const((128 - kind.bias) << 23), single)
    subnormal = builder.bitcast(builder.fsub(above, least), code.type)
    is_small = builder.icmp_unsigned("<", magnitude, const(1 << kind.mantissa))
    wide = builder.select(is_small, subnormal, normal)
    is_nan = builder.icmp_unsigned(">", magnitude, const(kind.exponents))
    if kind.specials == "ieee":
        is_infinite = builder.icmp_unsigned("==", magnitude, const(kind.exponents))
        wide = builder.select(is_infinite, const(INFINITY), wide)
    else:
        full = magnitude if kind.specials == "fn" else code
        is_nan = builder.icmp_unsigned("==", full, const(kind.nan))
    wide = builder.select(is_nan, const(0x7FC00000), wide)
    sign = builder.shl(builder.and_(code, const(kind.magnitude + 1)), const(32 - kind.bits))
    return builder.bitcast(builder.or_(wide, sign), single)
