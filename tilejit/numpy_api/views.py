"""Copies in C order where NumPy returns views, such as transposes and flips, and `roll`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_flip, numpy_rot90
from tilejit.copies.sizes import is_handled
from tilejit.numpy_api.copyto import copyto
from tilejit.numpy_api.results import allocate, duplicate, memory_order

Axes = int | Sequence[int] | None


def transpose(
    a: ArrayLike,
    axes: int | Sequence[int] | None = None,
    *,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Permute axes; returns a copy in C order where numpy.transpose returns a view.

    >>> x = np.arange(6).reshape(2, 3)
    >>> y = tilejit.transpose(x)
    >>> y
    array([[0, 3],
           [1, 4],
           [2, 5]])
    >>> y.flags.c_contiguous
    True

    Args:
        a: an array of any strides.
        axes: the axes of `a` in their new order; None reverses them.
        out: an array of the result's shape to copy into, with any strides and any dtype that `a` converts to
            under the rule "same_kind". None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order. Its axis `i` is axis `axes[i]` of `a`.

    Raises:
        ValueError: `axes` is not a permutation of the axes, or `out` has another shape.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(np.transpose(as_numpy(a), axes), out, threads)


def moveaxis(
    a: ArrayLike,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Move axes to new positions; returns a copy in C order where numpy.moveaxis returns a view.

    >>> tilejit.moveaxis(np.zeros((2, 3, 5)), -1, 1).shape
    (2, 5, 3)

    Args:
        a: an array of any strides.
        source: the axes to move.
        destination: where each of them goes.
        out: an array of the result's shape to copy into, as in `transpose`. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order.

    Raises:
        ValueError: an axis is named twice, the numbers of axes differ, or `out` has another shape.
        AxisError: an axis does not exist.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(np.moveaxis(as_numpy(a), source, destination), out, threads)


def swapaxes(
    a: ArrayLike, axis1: int, axis2: int, *, out: Array | None = None, threads: int | None = None
) -> Array:
    """Exchange two axes; returns a copy in C order where numpy.swapaxes returns a view.

    >>> tilejit.swapaxes(np.zeros((2, 3, 5)), 0, 2).shape
    (5, 3, 2)

    Args:
        a: an array of any strides.
        axis1: one axis.
        axis2: the other axis.
        out: an array of the result's shape to copy into, as in `transpose`. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order.

    Raises:
        AxisError: an axis does not exist.
        ValueError: `out` has another shape.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(np.swapaxes(as_numpy(a), axis1, axis2), out, threads)


