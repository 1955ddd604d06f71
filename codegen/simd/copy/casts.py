"""Element conversions that kernels call: of one element, of a super-vector, and of a vector's lanes.

convert_f32_to_bf16(value)    a super-vector, or one element in the type that element loads and stores use
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba import types

from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.memory import F32, F64, I64, swapped, vector
from codegen.simd.register.shuffles import shuffle
from codegen.simd.register.super_vectors import (
    SuperVector,
    as_one,
    from_one,
    from_parts,
    lanes_as,
    parts_of,
)
from codegen.simd.vector.conversions import bits_of, converted
from codegen.simd.vector.values import lanes_like, wide

_FLOATS = {"f32": F32, "f64": F64}


@cache
def conversion(source: str, target: str) -> Any:
    """Convert between two element types. Single elements are the low bits of an int64."""

    def rule(kind: Any) -> tuple[Any, Emit]:
        if isinstance(kind, SuperVector):
            return _lanes_rule(kind, source, target)
        return types.int64(types.int64), lambda builder, value: _one(builder, value, source, target)

    return routine(f"convert_{source}_to_{target}", 1, rule)


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


def _lanes_rule(kind: SuperVector, source: str, target: str) -> tuple[Any, Emit]:
    """All lanes of a row as one LLVM vector, which LLVM splits into registers."""
    before, after, convert = _lane_conversion(source, target)
    row, result_row = (SuperVector(8 * width, 1, kind.columns) for width in (before, after))
    result = SuperVector(8 * after, kind.rows, kind.columns)

    def emit(builder: Any, value: Any) -> Any:
        parts, out = parts_of(builder, value), []
        for k in range(0, kind.parts, row.parts):
            lanes = as_one(builder, from_parts(builder, row, parts[k : k + row.parts]))
            lanes = builder.bitcast(lanes, wide(ir.IntType(8 * before), kind.columns))
            out += parts_of(builder, from_one(builder, result_row, convert(builder, lanes)))
        return from_parts(builder, result, out)

    return result(kind), emit


def swap(bits: int) -> Any:
    """Reverse the bytes of each element of a super-vector, or of the low bits of an int64."""

    def lanes(kind: SuperVector, builder: Any, value: Any) -> Any:
        parts = (lanes_as(builder, part, bits) for part in parts_of(builder, value))
        return from_parts(builder, kind, [_swapped(builder, part) for part in parts])

    def rule(kind: Any) -> tuple[Any, Emit]:
        if isinstance(kind, SuperVector):
            return kind(kind), partial(lanes, kind)
        return types.int64(types.int64), lambda builder, value: swapped(builder, value, bits)

    return routine(f"swap_{bits}", 1, rule)


def _lane_conversion(source: str, target: str) -> tuple[int, int, Callable[[Any, Any], Any]]:
    """(bytes before, bytes after, conversion of a vector's lanes).

    Vectors are integers of the elements' bits. Each lane gets the same result as in the scalar routines.
    """
    before, after = bits_of(source), bits_of(target)

    def convert(builder: Any, lanes: Any) -> Any:
        return _converted_bits(builder, lanes, source, target)

    return before // 8, after // 8, convert


def _swapped(builder: Any, lanes: Any) -> Any:
    count, width = lanes.type.count, lanes.type.element.width // 8
    order = [lane * width + byte for lane in range(count) for byte in reversed(range(width))]
    loose = builder.bitcast(lanes, vector(8, count * width))
    return builder.bitcast(shuffle(builder, loose, loose, order), lanes.type)
