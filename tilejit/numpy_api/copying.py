"""NumPy's routines that make a copy of one array: copy, array, asarray, contiguous orders, conversions."""

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
"""Where CPython's bytes object holds its first byte; one more is for the zero behind the last."""


def copy(a: ArrayLike, order: Order = "K", subok: bool = False, *, threads: int | None = None) -> Array:
    """A copy of an array: numpy.copy, only faster.

    >>> tilejit.copy(x.T, order="C")

    a, order, subok: as in NumPy. threads: a number, or None to let the size decide. The result's memory
    starts a cache line; as with views, `result.base` is what owns it.

    Raises:
        KernelError: threads is less than one.
    """
    if threads is not None:
        check_threads(threads)
    given = a if type(a) is ndarray else as_numpy(a)
    if type(given) is not ndarray:  # its class may have an answer, by `__array_function__`
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
    """An array of what is given, copied unless `copy` is None or False: numpy.array, only faster.

    >>> tilejit.array(x.T, order="C")

    All arguments as in NumPy; NumPy itself reads lists, numbers and everything else that is no array.
    threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        ValueError: copy is False, and there is no way without one.
    """
    if threads is not None:
        check_threads(threads)
    small = type(object) is ndarray and object.size < SIZES.small_elements  # is_small, written out
    if small and like is ndmax is None:
        if dtype is None and copy is True and order == "K" and ndmin == 0:
            # NumPy takes 0.15 us to read five more arguments.
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
                order = "K"  # as NumPy has it where it converts
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
    """The array itself where it is as asked, else a copy that is: numpy.asarray, only faster.

    >>> tilejit.asarray(x, dtype=np.float32, order="F")

    All arguments as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        ValueError: copy is False, and there is no way without one.
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
    """The array in C order, itself if it is: numpy.ascontiguousarray, only faster.

    >>> tilejit.ascontiguousarray(x.T)

    a, dtype, like: as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
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
    """The array in Fortran's order, itself if it is: numpy.asfortranarray, only faster.

    >>> tilejit.asfortranarray(x)

    a, dtype, like: as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
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
    """The array in that order; by NumPy's routine for it where no kernel makes the copy."""
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
    """The array with the properties that are asked for, itself if it has them: numpy.require, only faster.

    >>> tilejit.require(x.T, np.float32, ["C", "A", "W"])

    All arguments as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        ValueError: both orders are required.
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
        if made is not given:  # of an array that is in order NumPy makes a view, of the dtype asked for
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
    """The array converted to another dtype: the method of numpy.ndarray, only faster.

    >>> tilejit.astype(x.T, ml_dtypes.bfloat16, order="C")

    x: an array. The other arguments, and the warnings, as in NumPy. threads: a number, or None to let the
    size decide.

    Raises:
        KernelError: threads is less than one.
        TypeError: x is not an array, or the rule `casting` forbids the conversion.
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
        if numpys:  # NumPy takes 0.1 us to read four more arguments.
            return x.astype(dtype) if plain else x.astype(dtype, order, casting, subok, copy)
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x is a NumPy array, not {type(x).__name__}\n  make one with numpy.asarray")
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
    """The array with the bytes of each element turned round: the method of numpy.ndarray, only faster.

    >>> tilejit.byteswap(x)

    x: an array. inplace: as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        TypeError: x is not an array.
    """
    if threads is not None:
        check_threads(threads)
    if is_small(x):
        return x.byteswap(inplace)
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x is a NumPy array, not {type(x).__name__}\n  make one with numpy.asarray")
    if not inplace and is_handled(given) and given.dtype.kind in "iufc" and given.itemsize > 1:
        result = allocate(given.shape, given.dtype, memory_order(given, "A"))
        if copy_plain(result.view(given.dtype.newbyteorder()), given, threads):
            return result
    return given.byteswap(inplace)


def tobytes(x: Array, order: Order | None = "C", *, threads: int | None = None) -> bytes:
    """The elements' bytes in C, Fortran's ("F") or the array's own order ("A"): the method, only faster.

    >>> tilejit.tobytes(x.T)

    x: an array. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        TypeError: x is not an array.
    """
    if threads is not None:
        check_threads(threads)
    if type(x) is ndarray and x.size < SIZES.small_elements:  # is_small, written out
        return x.tobytes() if order == "C" else x.tobytes(order)
    given = as_numpy(x)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"x is a NumPy array, not {type(x).__name__}\n  make one with numpy.asarray")
    if is_handled(given) and order in ("C", "F", "A") and not _is_one_run(given, order):
        made = _bytes_of(given, order, threads)
        if made is not None:
            return made
    return given.tobytes(order=order)


def _bytes_of(x: Array, order: Order, threads: int | None) -> bytes | None:
    """The elements' bytes in an order in which they do not lie; None where no kernel makes the copy."""
    made = bytes(x.nbytes)
    # No one else has seen the object yet, so that its bytes may still be written: they are two or more,
    # since one element is in order, and only objects of one byte are shared from the start.
    # Any: the stubs of NumPy before 2.5 do not accept arrays of ctypes as buffers.
    flat: Any = (ctypes.c_char * x.nbytes).from_address(id(made) + _BYTES_HEAD)
    axes = memory_order(x, order) or tuple(range(x.ndim))
    laid = np.ndarray(tuple(x.shape[axis] for axis in axes), x.dtype, flat)
    return made if copy_plain(laid, x.transpose(axes), threads) else None


def _is_one_run(x: Array, order: Order) -> bool:
    """Whether the elements follow each other in memory in that order."""
    flags = x.flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous if order == "F" else flags.forc)
