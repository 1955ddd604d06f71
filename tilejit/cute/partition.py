"""The tile of a block and the elements of a thread: the parts of a layout that kernels use."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import LayoutError, LayoutIndexError, shown
from tilejit.cute.construct import product_each
from tilejit.cute.coordinates import check_within, idx2crd, whole_number
from tilejit.cute.division import zipped_divide
from tilejit.cute.int_tuple import flatten, limit_nesting, modes, rank
from tilejit.cute.layout import Layout, expect_layout, offsets
from tilejit.cute.slicing import slice_and_offset
from tilejit.cute.underscore import _, is_underscore
from tilejit.support.tokens import named

MAX_THREADS = 1 << 20
"""The most threads of a layout whose coordinates are looked up in a table."""


def local_tile(layout: Layout, tiler: Any, coord: Any, proj: Any = None) -> tuple[Layout, int]:
    """The tile at a coordinate among the tiles, and the offset at which it begins.

    (4,8):(1,4), (2, 4), (1, 0) -> (2,4):(1,4), 2

    A composed layout keeps the offset itself, and the second value is 0.

    Args:
        layout: a Layout, or a ComposedLayout.
        tiler: the tile: a Layout, a size or a tuple of them, as in zipped_divide.
        coord: which tile: a number for each mode of tiles; `_` or None keeps the mode, with all its tiles.
        proj: `_` or None for modes of tiler and coordinate that this layout lacks, and any value for the
            others.

    Raises:
        LayoutIndexError: the tile does not exist.
        LayoutError, NoLayoutError: as zipped_divide; or the coordinate does not nest like the tiles, or
            `proj` has another length than tiler or coordinate.
        TypeError: a coordinate has another type, such as bool.
    """
    limit_nesting(coord, "a coordinate")
    if proj is not None:
        tiler, coord = projected(tiler, proj, "tiler"), projected(coord, proj, "coordinate")
    divided = zipped_divide(layout, tiler)
    tile, rest = modes(divided.shape)
    if isinstance(coord, tuple | list):
        coord = (*coord, *[_] * (rank(rest) - len(coord)))
    check_within(coord, rest, "tile")
    return slice_and_offset(((_,) * len(tile) if isinstance(tile, tuple) else _, coord), divided)


def local_partition(layout: Layout, threads: Layout, index: int, proj: Any = None) -> tuple[Layout, int]:
    """The elements of one thread, one in every tile of the threads' shape, and the offset of the first.

    (4,8):(1,4), (2,4):(1,2), 3 -> (2,2):(2,16), 5

    Args:
        layout: a Layout.
        threads: the layout of threads, from coordinates in a tile to thread numbers.
        index: the number of the thread.
        proj: `_` or None for modes of `threads` that this layout lacks, and any value for the others.

    Raises:
        LayoutIndexError: the thread does not exist.
        LayoutError, NoLayoutError: as zipped_divide; or `proj` has another length than the threads' rank.
    """
    tiler: Any = product_each(expect_layout(threads).shape)
    coord: Any = thread_at(threads, whole_number(index))
    if proj is not None:
        tiler, coord = projected(tiler, proj, "threads"), projected(coord, proj, "threads")
    divided = zipped_divide(layout, tiler)
    return slice_and_offset((coord, (_,) * rank(modes(divided.shape)[1])), divided)


def projected(parts: Any, proj: Any, what: str) -> tuple[Any, ...]:
    """The parts that the projection keeps.

    Raises:
        LayoutError: it has another number of parts.
        TypeError: either is not a tuple.
    """
    if not isinstance(proj, tuple | list) or not isinstance(parts, tuple | list):
        raise TypeError(
            f"expected tuples as proj and {what}, got {type(proj).__name__} and {type(parts).__name__}"
        )
    if len(proj) != len(parts):
        raise LayoutError(
            f"proj has {len(proj)} parts, but the {what} has {len(parts)}\n  pass one for each mode"
        )
    return tuple(part for part, keep in zip(parts, proj, strict=True) if not is_underscore(keep))


def thread_at(threads: Layout, index: int) -> tuple[int, ...]:
    """The coordinate of a thread, a number for each mode.

    Raises:
        LayoutIndexError: the thread does not exist.
    """
    sizes = product_each(threads.shape)
    steps = [mode.stride for mode in threads]
    if threads.size and all(isinstance(step, int) and step > 0 for step in steps):
        found = tuple(index // step % size for size, step in zip(sizes, steps, strict=True))  # type: ignore[operator]
        if threads(*found) == index:
            return found
    if threads.size <= MAX_THREADS:
        places = np.flatnonzero(offsets(threads) == index)
        if places.size:
            return flatten(idx2crd(int(places[0]), sizes))
    raise LayoutIndexError(
        f"thread {shown(index)} does not exist in {named(threads)}\n  pass one of its offsets"
    )
