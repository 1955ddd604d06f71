"""The tiles of a tiled array as a grid: their ids, and the positions of their elements."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import (
    AccessMap,
    LayoutError,
    LayoutIndexError,
    Leaf,
    Offsets,
    Opaque,
    Root,
    cached,
    dataclass,
    map_offset,
    shown,
)
from tilejit.arrays.memory import Array
from tilejit.arrays.values import refuse_masked
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.from_parts import make_shape
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import access_map, shape_name
from tilejit.layout.shape import Shape
from tilejit.layout.shape_facts import tile_steps_of

Table = NDArray[np.int64]

INDEX_DTYPE = np.dtype(np.int64)

MOST_MARKS = 16
"""Marking every tile is faster than sorting if the grid has at most this many tiles per id."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The tiles of the first tile step.

    Attributes:
        spec: the shape.
        extents: the number of tiles along each axis of the grid, most major first.
        tile: the sizes of a tile.
        access: the buffer as an array [*extents, *tile], padding included.
    """

    spec: Shape
    extents: tuple[int, ...]
    tile: tuple[int, ...]
    access: AccessMap

    def numbers(self, ids: Any) -> Table:
        """The flat numbers of the tiles that `ids` name, all within the grid."""
        given = integers(ids)
        rank = len(self.extents)
        if given.ndim == 1:
            self._check(given, prod(self.extents), "")
            return given.astype(np.int64)
        if given.ndim != 2 or given.shape[1] != rank:
            raise LayoutError(
                f"ids has shape {given.shape}, but the grid has {dims_text(self.extents)} tiles\n"
                f"  pass flat numbers [n], or grid positions [n, {rank}]"
            )
        for axis, extent in enumerate(self.extents):
            self._check(given[:, axis], extent, f" along axis {axis}")
        places = tuple(given.astype(np.int64).T)
        flat = np.ravel_multi_index(places, self.extents) if len(given) else np.zeros(0, np.int64)
        return np.asarray(flat, np.int64)

    def _check(self, given: Array, count: int, where: str) -> None:
        if not len(given) or (np.minimum.reduce(given) >= 0 and np.maximum.reduce(given) < count):
            return
        wrong = np.flatnonzero((given < 0) | (given >= count))
        if len(wrong):
            at = int(wrong[0])
            raise LayoutIndexError(
                f"tile {shown(int(given[at]))} is out of range{where}, at position {at} of ids\n"
                f"  {shape_name(self.spec)} has a grid of {dims_text(self.extents)} tiles"
            )

    def tiles(self, numbers: Table) -> AccessMap:
        """The map of the array [n, *tile] of these tiles."""
        rank, dims = len(self.extents), (len(numbers), *self.tile)
        bare = replace(self.access, dims=dims, roots=(), slots=None, tail=0)
        if 0 in dims:
            return bare
        if any(min(r.dims) < rank <= max(r.dims) for r in self.access.roots if r.dims):
            return self._point_by_point(bare, np.unravel_index(numbers, self.extents))
        starts = self._starts(numbers)
        base = int(starts[0])  # trees start at 0
        starts = starts - base
        first = Opaque(len(numbers), lambda m: starts[m], int(starts.min()), int(starts.max()))
        inner = [
            Root(tuple(d - rank + 1 for d in root.dims), root.tree)
            for root in self.access.roots
            if root.dims and min(root.dims) >= rank
        ]
        return replace(bare, roots=(Root((0,), first), *inner), base=base)

    def _starts(self, numbers: Table) -> Table:
        """The offset of each tile's first element."""
        step = self.step
        if step is not None:
            return numbers * step + self.access.base
        places = np.unravel_index(numbers, self.extents)
        starts = map_offset(self.access, (*places, *(0 for _ in self.tile)))
        return np.broadcast_to(np.asarray(starts, np.int64), (len(numbers),))

    @property
    def step(self) -> int | None:
        """The distance from one tile to the next, if it is the same everywhere."""
        trees = {root.dims: root.tree for root in self.access.roots}
        step: int | None = None
        reach = 1
        for axis, extent in reversed(tuple(enumerate(self.extents))):
            tree = trees.get((axis,))
            if extent == 1:
                continue
            if not isinstance(tree, Leaf) or (step is not None and tree.stride != step * reach):
                return None
            step = tree.stride if step is None else step
            reach *= extent
        return step

    def last_of_each(self, numbers: Table) -> Table:
        """The last position of each tile, ascending."""
        count = prod(self.extents)
        if count > MOST_MARKS * len(numbers):
            _, behind = np.unique(numbers[::-1], return_index=True)
            return np.sort(len(numbers) - 1 - behind).astype(np.int64)
        positions = np.arange(len(numbers))
        marks = np.empty(count, np.int64)
        marks[numbers] = positions  # for equal numbers, NumPy assigns the last value
        return np.flatnonzero(marks[numbers] == positions)

    @property
    def tile_bytes(self) -> int | None:
        """Bytes of a tile, if each tile fills whole bytes, is contiguous and has no padding of its own."""
        slots, access = prod(self.tile), self.access
        dense = access.slots == prod(self.extents) * slots + access.tail
        in_order = prod(self.extents) == 1 or self.step == slots * access.width
        size = slots * self.spec.bits
        if not (dense and in_order) or size % 8 or 8 * self.stored(1).size_in_bytes != size:
            return None
        return size // 8

    def stored(self, count: int) -> Shape:
        """Tiles [count, *tile] one after the other, as the buffer holds them."""
        assert self.spec.layout
        return make_shape(
            self.spec.element,
            (count, *self.tile),
            tiles=(self.tile, *self.spec.layout.tiles[1:]),
            element_size_in_bits=self.spec.layout.element_size_in_bits,
        )

    def _point_by_point(self, bare: AccessMap, places: tuple[Table, ...]) -> AccessMap:
        """All offsets as one table, for later tile steps that merge axes of the grid with axes of a tile."""
        dims = bare.dims

        def of_rows(m: Offsets) -> Offsets:
            n, *inner = np.unravel_index(m, dims)
            return np.asarray(map_offset(self.access, (*(p[n] for p in places), *inner)), np.int64)

        base, (low, stop) = int(of_rows(np.zeros(1, np.int64))[0]), bare.bounds
        whole = Opaque(prod(dims), lambda m: of_rows(m) - base, low - base, stop - 1 - base)
        return replace(bare, roots=(Root(tuple(range(len(dims))), whole),), base=base)


