"""The arrays that calls copy from."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.values import refuse_masked
from tilejit.layout.dtypes import from_numpy
from tilejit.tiled.tiled_array import TiledArray


def as_array(x: Any, name: str = "") -> Array:
    """Return the array for `pack`'s argument, without a copy if possible.

    Args:
        x: the argument.
        name: its name in messages, if it is one of several.

    Raises:
        LayoutError: it is not an array.
        TypeError: it is packed already, masked, or has a dtype without an XLA counterpart.
    """
    head = f"{name}: " if name else ""
    if isinstance(x, TiledArray):
        raise TypeError(f"{head}expected an array to pack, got a TiledArray\n  unpack it first")
    if isinstance(x, str | bytes):
        fix = "pass an array" if name else "pass the array before the layout"
        raise TypeError(f"{head}expected an array to pack, got {type(x).__name__}\n  {fix}")
    refuse_masked(x)
    try:
        array = np.asarray(as_numpy(x))
    except (ValueError, OverflowError, RuntimeError) as error:  # torch raises RuntimeError for gradients
        raise LayoutError(f"{head}expected an array, got {type(x).__name__}: {error}") from error
    try:
        from_numpy(array.dtype)
    except LayoutError as error:
        raise TypeError(f"{head}{error}") from error
    return array
