"""NumPy's routines that copy one array: copy, array, asarray, contiguous orders, conversions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, DTypeLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import (
    Routine,
    numpy_asarray,
    numpy_ascontiguousarray,
    numpy_asfortranarray,
    numpy_require,
)
from tilejit.copies.sizes import SIZES, is_handled, is_small, numpy_converts_as_fast, numpy_reorders_as_fast
from tilejit.numpy_api.copyto import copy_plain
from tilejit.numpy_api.known import known_cast, known_in_c_order, known_in_f_order
from tilejit.numpy_api.results import allocate, duplicate, memory_order
from tilejit.numpy_api.wanted import differs, is_rank, native, native_or_own, required_order
from tilejit.programs.moves import can_cast
from tilejit.programs.tuning import CASTINGS, Casting, Order

_ORDERS = ("C", "F", "A", "K")
_BYTES_HEAD = bytes.__basicsize__ - 1
"""The offset of the first byte in CPython's bytes object; one more byte follows the last, a zero."""


def copy(a: ArrayLike, order: Order = "K", subok: bool = False, *, threads: int | None = None) -> Array:
    """Copy an array: numpy.copy, faster.

    >>> x = np.arange(6).reshape(2, 3)
    >>> tilejit.copy(x.T, order="C")
    array([[0, 3],
           [1, 4],
           [2, 5]])

    Args:
        a: an array of any strides.
        order: the memory order of the copy: "C", "F", "A" or "K", as in NumPy.
        subok: whether an array subclass stays one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        A new array. Its memory is aligned to a cache line, so `result.base` owns it, as for a view.

    Raises:
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    given = a if type(a) is ndarray else as_numpy(a)
    if type(given) is not ndarray:  # its class may override the call by `__array_function__`
        return np.copy(given, order, subok)  # type: ignore[call-overload, no-any-return]
    return array(given, None, copy=True, order=order, subok=subok, threads=threads)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: Order | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int | None = None,
    like: object = None,
    threads: int | None = None,
) -> Array:
    """Create an array: numpy.array, with faster copies.

    >>> x = np.arange(6).reshape(2, 3)
    >>> tilejit.array(x.T, order="C").flags.c_contiguous
    True

    NumPy itself reads lists, numbers and any other object that is not an array.

    Args:
        object: an array, or anything that numpy.array reads.
        dtype: the dtype of the result; None keeps the object's.
        copy: whether to copy; None copies only if needed, and False raises if a copy is needed.
        order: the memory order: "C", "F", "A" or "K", as in NumPy.
        subok: whether an array subclass stays one.
        ndmin: the fewest dimensions of the result; ones are added in front.
        ndmax: the most dimensions of the result, for NumPy versions that have it.
        like: an object whose type creates the array, as in NumPy.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The array.

    Raises:
        ValueError: `copy` is False, and a copy is needed.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    small = type(object) is ndarray and object.size < SIZES.small_elements  # is_small, written out
    if small and like is ndmax is None:
        if dtype is None and copy is True and order == "K" and ndmin == 0:
            # NumPy takes 0.15 us to parse five more arguments.
            return object.copy("K")  # type: ignore[no-any-return]
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    given = as_numpy(object)
    rest: dict[str, Any] = {"copy": copy, "order": order, "subok": subok, "ndmin": ndmin}
    if like is not None or ndmax is not None:
        rest |= {k: value for k, value in (("like", like), ("ndmax", ndmax)) if value is not None}
    elif is_handled(given) and order in _ORDERS and is_rank(ndmin, given):
        target = native_or_own(given, dtype)
        if target is not None and (copy is True or (copy is None and differs(given, target, order))):
            if order == "A" and target != given.dtype:
                order = "K"  # as in NumPy, if it converts
            result = duplicate(given, target, order, threads=threads)
            if result is not None:
                return result
    return np.array(given, dtype, **rest)


def asarray(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: Order | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    like: object = None,
    threads: int | None = None,
) -> Array:
    """Return an array as it is, or a copy with the requested dtype and order: numpy.asarray, faster.

    >>> x = np.arange(6, dtype=np.int32).reshape(2, 3)
    >>> tilejit.asarray(x) is x
    True
    >>> tilejit.asarray(x, dtype=np.float32, order="F").strides
    (4, 8)

    Args:
        a: an array, or anything that numpy.asarray reads.
        dtype: the dtype of the result; None keeps the array's.
        order: the memory order: "C", "F", "A" or "K", as in NumPy.
        device: "cpu" or None, as in NumPy.
        copy: True always copies; None copies only if needed, and False raises if a copy is needed.
        like: an object whose type creates the array, as in NumPy.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The array itself, or a copy.

    Raises:
        ValueError: `copy` is False, and a copy is needed.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(a) is ndarray and dtype is None and copy is None and order is device is like is None:
        return a
    if is_small(a) and device is like is None:
        return numpy_asarray(a, dtype, order) if copy is None else numpy_asarray(a, dtype, order, copy=copy)
    given = as_numpy(a)
    if device is None and like is None and is_handled(given):
        return array(given, dtype, copy=copy, order="K" if order is None else order, threads=threads)
    rest = {name: value for name, value in (("device", device), ("like", like)) if value is not None}
    return numpy_asarray(given, dtype, order, copy=copy, **rest)


def ascontiguousarray(
    a: ArrayLike, dtype: DTypeLike | None = None, *, like: object = None, threads: int | None = None
) -> Array:
    """Return an array in C order, without a copy if it is: numpy.ascontiguousarray, faster.

    >>> x = np.zeros((3, 5))
    >>> tilejit.ascontiguousarray(x) is x, tilejit.ascontiguousarray(x.T).strides
    (True, (24, 8))

    Args:
        a: an array, or anything that NumPy reads as one.
        dtype: the dtype of the result; None keeps the array's.
        like: an object whose type creates the array, as in NumPy.
        threads: the number of threads; None chooses it from the size.

    Returns:
        An array in C order of at least one dimension.

    Raises:
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(a) is ndarray and like is None:
        if a.size < SIZES.small_elements:  # is_small, written out
            return numpy_ascontiguousarray(a) if dtype is None else numpy_ascontiguousarray(a, dtype)
        if dtype is None and threads is None:
            if (known := known_in_c_order(a)) is not known_in_c_order:
                return known  # type: ignore[no-any-return]
            if numpy_reorders_as_fast(a, "C"):
                return numpy_ascontiguousarray(a)
    return _in_order("C", numpy_ascontiguousarray, a, dtype, like, threads)


