"""Copy tiles of packed elements one by one. Each fills whole bytes, so all tiles share one kernel."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from codegen import (
    AccessMap,
    CopyProgram,
    Element,
    Integers,
    Leaf,
    StageCopy,
    cached,
    compile_stage,
    dataclass,
    logical_roots,
    outgrows_caches,
    tight_map,
    window_map,
)
from tilejit.arrays.memory import address, array_map
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element
from tilejit.tiled.tile_grid import Grid
from tilejit.tiled.tiled_array import TiledArray, address_of

_program = cached(64)(compile_stage)
"""The copy of one tile."""


@dataclass(frozen=True, slots=True)
class TileCopy:
    """The copy of one packed tile to or from `held`, which also copies all other tiles.

    Attributes:
        offsets: the offsets of the tiles in `held`, in bytes.
        bounds: the bytes that may be accessed, relative to the addresses of source and destination.
    """

    program: CopyProgram
    offsets: Integers
    bounds: tuple[tuple[int, int], tuple[int, int]]


def copy_of_one(layout: Spec, grid: Grid, held: Any, *, into: bool) -> TileCopy | None:
    """The copy of one tile of `grid.tile_bytes` bytes; None if tiles in `held` differ."""
    found = _first_tile(held)
    if found is None or not grid.tile_bytes:
        return None
    (first, step), count = found, held.shape[0]
    whole_side, _, element = side_of(held)
    tiles = access_map(grid.stored(1)), buffer_element(layout), access_map(layout).byte_bounds
    others = first, element, whole_side.byte_bounds
    (src, source, src_bounds), (dst, target, dst_bounds) = (others, tiles) if into else (tiles, others)
    moved = count * (grid.tile_bytes + prod(grid.tile) * element.bits // 8)
    program = _program(StageCopy(src, dst, source, target, outgrows_caches(moved)))
    return TileCopy(program, np.arange(count) * step, (src_bounds, dst_bounds))


def side_of(held: Any) -> tuple[AccessMap, int, Element]:
    """The map, the address and the element of the array that tiles are copied to or from."""
    if isinstance(held, TiledArray):
        return access_map(held.layout), address_of(held), buffer_element(held.layout)
    return array_map(held), address(held), Element(from_numpy(held.dtype).name, 8 * held.itemsize)


def _first_tile(held: Any) -> tuple[AccessMap, int] | None:
    """The map of the first tile, and the bytes from each to the next; None if those differ or are missing."""
    if not isinstance(held, TiledArray):
        return array_map(held[:1]), held.strides[0]
    access = access_map(held.layout)
    trees = {root.dims: root.tree for root in logical_roots(access)}
    tree = trees.get((0,))
    step = tree.stride * access.unit_bits if isinstance(tree, Leaf) else 0
    if held.shape[0] > 1 and (not step or step % 8):
        return None
    rank = len(held.shape)
    first = window_map(access, (0,) * rank, (1,) * rank, (1, *held.shape[1:]))
    return tight_map(first), step // 8
