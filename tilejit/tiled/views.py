"""CuTe's divisions, composition and partitions of layouts and arrays, as users call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from codegen import compiler_lock
from tilejit.cute import compose, division, partition, thread_values
from tilejit.cute.index_map import Operation
from tilejit.cute.layout import Layout, is_composed
from tilejit.cute.swizzle import ComposedLayout, Swizzle

if TYPE_CHECKING:
    from tilejit.arrays.memory import Array
    from tilejit.tiled.tile_views import TileView
    from tilejit.tiled.tiled_array import TiledArray

L = TypeVar("L", Layout, ComposedLayout)


@overload
def logical_divide(x: L, tiler: Any) -> L: ...
@overload
def logical_divide(x: TiledArray, tiler: Any, *, fill_value: Any = None) -> TileView: ...
@overload
def logical_divide(x: Array, tiler: Any) -> Array: ...
@overload
def logical_divide(x: Array, tiler: Any, *, fill_value: Any) -> TileView: ...
def logical_divide(x: Any, tiler: Any, *, fill_value: Any = None) -> Any:
    """Split a layout or an array into (tile, rest): compose it with the tiler and its complement.

    >>> logical_divide(Layout(16), Layout(4, 2))
    Layout((4, (2, 2)), (2, (1, 8)))
    >>> logical_divide(np.arange(12), 4).tolist()    # axes: an element of a tile, a tile
    [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    >>> logical_divide(np.zeros((32, 16)), parse("<2:3,3:2>"), fill_value=0).shape
    ((2, (3, 6)), (3, (2, 3)))

    Args:
        x: a Layout or ComposedLayout; a NumPy array; a TiledArray.
        tiler: a Layout, which divides all elements, counted with the first dimension fastest; an integer n
            for n:1; a tuple of tilers or `_`, one for each of the first dimensions.
        fill_value: for arrays, the value to read where the tiles exceed the end of the array. Without it,
            such tiles raise.

    Returns:
        For a layout, a layout. For a NumPy array, a view with one axis for each size, from left to right. It
        is read-only if two of its elements are the same. For a TiledArray, and with `fill_value`, a
        `TileView`, whose `predicate` says which coordinates are elements.

    Raises:
        NoLayoutError: the tiler has no complement, or no layout describes the view; the witness is an index.
        LayoutError: there are more tilers than modes, or tiles exceed the end of the array.
        TypeError: an argument has the wrong type.

    Source: CuTe's logical_divide; predicates are those of CuTe's identity tensors.
    """
    return _changed(x, tiler, division.logical_divide, fill_value)


@overload
def zipped_divide(x: L, tiler: Any) -> L: ...
@overload
def zipped_divide(x: TiledArray, tiler: Any, *, fill_value: Any = None) -> TileView: ...
@overload
def zipped_divide(x: Array, tiler: Any) -> Array: ...
@overload
def zipped_divide(x: Array, tiler: Any, *, fill_value: Any) -> TileView: ...
def zipped_divide(x: Any, tiler: Any, *, fill_value: Any = None) -> Any:
    """Divide and group all tiles in the first mode and all rests in the second: ((tiles), (rests)).

    >>> zipped_divide(Layout((4, 8)), (2, 4))
    Layout(((2, 4), (2, 2)), ((1, 4), (2, 16)))
    >>> x = np.arange(32).reshape(4, 8)
    >>> zipped_divide(x, (2, 4))[:, :, 1, 0].tolist()    # the tile of the second row, the first column
    [[16, 17, 18, 19], [24, 25, 26, 27]]

    Args:
        x: a layout, a NumPy array or a TiledArray.
        tiler: as in `logical_divide`; `_` gives a tile of one element and leaves the whole mode.
        fill_value: as in `logical_divide`.

    Returns:
        As `logical_divide`. For a NumPy array, `tiled_divide` and `flat_divide` return the same view.

    Raises:
        NoLayoutError, LayoutError, TypeError: as logical_divide.

    Source: CuTe's zipped_divide.
    """
    return _changed(x, tiler, division.zipped_divide, fill_value)


@overload
def tiled_divide(x: L, tiler: Any) -> L: ...
@overload
def tiled_divide(x: TiledArray, tiler: Any, *, fill_value: Any = None) -> TileView: ...
@overload
def tiled_divide(x: Array, tiler: Any) -> Array: ...
@overload
def tiled_divide(x: Array, tiler: Any, *, fill_value: Any) -> TileView: ...
def tiled_divide(x: Any, tiler: Any, *, fill_value: Any = None) -> Any:
    """Divide and group all tiles in the first mode, with each rest as a mode: ((tiles), rest, rest, …).

    >>> tiled_divide(Layout((4, 8)), (2, 4))
    Layout(((2, 4), 2, 2), ((1, 4), 2, 16))
    >>> tiled_divide(tilejit.pack(np.zeros((16, 256), np.float32), "tpu"), (8, 128)).shape
    ((8, 128), 2, 2)

    Args:
        x: a layout, a NumPy array or a TiledArray.
        tiler: as in `zipped_divide`.
        fill_value: as in `logical_divide`.

    Returns:
        As `zipped_divide`.

    Raises:
        NoLayoutError, LayoutError, TypeError: as logical_divide.

    Source: CuTe's tiled_divide.
    """
    return _changed(x, tiler, division.tiled_divide, fill_value)


@overload
def flat_divide(x: L, tiler: Any) -> L: ...
@overload
def flat_divide(x: TiledArray, tiler: Any, *, fill_value: Any = None) -> TileView: ...
@overload
def flat_divide(x: Array, tiler: Any) -> Array: ...
@overload
def flat_divide(x: Array, tiler: Any, *, fill_value: Any) -> TileView: ...
def flat_divide(x: Any, tiler: Any, *, fill_value: Any = None) -> Any:
    """Divide, with each tile and each rest as a mode: (tile, tile, …, rest, rest, …).

    >>> flat_divide(Layout((4, 8)), (2, 4))
    Layout((2, 4, 2, 2), (1, 4, 2, 16))
    >>> flat_divide(np.zeros((4, 8)), (2, 4)).shape
    (2, 4, 2, 2)

    Args:
        x: a layout, a NumPy array or a TiledArray.
        tiler: as in `zipped_divide`.
        fill_value: as in `logical_divide`.

    Returns:
        As `zipped_divide`.

    Raises:
        NoLayoutError, LayoutError, TypeError: as logical_divide.

    Source: CuTe's flat_divide.
    """
    return _changed(x, tiler, division.flat_divide, fill_value)


def composition(a: Any, b: Any, *, fill_value: Any = None) -> Any:
    """Compose A after B: the layout R with R(c) = A(B(c)) for every coordinate c of B; it refines B's modes.

    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    Layout(((2, 2), 3), ((24, 2), 8))
    >>> x = np.arange(32 * 16).reshape(32, 16)
    >>> composition(x, parse("<2:3,3:2>")).tolist()    # rows 0 and 3, columns 0, 2 and 4
    [[0, 2, 4], [48, 50, 52]]

    Args:
        a: a Layout, whose last mode may exceed its size; a Swizzle; a ComposedLayout; or a NumPy array or a
            TiledArray, which may not be exceeded.
        b: a Layout, which counts all elements with the first dimension fastest; an integer n for n:1; a
            tiler: a tuple of these or `_`, one for each of the first modes or dimensions.
        fill_value: for arrays, the value to read where B exceeds the end. Without it, exceeding the end is an
            error.

    Returns:
        A Layout; a ComposedLayout if A or B is not a Layout. For an array, a view, as from
        `logical_divide`.

    Raises:
        NoLayoutError: no layout represents the composition; the message names an index that shows it.
        LayoutError: a tiler has more modes than A, or B exceeds the end of the array.
        TypeError: an argument has the wrong type.

    Source: CuTe's composition.
    """
    if isinstance(a, Swizzle):
        _refuse_fill(fill_value)
        return compose.composition(a, b)
    return _changed(a, b, compose.composition, fill_value)


@overload
def local_tile(x: L, tiler: Any, coord: Any, proj: Any = None) -> tuple[L, int]: ...
@overload
def local_tile(
    x: TiledArray, tiler: Any, coord: Any, proj: Any = None, *, fill_value: Any = None
) -> TileView: ...
@overload
def local_tile(x: Array, tiler: Any, coord: Any, proj: Any = None) -> Array: ...
@overload
def local_tile(x: Array, tiler: Any, coord: Any, proj: Any = None, *, fill_value: Any) -> TileView: ...
def local_tile(x: Any, tiler: Any, coord: Any, proj: Any = None, *, fill_value: Any = None) -> Any:
    """Take the tile at a coordinate: a view of an array, or CuTe's pair for a layout.

    >>> local_tile(Layout((4, 8)), (2, 4), (1, 0))    # the tile, and the offset at which it begins
    (Layout((2, 4), (1, 4)), 2)
    >>> x = np.arange(32).reshape(4, 8)
    >>> local_tile(x, (2, 4), (1, 0)).tolist()
    [[16, 17, 18, 19], [24, 25, 26, 27]]
    >>> local_tile(x, (2, 4), (1, _)).shape    # the tiles of a row of them
    (2, 4, 2)

    Args:
        x: a Layout or ComposedLayout; a NumPy array; a TiledArray.
        tiler: the tile, as in `logical_divide`; of an array, `_` and dimensions without a tiler stay whole.
        coord: the tile: a number for each mode of tiles; `_` or None keeps all tiles of the mode.
        proj: `_` or None for modes of the tiler and the coordinate that x lacks; otherwise any value.
        fill_value: for arrays, the value to read beyond the end. Without it, the tile in which the array
            ends is smaller than the others.

    Returns:
        For an array, a view whose axes are the tile's, then those of the tiles that `_` keeps: a NumPy view,
        or a `TileView`. For a layout, the tile and the offset of its first element; a composed layout keeps
        the offset itself.

    Raises:
        LayoutIndexError: the tile does not exist.
        LayoutError, NoLayoutError: the tiler or the coordinate does not fit, or tiles kept by `_` exceed the
            end of the array.
        TypeError: a coordinate has another type, such as bool.

    Source: CuTe's local_tile.
    """
    if _is_layout(x, fill_value):
        return partition.local_tile(x, tiler, coord, proj)
    return _array_views().tile_view(x, tiler, coord, proj, fill_value)


@overload
def local_partition(x: L, threads: Layout, index: int, proj: Any = None) -> tuple[L, int]: ...
@overload
def local_partition(
    x: TiledArray, threads: Layout, index: int, proj: Any = None, *, fill_value: Any = None
) -> TileView: ...
@overload
def local_partition(x: Array, threads: Layout, index: int, proj: Any = None) -> Array: ...
@overload
def local_partition(
    x: Array, threads: Layout, index: int, proj: Any = None, *, fill_value: Any
) -> TileView: ...
def local_partition(x: Any, threads: Layout, index: int, proj: Any = None, *, fill_value: Any = None) -> Any:
    """Take the elements of one thread, one in every tile of the threads' shape; a view of an array.

    >>> local_partition(Layout((4, 8)), Layout((2, 4)), 3)    # its elements, and the offset of the first
    (Layout((2, 2), (2, 16)), 5)
    >>> x = np.arange(32).reshape(4, 8)
    >>> local_partition(x, Layout((2, 4)), 3).tolist()    # x[1::2, 1::4]
    [[9, 13], [25, 29]]

    Args:
        x: a Layout or ComposedLayout; a NumPy array; a TiledArray.
        threads: the layout of threads, from coordinates in a tile to thread numbers.
        index: the number of the thread.
        proj: `_` or None for modes of `threads` that x lacks; otherwise any value.
        fill_value: for arrays, the value to read beyond the end. Without it, threads that have no element of
            the last tile have fewer elements.

    Returns:
        For an array, a view with one axis per dimension: a NumPy view, or a `TileView`. For a layout, the
        thread's elements and the offset of the first.

    Raises:
        LayoutIndexError: the thread does not exist.
        LayoutError, NoLayoutError: the threads have more modes than x, or `proj` has another length.
        TypeError: the threads are not a Layout, or the index is not an integer.

    Source: CuTe's local_partition.
    """
    if _is_layout(x, fill_value):
        return partition.local_partition(x, threads, index, proj)
    return _array_views().thread_view(x, threads, index, proj, fill_value)


@overload
def partition_tv(x: L, tiler: Any, layout_tv: Layout, thread: Any = None) -> tuple[L, int]: ...
@overload
def partition_tv(
    x: TiledArray, tiler: Any, layout_tv: Layout, thread: Any = None, *, fill_value: Any = None
) -> TileView: ...
@overload
def partition_tv(x: Array, tiler: Any, layout_tv: Layout, thread: Any = None) -> Array: ...
@overload
def partition_tv(
    x: Array, tiler: Any, layout_tv: Layout, thread: Any = None, *, fill_value: Any
) -> TileView: ...
def partition_tv(x: Any, tiler: Any, layout_tv: Layout, thread: Any = None, *, fill_value: Any = None) -> Any:
    """Take the values that one thread, or all threads, hold of every tile; a view of an array.

    >>> tiler, layout_tv = make_layout_tv(Layout((2, 2), (2, 1)), Layout((1, 4)))
    >>> x = np.arange(32).reshape(4, 8)
    >>> partition_tv(x, tiler, layout_tv, 1).tolist()    # axes: a value, a tile down, a tile across
    [[[4], [20]], [[5], [21]], [[6], [22]], [[7], [23]]]
    >>> partition_tv(Layout((4, 8)), tiler, layout_tv, 1)    # its values, and the offset of the first
    (Layout((4, 2, 1), (4, 2, 0)), 16)

    Args:
        x: a Layout or ComposedLayout; a NumPy array; a TiledArray.
        tiler: the tile, as in `zipped_divide`.
        layout_tv: a layout of two modes, (threads, values), to the number of an element in the tile, the
            first dimension fastest: as from `make_layout_tv`.
        thread: the number of the thread, or its coordinate in the first mode; None for all threads.
        fill_value: for arrays, the value to read where the tiles exceed the end. Without it, such tiles are
            an error.

    Returns:
        For an array, a view whose axes are the values and then the tiles along each dimension, preceded by
        the threads if `thread` is None: a NumPy view, or a `TileView`. For a layout, the same as a layout,
        and the offset of its first element.

    Raises:
        LayoutIndexError: the thread does not exist.
        LayoutError: layout_tv does not have two modes or exceeds the tile, or tiles exceed the end of the
            array.
        NoLayoutError: the tiler has no complement, or no layout describes the view.
        TypeError: an argument has the wrong type.

    Source: CuTe's composition of a tile with a thread-value layout, as in ThrCopy's partition_S.
    """
    if _is_layout(x, fill_value):
        return thread_values.partition(x, tiler, layout_tv, thread)
    return _array_views().values_view(x, tiler, layout_tv, thread, fill_value)


def _changed(x: Any, tiler: Any, change: Operation, fill_value: Any) -> Any:
    """The result of a division or a composition."""
    if _is_layout(x, fill_value):
        return change(x, tiler)
    return _array_views().changed_view(x, tiler, change, fill_value)


def _is_layout(x: Any, fill_value: Any) -> bool:
    """Whether this is a layout, which takes no fill_value; otherwise it should be an array."""
    if not (isinstance(x, Layout) or is_composed(x)):
        return False
    _refuse_fill(fill_value)
    return True


def _refuse_fill(fill_value: Any) -> None:
    if fill_value is not None:
        raise TypeError("fill_value is for arrays; a layout has no elements to fill")


def _array_views() -> Any:
    """Import the module of array views."""
    with compiler_lock:  # layouts alone never need it
        from tilejit.tiled import array_views
    return array_views
