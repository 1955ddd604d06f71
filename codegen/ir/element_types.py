"""The element types that kernels convert between, by their names in `Element`."""

from __future__ import annotations

INTEGER_TYPES = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
HALF_TYPES = ("f16", "bf16")
FLOAT_TYPES = (*HALF_TYPES, "f32", "f64")
BYTE_FLOAT_TYPES = ("f8e5m2", "f8e4m3", "f8e3m4", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2fnuz")


def bits_of(dtype: str) -> int:
    """Bits of an element in storage: 32 for "f32", 8 for "f8e5m2" and "i1", 512 for "bits512"."""
    return 8 if dtype == "i1" or dtype.startswith("f8") else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def is_bits(dtype: str) -> bool:
    """Whether elements of a dtype are only moved: "bits8"."""
    return dtype.startswith("bits")


_LEFT_TO_NUMPY = (("f32", "u32"), ("f64", "u32"), ("bf16", "u32"), ("bf16", "pred"))
"""Conversions that only NumPy runs. Its result for a float outside u32's range depends on the element's
position in the array (vector or tail). For bf16 to pred, kernels would lose the flag of signaling NaNs."""


def _conversions() -> tuple[tuple[str, str], ...]:
    others = ("pred", *INTEGER_TYPES)
    types = *others, *FLOAT_TYPES
    pairs = [(a, b) for a in types for b in types if a != b and (a, b) not in _LEFT_TO_NUMPY]
    pairs += [pair for a in BYTE_FLOAT_TYPES for b in FLOAT_TYPES for pair in ((a, b), (b, a))]
    return (*pairs, *((f"swap u{n}", f"u{n}") for n in (16, 32, 64)))


CONVERSIONS = _conversions()
"""(source, target) of each conversion that kernels run, bit-equal to NumPy and ml_dtypes.

A "swap " prefix reverses the bytes.
"""

_KNOWN = frozenset(CONVERSIONS)


def can_convert(source: str, target: str) -> bool:
    """Whether kernels can convert between these element types."""
    return (source, target) in _KNOWN


def dtype_of(element: str) -> str:
    """The IR's dtype of an element type: "s8" -> "i8", "pred" -> "i1", others as they are."""
    if element == "pred":
        return "i1"
    return f"i{element[1:]}" if element in INTEGER_TYPES and element.startswith("s") else element
