"""Scalars of exact types in loop kernels: reads and writes at addresses, conversions and shifts.

Sources and destinations of these kernels may overlap, so accesses do not carry the alias scopes of copies.
bf16 and f16 values are held as float32; `as_bf16` rounds a number to a bf16 value.
"""

from __future__ import annotations

from typing import Any

from numba import types

from codegen.ir.element_types import HALF_TYPES
from codegen.ir.routines import Routine
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.intrinsics import routine, typed_routine
from codegen.simd.register.memory import element_pointer
from codegen.simd.register.values import element_kind, shape
from codegen.simd.vector.casts import converted
from codegen.simd.vector.minifloats import from_half, to_odd, to_quiet_half

NUMBERS = {
    **{f"i{n}": getattr(types, f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": getattr(types, f"uint{n}") for n in (8, 16, 32, 64)},
    "f32": types.float32,
    "f64": types.float64,
}
"""The Numba type of each dtype that has one; "i1" is Numba's boolean."""


def scalar_routine(routine: Routine) -> Any:
    """`read_f32_at`, `write_i1_at`, `as_u8` or `shl_i32`."""
    family, dtype = routine.family, routine.dtype
    match family:
        case "as":
            return _cast(dtype)
        case "shl" | "shr":
            return _shift(dtype, left=family == "shl")
        case "read" | "write" if dtype in HALF_TYPES:
            return (_read_half if family == "read" else _write_half)(dtype)
        case "read":
            return _read_bool() if dtype == "i1" else _reader(dtype, NUMBERS[dtype])
        case "write":
            return _write_bool() if dtype == "i1" else _writer(dtype, NUMBERS[dtype])
    raise AssertionError(f"simd: no rule for {routine.name}")


def _reader(dtype: str, number: Any) -> Any:
    kind = element_kind(dtype)

    def emit(builder: Any, base: Any, offset: Any) -> Any:
        value = builder.load(element_pointer(builder, base, offset, kind))
        value.align = 1
        return value

    return typed_routine("read", number(types.int64, types.int64), emit)


def _writer(dtype: str, number: Any) -> Any:
    kind = element_kind(dtype)

    def emit(builder: Any, base: Any, offset: Any, value: Any) -> None:
        builder.store(value, element_pointer(builder, base, offset, kind)).align = 1

    return typed_routine("write", types.void(types.int64, types.int64, number), emit)


def _read_bool() -> Any:
    read = _reader("u8", types.uint8)

    @for_kernels
    def read_bool(base, offset):
        return read(base, offset) != 0

    return read_bool


def _write_bool() -> Any:
    write = _writer("u8", types.uint8)

    @for_kernels
    def write_bool(base, offset, value):
        write(base, offset, types.uint8(value))

    return write_bool


def _read_half(dtype: str) -> Any:
    read = _reader("u16", types.uint16)
    kind = types.float32(types.uint16)
    widen = typed_routine("widen", kind, lambda builder, bits: from_half(builder, bits, dtype))

    @for_kernels
    def read_half(base, offset):
        return widen(read(base, offset))

    return read_half


def _write_half(dtype: str) -> Any:
    write = _writer("u16", types.uint16)
    kind = types.uint16(types.float32)
    narrow = typed_routine("narrow", kind, lambda builder, value: to_quiet_half(builder, value, dtype))

    @for_kernels
    def write_half(base, offset, value):
        write(base, offset, narrow(value))

    return write_half


def _cast(dtype: str) -> Any:
    """Convert a number of any type to this one. Values out of range convert as in vector casts."""
    target = "f32" if dtype in HALF_TYPES else dtype
    number = types.boolean if target == "i1" else NUMBERS[target]

    def rule(kind: Any) -> Any:
        kind = types.unliteral(kind)  # type: ignore[no-untyped-call]
        source, _ = shape(kind)

        def emit(builder: Any, value: Any) -> Any:
            rounds = (source, dtype) == ("f64", "f16")
            out = to_odd(builder, value) if rounds else converted(builder, value, source, target)
            return (
                from_half(builder, to_quiet_half(builder, out, dtype), dtype) if dtype in HALF_TYPES else out
            )

        return number(kind), emit

    return routine(f"as_{dtype}", 1, rule)


def _shift(dtype: str, *, left: bool) -> Any:
    """Shifts by at least the bit width give 0, or -1 if a negative number is shifted right."""
    number, bits = NUMBERS[dtype], int(dtype[1:])
    name = "shl" if left else "ashr" if dtype[0] == "i" else "lshr"

    def emit(builder: Any, a: Any, b: Any) -> Any:
        return getattr(builder, name)(a, b)

    shifted, most = typed_routine(name, number(number, number), emit), number(bits - 1)

    @for_kernels
    def shift(a, b):
        if 0 <= b < bits:
            return shifted(a, b)
        return number(0) if left else shifted(shifted(a, most), number(1))

    return shift
