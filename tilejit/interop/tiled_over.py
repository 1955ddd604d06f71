"""Tiled arrays over the memory of other libraries' arrays, which have a dtype of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.layout.as_layout import LayoutLike
from tilejit.layout.dtypes import ElementLike
from tilejit.tiled.tiled_array import TiledArray


def tiled_over(
    buffer: Array,
    what: str,
    layout: LayoutLike,
    dtype: ElementLike | None,
    dims: Iterable[int] | None,
    parameters: Mapping[str, Any],
) -> TiledArray:
    """A tiled array over a buffer; without `dtype`, a layout that needs one takes the buffer's.

    what: how messages call the buffer, such as "tensor".

    Raises:
        LayoutError: the buffer is of another dtype or size.
        TypeError: a parameter is not the layout's.
    """
    if dims is not None and dtype is None:
        dtype = buffer.dtype
    tiled = TiledArray.from_buffer(buffer, layout, dtype=dtype, dims=dims, **parameters)
    if buffer.dtype not in (np.uint8, tiled.dtype):
        raise LayoutError(
            f"the {what} is {buffer.dtype}, the layout of {tiled.layout.primitive_type}\n"
            f"  give the layout of the {what}'s dtype, or view the {what} as uint8"
        )
    return tiled
