"""Vector loads and stores of some lanes: by masks, by a step, and at offsets of their own.

Lanes that a mask leaves out are never accessed, so they may be on an unmapped page.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from codegen.simd.register.intrinsics import typed_routine
from codegen.simd.register.memory import I8, I32, I64, pointer, store_untagged
from codegen.simd.register.values import (
    MASK,
    Vector,
    element_bits,
    intrinsic_of,
    lane,
    lanes_in,
    lanes_of,
    number,
    repeated,
)

REGISTER_BITS = 512
"""The width of the widest vector register."""
LEAST_BITS = 128
"""The width of the narrowest one."""
MANY_LANES = 256
"""The fewest lanes whose count does not fit in a byte."""


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
    room = (1 << (REGISTER_BITS // lanes).bit_length()) // 2
    bits = max(min(bits, room), 8 if lanes < MANY_LANES else 16)
    kind = ir.VectorType(ir.IntType(bits), lanes)
    least = count if bits == I64.width else builder.trunc(count, kind.element)
    return builder.icmp_unsigned("<", ir.Constant(kind, list(range(lanes))), repeated(builder, least, lanes))


def load_masked(builder: Any, address: Any, step: Any, kind: Any, mask: Any) -> Any:
    """Use LLVM's masked intrinsics, which only take vectors: a scalar becomes a vector of one lane."""
    if step is not None:
        return _masked_gather(builder, _pointers(builder, address, step, lanes_in(kind)), kind, mask)
    lanes = lanes_in(kind)
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    mask = _whole_register(builder, _at_least_vector(builder, mask), element)
    vector = ir.VectorType(element, max(lanes, LEAST_BITS // element_bits(element)))
    load = intrinsic_of(builder, "llvm.masked.load", vector, [I8.as_pointer(), I32, mask.type, vector], "p0")
    zero, align = number(vector, 0), number(I32, 1)
    out = builder.call(load, [pointer(builder, address, I8), align, mask, zero])
    if not isinstance(kind, ir.VectorType):
        return builder.extract_element(out, number(I32, 0))
    return out if vector.count == lanes else _resized(builder, out, lanes)


def gather(builder: Any, address: Any, offsets: Any, kind: Any, mask: Any) -> Any:
    """Load each lane from its own offset."""
    pointers = _pointers_at(builder, address, offsets, lanes_in(kind))
    every = number(ir.VectorType(ir.IntType(1), lanes_in(kind)), 1)
    return _masked_gather(builder, pointers, kind, every if mask is None else mask)


def _pointers_at(builder: Any, address: Any, offsets: Any, lanes: int) -> Any:
    """A vector of pointers at these distances from an address."""
    first, distances = (_at_least_vector(builder, x) for x in (repeated(builder, address, lanes), offsets))
    return builder.inttoptr(builder.add(first, distances), ir.VectorType(I8.as_pointer(), lanes))


def scatter(builder: Any, value: Any, address: Any, offsets: Any, mask: Any) -> None:
    """Store each lane at its own offset, in order."""
    if mask is None:
        for k in range(lanes_of(value)):
            store_untagged(builder, lane(builder, value, k), builder.add(address, lane(builder, offsets, k)))
        return
    value, mask = _at_least_vector(builder, value), _at_least_vector(builder, mask)
    _masked_scatter(builder, value, _pointers_at(builder, address, offsets, value.type.count), mask)


def _masked_gather(builder: Any, pointers: Any, kind: Any, mask: Any) -> Any:
    mask, vector = _at_least_vector(builder, mask), ir.VectorType(kind, 1) if lanes_in(kind) == 1 else kind
    operands = [pointers.type, I32, mask.type, vector]
    gather = intrinsic_of(builder, "llvm.masked.gather", vector, operands, f"v{vector.count}p0")
    out = builder.call(gather, [pointers, number(I32, 1), mask, number(vector, 0)])
    return builder.extract_element(out, number(I32, 0)) if vector is not kind else out


def store_masked(builder: Any, value: Any, address: Any, step: Any, mask: Any) -> None:
    """Store the lanes of a mask, contiguous or a step apart."""
    value, mask, align = _at_least_vector(builder, value), _at_least_vector(builder, mask), number(I32, 1)
    if step is not None:
        _masked_scatter(builder, value, _pointers(builder, address, step, value.type.count), mask)
        return
    to = pointer(builder, address, I8)
    element = value.type.element
    mask = _whole_register(builder, mask, element)
    value = _resized(builder, value, max(value.type.count, LEAST_BITS // element_bits(element)))
    operands = [value.type, to.type, I32, mask.type]
    store = intrinsic_of(builder, "llvm.masked.store", ir.VoidType(), operands, "p0", of=value.type)
    builder.call(store, [value, to, align, mask])


def _whole_register(builder: Any, mask: Any, element: Any) -> Any:
    """The mask with zeros for all lanes of a register, if the vector is narrower than one.

    LLVM 22 widens the mask of a narrow vector itself and may leave the added bits undefined: on AVX-512, a
    masked store of 8 bytes then wrote 16. As an integer, the mask is extended by zeros for certain.
    """
    lanes, all_lanes = mask.type.count, LEAST_BITS // element_bits(element)
    if lanes >= all_lanes:
        return mask
    bits = builder.zext(builder.bitcast(mask, ir.IntType(lanes)), ir.IntType(all_lanes))
    return builder.bitcast(bits, ir.VectorType(ir.IntType(1), all_lanes))


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
