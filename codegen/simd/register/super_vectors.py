"""Super-vectors of copies as Numba values, and their loads and stores.

To LLVM, a super-vector is an array of vectors, which it keeps in registers. The names of its loads and stores
are in `codegen/ir/accesses.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import models, register_model

from codegen.ir.accesses import Access, SizedRoutine
from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.intrinsics import Rule, routine, typed_routine
from codegen.simd.register.memory import I8, I32, I64, hidden, pointer, prefetch
from codegen.simd.register.shuffles import shuffle


class SuperVector(types.Type):
    """`rows` x `columns` elements of `bits` bits, row by row, in LLVM vectors of a line at most."""

    def __init__(self, bits: int, rows: int, columns: int) -> None:
        self.bits, self.rows, self.columns = bits, rows, columns
        self.row_bytes = bits * columns // 8
        self.part_bytes = min(self.row_bytes, LINE_BYTES)
        self.parts = rows * self.row_bytes // self.part_bytes
        super().__init__(name=f"u{bits}_{rows}x{columns}")

    @property
    def llvm(self) -> Any:
        """The LLVM type: [parts x <bytes x i8>]."""
        return ir.ArrayType(ir.VectorType(I8, self.part_bytes), self.parts)


@register_model(SuperVector)
class SuperVectorModel(models.PrimitiveModel):
    """A value is one LLVM value, in registers and in memory."""

    def __init__(self, manager: Any, kind: SuperVector) -> None:
        super().__init__(manager, kind, kind.llvm)  # type: ignore[no-untyped-call]


def super_vector(kind: Any, name: str) -> SuperVector:
    """The type of an operand that must be a super-vector.

    Raises:
        TypingError: it is another type.
    """
    if not isinstance(kind, SuperVector):
        raise TypingError(f"{name} expected a super-vector, got {kind}")
    return kind


def parts_of(builder: Any, value: Any) -> list[Any]:
    """The LLVM vectors of a super-vector."""
    return [builder.extract_value(value, k) for k in range(value.type.count)]


def from_parts(builder: Any, kind: SuperVector, parts: Sequence[Any]) -> Any:
    """A super-vector from its LLVM vectors, which are any vectors of the same size."""
    if len(parts) != kind.parts:
        raise AssertionError(f"{kind} has {kind.parts} parts, not {len(parts)}")
    value = ir.Constant(kind.llvm, ir.Undefined)
    for k, part in enumerate(parts):
        value = builder.insert_value(value, builder.bitcast(part, kind.llvm.element), k)
    return value


def as_one(builder: Any, value: Any) -> Any:
    """All bytes of a super-vector in one LLVM vector."""
    parts = parts_of(builder, value)
    while len(parts) > 1:
        size = 2 * parts[0].type.count
        parts = [
            shuffle(builder, *pair, list(range(size))) for pair in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def from_one(builder: Any, kind: SuperVector, value: Any) -> Any:
    """A super-vector from one LLVM value of the same size."""
    if kind.parts == 1:
        return from_parts(builder, kind, [value])
    size = kind.part_bytes
    bytes_ = builder.bitcast(value, ir.VectorType(I8, kind.parts * size))
    parts = (range(k * size, k * size + size) for k in range(kind.parts))
    return from_parts(builder, kind, [shuffle(builder, bytes_, bytes_, list(part)) for part in parts])


def lanes_as(builder: Any, part: Any, bits: int) -> Any:
    """A vector of bytes as a vector of elements of `bits` bits; elements over 64 bits are pairs of these."""
    bits = min(bits, 64)
    return builder.bitcast(part, ir.VectorType(ir.IntType(bits), part.type.count * 8 // bits))


def row_addresses(builder: Any, address: Any, pitch: Any, rows: int) -> Iterator[Any]:
    """base, base + p, base + 2p, base + 3p, then a new base: x86 addressing modes, and two registers.

    Each base is opaque. Otherwise LLVM keeps a multiple of the pitch for each row, and runs out of registers:
    streamed blocks of 16 x 16 u32 fell from 0.75 to 0.58 of memcpy (Zen 3, 2026-11).
    """
    base = address
    for row in range(rows):
        if row and row % 4 == 0:
            base = hidden(builder, builder.add(base, builder.shl(pitch, ir.Constant(I64, 2))))
        yield builder.add(base, builder.mul(pitch, ir.Constant(I64, row % 4)))


def each_address(builder: Any, address: Any, pitch: Any, rows: int) -> Iterator[Any]:
    """The addresses of rows, each from the first one: LLVM may use the rows in any order.

    The pitch is opaque. If it is a known number, LLVM computes all rows before it stores the first one, and
    spills them: 1.2 times the time for 32 rows of 64 bytes in AVX2 registers (Zen 4, 2026-11).
    """
    pitch = hidden(builder, pitch)
    return (builder.add(address, builder.mul(pitch, ir.Constant(I64, row))) for row in range(rows))


def table_addresses(builder: Any, address: Any, table: Any, rows: int, how: str) -> Iterator[Any]:
    """The addresses of rows at the first offsets of a table, or at one half of each of its entries."""
    for row in range(rows):
        offset = builder.load(pointer(builder, builder.add(table, ir.Constant(I64, 8 * row)), I64))
        if how == "at_low":
            offset = builder.and_(offset, ir.Constant(I64, (1 << 32) - 1))
        elif how == "at_high":
            offset = builder.lshr(offset, ir.Constant(I64, 32))
        yield builder.add(address, offset)


def _starts(builder: Any, kind: SuperVector, how: str, address: Any, more: Sequence[Any]) -> Iterator[Any]:
    """The address of each row, computed when the caller asks for it."""
    if not how:
        return iter([address])
    if how in ("at", "at_low", "at_high"):
        return table_addresses(builder, address, more[0], kind.rows, how)
    make = each_address if how == "each" else row_addresses
    return make(builder, address, more[0], kind.rows)


def _part_addresses(builder: Any, kind: SuperVector, starts: Iterable[Any]) -> list[Any]:
    offsets = range(0, kind.row_bytes, kind.part_bytes)
    return [builder.add(start, ir.Constant(I64, k)) for start in starts for k in offsets]


def _read(kind: SuperVector, how: str) -> Rule:
    """Loads without alias scopes: all loads of a super-vector precede its stores."""

    def emit(builder: Any, address: Any, *more: Any) -> Any:
        parts = []
        for at in _part_addresses(builder, kind, _starts(builder, kind, how, address, more)):
            part = builder.load(pointer(builder, at, kind.llvm.element))
            part.align = 1
            parts.append(part)
        return from_parts(builder, kind, parts)

    return lambda *inputs: (kind(*inputs), emit)


def _write(kind: SuperVector, how: str, name: str, *, stream: bool) -> Rule:
    def emit(builder: Any, address: Any, *more: Any) -> None:
        starts = _starts(builder, kind, how, address, more)
        addresses = _part_addresses(builder, kind, starts)
        for at, part in zip(addresses, parts_of(builder, more[-1]), strict=True):
            _store(builder, part, at, stream=stream)

    return lambda *inputs: (types.void(*inputs), _checked(kind, inputs[-1], name, emit))


def _write_first(kind: SuperVector, how: str, name: str, *, stream: bool) -> Rule:
    """Stores of the first rows, a register each. Each of the nested tests of their number adds a store."""

    def emit(builder: Any, address: Any, *more: Any) -> None:
        *place, value, count = more
        rows = zip(parts_of(builder, value)[:-1], _starts(builder, kind, how, address, place), strict=False)
        with ExitStack() as inside:
            for row in range(kind.rows - 1):
                more_rows = builder.icmp_signed(">", count, ir.Constant(I64, row))
                inside.enter_context(builder.if_then(more_rows, likely=True))
                _store(builder, *next(rows), stream=stream)

    return lambda *inputs: (types.void(*inputs), _checked(kind, inputs[-2], name, emit))


def _store(builder: Any, part: Any, address: Any, *, stream: bool) -> None:
    done = builder.store(part, pointer(builder, address, part.type))
    done.align = part.type.count if stream else 1
    if stream:
        done.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))


def _checked(kind: SuperVector, value: Any, name: str, emit: Callable[..., None]) -> Callable[..., None]:
    """The builder of a store, after a check that a value of that type has its shape.

    Raises:
        TypingError: the shape differs.
    """
    given = super_vector(value, name)
    if (given.bits * given.rows * given.columns) != kind.bits * kind.rows * kind.columns:
        raise TypingError(f"{name} expected a super-vector of {kind}, got {given}")
    if given.part_bytes != kind.part_bytes:
        raise TypingError(f"{name} expected rows as in {kind}, got {given}")
    return emit


def _prefetch(kind: SuperVector, how: str) -> Rule:
    """Requests for the lines of a super-vector that a later iteration loads."""

    def emit(builder: Any, address: Any, *more: Any) -> None:
        for start in list(_starts(builder, kind, how, address, more)):
            for k in range(0, kind.row_bytes, LINE_BYTES):
                prefetch(builder, builder.add(start, ir.Constant(I64, k)))

    return lambda *inputs: (types.void(*inputs), emit)


def access_routine(access: Access) -> Any:
    """The load, store or prefetch of a super-vector."""
    kind = SuperVector(access.bits, access.rows or 1, access.columns)
    name, how = access.name, access.how or ("pitch" if access.rows else "")
    arity, stream = 1 + bool(how), access.verb == "stream"
    match access.verb:
        case "read":
            return routine(name, arity, _read(kind, how))
        case "prefetch":
            return routine(name, arity, _prefetch(kind, how))
        case _ if access.first:
            return routine(name, arity + 2, _write_first(kind, how, name, stream=stream))
    return routine(name, arity + 1, _write(kind, how, name, stream=stream))


def table_routine(sized: SizedRoutine) -> Any:
    """arguments_3(sizes) or addresses_3(operands), the first numbers of a table."""
    count = sized.count
    result = types.UniTuple(types.int64, count)  # type: ignore[no-untyped-call]

    def emit(builder: Any, table: Any) -> Any:
        tuple_ = ir.Constant(ir.ArrayType(I64, count), ir.Undefined)
        for k in range(count):
            entry = builder.add(table, ir.Constant(I64, 8 * k))
            tuple_ = builder.insert_value(tuple_, builder.load(pointer(builder, entry, I64)), k)
        return tuple_

    return typed_routine(sized.name, result(types.int64), emit)


def stack_routine(sized: SizedRoutine) -> Any:
    """stack_3072(): the address of as many bytes on the stack, on a line."""

    def emit(builder: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(I8, sized.count))
            room.align = LINE_BYTES
        return builder.ptrtoint(room, I64)

    return typed_routine(sized.name, types.int64(), emit)
