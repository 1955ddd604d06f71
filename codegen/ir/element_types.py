"""The element types that kernels convert between, by their names in `Element`."""

from __future__ import annotations

INTEGER_TYPES = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
HALF_TYPES = ("f16", "bf16")
FLOAT_TYPES = (*HALF_TYPES, "f32", "f64")
BYTE_FLOAT_TYPES = ("f8e5m2", "f8e4m3", "f8e3m4", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2fnuz")


def bits_of(dtype: str) -> int:
    """Bits of an element in storage: 32 for "f32", 16 for "bf16", 512 for "bits512"."""
    return 8 if dtype == "i1" else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))
