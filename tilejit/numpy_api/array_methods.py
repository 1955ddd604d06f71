"""NumPy's methods that copy an array, as functions: astype, byteswap, tobytes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.copies.sizes import SIZES, is_handled, is_small, numpy_converts_as_fast
from tilejit.numpy_api.copyto import copy_plain
from tilejit.numpy_api.known import known_cast
from tilejit.numpy_api.results import allocate, duplicate, memory_order
from tilejit.numpy_api.wanted import ORDERS, differs, native
from tilejit.programs.moves import can_cast
from tilejit.programs.tuning import CASTINGS, Casting, Order

_BYTES_HEAD = bytes.__basicsize__ - 1
"""The offset of the first byte in CPython's bytes object; one more byte follows the last, a zero."""


def astype(
    x: Array,
    dtype: DTypeLike,
    order: Order = "K",
    casting: Casting = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    threads: int | None = None,
) -> Array:
    """Convert an array to another dtype, like the method numpy.ndarray.astype but faster.

    >>> x = np.array([[0.5, 1.5], [2.5, 3.5]])
    >>> tilejit.astype(x.T, np.int32, order="C")
    array([[0, 2],
           [1, 3]], dtype=int32)

    Conversions warn as NumPy's do.

    Args:
        x: an array of any strides.
        dtype: the dtype of the result.
        order: the memory order: "C", "F", "A" or "K", as in NumPy.
        casting: NumPy's rule for conversions, as in `np.can_cast`.
        subok: whether an array subclass stays one.
        copy: False returns `x` itself if it has the dtype and order already.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The converted array.

    Raises:
        TypeError: `x` is not an array, or `casting` forbids the conversion.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(x) is ndarray:
        plain = order == "K" and casting == "unsafe" and subok is copy is True
        by_numpy = x.size < SIZES.small_elements  # is_small, written out
        if not by_numpy and threads is None:
            if plain and (known := known_cast(x, dtype)) is not known_cast:
                return known  # type: ignore[no-any-return]
            by_numpy = order != "F" and numpy_converts_as_fast(x, dtype)
        if by_numpy:  # NumPy takes 0.1 us to parse four more arguments.
            return x.astype(dtype) if plain else x.astype(dtype, order, casting, subok, copy)
    given = _as_array(x)
    if is_handled(given) and order in ORDERS and casting in CASTINGS and dtype is not None:
        target = native(given, dtype)
        if (
            target is not None
            and (copy or differs(given, target, order))
            and can_cast(given.dtype, target, casting)
        ):
            result = duplicate(given, target, order, threads=threads)
            if result is not None:
                return result
    return given.astype(dtype, order, casting, subok, copy)


def byteswap(x: Array, inplace: bool = False, *, threads: int | None = None) -> Array:
    """Reverse the bytes of each element, like the method numpy.ndarray.byteswap but faster.

    >>> tilejit.byteswap(np.array([1, 256], np.int16))
    array([256,   1], dtype=int16)

    Args:
        x: an array of any strides.
        inplace: whether to swap the bytes of `x` itself.
        threads: the number of threads; None chooses it from the size.

    Returns:
        A new array, or `x` if `inplace` is True.

    Raises:
        TypeError: `x` is not an array.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if is_small(x):
        return x.byteswap(inplace)
    given = _as_array(x)
    if not inplace and is_handled(given) and given.dtype.kind in "iufc" and given.itemsize > 1:
        result = allocate(given.shape, given.dtype, memory_order(given, "A"))
        if copy_plain(result.view(given.dtype.newbyteorder()), given, threads):
            return result
    return given.byteswap(inplace)


def tobytes(x: Array, order: Order | None = "C", *, threads: int | None = None) -> bytes:
    r"""Copy the elements to a bytes object, like the method numpy.ndarray.tobytes but faster.

    >>> tilejit.tobytes(np.array([[1, 2], [3, 4]], np.uint8).T)
    b'\x01\x03\x02\x04'

    Args:
        x: an array of any strides.
        order: the order of the elements: "C", Fortran's "F", or "A" for "F" if `x` is in Fortran order and
            "C" otherwise.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The bytes, `x.nbytes` of them.

    Raises:
        TypeError: `x` is not an array.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(x) is ndarray and x.size < SIZES.small_elements:  # is_small, written out
        return x.tobytes() if order == "C" else x.tobytes(order)
    given = _as_array(x)
    if is_handled(given) and order in ("C", "F", "A") and not _is_one_run(given, order):
        made = _bytes_of(given, order, threads)
        if made is not None:
            return made
    return given.tobytes(order=order)


def _bytes_of(x: Array, order: Order, threads: int | None) -> bytes | None:
    """The elements' bytes in another order than memory order; None if no kernel makes the copy."""
    made = bytes(x.nbytes)
    # No other code has seen the object yet, so its bytes may still be written. It has two or more bytes,
    # because one element is always in order, and CPython shares only objects of one byte.
    # Any: the stubs of NumPy before 2.5 do not accept ctypes arrays as buffers.
    flat: Any = (ctypes.c_char * x.nbytes).from_address(id(made) + _BYTES_HEAD)
    axes = memory_order(x, order) or tuple(range(x.ndim))
    laid = np.ndarray(tuple(x.shape[axis] for axis in axes), x.dtype, flat)
    return made if copy_plain(laid, x.transpose(axes), threads) else None


def _is_one_run(x: Array, order: Order) -> bool:
    """Whether the elements follow each other in memory in that order."""
    flags = x.flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous if order == "F" else flags.forc)


def _as_array(x: Any) -> Array:
    """The argument as an array.

    Raises:
        TypeError: it is not one.
    """
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x: expected a NumPy array, got {type(x).__name__}\n  make one with numpy.asarray")
    return given
