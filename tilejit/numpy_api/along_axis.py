"""numpy.take_along_axis and numpy.put_along_axis: one index for every element, within its slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from codegen import TRANSPOSES, check_threads, dataclass, run_parts, thread_count
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_put_along_axis, numpy_take, numpy_take_along_axis
from tilejit.arrays.strided import overlaps_itself
from tilejit.copies.sizes import SIZES
from tilejit.numpy_api.flat_memory import (
    BLOCK_ELEMENTS,
    as_words,
    flat_memory,
    is_plain,
    least_within,
    values_for,
)
from tilejit.numpy_api.results import allocate, memory_order


def take_along_axis(
    arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, *, threads: int | None = None
) -> Any:
    """Take one element of each slice by its index along an axis, like numpy.take_along_axis but faster.

    >>> x = np.array([[30, 10, 20], [5, 6, 4]])
    >>> order = np.argsort(x, axis=1)
    >>> tilejit.take_along_axis(x, order, axis=1)
    array([[10, 20, 30],
           [ 4,  5,  6]])

    Args:
        arr: an array of any strides.
        indices: integers, which broadcast against the array in all axes except `axis`. Negative ones count
            from the end.
        axis: the axis that the indices count along; None takes from the flattened array.
        threads: the number of threads; None chooses it from the size.

    Returns:
        A new array of the indices' broadcast shape.

    Raises:
        IndexError: an index is out of range, or the indices are not integers.
        ValueError: the numbers of dimensions differ.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(arr) is type(indices) is ndarray and indices.size < SIZES.few_indices:
        return numpy_take_along_axis(arr, indices, axis)
    given, chosen = as_numpy(arr), as_numpy(indices)
    along = _along(given, chosen, axis)
    taken = None if along is None else _taken(along, given.dtype, threads)
    return numpy_take_along_axis(given, chosen, axis) if taken is None else taken


