"""Element conversions that kernels call: of one element, and of vectors.

convert_f32_to_bf16(value)    a vector, or one element in the type that element loads and stores use
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types

from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.memory import F32, F64, I64, swapped
from codegen.simd.register.shuffles import shuffle
from codegen.simd.register.values import Vector, lanes_as, lanes_like, row_by_row
from codegen.simd.vector.conversions import bits_of, converted

_FLOATS = {"f32": F32, "f64": F64}


@cache
def conversion(source: str, target: str) -> Any:
    """Convert between two element types. Single elements are the low bits of an int64."""

    def rule(kind: Any) -> tuple[Any, Emit]:
        if isinstance(kind, Vector):
            result = Vector(f"u{bits_of(target)}", kind.lanes)
            return result(kind), lambda builder, row: _converted_bits(builder, row, source, target)
        return types.int64(types.int64), lambda builder, value: _one(builder, value, source, target)

    return routine(f"convert_{source}_to_{target}", 1, row_by_row(rule))


def _one(builder: Any, value: Any, source: str, target: str) -> Any:
    value = value if bits_of(source) == I64.width else builder.trunc(value, ir.IntType(bits_of(source)))
    out = _converted_bits(builder, value, source, target)
    return out if bits_of(target) == I64.width else builder.zext(out, I64)


def _converted_bits(builder: Any, value: Any, source: str, target: str) -> Any:
    """The bits of elements, one or a vector of them, converted."""
    if source in _FLOATS:
        value = builder.bitcast(value, lanes_like(value, _FLOATS[source]))
    out = converted(builder, value, source, target)
    return builder.bitcast(out, lanes_like(out, ir.IntType(bits_of(target))))


def swap(bits: int) -> Any:
    """Reverse the bytes of each element of a vector, or of the low bits of an int64."""

    def rule(kind: Any) -> tuple[Any, Emit]:
        if isinstance(kind, Vector):
            return kind(kind), lambda builder, row: _swapped(builder, row, bits // 8)
        return types.int64(types.int64), lambda builder, value: swapped(builder, value, bits)

    return routine(f"swap_{bits}", 1, row_by_row(rule))


def _swapped(builder: Any, row: Any, width: int) -> Any:
    loose = lanes_as(builder, row, 8)
    order = [first + byte for first in range(0, loose.type.count, width) for byte in reversed(range(width))]
    return builder.bitcast(shuffle(builder, loose, loose, order), row.type)
