"""Vector loads and stores at raw addresses: of all lanes, of the first lanes only, or strided.

Accesses carry no alias information, because a kernel may write the array that it reads. Lanes that `_first`
forms leave out are never accessed, so they may be on an unmapped page. An "i1" takes a byte in memory, as in
NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError

from codegen.ir.access_families import AccessFamily
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.register.intrinsics import routine, typed_routine
from codegen.simd.register.memory import I8, I16, I32, I64, pointer
from codegen.simd.register.super_vectors import row_addresses
from codegen.simd.vector.minifloats import from_half, to_quiet_half
from codegen.simd.vector.strided import load_untagged, spaced
from codegen.simd.vector.values import (
    MASK,
    Vector,
    bits_of,
    element_kind,
    from_rows,
    intrinsic_of,
    lane,
    lanes_like,
    lanes_of,
    number,
    repeated,
    row_of,
    rows_of,
    shape,
    wide,
)
from codegen.support.dataclasses import dataclass

REGISTER_BITS = 512
LEAST_BITS = 128
"""The width of the narrowest vector register."""
MANY_LANES = 256
"""The fewest lanes whose count does not fit in a byte."""


def access(
    name: str, family: AccessFamily, dtype: str, lanes: int, half: str, which: str, rows: int = 0
) -> Any:
    """A vector access:

        load_f32x16(address)
        strided_load_…(address, step_bytes)
        gather_…(address, offsets)                   by a vector of offsets in bytes
        store_…(address, v)
        strided_store_…(address, step_bytes, v)      of lanes that share an address the last one wins
        scatter_…(address, offsets, v)               the same, by a vector of offsets in bytes

    `which`: "first" forms take a number of leading lanes as the last argument; the other lanes read as 0.
    "where" forms of stores take a mask there.

    A block of rows has their distance in bytes after the address: load_f32x16x16(address, pitch_bytes).
    """
    made = _Access(name, family, dtype, lanes, half, which, rows)
    return routine(name, made.before_value + (not made.reads) + bool(which), made.rule)


@dataclass(frozen=True, slots=True)
class _Access:
    """The types and the code of one access; the fields are the arguments of `access`."""

    name: str
    family: AccessFamily
    dtype: str
    lanes: int
    half: str
    which: str
    rows: int

    @property
    def reads(self) -> bool:
        return self.family.reads

    @property
    def has_step(self) -> bool:
        return bool(self.family.apart)

    @property
    def before_value(self) -> int:
        """The arguments before the value: the address, the pitch of rows, and the step of lanes."""
        return 1 + bool(self.rows) + self.has_step

    def rule(self, *kinds: Any) -> Any:
        """The signature for arguments of these types, and the code."""
        numbers: list[Any] = [types.int64] * len(kinds)
        if self.family.apart == "offsets":
            if shape(kinds[1]) != ("i64", self.lanes):
                raise TypingError(f"{self.name}: expected {self.lanes} 64-bit offsets, got {kinds[1]}")
            numbers[1] = kinds[1]
        if self.reads:
            return Vector(self.dtype, self.lanes, self.rows)(*numbers), self.emit
        written = kinds[self.before_value]
        if shape(written) != (self.dtype, self.lanes) or rows_of(written) != self.rows:
            raise TypingError(
                f"{self.name}: expected {self.dtype}x{self.lanes}, got {written}; cast it first"
            )
        numbers[self.before_value] = written
        if self.which == "where":
            if shape(kinds[-1]) != (MASK, self.lanes) or rows_of(kinds[-1]) != self.rows:
                raise TypingError(f"{self.name}: expected a mask of {self.lanes} lanes, got {kinds[-1]}")
            numbers[-1] = kinds[-1]
        return types.void(*numbers), self.emit

    def emit(self, builder: Any, *args: Any) -> Any:
        """A vector or a block; None for stores."""
        if not self.rows:
            return self.vector(builder, args)
        address, pitch, *rest = args
        made = [
            self.vector(builder, [at, *(row_of(builder, value, k) for value in rest)])
            for k, at in enumerate(row_addresses(builder, address, pitch, self.rows))
        ]
        return from_rows(builder, made) if self.reads else None

    def vector(self, builder: Any, args: Sequence[Any]) -> Any:
        """The access of a vector; None for stores."""
        address, *rest = args
        step = rest.pop(0) if self.has_step else None
        given = None if self.reads else to_memory(builder, rest.pop(0), self.dtype, self.half)
        mask = rest.pop(0) if self.which else None
        if self.which == "first":
            bits = 16 if self.half else max(bits_of(self.dtype), 8)
            mask = first_mask(builder, mask, self.lanes, bits)
        if not self.reads:
            write = _write_offsets if self.family.apart == "offsets" else _write
            write(builder, given, address, step, mask)
            return None
        element = I16 if self.half else I8 if self.dtype == MASK else element_kind(self.dtype)
        read = _read_offsets if self.family.apart == "offsets" else _read
        found = read(builder, address, step, wide(element, self.lanes), mask)
        return from_memory(builder, found, self.dtype, self.half)


def streamed(name: str, dtype: str, lanes: int, half: str) -> Any:
    """`stream_f32x16(address, v)`: a non-temporal store to a multiple of the vector's size, or of a line.

    A `stream_fence` must follow before other threads read the data. None for vectors of less than 16 bytes.
    """
    element_bytes = 2 if half else max(bits_of(dtype), 8) // 8
    align = min(element_bytes * lanes, LINE_BYTES)
    if align < LANE_BYTES:
        return None

    def emit(builder: Any, address: Any, given: Any) -> None:
        value = to_memory(builder, given, dtype, half)
        done = builder.store(value, pointer(builder, address, value.type))
        done.align = align
        done.set_metadata("nontemporal", builder.module.add_metadata([number(I32, 1)]))

    def rule(address: Any, written: Any) -> Any:
        if shape(written) != (dtype, lanes):
            raise TypingError(f"{name}: expected {dtype}x{lanes}, got {written}; cast it first")
        return types.void(types.int64, written), emit

    return routine(name, 2, rule)


def first_lanes(name: str, lanes: int) -> Any:
    """`first_16(count)`: a mask of the lanes below a count, which may be negative or above 16."""

    def emit(builder: Any, count: Any) -> Any:
        return first_mask(builder, count, lanes, 32)

    return typed_routine(name, Vector(MASK, lanes)(types.int64), emit)


def first_mask(builder: Any, count: Any, lanes: int, bits: int) -> Any:
    """Lanes below a 64-bit count, compared as integers of `bits` bits, or fewer to fit in a register."""
    if lanes == 1:
        return builder.icmp_signed(">", count, number(I64, 0))
    none, every = number(I64, 0), number(I64, lanes)
    count = builder.select(builder.icmp_signed("<", count, none), none, count)
    count = builder.select(builder.icmp_signed(">", count, every), every, count)
    bits = max(min(bits, REGISTER_BITS // lanes), 8 if lanes < MANY_LANES else 16)
    kind = ir.VectorType(ir.IntType(bits), lanes)
    least = count if bits == I64.width else builder.trunc(count, kind.element)
    return builder.icmp_unsigned("<", ir.Constant(kind, list(range(lanes))), repeated(builder, least, lanes))


def from_memory(builder: Any, value: Any, dtype: str, half: str) -> Any:
    """Convert a vector from its representation in memory to the dtype."""
    if half:
        return from_half(builder, value, half)
    return builder.icmp_unsigned("!=", value, number(value.type, 0)) if dtype == MASK else value


def to_memory(builder: Any, value: Any, dtype: str, half: str) -> Any:
    """Convert a vector of the dtype to its representation in memory."""
    if half:
        return to_quiet_half(builder, value, half)
    return builder.zext(value, lanes_like(value, I8)) if dtype == MASK else value


def _read(builder: Any, address: Any, step: Any, kind: Any, mask: Any) -> Any:
    if mask is not None:
        return _read_masked(builder, address, step, kind, mask)
    if step is None:
        return load_untagged(builder, address, kind)
    return spaced(builder, address, step, kind)


def _write(builder: Any, value: Any, address: Any, step: Any, mask: Any) -> None:
    if mask is not None:
        _write_masked(builder, value, address, step, mask)
    elif step is None:
        _store(builder, value, address)
    else:
        for k in range(lanes_of(value)):
            _store(builder, lane(builder, value, k), _address(builder, address, step, k))


def _store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, pointer(builder, address, value.type)).align = 1


def _address(builder: Any, address: Any, step: Any, k: int) -> Any:
    return builder.add(address, builder.mul(step, number(I64, k)))


def _read_masked(builder: Any, address: Any, step: Any, kind: Any, mask: Any) -> Any:
    """Use LLVM's masked intrinsics, which only take vectors: a scalar becomes a vector of one lane."""
    if step is not None:
        return _masked_gather(builder, _pointers(builder, address, step, _count(kind)), kind, mask)
    lanes = _count(kind)
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    mask = _whole_register(builder, _at_least_vector(builder, mask), element)
    vector = ir.VectorType(element, max(lanes, LEAST_BITS // _type_bits(element)))
    load = intrinsic_of(builder, "llvm.masked.load", vector, [I8.as_pointer(), I32, mask.type, vector], "p0")
    zero, align = number(vector, 0), number(I32, 1)
    out = builder.call(load, [pointer(builder, address, I8), align, mask, zero])
    if not isinstance(kind, ir.VectorType):
        return builder.extract_element(out, number(I32, 0))
    return out if vector.count == lanes else _resized(builder, out, lanes)


def _read_offsets(builder: Any, address: Any, offsets: Any, kind: Any, mask: Any) -> Any:
    """Load each lane from its own offset."""
    pointers = _pointers_at(builder, address, offsets, _count(kind))
    every = number(ir.VectorType(ir.IntType(1), _count(kind)), 1)
    return _masked_gather(builder, pointers, kind, every if mask is None else mask)


def _pointers_at(builder: Any, address: Any, offsets: Any, lanes: int) -> Any:
    """A vector of pointers at these distances from an address."""
    first, distances = (_at_least_vector(builder, x) for x in (repeated(builder, address, lanes), offsets))
    return builder.inttoptr(builder.add(first, distances), ir.VectorType(I8.as_pointer(), lanes))


def _write_offsets(builder: Any, value: Any, address: Any, offsets: Any, mask: Any) -> None:
    """Store each lane at its own offset, in order."""
    if mask is None:
        for k in range(lanes_of(value)):
            _store(builder, lane(builder, value, k), builder.add(address, lane(builder, offsets, k)))
        return
    value, mask = _at_least_vector(builder, value), _at_least_vector(builder, mask)
    _masked_scatter(builder, value, _pointers_at(builder, address, offsets, value.type.count), mask)


def _masked_gather(builder: Any, pointers: Any, kind: Any, mask: Any) -> Any:
    mask, vector = _at_least_vector(builder, mask), ir.VectorType(kind, 1) if _count(kind) == 1 else kind
    operands = [pointers.type, I32, mask.type, vector]
    gather = intrinsic_of(builder, "llvm.masked.gather", vector, operands, f"v{vector.count}p0")
    out = builder.call(gather, [pointers, number(I32, 1), mask, number(vector, 0)])
    return builder.extract_element(out, number(I32, 0)) if vector is not kind else out


def _count(kind: Any) -> int:
    """Lanes of an LLVM type."""
    return int(kind.count) if isinstance(kind, ir.VectorType) else 1


def _write_masked(builder: Any, value: Any, address: Any, step: Any, mask: Any) -> None:
    value, mask, align = _at_least_vector(builder, value), _at_least_vector(builder, mask), number(I32, 1)
    if step is not None:
        _masked_scatter(builder, value, _pointers(builder, address, step, value.type.count), mask)
        return
    to = pointer(builder, address, I8)
    element = value.type.element
    mask = _whole_register(builder, mask, element)
    value = _resized(builder, value, max(value.type.count, LEAST_BITS // _type_bits(element)))
    operands = [value.type, to.type, I32, mask.type]
    store = intrinsic_of(builder, "llvm.masked.store", ir.VoidType(), operands, "p0", of=value.type)
    builder.call(store, [value, to, align, mask])


def _whole_register(builder: Any, mask: Any, element: Any) -> Any:
    """The mask with zeros for all lanes of a register, if the vector is narrower than one.

    LLVM 22 widens the mask of a narrow vector itself and may leave the added bits undefined: on AVX-512, a
    masked store of 8 bytes then wrote 16. As an integer, the mask is extended by zeros for certain.
    """
    lanes, all_lanes = mask.type.count, LEAST_BITS // _type_bits(element)
    if lanes >= all_lanes:
        return mask
    bits = builder.zext(builder.bitcast(mask, ir.IntType(lanes)), ir.IntType(all_lanes))
    return builder.bitcast(bits, ir.VectorType(ir.IntType(1), all_lanes))


def _type_bits(kind: Any) -> int:
    """The width of an LLVM element type."""
    widths = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}
    return int(kind.width) if isinstance(kind, ir.IntType) else widths[type(kind)]


def _resized(builder: Any, value: Any, lanes: int) -> Any:
    """The first lanes of a vector; those that it lacks are undefined."""
    have = value.type.count
    if have == lanes:
        return value
    picked = [ir.Constant(I32, min(k, have)) for k in range(lanes)]
    undefined = ir.Constant(value.type, ir.Undefined)
    return builder.shuffle_vector(value, undefined, ir.Constant(ir.VectorType(I32, lanes), picked))


def _masked_scatter(builder: Any, value: Any, pointers: Any, mask: Any) -> None:
    operands, lanes = [value.type, pointers.type, I32, mask.type], value.type.count
    name, suffix = "llvm.masked.scatter", f"v{lanes}p0"
    store = intrinsic_of(builder, name, ir.VoidType(), operands, suffix, of=value.type)
    builder.call(store, [value, pointers, number(I32, 1), mask])


def _pointers(builder: Any, address: Any, step: Any, lanes: int) -> Any:
    """A vector of pointers that are a step apart."""
    first, steps = (_at_least_vector(builder, repeated(builder, x, lanes)) for x in (address, step))
    offsets = builder.mul(steps, ir.Constant(steps.type, list(range(lanes))))
    return builder.inttoptr(builder.add(first, offsets), ir.VectorType(I8.as_pointer(), lanes))


def _at_least_vector(builder: Any, value: Any) -> Any:
    if isinstance(value.type, ir.VectorType):
        return value
    undefined = ir.Constant(ir.VectorType(value.type, 1), ir.Undefined)
    return builder.insert_element(undefined, value, number(I32, 0))
