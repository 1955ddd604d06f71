"""The bit patterns that probes send as elements, and the arrays that hold them.

A pattern is an unsigned integer with the bits of one element. Functions may refuse or change some values:
they clip, flush denormals, or drop the sign of zero. So the elements that locate slots are finite, normal
numbers, and `unusual_patterns` are sent once the slots are known.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType

Patterns: TypeAlias = NDArray[Any]
"""One unsigned integer for each element. A c128 element has the pattern of its real part; see `array_of`."""

Bounds: TypeAlias = tuple[int, int]
"""The smallest and the largest integer that a function takes."""

CHUNK = 1 << 16
"""Elements that are computed at a time, so that intermediate results stay in the cache."""

Bits: TypeAlias = NDArray[np.uint8]
"""Bits, one in each byte."""

_WIDE_FLOATS = {"f16": (0x3C00, 10), "bf16": (0x4000, 8), "f32": (0x3F800000, 23), "f64": (0x3FF << 52, 32)}
"""The base and the digit bits: patterns of numbers from 1 to 2, or from 2 to 8 for bf16."""
_WIDE_FIELDS = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11)}
"""The bits of the mantissa and of the exponent."""
_SMALLEST_EXPONENT, _EXPONENT_BITS = -8, 4
"""Random numbers have magnitudes from 2**-8 to 2**8, so that sums and narrower types can hold them."""


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The patterns base + 0, base + 1, ... below 2**width that carry digits of a number.

    u8 -> 0, 8 bits    f32 -> 1.0, 23 bits    f8e4m3fn -> 0.125, 5 bits    u8 from 1 to 16 -> 1, 4 bits
    """

    base: int
    bits: int
    width: int = 64

    @property
    def last(self) -> int:
        """The pattern of the largest digit."""
        return self.base + (1 << self.bits) - 1 & (1 << self.width) - 1


def alphabet_of(element: PrimitiveType, bounds: Bounds | None = None) -> Alphabet:
    """The patterns that carry digits as elements of a type; integers may have bounds."""
    if bounds is not None:
        low, high = bounds
        digits = (high - low + 1).bit_length() - 1
        return Alphabet(low & (1 << element.bits) - 1, min(digits, 32), element.bits)
    if element.kind == "complex":
        half = element.bits // 2
        base, bits = _WIDE_FLOATS[f"f{half}"]
        return Alphabet(base << half | base if half == 32 else base, bits)
    if element.kind != "float":
        return Alphabet(0, min(element.bits, 32))
    if element.bits >= 16:
        return Alphabet(*_WIDE_FLOATS[element.name])
    if element.bits == 8:
        return Alphabet(0x40, 6) if element.name == "f8e8m0fnu" else Alphabet(0x20, 5)
    return Alphabet(0, element.bits - 1)


def safe_bits(element: PrimitiveType) -> list[int]:
    """The bits of a pattern that can be flipped without making a NaN or a denormal."""
    if element.kind == "complex":
        half, mantissa = element.bits // 2, alphabet_of(element).bits
        return [*range(mantissa), *(half + k for k in range(mantissa if half == 32 else 0))]
    return list(range(alphabet_of(element).bits if element.kind == "float" else element.bits))


def code_type(bits: int, *, signed: bool = False) -> PrimitiveType:
    """The type of codes of that many bits, 1 to 8; XLA has no types of 3, 5, 6 and 7 bits."""
    name = f"{'s' if signed else 'u'}{bits}"
    return PRIMITIVE_TYPES.get(name) or PrimitiveType(name, bits, 8, "int8" if signed else "uint8")


def pattern_dtype(element: PrimitiveType) -> np.dtype[Any]:
    """The unsigned dtype of an element's pattern."""
    return np.dtype(f"u{min(element.storage_bits, 64) // 8}")


def constant(element: PrimitiveType, count: int, pattern: int) -> Patterns:
    """The same pattern for all elements, read-only and in the memory of one."""
    return np.broadcast_to(np.array(pattern, pattern_dtype(element)), (count,))


