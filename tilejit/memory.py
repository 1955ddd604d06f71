"""NumPy arrays as the compiler sees them: access maps, addresses, fresh outputs, one element's bytes."""

from __future__ import annotations

from math import isnan, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.access import AccessMap, Leaf, Root, strided_map
from codegen.errors import LayoutError, TilejitError
from tilejit.layout.shape import Shape

Array = NDArray[Any]


def array_map(array: Array) -> AccessMap:
    """The access map of an array, in bytes from its first element."""
    bits = 8 * array.itemsize
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True) if n)
    high = sum(max(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True) if n)
    return strided_map(array.shape, array.strides, (low, high + array.itemsize), element_bits=bits)


def halved(access: AccessMap) -> AccessMap:
    """The map of the two halves of every element, as one more dimension: complex numbers by their parts."""
    access = access.in_units(8)
    half = access.element_bits // 16
    rank = len(access.dims)
    return AccessMap(
        (*access.dims, 2),
        (*access.roots, Root((rank,), Leaf(2, half))),
        access.base,
        8,
        access.element_bits // 2,
        access.bounds,
        None if access.slots is None else 2 * access.slots,
        2 * access.tail,
    )


def address(array: Array) -> int:
    """The address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """A fresh array.

    Raises:
        TilejitError: there is no memory for it.
    """
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:
        size = prod(shape) * np.dtype(dtype).itemsize
        raise TilejitError(f"no memory for an array of {size} bytes: {error}") from error


def value_bytes(value: Any, shape: Shape) -> bytes:
    """One element of the shape's dtype that holds `value`, as bytes; a packed one sits in the low bits.

    Floating-point values round to nearest, as an assignment does.

    Raises:
        LayoutError: the dtype cannot hold the value.
        TypeError: the value is no number.
    """
    dtype = shape.dtype
    number = np.asarray(value)
    if number.ndim:
        raise LayoutError(f"padding is one value, not an array of shape {number.shape}")
    if number.dtype.kind == "O" and isinstance(value, int):
        raise LayoutError(f"padding of {value.bit_length()} bits does not fit {shape.primitive_type}")
    if number.dtype.kind not in "biufcV":
        raise TypeError(f"padding is a number, not {type(value).__name__}")
    if number.dtype.kind == "c" and dtype.kind != "c" and not number.imag:
        number = number.real
    if number.dtype.kind == "c" and dtype.kind != "c":
        raise LayoutError(
            f"padding {value!r} does not fit {shape.primitive_type}\n  choose a value it can hold"
        )
    try:
        with np.errstate(all="ignore"):
            element = number.astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise LayoutError(f"padding {value!r} is no value of {shape.primitive_type}: {error}") from error
    if not _holds(element, number):
        raise LayoutError(
            f"padding {value!r} does not fit {shape.primitive_type}\n  choose a value it can hold"
        )
    return element.tobytes()


def _holds(element: Array, number: Array) -> bool:
    """Whether the element is the number, or the nearest one to it."""
    wanted, got = number.item(), element.item()
    if isinstance(got, complex):
        parts = ("real", "imag")
        return all(_holds(getattr(element, p), np.asarray(getattr(complex(wanted), p))) for p in parts)
    try:
        if isnan(wanted):
            return isnan(got)
        if float(got) in (float("inf"), float("-inf")) or isnan(got):
            return float(wanted) == float(got)
        exact = element.dtype.kind in "biu" or not _is_float(element.dtype)
        return bool(wanted == got) if exact else True
    except (TypeError, OverflowError):
        return False


def _is_float(dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return True
    try:
        return float(np.array(0.5).astype(dtype).item()) == 0.5
    except (TypeError, ValueError):
        return False
