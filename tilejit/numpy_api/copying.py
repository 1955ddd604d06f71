"""NumPy's functions that copy one array: copy, array, asarray, require, contiguous orders."""

from __future__ import annotations

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
from tilejit.copies.sizes import SIZES, is_handled, is_small, numpy_reorders_as_fast
from tilejit.numpy_api.known import known_in_c_order, known_in_f_order
from tilejit.numpy_api.results import duplicate
from tilejit.numpy_api.wanted import ORDERS, differs, is_rank, native, native_or_own, required_order
from tilejit.programs.tuning import Order


def copy(a: ArrayLike, order: Order = "K", subok: bool = False, *, threads: int | None = None) -> Array:
    """Copy an array, like numpy.copy but faster.

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
    if type(given) is not ndarray:  # its class may override the call with `__array_function__`
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
    elif is_handled(given) and order in ORDERS and is_rank(ndmin, given):
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
    """Return an array unchanged, or a copy with the requested dtype and order, like numpy.asarray but faster.

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
    """Return an array in C order, without a copy if possible, like numpy.ascontiguousarray but faster.

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
    """Return an array in Fortran order, without a copy if possible, like numpy.asfortranarray but faster.

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


def _in_order(order: Order, routine: Routine, a: Any, dtype: Any, like: Any, threads: int | None) -> Array:
    """The array in that order, by NumPy's routine if no kernel makes the copy."""
    given = as_numpy(a)
    if like is None and is_handled(given) and given.ndim:
        target = native_or_own(given, dtype)
        if target is not None and differs(given, target, order):
            result = duplicate(given, target, order, threads=threads)
            if result is not None:
                return result
    return routine(given, dtype) if like is None else routine(given, dtype, like=like)


def require(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    requirements: str | Sequence[str] | None = None,
    *,
    like: object = None,
    threads: int | None = None,
) -> Array:
    """Return an array with a dtype and flags, without a copy if possible, like numpy.require but faster.

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
