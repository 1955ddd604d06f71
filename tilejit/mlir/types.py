"""Convert xdsl's types and constants to the dtypes and numbers of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
    StridedLayoutAttr,
    VectorType,
)

from codegen import MOST_DIMS
from tilejit.mlir.dtypes import INDEX
from tilejit.mlir.places import Unsupported

WIDTHS = (1, 8, 16, 32, 64)
FLOATS = {BFloat16Type: "bf16", Float16Type: "f16", Float32Type: "f32", Float64Type: "f64"}


def dtype_of(type_: object) -> str:
    """The dtype of a scalar type; signless integers become signed.

    f32 -> "f32"    i1 -> "i1"    ui8 -> "u8"    index -> "i64"

    Raises:
        Unsupported: kernels do not support such elements.
    """
    if isinstance(type_, IndexType):
        return INDEX
    if type(type_) in FLOATS:
        return FLOATS[type(type_)]
    if isinstance(type_, IntegerType):
        name = f"{'u' if type_.signedness.data == Signedness.UNSIGNED else 'i'}{type_.width.data}"
        if type_.width.data in WIDTHS and name != "u1":
            return name
    raise Unsupported(
        f"values of the type {type_} are not supported",
        "write one of index, i1, i8, i16, i32, i64, ui8 … ui64, f16, bf16, f32, f64",
    )


MOST_LANES = 1 << 20
"""The most lanes of one vector."""


def element_of(type_: object) -> object:
    """The type of a vector's elements; any other type unchanged."""
    return type_.element_type if isinstance(type_, VectorType) else type_


def vector_shape(type_: object) -> tuple[int, ...]:
    """The sizes of a vector type; () for another type.

    Raises:
        Unsupported: the vector has too many dimensions or lanes, no lanes, or a scalable size.
    """
    if not isinstance(type_, VectorType):
        return ()
    shape = tuple(map(int, type_.get_shape()))
    fits = 1 <= len(shape) <= MOST_DIMS and min(shape) >= 1 and prod(shape) <= MOST_LANES
    if not fits or any(map(bool, type_.get_scalable_dims())):
        raise Unsupported(
            f"vectors of the type {type_} are not supported",
            f"write one to {MOST_DIMS} sizes, with at most {MOST_LANES} lanes in total",
        )
    return shape


def shape_text(shape: Sequence[int | None]) -> str:
    """Sizes in MLIR's notation: (4, None) -> 4x?"""
    return "x".join("?" if size is None else str(size) for size in shape)


def static_sizes(type_: object) -> tuple[int | None, ...]:
    """The sizes that a memref type states, None for `?`.

    Raises:
        Unsupported: the memref has a layout other than strides.
    """
    assert isinstance(type_, MemRefType)
    if not isinstance(type_.layout, NoneAttr | StridedLayoutAttr):
        raise Unsupported(
            f"the layout {type_.layout} of a memref is not supported",
            "omit it, or write strided<[…], offset: ?>",
        )
    return tuple(None if n < 0 else n for n in type_.get_shape())


def is_strided(type_: object) -> bool:
    """Whether a memref type has strides, so that its arrays need not be contiguous."""
    return isinstance(type_, MemRefType) and isinstance(type_.layout, StridedLayoutAttr)


def constant_of(value: object, dtype: str) -> int | float | bool:
    """The number of an arith.constant; integers have the sign of their bits in the dtype.

    Raises:
        Unsupported: the constant is not a number.
    """
    if isinstance(value, FloatAttr):
        return float(value.value.data)
    if not isinstance(value, IntegerAttr):
        raise Unsupported("the constant is not a number", "write one number: `arith.constant 1.0 : f32`")
    number = int(value.value.data)
    if dtype == "i1":
        return bool(number)
    bits = int(dtype[1:])
    number %= 1 << bits
    return number - (1 << bits) if dtype.startswith("i") and number >> (bits - 1) else number
