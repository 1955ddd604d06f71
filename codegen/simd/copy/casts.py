"""Element conversions that kernels call: of one element, of a vector's lanes, and of a run.

convert_f32_to_bf16(value)                one element, in the type that element loads and stores use
convert_run_f32_to_bf16(dst, src, count)  elements that are contiguous on both sides
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import F32, F64, I64, load, statement, store, vector
from codegen.simd.register.shuffles import shuffle
from codegen.simd.vector.conversions import bits_of, converted
from codegen.simd.vector.minifloats import MINIFLOATS
from codegen.simd.vector.values import lanes_like, wide

_NAME = re.compile(r"convert_(run_)?([a-z0-9]+)_to_([a-z0-9]+)")
_FLOATS: dict[str, tuple[Any, Any]] = {"f32": (F32, types.float32), "f64": (F64, types.float64)}


def conversion_routine(name: str) -> Any:
    """The routine of that name, or None if it is not a conversion."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    run, source, target = found.groups()
    return conversion_run(source, target) if run else element_conversion(source, target)


@cache
def element_conversion(source: str, target: str) -> Any:
    """Convert one element. Types other than float and double use the low bits of an int64."""
    result = _FLOATS[target][1] if target in _FLOATS else types.int64
    argument = _FLOATS[source][1] if source in _FLOATS else types.int64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = args[0]
        if source not in _FLOATS and bits_of(source) < 64:
            value = builder.trunc(value, ir.IntType(bits_of(source)))
        out = converted(builder, value, source, target)
        if target in _FLOATS or bits_of(target) == 64:
            return out
        return builder.zext(out, I64)

    name = f"convert_{source}_to_{target}"
    namespace = {"signature": result(argument), "generate": generate}
    exec(f"def {name}(typing, value):\n    return signature, generate\n", namespace)
    return intrinsic(namespace[name])


@cache
def conversion_run(source: str, target: str) -> Any:
    """Convert a run in vectors of a line or more on one side, and one more that overlaps the last.

    Shorter runs are converted in eights and ones.
    """
    before, after, convert = lane_conversion(f"{source}_to_{target}")
    lanes = min(max(LINE_BYTES // min(before, after), 16), 32)

    def mover(count: int) -> Any:
        def emit(builder: Any, dst: Any, src: Any) -> None:
            store(builder, convert(builder, load(builder, src, wide(ir.IntType(8 * before), count))), dst)

        return statement(emit, 2, f"convert_{count}_{source}_to_{target}")

    full, eight, one = mover(lanes), mover(8), mover(1)

    @for_kernels
    def convert_run(dst, src, count):
        if count >= lanes:
            last = count - lanes
            for k in range(0, last, lanes):
                full(dst + k * after, src + k * before)
            full(dst + last * after, src + last * before)
        elif count >= 8:
            eight(dst, src)
            if count > 16:
                eight(dst + 8 * after, src + 8 * before)
            if count > 24:
                eight(dst + 16 * after, src + 16 * before)
            eight(dst + (count - 8) * after, src + (count - 8) * before)
        else:
            for k in range(count):
                one(dst + k * after, src + k * before)

    return convert_run


def lane_conversion(name: str) -> tuple[int, int, Callable[[Any, Any], Any]]:
    """(bytes before, bytes after, conversion of a vector's lanes) for `f32_to_bf16` or `swap_u32`.

    Vectors are integers of the elements' bits. Each lane gets the same result as in the scalar routines.
    """
    if name.startswith("swap_u"):
        bits = int(name.removeprefix("swap_u"))
        return bits // 8, bits // 8, _swapped
    source, target = name.split("_to_")
    before, after = bits_of(source), bits_of(target)

    def convert(builder: Any, lanes: Any) -> Any:
        if source in _FLOATS:
            lanes = builder.bitcast(lanes, lanes_like(lanes, _FLOATS[source][0]))
        out = converted(builder, lanes, source, target)
        return builder.bitcast(out, lanes_like(lanes, ir.IntType(after)))

    return before // 8, after // 8, convert


def is_long(name: str) -> bool:
    """Whether a conversion takes many instructions: one between floats in integer arithmetic."""
    source, _, target = name.partition("_to_")
    return target in (*MINIFLOATS, "bf16") or source in MINIFLOATS


def _swapped(builder: Any, lanes: Any) -> Any:
    count, width = lanes.type.count, lanes.type.element.width // 8
    order = [lane * width + byte for lane in range(count) for byte in reversed(range(width))]
    loose = builder.bitcast(lanes, vector(8, count * width))
    return builder.bitcast(shuffle(builder, loose, loose, order), lanes.type)