def put_along_axis(
    arr: Array, indices: ArrayLike, values: ArrayLike, axis: int | None, *, threads: int | None = None
) -> None:
    """Write one element of each slice by its index along an axis, like numpy.put_along_axis but faster.

    >>> x = np.array([[30, 10, 20], [5, 6, 4]])
    >>> tilejit.put_along_axis(x, np.argmax(x, axis=1, keepdims=True), 0, axis=1)
    >>> x
    array([[ 0, 10, 20],
           [ 5,  0,  4]])

    If an index occurs twice, its last value stays. With `axis=None`, NumPy 2.4.6 writes to a copy and leaves
    `arr` unchanged; TileJIT does the same.

    Args:
        arr: the array to write to, of any strides.
        indices: integers, which broadcast against the array in all axes except `axis`. Negative ones count
            from the end.
        values: the values, which broadcast to the shape of the indices.
        axis: the axis that the indices count along; None writes to the flattened array.
        threads: the number of threads; None chooses it from the size.

    Raises:
        IndexError: an index is out of range, or the indices are not integers; nothing has been written.
        ValueError: the numbers of dimensions differ, the values do not broadcast, or the array is read-only.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    if type(arr) is type(indices) is type(values) is ndarray and indices.size < SIZES.few_indices:
        numpy_put_along_axis(arr, indices, values, axis)
        return
    given, chosen, held = as_numpy(arr), as_numpy(indices), as_numpy(values)
    along = None if axis is None else _along(given, chosen, axis)
    if along is None or not _written(along, given, held, threads):
        numpy_put_along_axis(given, chosen, held, axis)


@dataclass(frozen=True, slots=True)
class _Along:
    """An array and indices along one of its axes, with the axes in the memory order of the indices.

    Attributes:
        indices: the indices, broadcast against the array in all other axes.
        axis: the axis that the indices count along.
        extent: the size of the array along it.
        axes: the positions of the axes in the routine's arguments.
        flat: the memory of the array.
        first: the position of the first element in it.
        steps: the distance between adjacent elements in it, along each axis.
        repeats: whether several slices of indices belong to one slice of the array.
    """

    indices: Array
    axis: int
    extent: int
    axes: tuple[int, ...]
    flat: Array
    first: int
    steps: tuple[int, ...]
    repeats: bool

    @property
    def is_transposed(self) -> bool:
        """Whether the axes are in another order than in the routine's arguments."""
        return any(k != axis for k, axis in enumerate(self.axes))

    def blocks(self) -> Iterator[tuple[slice, ...]]:
        """Parts of the indices, in order: each is one run of an array of their shape in C order."""
        shape, axis = self.indices.shape, self.cut
        count = -(-shape[axis] // max(BLOCK_ELEMENTS // prod(shape[axis + 1 :]), 1))
        each = -(-shape[axis] // count)
        for outer in np.ndindex(*shape[:axis]):
            for begin in range(0, shape[axis], each):
                yield (*(slice(k, k + 1) for k in outer), slice(begin, begin + each))

    @property
    def cut(self) -> int:
        """The axis that is cut into blocks, which contain all later axes."""
        shape, axis, inner = self.indices.shape, self.indices.ndim - 1, 1
        while axis and inner * shape[axis] <= BLOCK_ELEMENTS:
            inner *= shape[axis]
            axis -= 1
        return axis

    def run(self, work: Callable[[tuple[slice, ...], Array], None], threads: int) -> None:
        """Process every block, with memory for the numbers of its elements."""
        blocks = [*self.blocks()]

        def part(k: int, parts: int) -> None:
            room = np.empty(BLOCK_ELEMENTS, np.int64)
            for block in blocks[k * len(blocks) // parts : (k + 1) * len(blocks) // parts]:
                work(block, room)

        run_parts(part, min(threads, len(blocks)))

    def numbers(self, block: tuple[slice, ...], low: int, room: Array) -> Array:
        """The positions of a block's elements in `flat`, in `room`; `low` is the smallest of its indices."""
        indices, step = self.indices[block], self.steps[self.axis]
        found: Array = room[: indices.size].reshape(indices.shape)
        if low < 0 or indices.dtype != np.int64:
            np.copyto(found, indices, "unsafe")
            indices = found
        if low < 0:
            np.add(found, self.extent, out=found, where=found < 0)
        if step != 1:
            indices = np.multiply(indices, step, out=found)
        np.add(indices, self._starts(block, indices.shape), out=found)
        return found

    def _starts(self, block: tuple[slice, ...], shape: tuple[int, ...]) -> Any:
        """The positions in `flat` where the slices of a block start, with one element along the axis."""
        found: Any = self.first
        for k, (n, step) in enumerate(zip(shape, self.steps, strict=True)):
            if k == self.axis or not step:
                continue
            begin = block[k].start if k < len(block) else 0
            if n == 1:
                found = found + begin * step
            else:
                along = np.arange(begin * step, (begin + n) * step, step)
                found = found + along.reshape(n, *(1,) * (len(shape) - 1 - k))
        return found


def _along(x: Any, indices: Any, axis: Any) -> _Along | None:
    """The slices of such a call; None if NumPy handles it, or raises an error."""
    if type(x) is not ndarray or type(indices) is not ndarray or indices.dtype.kind not in "iu":
        return None
    if indices.size < (SIZES.few_indices or 1) or not x.size or not is_plain(x.dtype):
        return None
    if axis is None and indices.ndim == 1:
        x, axis = x.reshape(-1), 0
    if type(axis) is not int or not -x.ndim <= axis < x.ndim or x.ndim != indices.ndim:
        return None
    axis %= x.ndim
    shape = _common_shape(x.shape, indices.shape, axis)
    memory = flat_memory(x)
    if shape is None or memory is None:
        return None
    flat, first, steps = memory
    axes = (memory_order(indices, "K") if indices.shape == shape else None) or tuple(range(x.ndim))
    repeated = [k != axis and x.shape[k] < shape[k] for k in axes]
    return _Along(
        np.broadcast_to(indices, shape).transpose(axes),
        axes.index(axis),
        x.shape[axis],
        axes,
        flat,
        first,
        tuple(0 if repeat else steps[k] for k, repeat in zip(axes, repeated, strict=True)),
        any(repeated),
    )


def _common_shape(x: tuple[int, ...], indices: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    """The shape of the result; None if the two do not broadcast.

    (3, 5), (3, 1), axis 0 -> (3, 5)    (1, 5), (3, 2), axis 1 -> (3, 2)
    """
    pairs = [(m, m) if k == axis else (n, m) for k, (n, m) in enumerate(zip(x, indices, strict=True))]
    fits = all(n == m or 1 in (n, m) for n, m in pairs)
    return tuple(m if n == 1 else n for n, m in pairs) if fits else None


def _taken(along: _Along, dtype: np.dtype[Any], threads: int | None) -> Array | None:
    """The elements in the order of the indices; None if an index is out of range."""
    result = allocate(along.indices.shape, dtype)
    words = as_words(result)
    wrong: list[object] = []

    def take(block: tuple[slice, ...], room: Array) -> None:
        low = None if wrong else least_within(along.indices[block], along.extent)
        if low is None:
            wrong.append(block)
            return
        # No index is out of bounds. This mode checks fastest, and writes to `out` directly.
        numpy_take(along.flat, along.numbers(block, low, room), None, words[block], "wrap")

    along.run(take, thread_count(threads, along.indices.nbytes + 2 * result.nbytes, TRANSPOSES))
    if wrong:
        return None
    return result.transpose(np.argsort(along.axes)) if along.is_transposed else result


def _written(along: _Along, x: Array, values: Any, threads: int | None) -> bool:
    """Write values to the elements; return False, with nothing written, if NumPy has to do it."""
    if along.repeats or not x.flags.writeable or overlaps_itself(x.shape, x.strides, x.itemsize):
        return False
    held = values_for(x, values)
    if held is None or any(np.may_share_memory(x, other) for other in (held, along.indices)):
        return False
    if any(step < 0 for step in along.indices.strides):  # NumPy may traverse these backwards
        return False
    low = least_within(along.indices, along.extent)
    if low is None:
        return False
    if held.size == 1 and held.ndim <= x.ndim:
        word = as_words(held).reshape(())[()]
        parts = None
    else:
        shape = tuple(along.indices.shape[k] for k in np.argsort(along.axes))
        try:
            parts = as_words(np.broadcast_to(held, shape).transpose(along.axes))
        except ValueError:
            return False

    def put(block: tuple[slice, ...], room: Array) -> None:
        numbers = along.numbers(block, low, room)
        along.flat[numbers] = word if parts is None else np.ascontiguousarray(parts[block])

    # Blocks of one slice may have the same index, so they are written in order.
    independent = along.axis > along.cut
    moved = along.indices.nbytes + 3 * along.indices.size * x.itemsize
    along.run(put, thread_count(threads, moved, TRANSPOSES) if independent else 1)
    return True
