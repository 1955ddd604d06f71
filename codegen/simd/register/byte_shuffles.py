"""Shuffles of the bytes of registers, in orders that are known at run time.

LLVM has no instruction for them that all levels share. In Numba's IR, each is a call of a weak function that
picks the bytes one by one; `library` has its replacement for a level whose CPUs have such an instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core.errors import TypingError

from codegen.ir.instructions import instruction
from codegen.ir.lines import LANE_BYTES
from codegen.simd.register.memory import I8, I32, I64, vector
from codegen.simd.register.super_vectors import SuperVector, from_parts, leaf, parts_of, super_vector

SYMBOL = "tilejit.shuffle_bytes"

_LANE = vector(8, LANE_BYTES)
_KIND = ir.FunctionType(_LANE, [_LANE, _LANE])
_X86, _NEON = "llvm.x86.ssse3.pshuf.b.128", "llvm.aarch64.neon.tbl1.v16i8"
_OF_LEVEL = {"avx512": _X86, "avx2": _X86, "neon": _NEON}


def library(names: Iterable[str], level: str) -> str:
    """LLVM IR that defines the shuffle by the instruction of a level, or "" without a call or one."""
    if SYMBOL not in names or level not in _OF_LEVEL:
        return ""
    module = ir.Module()
    function = ir.Function(module, _KIND, SYMBOL)
    function.attributes.add("alwaysinline")
    native = ir.Function(module, _KIND, _OF_LEVEL[level])
    builder = ir.IRBuilder(function.append_basic_block())
    register, order = function.args
    if level == "neon":  # which gives 0 for every index beyond the register
        order = builder.and_(order, _splat(0x8F))
    builder.ret(builder.call(native, [register, order]))
    return str(module)


def _placeholder(module: Any) -> Any:
    """A weak function: the linker may replace it, so LLVM does not analyze its body."""
    known = module.globals.get(SYMBOL)
    if known:
        return known
    function = ir.Function(module, _KIND, SYMBOL)
    function.linkage = "weak"
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    register, order = function.args
    indices = builder.and_(order, _splat(LANE_BYTES - 1))
    out: Any = ir.Constant(_LANE, ir.Undefined)
    for k in range(LANE_BYTES):
        index = builder.extract_element(indices, ir.Constant(I32, k))
        out = builder.insert_element(out, builder.extract_element(register, index), ir.Constant(I32, k))
    is_zero = builder.icmp_unsigned(">=", order, _splat(0x80))
    builder.ret(builder.select(is_zero, _splat(0), out))
    return function


def _splat(byte: int) -> Any:
    return ir.Constant(_LANE, [ir.Constant(I8, byte)] * LANE_BYTES)


def _shuffled(*inputs: Any) -> Any:
    """shuffled(rows, order)."""
    kind = _rows(inputs[0], "shuffled")

    def emit(builder: Any, rows: Any, order: Any) -> Any:
        return from_parts(builder, kind, _each(builder, rows, order))

    return kind, emit


def _with_shuffled(*inputs: Any) -> Any:
    """with_shuffled(out, rows, order)."""
    kind = _rows(inputs[1], "with_shuffled")

    def emit(builder: Any, out: Any, rows: Any, order: Any) -> Any:
        pairs = zip(parts_of(builder, out), _each(builder, rows, order), strict=True)
        return from_parts(builder, kind, [builder.or_(a, b) for a, b in pairs])

    return kind, emit


def _rows(given: Any, name: str) -> SuperVector:
    """The type of rows of a lane each.

    Raises:
        TypingError: the rows are longer or shorter.
    """
    kind = super_vector(given, name)
    if kind.row_bytes != LANE_BYTES:
        raise TypingError(f"{name} expected rows of {LANE_BYTES} bytes, got {kind}")
    return kind


def _each(builder: Any, rows: Any, order: Any) -> list[Any]:
    """Every row in the same order."""
    function, (indices,) = _placeholder(builder.module), parts_of(builder, order)
    return [builder.call(function, [row, indices]) for row in parts_of(builder, rows)]


def _byte_order(*inputs: Any) -> Any:
    """byte_order(low, high)."""
    kind = SuperVector(8, 1, LANE_BYTES)

    def emit(builder: Any, low: Any, high: Any) -> Any:
        return from_parts(builder, kind, [lane_of_halves(builder, low, high)])

    return kind, emit


def lane_of_halves(builder: Any, low: Any, high: Any) -> Any:
    """The 16 bytes of two 64-bit numbers."""
    pair: Any = ir.Constant(vector(64, 2), ir.Undefined)
    for k, half in enumerate((low, high)):
        pair = builder.insert_element(pair, half, ir.Constant(I64, k))
    return builder.bitcast(pair, _LANE)


BYTE_SHUFFLES = {
    "byte_order": leaf("byte_order", 2, _byte_order),
    instruction("shuffled").name: leaf("shuffled", 2, _shuffled),
    instruction("with_shuffled").name: leaf("with_shuffled", 3, _with_shuffled),
}
"""The builders of these instructions by name."""
