"""Access maps and addresses of NumPy arrays, and memory for new ones."""

from __future__ import annotations

import ctypes
import mmap
import sys
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import AccessMap, Leaf, OutOfMemoryError, Root, is_free_threaded, strided_map
from tilejit.arrays.strided import span

Array = NDArray[Any]
MAX_RANK = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32
"""The most dimensions that a NumPy array can have."""


def array_map(array: Array) -> AccessMap:
    """The access map of an array, in bytes from its first element."""
    return bytes_map(array.shape, array.strides, array.itemsize)


def bytes_map(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> AccessMap:
    """The access map of an array given by shape, strides and dtype, in bytes from its first element."""
    return strided_map(shape, strides, span(shape, strides, itemsize), element_bits=8 * itemsize)


def halved(access: AccessMap) -> AccessMap:
    """The map of the two halves of every element as one more dimension: the parts of complex numbers."""
    access = access.in_units(8)
    half = access.element_bits // 16
    rank = len(access.dims)
    return replace(
        access,
        dims=(*access.dims, 2),
        roots=(*access.roots, Root((rank,), Leaf(2, half))),
        element_bits=access.element_bits // 2,
        slots=None if access.slots is None else 2 * access.slots,
        tail=2 * access.tail,
    )


def _address_by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


_DATA_FIELD = object.__basicsize__
"""The offset of the data address in CPython's array object, directly after the object header."""

_word_at = ctypes.c_size_t.from_address


def _address_by_header(array: Array) -> int:
    return _word_at(id(array) + _DATA_FIELD).value


def _header_is_as_expected() -> bool:
    """Whether reading the array object agrees with the array interface, for several kinds of arrays."""
    if sys.implementation.name != "cpython" or is_free_threaded():
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
    """The address of an array's first element; the argument must be a NumPy array."""
    return _word_at(id(array) + _DATA_FIELD).value if _by_header else _address_by_interface(array)


LINE_BYTES = 64
_BYTES_DTYPE = np.dtype(np.uint8)
HUGE_BYTES = 32 << 20
"""New arrays of at least this size in bytes are mapped on whole huge pages.

Below it, malloc reuses recently freed memory without page faults, which is worth more, and NumPy itself
requests huge pages from 4 MiB on. At 32 MiB, glibc stops keeping freed memory.
"""


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Allocate an array in C order that is cache-line aligned; its pages are not touched yet.

    Raises:
        OutOfMemoryError: there is not enough memory.
    """
    dtype = np.dtype(dtype)
    return np.empty(shape, dtype) if dtype.hasobject else sized(shape, dtype, prod(shape) * dtype.itemsize)


def sized(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Array:
    """`empty` with a known size in bytes; for elements that are not Python objects.

    Raises:
        OutOfMemoryError: there is not enough memory.
    """
    try:
        if size >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            return np.ndarray(shape, dtype, _huge_pages(size))
        memory = np.empty(size + LINE_BYTES - 1, _BYTES_DTYPE)
        return np.ndarray(shape, dtype, memory, -address(memory) % LINE_BYTES)
    except (MemoryError, ValueError, OverflowError, OSError) as error:
        raise OutOfMemoryError(f"no memory for an array of {size} bytes: {error}") from error


def _huge_pages(size: int) -> mmap.mmap:
    """Private zeroed memory that the system may place on huge pages."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
