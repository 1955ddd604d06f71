"""Where results of expressions go: arrays of `out=`, checked, or fresh ones."""

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
    """The arrays of `out`, checked, or fresh ones, whose dimensions lie in these orders in memory, or in C's.

    Raises:
        LayoutError: their number or a shape differs, two share memory, or one is read-only.
        TypeError: one is not an array, or of a dtype that the result does not become.
    """
    if out is None:
        make = empty if mask is None else np.zeros
        ordered = orders or ((),) * len(wanted)
        return [laid(make, *each) for each in zip(shapes, wanted, ordered, strict=True)]
    outs = list(out) if isinstance(out, tuple) else [out]
    if len(outs) != len(wanted):
        raise LayoutError(f"out has {len(outs)} arrays for {len(wanted)} results\n  give one for each")
    for each, dtype, shape in zip(outs, wanted, shapes, strict=True):
        check_array(each, dtype, shape)
    check_written(outs)
    return outs


def laid(make: Callable[..., Array], shape: tuple[int, ...], dtype: Any, order: Order) -> Array:
    """An array made in an order in memory; () is C's.

    np.zeros, (3, 5), f4, (1, 0) -> the transpose of zeros of (5, 3)
    """
    if list(order) == sorted(order):
        return make(shape, dtype)
    return make(tuple(shape[d] for d in order), dtype).transpose([order.index(d) for d in range(len(order))])


def check_array(out: Any, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> None:
    """Whether a result of a dtype and a shape, where that is known, may go to an array.

    Raises:
        LayoutError: its shape differs.
        TypeError: it is not a plain array, or of a dtype that the result does not become.
    """
    if not is_plain(out):
        raise TypeError(f"out is an array, plain or tiled, not {type(out).__name__}")
    if shape is not None and out.shape != shape:
        raise LayoutError(f"out has the shape {out.shape}, the result {shape}\n  give one like the result")
    check_dtype(out.dtype, dtype)


def check_dtype(out: np.dtype[Any], dtype: np.dtype[Any]) -> None:
    """Whether a result of a dtype becomes one of the dtype of `out`.

    Raises:
        TypeError: it does not.
    """
    if not np.can_cast(dtype, out, "same_kind"):
        raise TypeError(f"the result is {dtype}, which does not become {out} by 'same_kind'")


def check_written(buffers: Sequence[Array]) -> None:
    """Whether results may be written to such memory.

    Raises:
        LayoutError: some is read-only, or that of two results.
    """
    if not all(x.flags.writeable for x in buffers):
        raise LayoutError("out is read-only\n  give an array of your own")
    if any(share_memory(a, b) for k, a in enumerate(buffers) for b in buffers[:k]):
        raise LayoutError("two arrays of out share memory\n  give each memory of its own")


def apart(x: Array, outs: Sequence[Array]) -> Array:
    """The array, or a copy of it where an output reaches into it elsewhere than at the same elements."""
    for out in outs:
        same = address(x) == address(out) and x.shape == out.shape and x.strides == out.strides
        if not (same and x.dtype == out.dtype) and share_memory(x, out):
            return x.copy(order="K")
    return x
