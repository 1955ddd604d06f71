"""Where results of expressions go: arrays of `out=`, checked, or fresh ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.errors import LayoutError
from tilejit.memory import Array, address, empty
from tilejit.recorded import is_plain
from tilejit.strided import share_memory


def outputs(
    wanted: Sequence[np.dtype[Any]],
    out: Any,
    shapes: Sequence[tuple[int, ...]],
    mask: Array | None,
) -> list[Array]:
    """The arrays of `out`, checked, or fresh ones.

    Raises:
        LayoutError: their number or a shape differs, two share memory, or one is read-only.
        TypeError: one is no array, or of a dtype that the result does not become.
    """
    if out is None:
        make = empty if mask is None else np.zeros
        return [make(shape, dtype) for shape, dtype in zip(shapes, wanted, strict=True)]
    outs = list(out) if isinstance(out, tuple) else [out]
    if len(outs) != len(wanted):
        raise LayoutError(f"out has {len(outs)} arrays for {len(wanted)} results")
    for each, dtype, shape in zip(outs, wanted, shapes, strict=True):
        check_array(each, dtype, shape)
    check_written(outs)
    return outs


def check_array(out: Any, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> None:
    """Whether a result of a dtype and a shape, where that is known, may go to an array.

    Raises:
        LayoutError: its shape differs.
        TypeError: it is no plain array, or of a dtype that the result does not become.
    """
    if not is_plain(out):
        raise TypeError(f"out is an array, plain or tiled, not {type(out).__name__}")
    if shape is not None and out.shape != shape:
        raise LayoutError(f"out has the shape {out.shape}, the result {shape}")
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
        raise LayoutError("two arrays of out share memory")


def apart(x: Array, outs: Sequence[Array]) -> Array:
    """The array, or a copy of it where an output reaches into it elsewhere than at the same elements."""
    for out in outs:
        same = address(x) == address(out) and x.shape == out.shape and x.strides == out.strides
        if not (same and x.dtype == out.dtype) and share_memory(x, out):
            return x.copy(order="K")
    return x
