"""Strides of accesses that are known before the call, and the sizes of elements and of their registers."""

from __future__ import annotations

from codegen.ir.index import Affine, Index, Sum, index_symbols
from codegen.ir.nodes import ArrayArg
from codegen.support.errors import KernelError

HALVES = ("bf16", "f16")
ELEMENT_BYTES = {"i1": 1, "bf16": 2, "f16": 2} | {f"{k}{n}": n // 8 for k in "iu" for n in (8, 16, 32, 64)}
ELEMENT_BYTES |= {"f32": 4, "f64": 8}


def held_dtype(dtype: str) -> str:
    """The dtype of the registers that a dtype is computed in."""
    return "f32" if dtype in HALVES else dtype


def byte_stride(array: ArrayArg, dimension: int) -> int | None:
    """Bytes from one element to the next along a dimension; None if known only at the call."""
    if array.strides:
        return array.strides[dimension]
    return ELEMENT_BYTES[array.dtype] if dimension == near_dimension(array) else None


def near_dimension(array: ArrayArg) -> int | None:
    """The dimension along which elements are contiguous; None if known only at the call."""
    return {"C": array.rank - 1, "F": 0}.get(array.order)


def slope(index: Index, name: str) -> int:
    """The coefficient of a symbol in the expression."""
    if name not in index_symbols(index):
        return 0
    match index:
        case Affine():
            return index.coefficient(name)
        case Sum(parts, rest) if all(name not in index_symbols(part) for part, _ in parts):
            return rest.coefficient(name)
    raise KernelError(f"{index} does not have a constant step from lane to lane of {name}")


def lane_stride_bytes(array: ArrayArg, subscripts: tuple[Index, ...], index: str, step: int) -> int | None:
    """Bytes from lane to lane if the index advances by `step`; None if the call's strides decide.

    A[i, j] of f32, contiguous:  along j with step 1 -> 4, with step -2 -> -8;  along i -> None
    """
    total = 0
    for dimension, subscript in enumerate(subscripts):
        steps, stride = slope(subscript, index) * step, byte_stride(array, dimension)
        if steps and stride is None:
            return None
        total += steps * (stride or 0)
    return total
