"""NumPy arrays as the compiler sees them: access maps, addresses, fresh outputs, one element's bytes."""

from __future__ import annotations

import ctypes
import mmap
import sys
import sysconfig
from contextlib import suppress
from math import isnan, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.access import AccessMap, Leaf, Root, strided_map
from codegen.errors import LayoutError, TilejitError
from tilejit.layout.shape import Shape
from tilejit.strided import span

Array = NDArray[Any]


def array_map(array: Array) -> AccessMap:
    """The access map of an array, in bytes from its first element."""
    bounds = span(array.shape, array.strides, array.itemsize)
    return strided_map(array.shape, array.strides, bounds, element_bits=8 * array.itemsize)


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


def _address_by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


_DATA_FIELD = object.__basicsize__
"""Where CPython's array object holds the address of its data: right behind the head of every object."""

_word_at = ctypes.c_size_t.from_address


def _address_by_header(array: Array) -> int:
    return _word_at(id(array) + _DATA_FIELD).value


def _header_is_as_expected() -> bool:
    """Whether reading the array object gives what the array interface says, for arrays of every sort."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if np.ndarray.__basicsize__ < _DATA_FIELD + ctypes.sizeof(ctypes.c_size_t):
        return False
    base = np.zeros((5, 7, 3), np.int16)
    views = (
        base,
        base[1:, ::2],
        base[::-1, :, 2],
        base[0, 0, 0, ...],
        base[5:],
        base.T,
        base.view(np.recarray),
    )
    return all(_address_by_header(v) == _address_by_interface(v) for v in views)


_by_header = _header_is_as_expected()


def address(array: Array) -> int:
    """The address of an array's first element; the argument must be an array, nothing that looks like one."""
    return _word_at(id(array) + _DATA_FIELD).value if _by_header else _address_by_interface(array)


LINE_BYTES = 64
HUGE_BYTES = 4 << 20
"""From this size on a fresh array lies on memory of its own that asks for huge pages."""


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """A fresh array in C order whose first element starts a cache line; its pages are not touched yet.

    Raises:
        TilejitError: there is no memory for it.
    """
    dtype = np.dtype(dtype)
    size = prod(shape) * dtype.itemsize
    if dtype.hasobject:
        return np.empty(shape, dtype)
    try:
        if size >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            return np.ndarray(shape, dtype, _huge_pages(size))
        memory = np.empty(size + LINE_BYTES - 1, np.uint8)
        return np.ndarray(shape, dtype, memory, -address(memory) % LINE_BYTES)
    except (MemoryError, ValueError, OverflowError, OSError) as error:
        raise TilejitError(f"no memory for an array of {size} bytes: {error}") from error


def _huge_pages(size: int) -> mmap.mmap:
    """Zeroed memory that is the caller's alone; the system may lay it on huge pages when it is touched."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


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
