"""numpy.pad with the modes "constant" and "edge"; NumPy handles all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_pad
from tilejit.copies.sizes import is_handled, numpy_pads_as_fast
from tilejit.numpy_api.copyto import copyto
from tilejit.numpy_api.results import allocate, memory_order

Pairs = tuple[tuple[int, int], ...]


def pad(
    array: ArrayLike,
    pad_width: ArrayLike,
    mode: str | Callable[..., object] = "constant",
    *,
    threads: int | None = None,
    **kwargs: Any,
) -> Array:
    """Surround an array with a margin, like numpy.pad but faster.

    >>> tilejit.pad(np.ones((2, 2), np.int8), ((1, 0), (0, 2)), constant_values=-1)
    array([[-1, -1, -1, -1],
           [ 1,  1, -1, -1],
           [ 1,  1, -1, -1]], dtype=int8)

    Args:
        array: an array of any strides.
        pad_width: the elements before and after each axis, in any form that numpy.pad reads.
        mode: "constant" and "edge" run as kernels; NumPy handles all other modes.
        threads: the number of threads; None chooses it from the size.
        kwargs: the keywords of the mode, such as `constant_values`.

    Returns:
        A new array.

    Raises:
        ValueError: a width is negative, or the mode does not have such a keyword.
        KernelValueError: `threads` is less than one.
    """
    if threads is not None:
        check_threads(threads)
    given = as_numpy(array)
    if numpy_pads_as_fast(given) or not (is_handled(given) and given.ndim):
        return numpy_pad(given, pad_width, mode, **kwargs)
    widths = _pairs(pad_width, given.ndim)
    values = _fills(mode, kwargs, given.ndim)
    if widths is None or values is None or given.dtype.names is not None:
        return numpy_pad(given, pad_width, mode, **kwargs)
    shape = tuple(before + n + after for n, (before, after) in zip(given.shape, widths, strict=True))
    order = "F" if given.flags.fnc else "C"
    padded = allocate(shape, given.dtype, memory_order(given, order))
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(given.shape, widths, strict=True))
    copyto(padded[inner], given, threads=threads)
    for axis in range(given.ndim):
        _fill_margins(padded, inner, axis, values[axis])
    return padded


def _fill_margins(padded: Array, inner: tuple[slice, ...], axis: int, values: tuple[Any, Any] | None) -> None:
    """Write both margins along an axis: all of the earlier axes, and the inner part of the later ones.

    Args:
        padded: the result.
        inner: the part that holds the array.
        axis: the axis.
        values: the values before and after, or None for the elements at the edge.
    """
    begin, end = inner[axis].start, inner[axis].stop
    around = (slice(None),) * axis

    def part(along: slice) -> Array:
        return padded[(*around, along, *inner[axis + 1 :])]

    for along, edge, k in ((slice(0, begin), begin, 0), (slice(end, None), end - 1, 1)):
        if values is not None:  # even without a margin: NumPy still checks them
            part(along)[...] = values[k]
        elif part(along).size:
            part(along)[...] = part(slice(edge, edge + 1))


def _pairs(widths: Any, rank: int) -> Pairs | None:
    """The widths as one pair of integers for each axis, or None if NumPy must read them."""
    if isinstance(widths, dict):
        return None
    try:
        table = np.asarray(widths)
        if table.dtype.kind != "i" or table.ndim > 2 or not table.size or table.min() < 0:
            return None
        pairs = np.broadcast_to(table, (rank, 2)).tolist()
    except (TypeError, ValueError):
        return None
    return tuple((int(before), int(after)) for before, after in pairs)


def _fills(mode: Any, arguments: dict[str, Any], rank: int) -> list[Any] | None:
    """For each axis the two values of its margins, or None for its edges; None if NumPy must read them."""
    if mode == "edge" and not arguments:
        return [None] * rank
    if not isinstance(mode, str) or mode != "constant" or not arguments.keys() <= {"constant_values"}:
        return None
    values = arguments.get("constant_values", 0)
    if isinstance(values, bool | int | float | complex | np.number):
        value = np.array(values)[()]  # NumPy converts it as an array, so 300 wraps around in uint8
        return [(value, value)] * rank
    return None
