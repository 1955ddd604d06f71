"""gather_tiles and scatter_tiles: some tiles of a tiled array, in any order, without the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.access import AccessMap, Leaf, Offsets, Opaque, Root, map_offset
from codegen.errors import LayoutError, LayoutIndexError
from codegen.ir import Element
from codegen.threads import thread_count
from tilejit.convert import buffer_element
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import access_map, shape_name
from tilejit.layout.shape import Shape, make_shape, tile_steps_of
from tilejit.memory import Array, address, array_map, empty
from tilejit.programs import compiled
from tilejit.strided import overlaps_itself
from tilejit.tiled_array import TiledArray, address_of
from tilejit.values import broadcast, elements, refuse_masked

Table = NDArray[np.int64]

MOST_MARKS = 16
"""Tiles of the grid to each number given, up to which a mark for every tile is faster than sorting."""


def gather_tiles(t: TiledArray, ids: Any, out: Any = None, *, threads: int | None = None) -> Any:
    """Some tiles of a tiled array, as an array [n, *tile] or in the TiledArray given as `out`.

    >>> t = tilejit.pack(x, "{1,0:T(8,128)(2,1)}")     # [1000, 300]: 125 x 3 tiles of 8 x 128
    >>> tilejit.gather_tiles(t, [4, 0, 4]).shape       # tiles (1, 1), (0, 0) and (1, 1) again
    (3, 8, 128)
    >>> tilejit.gather_tiles(t, [[1, 1], [0, 0]])      # the same by their places in the grid of tiles

    The blocks of a paged KV cache, one a tile, by a block table:

    >>> cache = tilejit.pack(np.zeros((512 * 16, 128), np.float16), "{1,0:T(16,128)}")   # 16 tokens a block
    >>> keys = tilejit.gather_tiles(cache, block_table[sequence])                        # [blocks, 16, 128]

    A tile is one of the first tile step, its elements at their logical places, its padding as stored; axes
    that this step leaves alone belong to the grid. Axes are in physical order, the most major first. ids:
    flat numbers of tiles (row-major in the grid), or an array [n, grid rank] of places; any integers, repeats
    allowed. out: an array [n, *tile] of the dtype, whatever its strides, or a TiledArray of that shape, whose
    own padding stays as it is; apart from t. threads: a number, or None to let the size decide.

    Raises:
        LayoutIndexError: an id lies outside the grid; nothing has been written.
        LayoutError: the layout has no tiles, ids have another shape, or `out` does not fit.
        TypeError: an argument is of a wrong type.
    """
    grid = _grid_of(t)
    numbers = grid.numbers(ids)
    shape = len(numbers), *grid.tile
    result = empty(shape, t.dtype) if out is None else _checked_out(out, t, shape)
    target, held, element = _side(result)
    count = thread_count(threads, 2 * prod(shape) * t.spec.bits // 8)
    program = compiled(grid.tiles(numbers), target, buffer_element(t.spec), element, threaded=count > 1)
    program.run(address_of(t), held, count, alive=(t, result))
    return result


def scatter_tiles(
    t: TiledArray, ids: Any, values: Any, *, last: str | None = None, threads: int | None = None
) -> None:
    """Write tiles back to their places in a tiled array: the reverse of `gather_tiles`.

    >>> tilejit.scatter_tiles(t, [4, 0], tiles)                    # tiles[0] to (1, 1), tiles[1] to (0, 0)
    >>> tilejit.scatter_tiles(t, [4, 0, 4], tiles, last="wins")    # tiles[2] to (1, 1)

    Padding is written as it stands in `values`. ids: as in `gather_tiles`. values: a TiledArray or an array
    [n, *tile], or what broadcasts to it and converts as NumPy assigns. last: None refuses an id that comes
    twice; "wins" writes the last of those.

    Raises:
        LayoutIndexError: an id lies outside the grid; nothing has been written.
        LayoutError: an id comes twice, the layout has no tiles, values do not fit, the buffer is read-only.
        TypeError: an argument is of a wrong type.
    """
    grid = _grid_of(t)
    if last is not None and not isinstance(last, str):
        raise TypeError(f'last is None or "wins", not {type(last).__name__}')
    if last not in (None, "wins"):
        raise LayoutError(f'last={last[:40]!r}: write "wins", or leave it out')
    numbers = grid.numbers(ids)
    if not t.buffer.flags.writeable:
        raise LayoutError("the buffer of this tiled array is read-only\n  copy it first")
    chosen = grid.last_of_each(numbers)
    if last is None and len(chosen) < len(numbers):
        raise LayoutError(
            f'{_named_twice(numbers)}\n  give each tile once, or last="wins" to write the last of them'
        )
    shape = len(numbers), *grid.tile
    kept = _checked_values(values, t, shape)
    if len(chosen) < len(numbers):
        kept, numbers = (kept.numpy() if isinstance(kept, TiledArray) else kept)[chosen], numbers[chosen]
    source, held, element = _side(kept)
    count = thread_count(threads, 2 * prod(shape) * t.spec.bits // 8)
    program = compiled(source, grid.tiles(numbers), element, buffer_element(t.spec), threaded=count > 1)
    program.run(held, address_of(t), count, alive=(t, kept))


@dataclass(frozen=True, slots=True)
class _Grid:
    """The tiles of the first step.

    extents  tiles along each axis of the grid, most major first; `tile` the extents of one
    access   the buffer as an array [*extents, *tile], padding included
    """

    spec: Shape
    extents: tuple[int, ...]
    tile: tuple[int, ...]
    access: AccessMap

    def numbers(self, ids: Any) -> Table:
        """The flat numbers of the tiles that `ids` name, all within the grid."""
        given = _integers(ids)
        rank = len(self.extents)
        if given.ndim == 1:
            self._check(given, prod(self.extents), "")
            return given.astype(np.int64)
        if given.ndim != 2 or given.shape[1] != rank:
            raise LayoutError(
                f"ids has the shape {given.shape}, but the grid is one of {dims_text(self.extents)} tiles\n"
                f"  give flat numbers [n], or places [n, {rank}]"
            )
        for axis, extent in enumerate(self.extents):
            self._check(given[:, axis], extent, f" along axis {axis}")
        places = tuple(given.astype(np.int64).T)
        flat = np.ravel_multi_index(places, self.extents) if len(given) else np.zeros(0, np.int64)
        return np.asarray(flat, np.int64)

    def _check(self, given: Array, count: int, where: str) -> None:
        wrong = np.flatnonzero((given < 0) | (given >= count))
        if len(wrong):
            at = int(wrong[0])
            raise LayoutIndexError(
                f"there is no tile {int(given[at])}{where}: number {at} of ids\n"
                f"  {shape_name(self.spec)} has a grid of {dims_text(self.extents)} tiles"
            )

    def tiles(self, numbers: Table) -> AccessMap:
        """The map of an array [n, *tile] of those tiles."""
        rank, dims = len(self.extents), (len(numbers), *self.tile)
        bare = replace(self.access, dims=dims, roots=(), slots=None, tail=0)
        if 0 in dims:
            return bare
        if any(min(r.dims) < rank <= max(r.dims) for r in self.access.roots if r.dims):
            return self._point_by_point(bare, np.unravel_index(numbers, self.extents))
        starts = self._starts(numbers)
        base = int(starts[0])  # trees begin at 0
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
        """The distance of one tile to the next, if it is the same everywhere."""
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
        """The positions at which each tile stands last, ascending."""
        count = prod(self.extents)
        if count > MOST_MARKS * len(numbers):
            _, behind = np.unique(numbers[::-1], return_index=True)
            return np.sort(len(numbers) - 1 - behind).astype(np.int64)
        positions = np.arange(len(numbers))
        marks = np.empty(count, np.int64)
        marks[numbers] = positions  # of equal numbers NumPy assigns the last
        return np.flatnonzero(marks[numbers] == positions)

    def _point_by_point(self, bare: AccessMap, places: tuple[Table, ...]) -> AccessMap:
        """All offsets as one table: where later tile steps join axes of the grid with axes of a tile."""
        dims = bare.dims

        def of_rows(m: Offsets) -> Offsets:
            n, *inner = np.unravel_index(m, dims)
            return np.asarray(map_offset(self.access, (*(p[n] for p in places), *inner)), np.int64)

        base, (low, stop) = int(of_rows(np.zeros(1, np.int64))[0]), bare.bounds
        whole = Opaque(prod(dims), lambda m: of_rows(m) - base, low - base, stop - 1 - base)
        return replace(bare, roots=(Root(tuple(range(len(dims))), whole),), base=base)


@lru_cache(maxsize=256)
def _grid(spec: Spec) -> _Grid:
    if isinstance(spec, CuteShape):
        raise LayoutError(
            f"{shape_name(spec)} has no tiles of XLA's\n  take them with tilejit.cute.local_tile"
        )
    steps, extents = tile_steps_of(spec)
    if not steps or spec.layout is None:
        raise LayoutError(f"{shape_name(spec)} has no tiles\n  give a layout such as {{1,0:T(8,128)}}")
    if 0 in extents[1] or 0 in spec.dimensions:
        raise LayoutError(f"{shape_name(spec)} has no elements, so no tiles")
    rank = len(extents[1]) - len(steps[0].tile)
    inside = make_shape(
        spec.primitive_type,
        extents[1],
        tiles=spec.layout.tiles[1:],
        element_size_in_bits=spec.layout.element_size_in_bits,
        tail_padding_alignment_in_elements=spec.layout.tail_padding_alignment_in_elements,
    )
    return _Grid(spec, extents[1][:rank], steps[0].tile, access_map(inside))


def _grid_of(t: Any) -> _Grid:
    if not isinstance(t, TiledArray):
        raise TypeError(f"tiles are taken from a TiledArray, not from {type(t).__name__}")
    return _grid(t.spec)


def _integers(ids: Any) -> Array:
    refuse_masked(ids)
    try:
        given = np.asarray(ids)
    except ValueError as error:
        raise LayoutError(f"ids is no array: {error}\n  give flat numbers [n], or places") from error
    if given.size == 0 and given.dtype == np.float64 and not isinstance(ids, np.ndarray):
        given = given.astype(np.int64)  # an empty list
    if given.dtype.kind in "fO" and not isinstance(ids, np.ndarray):
        whole = np.array(ids, object)  # NumPy makes floats of signed and unsigned ones side by side
        if all(isinstance(n, Integral) for n in whole.flat):
            return whole
    if given.dtype.kind not in "iu":
        raise TypeError(f"ids holds whole numbers, not {given.dtype}")
    return given


def _checked_out(out: Any, t: TiledArray, shape: tuple[int, ...]) -> Any:
    """`out`, if tiles of that shape can be written to it."""
    if not isinstance(out, np.ndarray | TiledArray):
        raise TypeError(f"out is an array or a TiledArray, not {type(out).__name__}")
    _check_tiles(out, t, shape, "out")
    memory = out.buffer if isinstance(out, TiledArray) else out
    if not memory.flags.writeable:
        raise LayoutError("out is read-only")
    if not isinstance(out, TiledArray) and overlaps_itself(out.shape, out.strides, out.itemsize):
        raise LayoutError(f"out has elements that share memory: strides {out.strides} for shape {out.shape}")
    if np.may_share_memory(memory, t.buffer):
        raise LayoutError("out overlaps the buffer that tiles are taken from\n  give out= memory of its own")
    return out


def _checked_values(values: Any, t: TiledArray, shape: tuple[int, ...]) -> Any:
    """The values as a TiledArray or an array of that shape, apart from the buffer."""
    if isinstance(values, TiledArray):
        _check_tiles(values, t, shape, "values")
        if np.may_share_memory(values.buffer, t.buffer):
            return TiledArray(values.buffer.copy(), values.spec)
        return values
    own = elements(values, t.spec.element)
    return broadcast(own.copy() if np.may_share_memory(own, t.buffer) else own, shape)


def _check_tiles(held: Any, t: TiledArray, shape: tuple[int, ...], what: str) -> None:
    if tuple(held.shape) != shape or held.dtype != t.dtype:
        raise LayoutError(
            f"{what} is {held.dtype}{list(held.shape)}, but the tiles are {t.dtype}{list(shape)}"
        )


def _side(held: Any) -> tuple[AccessMap, int, Element]:
    """The map, the address and the element of what tiles are copied to or from."""
    if isinstance(held, TiledArray):
        return access_map(held.spec), address_of(held), buffer_element(held.spec)
    return array_map(held), address(held), Element(from_numpy(held.dtype).name, 8 * held.itemsize)


def _named_twice(numbers: Table) -> str:
    order = np.argsort(numbers, kind="stable")
    k = int(np.flatnonzero(np.diff(numbers[order]) == 0)[0])
    return (
        f"ids names tile {int(numbers[order[k]])} twice, as numbers {int(order[k])} and {int(order[k + 1])}"
    )
