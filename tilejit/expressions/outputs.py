"""Destinations of results: the checked arrays of `out=`, or new arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array, address, empty
from tilejit.arrays.strided import share_memory
from tilejit.expressions.memory_orders import Order
from tilejit.expressions.recorded import is_plain


def outputs(
    wanted: Sequence[np.dtype[Any]],
    out: Any,
    shapes: Sequence[tuple[int, ...]],
    mask: Array | None,
    orders: Sequence[Order] = (),
) -> list[Array]:
    """The checked arrays of `out`, or new arrays in these memory orders (in C order without them).

    Raises:
        LayoutError: the number of arrays or a shape differs, two arrays share memory, or one is read-only.
        TypeError: an item of `out` is not an array, or cannot hold the dtype of its result.
    """
    if out is None:
        make = empty if mask is None else np.zeros
        ordered = orders or ((),) * len(wanted)
        return [laid(make, *each) for each in zip(shapes, wanted, ordered, strict=True)]
    outs = given_outputs(out, len(wanted))
    for each, dtype, shape in zip(outs, wanted, shapes, strict=True):
        check_array(each, dtype, shape)
    check_written(outs)
    return outs


def given_outputs(out: Any, count: int) -> list[Any]:
    """The arrays of `out`, one for each of `count` results.

    Raises:
        LayoutError: their number differs.
    """
    outs = list(out) if isinstance(out, tuple) else [out]
    if len(outs) != count:
        plural = "s" * (count != 1)
        raise LayoutError(f"out: expected {count} array{plural}, got {len(outs)}\n  pass one for each result")
    return outs


def laid(make: Callable[..., Array], shape: tuple[int, ...], dtype: Any, order: Order) -> Array:
    """Create an array in a memory order; () is C order.

    np.zeros, (3, 5), f4, (1, 0) -> the transpose of zeros of (5, 3)
    """
    if list(order) == sorted(order):
        return make(shape, dtype)
    return make(tuple(shape[d] for d in order), dtype).transpose([order.index(d) for d in range(len(order))])


def check_array(out: Any, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> None:
    """Check that a result can be written to an array.

    Args:
        out: the array.
        dtype: the dtype of the result.
        shape: the shape of the result; None if it is not known yet.

    Raises:
        LayoutError: the shapes differ.
        TypeError: `out` is not a plain array, or cannot hold the dtype of the result.
    """
    if not is_plain(out):
        raise TypeError(f"out: expected an array, plain or tiled, got {type(out).__name__}")
    if shape is not None and out.shape != shape:
        raise LayoutError(
            f"out has the shape {out.shape}, but the result has the shape {shape}\n"
            f"  pass an array of the shape {shape}"
        )
    check_dtype(out.dtype, dtype)


def check_dtype(out: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    """Check that results of a dtype convert to the dtype of `out`.

    Raises:
        TypeError: they do not.
    """
    if not np.can_cast(dtype, out, "same_kind"):
        raise TypeError(
            f"the result is {dtype}, which cannot be converted to {out} according to the rule 'same_kind'"
        )


def check_written(buffers: Sequence[Array]) -> None:
    """Check that results can be written to these buffers.

    Raises:
        LayoutError: a buffer is read-only, or two buffers share memory.
    """
    if not all(x.flags.writeable for x in buffers):
        raise LayoutError("out is read-only\n  pass a writable array")
    if any(share_memory(a, b) for k, a in enumerate(buffers) for b in buffers[:k]):
        raise LayoutError("two arrays of out share memory\n  pass arrays with separate memory")


def copied_if_overlapping(x: Array, outs: Sequence[Array]) -> Array:
    """The array, or a copy if an output shares its memory in any way but element for element."""
    for out in outs:
        same = address(x) == address(out) and x.shape == out.shape and x.strides == out.strides
        if not (same and x.dtype == out.dtype) and share_memory(x, out):
            return x.copy(order="K")
    return x
