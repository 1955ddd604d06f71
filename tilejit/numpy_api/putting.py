"""numpy.put."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_put
from tilejit.arrays.strided import overlaps_itself
from tilejit.copies.sizes import SIZES
from tilejit.numpy_api.copyto import copyto
from tilejit.numpy_api.flat_memory import as_words, is_plain, least_within, values_for
from tilejit.numpy_api.results import duplicate
from tilejit.programs.tuning import AUTO, VectorSize

FEW = 16
"""An array is first copied to C order if it has at most this many elements per index."""


def put(
    a: Array,
    ind: ArrayLike,
    v: ArrayLike,
    mode: Literal["raise", "wrap", "clip"] = "raise",
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
) -> None:
    """Write values to elements by their index in C order, like numpy.put but faster.

    >>> x = np.arange(6).reshape(2, 3)
    >>> tilejit.put(x, [0, 5], -1)
    >>> x
    array([[-1,  1,  2],
           [ 3,  4, -1]])

    An array that is not in C order is copied to C order and back. If an index is out of range, nothing is
    written; NumPy may write some values first. With `virtual_vector_size`, a kernel scatters the values in
    super-vectors of that size.

    Args:
        a: the array to write to, of any strides.
        ind: integers.
        v: the values; they repeat if there are fewer of them than indices. If an index occurs twice, its last
            value stays.
        mode: how to handle an index out of range: "raise", "wrap" or "clip", as in NumPy.
        threads: the number of threads for the copies; None chooses it from the size.
        virtual_vector_size: elements that move at a time; see `tilejit.kernel`. "auto" leaves them to NumPy.

    Raises:
        IndexError: an index is out of range, and `mode` is "raise".
        TypeError: `a` is not an array, or the indices are not integers.
        ValueError: `a` is read-only.
        KernelValueError: `threads` is less than one.
        KernelError: `virtual_vector_size` is invalid.
    """
    if threads is not None:
        check_threads(threads)
    if virtual_vector_size is not AUTO:
        from tilejit.numpy_api.in_lanes import put_in_lanes  # few processes need it

        put_in_lanes(a, ind, v, mode, virtual_vector_size, threads)
        return
    if type(a) is type(ind) is type(v) is ndarray and ind.size < SIZES.small_elements:
        numpy_put(a, ind, v, mode)
        return
    given, indices, values = as_numpy(a), as_numpy(ind), as_numpy(v)
    if not _put(given, indices, values, mode, threads):
        numpy_put(given, indices, values, mode)


def _put(a: Any, indices: Any, values: Any, mode: Any, threads: int | None) -> bool:
    """Execute such a call; return False, with nothing written, if NumPy must do it."""
    if type(a) is not ndarray or type(indices) is not ndarray or not isinstance(mode, str):
        return False
    if mode not in ("raise", "wrap", "clip"):
        return False
    if indices.size < (SIZES.small_elements or 1) or not _are_numbers(indices.dtype):
        return False
    if not a.size or not a.flags.writeable or not a.flags.aligned or not is_plain(a.dtype):
        return False
    held = values_for(a, values)
    if held is None or not held.size or overlaps_itself(a.shape, a.strides, a.itemsize):
        return False
    numbers = _reduced(indices.reshape(-1).astype(np.int64, copy=False), a.size, mode)
    held = as_words(held).reshape(-1)[: numbers.size]
    numbers, held = (x.copy() if np.may_share_memory(a, x) else x for x in (numbers, held))
    if held.size == 1:
        held = held[0]  # NumPy assigns one number faster than an array of one
    elif held.size < numbers.size:
        held = np.resize(held, numbers.size)
    _write(a, numbers, held, threads)
    return True


def _are_numbers(dtype: np.dtype[Any]) -> bool:
    """Whether all are integers that fit int64."""
    return dtype.kind in "iu" and dtype != np.uint64


def _reduced(indices: Array, count: int, mode: str) -> Array:
    """The indices for an array of `count` elements, by the rule of `mode`; unchanged for "raise"."""
    if mode == "raise" or (least := least_within(indices, count)) == 0:
        return indices
    if mode == "wrap" and least is not None:
        return indices
    return np.clip(indices, 0, count - 1) if mode == "clip" else indices % count


def _write(a: Array, indices: Array, held: Any, threads: int | None) -> None:
    """Write one value, or one for each index, in order.

    Raises:
        IndexError: an index is out of range; nothing has been written.
    """
    words = as_words(a)
    if a.flags.c_contiguous:
        words.reshape(-1)[indices] = held
        return
    straight = duplicate(words, threads=threads) if FEW * indices.size > a.size else None
    if straight is None:
        words[np.unravel_index(_from_start(indices, a.size), a.shape)] = held
    else:
        straight.reshape(-1)[indices] = held
        copyto(words, straight, threads=threads)


def _from_start(indices: Array, count: int) -> Array:
    """The indices, with negative ones counted from the start.

    Raises:
        IndexError: an index is out of range.
    """
    low = least_within(indices, count)
    if low is None:
        wrong = int(indices[np.argmax((indices < -count) | (indices >= count))])
        raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {count}")
    return indices if low == 0 else np.where(indices < 0, indices + count, indices)
