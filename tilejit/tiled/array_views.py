"""Views of NumPy arrays and tiled arrays that the algebra's operations make."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from codegen import LayoutError, shown
from tilejit.arrays.memory import Array
from tilejit.cute.index_map import Operation
from tilejit.cute.int_tuple import flatten
from tilejit.cute.layout import Layout, extent
from tilejit.cute.witness import NoLayoutError
from tilejit.support.masked_arrays import is_masked_array
from tilejit.tiled import array_maps
from tilejit.tiled.tile_views import strided_view, view_of
from tilejit.tiled.tiled_array import TiledArray


def changed_view(x: Any, tiler: Any, change: Operation, fill_value: Any) -> Any:
    """Return the view of an array that a division or composition makes.

    A NumPy array may have strides that join its dimensions, as Fortran order does. A tiler that counts all of
    them is then a view of that array, though not of other arrays of its shape.

    Raises:
        NoLayoutError, LayoutError, TypeError: as `array_maps.changed` and `view_of`.
    """
    array = _array(x)
    try:
        found = array_maps.changed(array.shape, tiler, change)
    except NoLayoutError:
        if isinstance(array, TiledArray) or fill_value is not None:
            raise
        view = _view_of_strides(array, tiler, change)
        if view is None:
            raise
        return view
    return view_of(array, found, fill_value)


def tile_view(x: Any, tiler: Any, coord: Any, proj: Any, fill_value: Any) -> Any:
    """The view of one tile.

    Raises:
        LayoutIndexError, LayoutError, TypeError: as `array_maps.tile` and `view_of`.
    """
    array = _array(x)
    found = array_maps.tile(array.shape, tiler, coord, proj, cut=fill_value is None)
    return view_of(array, found, fill_value)


def thread_view(x: Any, threads: Any, index: Any, proj: Any, fill_value: Any) -> Any:
    """The view of one thread's elements.

    Raises:
        LayoutIndexError, LayoutError, TypeError: as `array_maps.thread` and `view_of`.
    """
    array = _array(x)
    found = array_maps.thread(array.shape, threads, index, proj, cut=fill_value is None)
    return view_of(array, found, fill_value)


def values_view(x: Any, tiler: Any, layout_tv: Any, thread: Any, fill_value: Any) -> Any:
    """The view of the values of one thread, or of all.

    Raises:
        LayoutIndexError, LayoutError, TypeError: as `array_maps.values` and `view_of`.
    """
    array = _array(x)
    return view_of(array, array_maps.values(array.shape, tiler, layout_tv, thread), fill_value)


def _array(x: Any) -> TiledArray | Array:
    """Return a TiledArray or a NumPy array unchanged.

    Raises:
        TypeError: it is something else, or an array with a mask.
    """
    if isinstance(x, TiledArray) or (isinstance(x, np.ndarray) and not is_masked_array(x)):
        return x
    if is_masked_array(x):
        raise TypeError("expected an array without a mask, got a MaskedArray\n  pass x.data or x.filled(0)")
    raise TypeError(
        f"expected a Layout, a NumPy array or a TiledArray, got {type(x).__name__}\n"
        "  parse() reads a layout from text, np.asarray makes an array"
    )


def _view_of_strides(x: Array, tiler: Any, change: Operation) -> Array | None:
    """Return the view that an operation makes of the array's own strides; None if the result is not a layout.

    Raises:
        LayoutError: the tiler exceeds the end of the array.
    """
    if array_maps.tilers(x.shape, tiler) is not None:
        return None
    unit = gcd(x.itemsize, *x.strides) or 1
    own = Layout(x.shape, tuple(stride // unit for stride in x.strides))
    try:
        layout, counted = change(own, tiler), change(Layout(x.size), tiler)
    except NoLayoutError:
        return None
    low, high = extent(counted)
    if layout.size and (low < 0 or high >= x.size):
        raise LayoutError(
            f"the tiles reach element {shown(low if low < 0 else high)} of an array of {x.size}\n"
            "  pass tiles that divide it, or a tiler for each dimension and a fill_value"
        )
    strides = tuple(stride * unit for stride in flatten(layout.stride))
    return strided_view(x, (0,) * x.ndim, flatten(layout.shape), strides)