def rollaxis(
    a: ArrayLike, axis: int, start: int = 0, *, out: Array | None = None, threads: int | None = None
) -> Array:
    """Move an axis before another; returns a copy in C order where numpy.rollaxis returns a view.

    >>> tilejit.rollaxis(np.zeros((2, 3, 5)), 2).shape
    (5, 2, 3)

    Args:
        a: an array of any strides.
        axis: the axis to move.
        start: the axis that it is placed before.
        out: an array of the result's shape to copy into, as in `transpose`. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order.

    Raises:
        AxisError: an axis does not exist.
        ValueError: `out` has another shape.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(np.rollaxis(as_numpy(a), axis, start), out, threads)


def flip(
    m: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Reverse elements along axes; returns a copy in C order where numpy.flip returns a view.

    >>> tilejit.flip(np.arange(6).reshape(2, 3), axis=1)
    array([[2, 1, 0],
           [5, 4, 3]])

    Args:
        m: an array of any strides.
        axis: one axis or several; None reverses all of them.
        out: an array of the same shape to copy into, as in `transpose`. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order.

    Raises:
        AxisError: an axis does not exist.
        ValueError: `out` has another shape.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(numpy_flip(as_numpy(m), axis), out, threads)


def rot90(
    m: ArrayLike,
    k: int = 1,
    axes: Sequence[int] = (0, 1),
    *,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Rotate a plane by quarter turns; returns a copy in C order where numpy.rot90 returns a view.

    >>> tilejit.rot90(np.arange(6).reshape(2, 3))
    array([[2, 5],
           [1, 4],
           [0, 3]])

    Args:
        m: an array of two or more dimensions, of any strides.
        k: the number of quarter turns from the first of `axes` toward the second.
        axes: the two axes of the plane.
        out: an array of the result's shape to copy into, as in `transpose`. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order.

    Raises:
        ValueError: `axes` are not two different axes, or `out` has another shape.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(numpy_rot90(as_numpy(m), k, axes), out, threads)


def broadcast_to(
    array: ArrayLike,
    shape: int | Sequence[int],
    subok: bool = False,
    *,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """Repeat an array to a shape; returns a copy in C order where numpy.broadcast_to returns a view.

    >>> tilejit.broadcast_to(np.arange(3), (2, 3))
    array([[0, 1, 2],
           [0, 1, 2]])

    Args:
        array: an array of any strides.
        shape: the shape of the result.
        subok: whether an array subclass stays one.
        out: an array of that shape to copy into, as in `transpose`. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array in C order.

    Raises:
        ValueError: the array does not broadcast to the shape, or `out` has another shape.
        KernelValueError: `threads` is less than one.
        TypeError: `out` is not an array or cannot hold the dtype.
    """
    return _copied(np.broadcast_to(as_numpy(array), shape, subok), out, threads)


def roll(
    a: ArrayLike,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    threads: int | None = None,
) -> Array:
    """Shift elements along axes, moving the last ones to the front, like numpy.roll but faster.

    >>> tilejit.roll(np.arange(5), 2)
    array([3, 4, 0, 1, 2])

    Args:
        a: an array of any strides.
        shift: how many places to shift by: one number, or one for each axis.
        axis: one axis or several; None shifts the elements in C order and keeps the shape.
        threads: the number of threads; None chooses it from the size.

    Returns:
        A new array with the shape and memory order that numpy.roll gives it.

    Raises:
        AxisError: an axis does not exist.
        ValueError: `shift` and `axis` do not broadcast against each other.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    given = as_numpy(a)
    if not (is_handled(given) and given.ndim):
        return np.roll(given, shift, axis)
    if axis is None:
        return roll(_flat(given, threads), shift, 0, threads=threads).reshape(given.shape)
    axes = np.lib.array_utils.normalize_axis_tuple(axis, given.ndim, allow_duplicate=True)
    pairs = np.broadcast(shift, axes)
    if pairs.ndim > 1:
        return np.roll(given, shift, axis)
    shifts = dict.fromkeys(range(given.ndim), 0)
    for by, along in pairs:
        shifts[int(along)] += int(by)
    result = allocate(given.shape, given.dtype, memory_order(given, "K"))
    turns = [_turned(size, shifts[k]) for k, size in enumerate(given.shape)]
    for parts in product(*turns):
        copyto(result[tuple(to for to, _ in parts)], given[tuple(at for _, at in parts)], threads=threads)
    return result


def _turned(size: int, shift: int) -> list[tuple[slice, slice]]:
    """The sources and destinations of the one or two segments of an axis that is rolled.

    5, 2 -> [(2:, :3), (:2, 3:)]    5, 0 -> [(:, :)]
    """
    shift %= size
    if shift == 0:
        return [(slice(None), slice(None))]
    return [(slice(shift, None), slice(None, size - shift)), (slice(None, shift), slice(size - shift, None))]


def _flat(x: Array, threads: int | None) -> Array:
    """The elements in C order along one axis; a view if possible."""
    if x.flags.c_contiguous:
        return x.reshape(-1)
    copied = duplicate(x, threads=threads)
    return x.ravel() if copied is None else copied.reshape(-1)


def _copied(view: Any, out: Array | None, threads: int | None) -> Array:
    """The view's elements in `out`, or in a new array in C order."""
    if threads is not None:
        check_threads(threads)
    if out is not None:
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out: expected a NumPy array, got {type(out).__name__}")
        if out.shape != view.shape:
            raise ValueError(f"out has shape {out.shape}, but the result has shape {view.shape}")
        copyto(out, view, threads=threads)
        return out
    if is_handled(view):
        result = duplicate(view, threads=threads)
        if result is not None:
            return result
    return view.copy(order="C") if isinstance(view, np.ndarray) else view
