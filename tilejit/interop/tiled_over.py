"""Tiled arrays over the memory of other libraries' arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.layout.as_layout import LayoutLike
from tilejit.layout.dtypes import ElementLike
from tilejit.tiled.buffers import may_hold
from tilejit.tiled.tiled_array import TiledArray


def tiled_over(
    buffer: Array,
    what: str,
    layout: LayoutLike,
    dtype: ElementLike | None,
    dims: Iterable[int] | None,
    parameters: Mapping[str, Any],
) -> TiledArray:
    """Create a tiled array over a buffer.

    Args:
        buffer: the memory.
        what: the name of the buffer in messages, such as "tensor".
        layout: the layout: anything that `as_layout` reads.
        dtype: the dtype of a layout without one; None takes the buffer's.
        dims: the dimensions of a layout without any.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Raises:
        LayoutError: the buffer has another dtype or size.
        TypeError: the layout does not take a keyword.
    """
    if dims is not None and dtype is None:
        dtype = buffer.dtype
    tiled = TiledArray.from_buffer(buffer, layout, dtype=dtype, dims=dims, **parameters)
    if buffer.dtype != tiled.dtype and not may_hold(buffer.dtype, tiled.layout):
        raise LayoutError(
            f"the {what} is {buffer.dtype}, but the layout is for {tiled.layout.primitive_type}\n"
            f"  use a layout of the {what}'s dtype, or view the {what} as uint8"
        )
    return tiled
