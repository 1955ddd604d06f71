"""Shuffles of the bytes of registers, in orders that are known only at run time.

LLVM has no instruction for them that all levels share. In Numba's IR, each is a call to a weak function that
picks the bytes one by one; `library` defines its replacement for levels whose CPUs have such an instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core.errors import TypingError

from codegen.ir.instructions import SHUFFLED_BYTES
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.register.intrinsics import routine
from codegen.simd.register.memory import I8, I32, vector
from codegen.simd.register.shuffles import concatenated, cut, shuffle
from codegen.simd.register.values import Vector, from_lines, lines_of, vector_type
from codegen.support.cpu import CpuLevel

PAIR_BYTES = 2 * LANE_BYTES
"""One instruction shuffles two rows that share an order, if registers have 32 bytes."""

SYMBOLS = {size: f"tilejit.shuffle_bytes_{size}" for size in (LANE_BYTES, PAIR_BYTES, LINE_BYTES)}
"""The functions that shuffle registers of these sizes: each lane in the order of the same lane."""

_NATIVE = {
    "avx512": {
        LANE_BYTES: "llvm.x86.ssse3.pshuf.b.128",
        PAIR_BYTES: "llvm.x86.avx2.pshuf.b",
        LINE_BYTES: "llvm.x86.avx512.pshuf.b.512",
    },
    "avx2": {LANE_BYTES: "llvm.x86.ssse3.pshuf.b.128", PAIR_BYTES: "llvm.x86.avx2.pshuf.b"},
    "neon": {LANE_BYTES: "llvm.aarch64.neon.tbl1.v16i8"},
}


def library(names: Iterable[str], level: CpuLevel) -> str:
    """LLVM IR that defines the shuffles by the instructions of a level, or "" without a call or one."""
    sizes = [size for size, symbol in SYMBOLS.items() if symbol in names]
    if not sizes or level.name not in _NATIVE:
        return ""
    module = ir.Module()
    for size in sizes:
        function = ir.Function(module, _kind(size), SYMBOLS[size])
        function.attributes.add("alwaysinline")
        builder = ir.IRBuilder(function.append_basic_block())
        builder.ret(_native(builder, level.name, *function.args))
    return str(module)


def _native(builder: Any, level: str, register: Any, order: Any) -> Any:
    """The instruction of a level, or one for each half."""
    size = register.type.count
    if size not in _NATIVE[level]:
        halves = zip(_halves(builder, register), _halves(builder, order), strict=True)
        return concatenated(builder, [_native(builder, level, *half) for half in halves])
    if level == "neon":  # its instruction gives 0 for every index beyond the register
        order = builder.and_(order, _splat(0x8F, size))
    name, module = _NATIVE[level][size], builder.module
    function = module.globals.get(name) or ir.Function(module, _kind(size), name)
    return builder.call(function, [register, order])


def _placeholder(module: Any, size: int) -> Any:
    """A weak function: the linker may replace it, so LLVM does not analyze its body."""
    known = module.globals.get(SYMBOLS[size])
    if known:
        return known
    function = ir.Function(module, _kind(size), SYMBOLS[size])
    function.linkage = "weak"
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    register, order = function.args
    indices = builder.and_(order, _splat(LANE_BYTES - 1, size))
    out: Any = ir.Constant(vector(8, size), ir.Undefined)
    for k in range(size):
        index = builder.extract_element(indices, ir.Constant(I32, k))
        at = builder.add(builder.zext(index, I32), ir.Constant(I32, k // LANE_BYTES * LANE_BYTES))
        out = builder.insert_element(out, builder.extract_element(register, at), ir.Constant(I32, k))
    is_zero = builder.icmp_unsigned(">=", order, _splat(0x80, size))
    builder.ret(builder.select(is_zero, _splat(0, size), out))
    return function


def _kind(size: int) -> Any:
    return ir.FunctionType(vector(8, size), [vector(8, size)] * 2)


def _splat(byte: int, size: int) -> Any:
    return ir.Constant(vector(8, size), [ir.Constant(I8, byte)] * size)


def _halves(builder: Any, pair: Any) -> tuple[Any, Any]:
    half = pair.type.count // 2
    return cut(builder, pair, 0, half), cut(builder, pair, half, half)


def _shuffled(*inputs: Any) -> Any:
    """shuffled(rows, order)."""
    rows, size = _rows(inputs[0], "shuffled"), _size(inputs[1], "shuffled")
    kind = Vector("u8", size, rows.rows)

    def emit(builder: Any, rows: Any, order: Any) -> Any:
        return from_lines(builder, kind, _each(builder, rows, order, size))

    return kind(*inputs), emit


def _with_shuffled(*inputs: Any) -> Any:
    """with_shuffled(out, rows, order)."""
    kind, rows = vector_type(inputs[0], "with_shuffled"), _rows(inputs[1], "with_shuffled")
    size = _size(inputs[2], "with_shuffled")
    if (kind.rows, kind.row_bytes) != (rows.rows, size):
        raise TypingError(f"with_shuffled expected {rows.rows} rows of {size} bytes, got {kind}")

    def emit(builder: Any, out: Any, rows: Any, order: Any) -> Any:
        return from_lines(builder, kind, _each(builder, rows, order, size, lines_of(builder, out)))

    return kind(*inputs), emit


def _rows(given: Any, name: str) -> Vector:
    """The type of rows of a lane each.

    Raises:
        TypingError: the rows are longer or shorter.
    """
    kind = vector_type(given, name)
    if kind.row_bytes != LANE_BYTES:
        raise TypingError(f"{name} expected rows of {LANE_BYTES} bytes, got {kind}")
    return kind


def _size(given: Any, name: str) -> int:
    """The number of bytes in an order.

    Raises:
        TypingError: no registers are shuffled in orders of that size.
    """
    kind = vector_type(given, name)
    if kind.rows != 1 or kind.row_bytes not in SHUFFLED_BYTES:
        raise TypingError(f"{name} expected an order of {SHUFFLED_BYTES} bytes, got {kind}")
    return kind.row_bytes


def _each(builder: Any, rows: Any, order: Any, size: int, others: list[Any] | None = None) -> list[Any]:
    """Every row in the same order, joined with the bits of the same row of `others`.

    Rows of a lane are shuffled two at a time, if there are several. For longer registers they are repeated.
    """
    parts, (indices,) = lines_of(builder, rows), lines_of(builder, order)
    if size > LANE_BYTES or len(parts) == 1:
        repeats = [k % LANE_BYTES for k in range(size)]
        found = [_shuffle(builder, shuffle(builder, part, part, repeats), indices) for part in parts]
        return [builder.or_(*both) for both in zip(others, found, strict=True)] if others else found
    both = concatenated(builder, [indices, indices])
    out: list[Any] = []
    for k in range(0, len(parts), 2):
        pair = _shuffle(builder, concatenated(builder, parts[k : k + 2]), both)
        if others:
            pair = builder.or_(concatenated(builder, others[k : k + 2]), pair)
        out += _halves(builder, pair)
    return out


def _shuffle(builder: Any, register: Any, order: Any) -> Any:
    """Shuffle each lane of a register in the order of the same lane."""
    return builder.call(_placeholder(builder.module, register.type.count), [register, order])


BYTE_SHUFFLES = {
    "shuffled": routine("shuffled", 2, _shuffled),
    "with_shuffled": routine("with_shuffled", 3, _with_shuffled),
}
"""The builders of these instructions by name."""