def asfortranarray(
    a: ArrayLike, dtype: DTypeLike | None = None, *, like: object = None, threads: int | None = None
) -> Array:
    """Return an array in Fortran order, without a copy if it is: numpy.asfortranarray, faster.

    >>> x = np.zeros((3, 5))
    >>> tilejit.asfortranarray(x).strides
    (8, 24)

    Args:
        a: an array, or anything that NumPy reads as one.
        dtype: the dtype of the result; None keeps the array's.
        like: an object whose type creates the array, as in NumPy.
        threads: the number of threads; None chooses it from the size.

    Returns:
        An array in Fortran order.

    Raises:
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(a) is ndarray and like is None:
        if a.size < SIZES.small_elements:  # is_small, written out
            return numpy_asfortranarray(a) if dtype is None else numpy_asfortranarray(a, dtype)
        if dtype is None and threads is None:
            if (known := known_in_f_order(a)) is not known_in_f_order:
                return known  # type: ignore[no-any-return]
            if numpy_reorders_as_fast(a, "F"):
                return numpy_asfortranarray(a)
    return _in_order("F", numpy_asfortranarray, a, dtype, like, threads)


def _in_order(order: Order, numpys: Routine, a: Any, dtype: Any, like: Any, threads: int | None) -> Array:
    """The array in that order, by NumPy's routine if no kernel makes the copy."""
    given = as_numpy(a)
    if like is None and is_handled(given) and given.ndim:
        target = native_or_own(given, dtype)
        if target is not None and differs(given, target, order):
            result = duplicate(given, target, order, threads=threads)
            if result is not None:
                return result
    return numpys(given, dtype) if like is None else numpys(given, dtype, like=like)


def require(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    requirements: str | Sequence[str] | None = None,
    *,
    like: object = None,
    threads: int | None = None,
) -> Array:
    """Return an array with the given dtype and flags, without a copy if it has them: numpy.require, faster.

    >>> x = np.zeros((3, 5))
    >>> tilejit.require(x.T, np.float32, ["C", "W"]).strides
    (12, 4)

    Args:
        a: an array, or anything that NumPy reads as one.
        dtype: the dtype of the result; None keeps the array's.
        requirements: NumPy's names of flags, such as "C", "F", "A" (aligned), "W" (writable) and "O" (owns
            its data); one or several.
        like: an object whose type creates the array, as in NumPy.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The array itself, or a copy.

    Raises:
        ValueError: both orders are required.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if is_small(a) and like is None:
        return numpy_require(a, dtype, requirements)
    given = as_numpy(a)
    if like is not None:
        return numpy_require(given, dtype, requirements, like=like)
    order = required_order(requirements)
    if order and is_handled(given) and native(given, dtype) is not None:
        made = array(given, dtype, copy=None, order=order, threads=threads)
        if made is not given:  # for an array in that order, NumPy returns a view of the requested dtype
            given, dtype = made, None
    return numpy_require(given, dtype, requirements)


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
    """Convert an array to another dtype: the method numpy.ndarray.astype, faster.

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
        numpys = x.size < SIZES.small_elements  # is_small, written out
        if not numpys and threads is None:
            if plain and (known := known_cast(x, dtype)) is not known_cast:
                return known  # type: ignore[no-any-return]
            numpys = order != "F" and numpy_converts_as_fast(x, dtype)
        if numpys:  # NumPy takes 0.1 us to parse four more arguments.
            return x.astype(dtype) if plain else x.astype(dtype, order, casting, subok, copy)
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x: expected a NumPy array, got {type(x).__name__}\n  make one with numpy.asarray")
    if is_handled(given) and order in _ORDERS and casting in CASTINGS and dtype is not None:
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
    """Reverse the bytes of each element: the method numpy.ndarray.byteswap, faster.

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
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x: expected a NumPy array, got {type(x).__name__}\n  make one with numpy.asarray")
    if not inplace and is_handled(given) and given.dtype.kind in "iufc" and given.itemsize > 1:
        result = allocate(given.shape, given.dtype, memory_order(given, "A"))
        if copy_plain(result.view(given.dtype.newbyteorder()), given, threads):
            return result
    return given.byteswap(inplace)


def tobytes(x: Array, order: Order | None = "C", *, threads: int | None = None) -> bytes:
    r"""Copy the elements to a bytes object: the method numpy.ndarray.tobytes, faster.

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
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x: expected a NumPy array, got {type(x).__name__}\n  make one with numpy.asarray")
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
