"""Conversions of one element, as NumPy and ml_dtypes round them."""

from __future__ import annotations

from numba import njit

from codegen.simd.memory import bits_of_f32, f32_of_bits


@njit(error_model="numpy")
def f32_to_bf16(value):
    """Round to nearest even; a NaN keeps its sign and becomes the quiet one, as in ml_dtypes."""
    bits = bits_of_f32(value)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = ((bits >> 16) & 0x8000) | 0x7FC0
    return quiet if (bits & 0x7FFFFFFF) > 0x7F800000 else rounded


@njit(error_model="numpy")
def bf16_to_f32(bits):
    """Exact: a bf16 is the upper half of a float32."""
    return f32_of_bits(bits << 16)
