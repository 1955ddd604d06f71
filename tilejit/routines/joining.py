"""NumPy's routines that make one array of several: concatenate, stack."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilejit.array_likes import as_numpy
from tilejit.copies import copyto, numpy_copyto
from tilejit.memory import Array
from tilejit.routines.results import allocate, common_order
from tilejit.sizes import SIZES
from tilejit.tuning import CASTINGS

WOVEN_BYTES = 1 << 18
"""Of arrays stacked element by element, what is brought together in cache at a time."""

FEW_PARTS = 8
"""Of more arrays than these the first one tells whether they are large enough to be looked at."""
MOST_WOVEN = 16
"""More arrays than these are stacked element by element by NumPy's way."""

numpy_concatenate, numpy_stack = np.concatenate, np.stack
"""NumPy's own, whatever `accelerate` has put in their place."""


def concatenate(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
    threads: int | None = None,
) -> Any:
    """Arrays one behind the other along an axis: numpy.concatenate, only faster.

    >>> tilejit.concatenate([a.T, b.T], axis=1)

    All arguments as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        ValueError: the arrays' shapes do not go together.
    """
    if _are_small(arrays):
        return _by_numpy(arrays, axis, out, dtype, casting)
    parts = _plain_parts(arrays)
    if (
        parts is None
        or _in_rows(parts)
        or not _is_simple(axis, parts)
        or (out is not None and type(out) is not np.ndarray)
    ):
        return _by_numpy(arrays, axis, out, dtype, casting)
    axis = axis % parts[0].ndim
    target = _common_dtype(parts, out, dtype, casting)
    shape = _joined_shape(parts, axis)
    if target is None or shape is None or (out is not None and out.shape != shape):
        return _by_numpy(parts, axis, out, dtype, casting)
    if out is None:
        out = allocate(shape, target, common_order(parts))
    elif not out.flags.writeable or any(np.may_share_memory(out, x) for x in parts):
        return _by_numpy(parts, axis, out, dtype, casting)
    begin = 0
    for x in parts:
        end = begin + x.shape[axis]
        copyto(out[(slice(None),) * axis + (slice(begin, end),)], x, casting, threads=threads)
        begin = end
    return out


def stack(
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
    threads: int | None = None,
) -> Any:
    """Arrays of one shape side by side along a new axis: numpy.stack, only faster.

    >>> tilejit.stack([red, green, blue], axis=-1)

    All arguments as in NumPy. threads: a number, or None to let the size decide.

    Raises:
        KernelError: threads is less than one.
        ValueError: the arrays' shapes differ, or there is none.
    """
    if _are_small(arrays):
        return numpy_stack(arrays, axis, out, dtype=dtype, casting=casting)
    parts = _plain_parts(arrays)
    rank = 0 if parts is None else parts[0].ndim + 1
    if (
        parts is None
        or type(axis) is not int
        or not -rank <= axis < rank
        or any(x.shape != parts[0].shape for x in parts)
    ):
        return numpy_stack(arrays, axis, out, dtype=dtype, casting=casting)
    if axis % rank == rank - 1 and rank > 1 and out is None and dtype is None and casting in CASTINGS:
        woven = _woven(parts, threads)
        if woven is not None:
            return woven
    place = (slice(None),) * (axis % rank) + (None,)
    return concatenate([x[place] for x in parts], axis, out, dtype=dtype, casting=casting, threads=threads)


def _woven(parts: list[Array], threads: int | None) -> Array | None:
    """Arrays of one dtype in C order as neighbours along a new last axis; None where they are something else.

    A block of each goes to rows of a buffer in cache, and from there the rows become columns in one go:
    element by element into every n-th place is several times as slow.
    """
    first, count = parts[0], len(parts)
    if count > MOST_WOVEN:
        return None
    if any(x.dtype != first.dtype or not x.flags.c_contiguous for x in parts):
        return None
    if first.dtype.names is not None or not first.dtype.isnative:
        return None
    out = allocate((*first.shape, count), first.dtype)
    flat, pairs = [x.reshape(-1) for x in parts], out.reshape(-1, count)
    block = max(WOVEN_BYTES // (count * first.itemsize), 1)
    rows = allocate((count, min(block, first.size)), first.dtype)
    for begin in range(0, first.size, block):
        end = min(begin + block, first.size)
        for row, x in zip(rows, flat, strict=True):
            numpy_copyto(row[: end - begin], x[begin:end])
        copyto(pairs[begin:end], rows[:, : end - begin].T, threads=threads)
    return out


def _by_numpy(arrays: Any, axis: Any, out: Any, dtype: Any, casting: Any) -> Any:
    if dtype is None and casting == "same_kind":
        return numpy_concatenate(arrays, axis, out)
    return numpy_concatenate(arrays, axis, out, dtype=dtype, casting=casting)


def _plain_parts(arrays: Any) -> list[Array] | None:
    """The arrays where all are plain, and large enough together; None for NumPy to see to."""
    if type(arrays) not in (list, tuple):
        return None
    parts = [as_numpy(x) for x in arrays]
    if not parts or any(type(x) is not np.ndarray or x.dtype.hasobject for x in parts):
        return None
    if any(x.itemsize == 0 for x in parts) or sum(x.size for x in parts) < SIZES.small_elements:
        return None
    return parts if sum(x.nbytes for x in parts) >= len(parts) * SIZES.part_bytes else None


def _are_small(arrays: Any) -> bool:
    """Whether these are NumPy's arrays, too small or too many for us: asked first, being soon answered."""
    if type(arrays) not in (list, tuple):
        return False
    if len(arrays) > FEW_PARTS and type(arrays[0]) is np.ndarray and arrays[0].nbytes < SIZES.part_bytes:
        return True
    size = 0
    for x in arrays:
        if type(x) is not np.ndarray:
            return False
        size += x.size
        if size >= SIZES.small_elements:
            return False
    return True


def _in_rows(parts: list[Array]) -> bool:
    """Whether NumPy joins them by whole rows, in cache: as fast as we do."""
    return sum(x.nbytes for x in parts) < SIZES.small_run_bytes and all(x.flags.c_contiguous for x in parts)


def _is_simple(axis: Any, parts: list[Array]) -> bool:
    rank = parts[0].ndim
    return type(axis) is int and -rank <= axis < rank


def _joined_shape(parts: list[Array], axis: int) -> tuple[int, ...] | None:
    """The shape of the arrays together, or None where they do not fit."""
    first = parts[0].shape
    around = first[:axis], first[axis + 1 :]
    if any((x.shape[:axis], x.shape[axis + 1 :]) != around or x.ndim != len(first) for x in parts):
        return None
    return (*around[0], sum(x.shape[axis] for x in parts), *around[1])


def _common_dtype(parts: list[Array], out: Any, dtype: Any, casting: Any) -> np.dtype[Any] | None:
    """The dtype of the result where all arrays may become it, or None for NumPy to see to."""
    try:
        if out is not None:
            target = out.dtype if dtype is None else None
        elif dtype is not None:
            target = np.dtype(dtype)
        else:
            target = np.result_type(*{x.dtype for x in parts})
        if target is None or target.hasobject or target.itemsize == 0 or target.kind in "SUV":
            return target if target is not None and all(x.dtype == target for x in parts) else None
        return target if all(np.can_cast(x.dtype, target, casting) for x in parts) else None
    except TypeError:
        return None