def digits_of_numbers(element: PrimitiveType, count: int, alphabet: Alphabet, place: int) -> Patterns:
    """Elements that carry one digit of their numbers, which count from 1.

    u8, 300 elements, place 1 -> 0 255 times, then 1 45 times
    """
    out = np.empty(count, pattern_dtype(element))
    wide: Any = np.uint64 if max(alphabet.base, alphabet.last) >> 31 else np.uint32
    mask = wide((1 << min(alphabet.width, 8 * wide().itemsize)) - 1)
    for start in range(0, count, CHUNK):
        numbers = np.arange(start + 1, min(start + CHUNK, count) + 1, dtype=wide)
        digits = numbers >> wide(alphabet.bits * place) & wide((1 << alphabet.bits) - 1)
        out[start : start + CHUNK] = digits + wide(alphabet.base) & mask
    return out


def places_of(count: int, bits: int) -> int:
    """The number of digits of that many bits in the numbers 1 to count."""
    return -(-count.bit_length() // bits)


def random_patterns(element: PrimitiveType, count: int, seed: int, bounds: Bounds | None = None) -> Patterns:
    """Random elements: integers of all sizes, finite and normal floating-point numbers of both signs.

    The values of `extreme_patterns` are among them; if there are fewer elements, those of successive seeds.
    """
    rng = np.random.default_rng(seed)
    out = _noise(rng, element, count, bounds)
    extremes = extreme_patterns(element, bounds)
    if 0 < extremes.size <= count:
        places = (rng.integers(count) + count // extremes.size * np.arange(extremes.size)) % count
        out[places] = rng.permutation(extremes)
    elif extremes.size:
        order = np.random.default_rng(0).permutation(extremes)
        out[:] = np.roll(order, -seed * count)[:count]
    return out


def extreme_patterns(element: PrimitiveType, bounds: Bounds | None = None) -> Patterns:
    """All safe patterns of elements of at most 8 bits; of wider integers those that functions may clip."""
    dtype = pattern_dtype(element)
    if element.kind in ("float", "complex"):
        return _normal_patterns(element) if element.bits <= 8 else np.zeros(0, dtype)
    low, high = bounds or element.integer_range or (0, 0)
    near = range(low, high + 1) if element.bits <= 8 else (low, low + 1, high - 1, high, 0, 1, -1)
    return np.array(sorted({n & (1 << element.bits) - 1 for n in near if low <= n <= high}), dtype)


def unusual_patterns(element: PrimitiveType, bounds: Bounds | None = None) -> dict[str, Patterns]:
    """The values that functions treat in a special way, by kind.

    f32 -> "largest": +-3.4e38, "inf", "nan", "-0", "denormal", "smallest normal"    u8 -> "small": 0, 1, 2, 3
    """
    dtype = pattern_dtype(element)
    if element.kind not in ("float", "complex"):
        low, high = bounds or element.integer_range or (0, 0)
        few = range(max(low, min(0, high)), high + 1)[:4]
        return {"small": np.array(few).astype(dtype)} if high - low > 7 else {}
    if element.bits <= 8:
        return _unusual_narrow(element)
    half = element.kind == "complex"
    mantissa, width = _WIDE_FIELDS[f"f{element.bits // 2}" if half else element.name]
    sign, inf, least = 1 << mantissa + width, (1 << width) - 1 << mantissa, 1 << mantissa
    found = {
        "largest": (inf - 1, inf - 1 | sign),
        "inf": (inf, inf | sign),
        "nan": (inf | least >> 1,),
        "-0": (sign,),
        "denormal": (1, least - 1, 1 | sign),
        "smallest normal": (least, least | sign),
    }
    if element.bits == 128:  # the imaginary part has the next pattern
        found = {kind: found[kind] for kind in ("-0", "denormal", "smallest normal")}
    shift = 32 if element.bits == 64 and half else 0
    return {kind: np.array([n << shift | n for n in some], dtype) for kind, some in found.items()}


def _unusual_narrow(element: PrimitiveType) -> dict[str, Patterns]:
    """The patterns of a narrow floating-point type that `_normal_patterns` leaves out."""
    if element.numpy is None or element.numpy == np.uint8:
        return {}
    patterns = np.setdiff1d(np.arange(1 << element.bits, dtype=np.uint8), _normal_patterns(element))
    values = patterns.view(element.numpy).astype(np.float64)
    kinds = np.select([np.isnan(values), np.isinf(values), values == 0], ["nan", "inf", "-0"], "denormal")
    return {str(kind): patterns[kinds == kind] for kind in np.unique(kinds)}


def _noise(rng: np.random.Generator, element: PrimitiveType, count: int, bounds: Bounds | None) -> Patterns:
    """Independent random elements."""
    dtype = pattern_dtype(element)
    if bounds is not None:
        values = rng.integers(*bounds, size=count, endpoint=True)
        bounded: Patterns = values.astype(dtype) & dtype.type((1 << element.bits) - 1)
        return bounded
    noise = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    if element.kind in ("signed", "unsigned", "pred"):
        return noise & dtype.type((1 << element.bits) - 1) if element.bits < 8 else noise.copy()
    if element.kind == "complex":
        half = element.bits // 2
        if half == 64:
            return _normal(noise, "f64")
        return _normal(noise.view(np.uint32), "f32").view(np.uint64)
    if element.bits >= 16:
        return _normal(noise, element.name)
    table = _normal_patterns(element)
    out: Patterns = table[noise % np.uint8(table.size)]
    return out


def _normal(noise: Patterns, name: str) -> Patterns:
    """Replace the exponents of noise by those of moderate numbers."""
    low, width = _WIDE_FIELDS[name]
    dropped = ((1 << width) - (1 << _EXPONENT_BITS)) << low
    kept: Patterns = noise & noise.dtype.type(~dropped & (1 << 8 * noise.itemsize) - 1)
    bias = (1 << width - 1) - 1
    kept += noise.dtype.type(bias + _SMALLEST_EXPONENT << low)
    return kept


@cache
def _normal_patterns(element: PrimitiveType) -> Patterns:
    """The patterns of the finite, normal numbers and 0 of a narrow floating-point type."""
    import ml_dtypes

    patterns: Patterns = np.arange(1 << element.bits, dtype=np.uint8)
    if element.numpy is None or element.numpy == np.uint8:  # an old ml_dtypes lacks the type
        return patterns[1 << element.bits - 2 : 1 << element.bits - 1]
    values = patterns.view(element.numpy).astype(np.float64)
    least = float(ml_dtypes.finfo(element.numpy).smallest_normal)  # type: ignore[no-untyped-call]
    normal: Patterns = patterns[np.isfinite(values) & ((np.abs(values) >= least) | (patterns == 0))]
    return normal


def array_of(patterns: Patterns, element: PrimitiveType, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The elements with these patterns as a 1-D array of a dtype: the element's own, or one of its codes.

    Codes are the integers of narrow types, one in each byte: 15 of u4 as uint8 15, and of s4 as int8 -1. The
    imaginary part of a c128 element is the next pattern after that of the real part.
    """
    if element.bits == 128:
        pairs = np.stack([patterns, patterns + np.uint64(1)], axis=-1)
        return pairs.reshape(-1).view(dtype)
    if element.kind == "signed" and element.bits < 8:
        shift = 8 - element.bits
        return ((patterns << np.uint8(shift)).view(np.int8) >> np.int8(shift)).view(dtype)
    return patterns.view(dtype)


def patterns_of(array: NDArray[Any], element: PrimitiveType) -> Patterns:
    """The patterns of an array's elements in C order: the inverse of `array_of`."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if element.bits == 128:
        return flat.view(np.uint64)[::2]
    patterns = flat.view(pattern_dtype(element))
    return patterns & np.uint8((1 << element.bits) - 1) if element.bits < 8 else patterns


def bit_digits(element: PrimitiveType, count: int, place: int) -> Patterns:
    """Elements in which each bit carries one bit of its own number; numbers count all bits, from 1 on."""
    out = np.empty(count, pattern_dtype(element))
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        numbers = np.arange(start * element.bits + 1, stop * element.bits + 1)
        out[start:stop] = joined_bits((numbers >> place & 1).astype(np.uint8), element)
    return out


def separate_bits(patterns: Patterns, element: PrimitiveType) -> Bits:
    """The bits of all elements, one in each byte, the lowest bit of an element first."""
    out = np.empty((patterns.size, element.bits), np.uint8)
    for k in range(element.bits):
        out[:, k] = patterns >> patterns.dtype.type(k) & patterns.dtype.type(1)
    return out.reshape(-1)


def joined_bits(bits: Bits, element: PrimitiveType) -> Patterns:
    """The patterns with these bits: the inverse of `separate_bits`."""
    rows = bits.reshape(-1, element.bits)
    out: Patterns = np.zeros(len(rows), pattern_dtype(element))
    for k in range(element.bits):
        out |= rows[:, k].astype(out.dtype) << out.dtype.type(k)
    return out