@cached(256)
def grid_of(spec: Spec) -> Grid:
    """The grid of a shape; a shape without elements has an empty grid.

    Raises:
        LayoutError: the layout has no tiles.
    """
    if isinstance(spec, CuteShape):
        raise LayoutError(
            f"{shape_name(spec)} has no XLA tiles\n  take its tiles with tilejit.cute.local_tile"
        )
    steps, extents = tile_steps_of(spec)
    if not steps or spec.layout is None:
        raise LayoutError(f"{shape_name(spec)} has no tiles\n  pass a layout such as {{1,0:T(8,128)}}")
    rank = len(extents[1]) - len(steps[0].tile)
    inside = make_shape(
        spec.element,
        extents[1],
        tiles=spec.layout.tiles[1:],
        element_size_in_bits=spec.layout.element_size_in_bits,
        tail_padding_alignment_in_elements=spec.layout.tail_padding_alignment_in_elements,
    )
    return Grid(spec, extents[1][:rank], steps[0].tile, access_map(inside))


def integers(ids: Any) -> Array:
    """Ids as an array of integers, which may be Python integers.

    Raises:
        LayoutError: they do not form an array.
        TypeError: they are not integers.
    """
    try:
        given = np.asarray(ids)
    except ValueError as error:
        raise LayoutError(
            f"ids: expected an array, got {type(ids).__name__}: {error}\n"
            "  pass flat numbers [n], or grid positions"
        ) from error
    if given.dtype is INDEX_DTYPE and type(ids) is list:
        return given
    refuse_masked(ids)
    if given.size == 0 and given.dtype == np.float64 and not isinstance(ids, np.ndarray):
        given = given.astype(np.int64)  # an empty list
    if given.dtype.kind == "O" or (given.dtype.kind == "f" and not isinstance(ids, np.ndarray)):
        whole = np.array(ids, object)  # NumPy promotes a mix of signed and unsigned integers to floats
        if all(isinstance(n, Integral) and not isinstance(n, bool) for n in whole.reshape(-1)):
            return whole
    if given.dtype.kind not in "iu":
        raise TypeError(f"ids: expected integers, got {given.dtype}")
    return given
