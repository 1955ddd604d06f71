"""NumPy's routines that join several arrays: concatenate, stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import Routine, numpy_concatenate, numpy_stack
from tilejit.copies.sizes import are_handled, are_small, numpy_joins_as_fast
from tilejit.numpy_api.copyto import copyto
from tilejit.numpy_api.results import allocate, common_order
from tilejit.programs.tuning import CASTINGS, SAME_KIND, Casting

INTERLEAVED_BYTES = 1 << 18
"""The bytes of arrays that are stacked element by element in cache at a time."""

MOST_INTERLEAVED = 16
"""NumPy stacks more arrays than this element by element."""


def concatenate(
    arrays: Sequence[ArrayLike] | Array,
    /,
    axis: int | None = 0,
    out: Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = SAME_KIND,
    threads: int | None = None,
) -> Array:
    """Join arrays along an axis, like numpy.concatenate but faster.

    >>> a, b = np.zeros((2, 2), np.uint8), np.ones((1, 2), np.uint8)
    >>> tilejit.concatenate([a, b])
    array([[0, 0],
           [0, 0],
           [1, 1]], dtype=uint8)

    Args:
        arrays: the arrays, whose shapes may differ only along the axis.
        axis: the axis to join along; None flattens the arrays first.
        out: an array of the result's shape to write to. None allocates one.
        dtype: the dtype of the result, if `out` is None; None takes the common dtype.
        casting: NumPy's rule for conversions.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array.

    Raises:
        ValueError: the shapes do not match, there are no arrays, or `out` has another shape.
        AxisError: the axis does not exist.
        TypeError: `casting` forbids a conversion, or both `out` and `dtype` are given.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if are_small(arrays) or numpy_joins_as_fast(arrays):
        if dtype is None and casting is SAME_KIND:  # _by_numpy, written out
            return numpy_concatenate(arrays, axis, out)
        return numpy_concatenate(arrays, axis, out, dtype=dtype, casting=casting)
    given = _as_arrays(arrays)
    joined = _joined(given, axis, out, dtype, casting, threads)
    return _by_numpy(numpy_concatenate, given, axis, out, dtype, casting) if joined is None else joined


