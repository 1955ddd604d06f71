"""The tile of a block, the elements of a thread: what kernels take out of a layout."""

from __future__ import annotations

from typing import Any

from codegen.errors import LayoutError
from tilejit.layout.cute.construct import product_each
from tilejit.layout.cute.coordinates import idx2crd
from tilejit.layout.cute.division import zipped_divide
from tilejit.layout.cute.int_tuple import flatten
from tilejit.layout.cute.layout import Layout
from tilejit.layout.cute.slicing import _, is_underscore, slice_and_offset


def local_tile(layout: Layout, tiler: Any, coord: Any, proj: Any = None) -> tuple[Layout, int]:
    """The tile at a coordinate among the tiles, and the offset at which it begins.

    (4,8):(1,4), (2, 4), (1, 0) -> (2,4):(1,4), 2

    Args:
        layout: a Layout.
        tiler: the tile: a Layout, size or tuple of them, as in zipped_divide.
        coord: which tile: a number or `_` for each mode of tiles.
        proj: `_` or None where tiler and coordinate have a mode that this layout has not, else anything.

    Raises:
        LayoutError, NoLayoutError: as zipped_divide; a coordinate that does not nest like the tiles.
    """
    if proj is not None:
        keep = [not is_underscore(part) for part in proj]
        tiler = tuple(part for part, kept in zip(tiler, keep, strict=True) if kept)
        coord = tuple(part for part, kept in zip(coord, keep, strict=True) if kept)
    divided = zipped_divide(layout, tiler)
    tile, rest = divided
    if isinstance(coord, tuple | list):
        coord = _padded(coord, rest)
    kept, begin = slice_and_offset(
        (tuple(_ for _mode in tile) if isinstance(tile.shape, tuple) else _, coord), divided
    )
    return kept, begin


def local_partition(layout: Layout, threads: Layout, index: int, proj: Any = None) -> tuple[Layout, int]:
    """The elements of one thread, one of every tile of the threads' shape, and the offset of the first.

    (4,8):(1,4), (2,4):(1,2), 3 -> (2,2):(2,16), 5

    Args:
        layout: a Layout.
        threads: the layout of threads, from coordinates in a tile to thread numbers.
        index: the number of the thread.
        proj: `_` or None where `threads` has a mode that this layout has not, else anything.

    Raises:
        LayoutError, NoLayoutError: as zipped_divide.
    """
    tiler: Any = product_each(threads.shape)
    coord: Any = flatten(idx2crd(index, tiler, _thread_strides(threads)))
    if proj is not None:
        keep = [not is_underscore(part) for part in proj]
        tiler = tuple(part for part, kept in zip(tiler, keep, strict=True) if kept)
        coord = tuple(part for part, kept in zip(coord, keep, strict=True) if kept)
    divided = zipped_divide(layout, tiler)
    return slice_and_offset((coord, tuple(_ for _mode in divided[1])), divided)


def _thread_strides(threads: Layout) -> tuple[int, ...]:
    steps = []
    for mode in threads:
        if not isinstance(mode.stride, int):
            raise LayoutError(f"{threads} has nested modes of threads\n  give one size and stride a mode")
        steps.append(mode.stride)
    return tuple(steps)


def _padded(coord: Any, rest: Layout) -> tuple[Any, ...]:
    """The coordinate with `_` for modes that it does not name."""
    return (*coord, *(_ for _mode in range(rest.rank - len(coord))))
