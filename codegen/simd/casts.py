"""Conversions of one element, as NumPy and ml_dtypes round them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.simd.decorator import for_kernels
from codegen.simd.memory import F32, F64, bits_of_f32, f32_of_bits, vector, widened_half
from codegen.simd.shuffles import shuffle


@for_kernels
def f32_to_bf16(value):
    """Round to nearest even; a NaN keeps its sign and becomes the quiet one, as in ml_dtypes."""
    bits = bits_of_f32(value)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = ((bits >> 16) & 0x8000) | 0x7FC0
    return quiet if (bits & 0x7FFFFFFF) > 0x7F800000 else rounded


@for_kernels
def bf16_to_f32(bits):
    """Exact: a bf16 is the upper half of a float32."""
    return f32_of_bits(bits << 16)


def lane_conversion(name: str) -> tuple[int, int, Callable[[Any, Any], Any]]:
    """(bytes before, bytes after, conversion of a vector's lanes) of `f32_to_bf16` or `swap_u32`.

    Vectors come and go as integers of the elements' bits; each lane becomes what the scalar routines make.
    """
    if name.startswith("swap_u"):
        bits = int(name.removeprefix("swap_u"))
        return bits // 8, bits // 8, _swapped
    source, target = name.split("_to_")
    before, after = _bits(source), _bits(target)

    def convert(builder: Any, lanes: Any) -> Any:
        out = _converted(builder, _as_number(builder, lanes, source), source, target)
        return builder.bitcast(out, vector(after, lanes.type.count))

    return before // 8, after // 8, convert


def _bits(name: str) -> int:
    return int(name.lstrip("bfsu"))


def _as_number(builder: Any, lanes: Any, name: str) -> Any:
    """Integers of their bits as what they are; the halves stay bits."""
    kind = {"f32": F32, "f64": F64}.get(name)
    return builder.bitcast(lanes, ir.VectorType(kind, lanes.type.count)) if kind else lanes


def _converted(builder: Any, value: Any, source: str, target: str) -> Any:
    count = value.type.count
    floats = {name: ir.VectorType(kind, count) for name, kind in (("f32", F32), ("f64", F64))}
    match source, target:
        case "f32", "bf16":
            return _to_bf16(builder, builder.bitcast(value, vector(32, count)))
        case "bf16", "f32":
            wide = builder.zext(value, vector(32, count))
            return builder.shl(wide, ir.Constant(wide.type, [16] * count))
        case "f16", "f32":
            return widened_half(builder, builder.zext(value, vector(32, count)))
        case "f32", "f64":
            return builder.fpext(value, floats[target])
        case "f64", "f32":
            return builder.fptrunc(value, floats[target])
        case _, ("f32" | "f64"):
            make = builder.sitofp if source.startswith("s") else builder.uitofp
            return make(value, floats[target])
    before, after = _bits(source), _bits(target)
    if before >= after:
        return builder.trunc(value, vector(after, count)) if before > after else value
    return (builder.sext if source.startswith("s") else builder.zext)(value, vector(after, count))


def _to_bf16(builder: Any, bits: Any) -> Any:
    """As `f32_to_bf16`."""

    def const(number: int) -> Any:
        return ir.Constant(bits.type, [number] * bits.type.count)

    high = builder.lshr(bits, const(16))
    odd = builder.and_(high, const(1))
    rounded = builder.lshr(builder.add(builder.add(bits, const(0x7FFF)), odd), const(16))
    quiet = builder.or_(builder.and_(high, const(0x8000)), const(0x7FC0))
    magnitude = builder.and_(bits, const(0x7FFFFFFF))
    is_nan = builder.icmp_unsigned(">", magnitude, const(0x7F800000))
    return builder.trunc(builder.select(is_nan, quiet, rounded), vector(16, bits.type.count))


def _swapped(builder: Any, lanes: Any) -> Any:
    count, width = lanes.type.count, lanes.type.element.width // 8
    order = [lane * width + byte for lane in range(count) for byte in reversed(range(width))]
    loose = builder.bitcast(lanes, vector(8, count * width))
    return builder.bitcast(shuffle(builder, loose, loose, order), lanes.type)