def stack(
    arrays: Sequence[ArrayLike] | Array,
    axis: int | None = 0,
    out: Array | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = SAME_KIND,
    threads: int | None = None,
) -> Array:
    """Join arrays of one shape along a new axis, like numpy.stack but faster.

    >>> red, green = np.zeros(3, np.uint8), np.ones(3, np.uint8)
    >>> tilejit.stack([red, green], axis=-1)
    array([[0, 1],
           [0, 1],
           [0, 1]], dtype=uint8)

    Args:
        arrays: the arrays, all of one shape.
        axis: the position of the new axis in the result.
        out: an array of the result's shape to write to. None allocates one.
        dtype: the dtype of the result, if `out` is None; None takes the common dtype.
        casting: NumPy's rule for conversions.
        threads: the number of threads; None chooses it from the size.

    Returns:
        `out`, or a new array with one more dimension.

    Raises:
        ValueError: the shapes differ, there are no arrays, or `out` has another shape.
        AxisError: the axis does not exist.
        TypeError: `casting` forbids a conversion, or both `out` and `dtype` are given.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if are_small(arrays) or (
        type(axis) is int and axis == -1 and numpy_joins_as_fast(arrays, interleaved=True)
    ):
        return _by_numpy(numpy_stack, arrays, axis, out, dtype, casting)
    given = _as_arrays(arrays)
    stacked = _stacked(given, axis, out, dtype, casting, threads)
    return _by_numpy(numpy_stack, given, axis, out, dtype, casting) if stacked is None else stacked


def _by_numpy(routine: Routine, arrays: Any, axis: Any, out: Any, dtype: Any, casting: Any) -> Array:
    if dtype is None and casting is SAME_KIND:
        return routine(arrays, axis, out)
    return routine(arrays, axis, out, dtype=dtype, casting=casting)


def _as_arrays(arrays: Any) -> Any:
    """Convert arrays of other libraries to NumPy arrays; return anything but a list or tuple unchanged."""
    return [as_numpy(x) for x in arrays] if type(arrays) in (list, tuple) else arrays


def _joined(parts: Any, axis: Any, out: Any, dtype: Any, casting: Any, threads: int | None) -> Array | None:
    """The arrays one after the other, or None if NumPy joins them."""
    if type(parts) is not list or not are_handled(parts):
        return None
    rank = parts[0].ndim
    if not _is_axis(axis, rank) or (out is not None and type(out) is not np.ndarray):
        return None
    axis %= rank
    target, shape = _common_dtype(parts, out, dtype, casting), _joined_shape(parts, axis)
    if target is None or shape is None:
        return None
    if out is None:
        out = allocate(shape, target, common_order(parts))
    elif out.shape != shape or not out.flags.writeable or any(np.may_share_memory(out, x) for x in parts):
        return None
    begin, before = 0, (slice(None),) * axis
    for x in parts:
        end = begin + x.shape[axis]
        copyto(out[(*before, slice(begin, end))], x, casting, threads=threads)
        begin = end
    return out  # type: ignore[no-any-return]


def _stacked(parts: Any, axis: Any, out: Any, dtype: Any, casting: Any, threads: int | None) -> Array | None:
    """The arrays side by side, or None if NumPy stacks them."""
    if type(parts) is not list or not are_handled(parts):
        return None
    rank = parts[0].ndim + 1
    if not _is_axis(axis, rank) or any(x.shape != parts[0].shape for x in parts):
        return None
    axis %= rank
    if axis == rank - 1 > 0 and out is None and dtype is None and casting in CASTINGS:
        if numpy_joins_as_fast(parts, interleaved=True):
            return None
        interleaved = _interleaved(parts, threads)
        if interleaved is not None:
            return interleaved
    if numpy_joins_as_fast(parts):
        return None
    place = (slice(None),) * axis + (None,)
    return _joined([x[place] for x in parts], axis, out, dtype, casting, threads)


def _is_axis(axis: Any, rank: int) -> bool:
    return type(axis) is int and -rank <= axis < rank


def _interleaved(parts: list[Array], threads: int | None) -> Array | None:
    """Interleave arrays of one dtype in C order along a new last axis; None for other arrays.

    A block of each array goes to a row of a buffer in cache. The rows then become columns in one pass.
    Writing element by element into every n-th position would be several times slower.
    """
    first, count = parts[0], len(parts)
    if count > MOST_INTERLEAVED:
        return None
    dtype = _common_dtype(parts, None, None, SAME_KIND)
    if dtype is None or dtype.names is not None:
        return None
    if any(x.dtype != dtype or not x.flags.c_contiguous for x in parts):
        return None
    out = allocate((*first.shape, count), dtype)
    flat, pairs = [x.reshape(-1) for x in parts], out.reshape(-1, count)
    block = max(INTERLEAVED_BYTES // (count * first.itemsize), 1)
    buffer = allocate((count * min(block, first.size),), dtype)
    for begin in range(0, first.size, block):
        end = min(begin + block, first.size)
        rows = buffer[: count * (end - begin)]
        numpy_concatenate([x[begin:end] for x in flat], 0, rows)
        copyto(pairs[begin:end], rows.reshape(count, -1).T, threads=threads)
    return out


def _joined_shape(parts: list[Array], axis: int) -> tuple[int, ...] | None:
    """The shape of the joined arrays, or None if they do not match."""
    first, extent = parts[0].shape, 0
    for x in parts:
        shape = x.shape
        if shape != first and (
            len(shape) != len(first) or shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]
        ):
            return None
        extent += shape[axis]
    return (*first[:axis], extent, *first[axis + 1 :])


def _common_dtype(parts: list[Array], out: Any, dtype: Any, casting: Any) -> np.dtype[Any] | None:
    """The dtype of the result if all arrays may be converted to it, or None if NumPy decides."""
    first = parts[0].dtype
    is_plain = out is dtype is None and casting is SAME_KIND and first is np.dtype(first.type)
    if is_plain and all(x.dtype is first for x in parts):
        return first  # the result of NumPy's promotion rules, which take 2 us
    try:
        if out is not None:
            target = out.dtype if dtype is None else None
        elif dtype is not None:
            target = np.dtype(dtype)
        else:
            # The order counts, because the result is one of several equal dtypes, such as "l" and "q".
            target = np.result_type(*(x.dtype for x in parts))
        if target is None or target.hasobject or target.itemsize == 0 or target.kind in "SUV":
            return target if target is not None and all(x.dtype == target for x in parts) else None
        return target if all(np.can_cast(x.dtype, target, casting) for x in parts) else None
    except TypeError:
        return None
