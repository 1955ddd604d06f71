"""Views of a tiled array by CuTe's tilers: one tile, or the array as tiles and what repeats them."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from codegen import (
    AccessMap,
    Element,
    LayoutError,
    LayoutIndexError,
    Offsets,
    Opaque,
    Root,
    Tree,
    Window,
    coalesce_tree,
    dataclass,
    evaluate_tree,
    logical_roots,
    shown,
    thread_count,
)
from tilejit.arrays.memory import MAX_RANK, Array, address, array_map, empty
from tilejit.arrays.values import broadcast, elements
from tilejit.cute import division, partition
from tilejit.cute.digits import Mode, is_nested
from tilejit.cute.int_tuple import unflatten
from tilejit.cute.layout import Layout
from tilejit.cute.modes import flat_modes
from tilejit.cute.slicing import slice_and_offset
from tilejit.cute.underscore import is_underscore
from tilejit.layout.checks import integer
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import access_map, shape_name
from tilejit.programs.compiled import buffer_element, compiled
from tilejit.tiled.tiled_array import TiledArray, address_of


class ViewAxis(NamedTuple):
    """An axis of a view.

    Attributes:
        dim: the dimension of the tiled array that it walks.
        size: the elements it has.
        step: the distance of two of them, in indices of that dimension.
    """

    dim: int
    size: int
    step: int


@dataclass(frozen=True, slots=True)
class TileView:
    """Some elements of a tiled array in an order of their own; `view[...]` reads, `view[...] = x` writes.

    >>> tile = tilejit.cute.local_tile(t, (8, 128), (2, 0))
    >>> tile.shape, tile.unpack()
    >>> tile[...] = 0

    Attributes:
        tiled: the array.
        starts: the index of the first element.
        axes: the axes of the view.
        profile: the sizes nested as CuTe nests them.
    """

    tiled: TiledArray
    starts: tuple[int, ...]
    axes: tuple[ViewAxis, ...]
    profile: Any

    @property
    def shape(self) -> Any:
        """The sizes, nested as CuTe nests them; those of `unpack()` are the same from left to right."""
        return self.profile

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' dtype."""
        return self.tiled.dtype

    def unpack(self) -> Array:
        """The elements as a new array in C order, one axis a size."""
        out = empty(tuple(axis.size for axis in self.axes), self.dtype)
        if out.size:
            self._copy(out, writes=False)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a view of tiles has to be unpacked; there is no array without a copy")
        array = self.unpack()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Array:
        """The elements; any key of NumPy's picks from them.

        Raises:
            LayoutIndexError: the key is out of bounds, or none of NumPy's.
        """
        whole = self.unpack()
        try:
            picked: Array = whole[key]
        except (IndexError, ValueError) as error:
            raise LayoutIndexError(f"{error}\n  the view has the sizes {dims_text(whole.shape)}") from error
        return picked

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write all elements in place: the key is `...` or `:`; the value broadcasts and converts.

        Raises:
            LayoutError: the buffer is read-only, a value does not fit, or two places of the view are one.
            TypeError: another key.
        """
        if key is not Ellipsis and not (isinstance(key, slice) and key == slice(None)):
            raise TypeError("a view is written whole: view[...] = values\n  index the tiled array for less")
        buffer = self.tiled.writable_buffer()
        self._check_apart()
        own = elements(value, self.tiled.layout.element)
        if np.may_share_memory(own, buffer):
            own = own.copy()
        values = broadcast(own, tuple(axis.size for axis in self.axes))
        if values.size:
            self._copy(values, writes=True)

    def _check_apart(self) -> None:
        for dim in range(len(self.starts)):
            own = [Mode(axis.size, axis.step) for axis in self.axes if axis.dim == dim and axis.size > 1]
            if not is_nested(own):
                raise LayoutError(
                    f"the view meets elements of dimension {dim} more than once\n"
                    "  write to tiles that do not overlap"
                )

    def _copy(self, array: Array, *, writes: bool) -> None:
        tiled = self.tiled
        view, own = self._access(), array_map(array)
        stored = buffer_element(tiled.layout)
        loose = Element(from_numpy(array.dtype).name, 8 * array.itemsize)
        count = thread_count(None, 2 * array.nbytes)
        if writes:
            program = compiled(own, view, loose, stored, threads=count)
            program.run(address(array), address_of(tiled), count, alive=(array, tiled))
        else:
            program = compiled(view, own, stored, loose, threads=count)
            program.run(address_of(tiled), address(array), count, alive=(tiled, array))

    def _access(self) -> AccessMap:
        """The map of the view: each root of the array's over the axes that walk its dimensions."""
        whole = access_map(self.tiled.layout)
        dims = tuple(axis.size for axis in self.axes)
        roots, base = [], whole.base
        for root in logical_roots(whole):
            first = 0
            for d in root.dims:
                first = first * whole.dims[d] + self.starts[d]
            base += int(evaluate_tree(root.tree, first))
            axes = self._axes(root.dims)
            tree = self._tree(root, axes, first) if len(root.dims) == 1 else None
            roots.append(Root(axes, tree or self._table(root, axes, whole.dims, first)))
        roots = [root for root in roots if root.dims]
        return AccessMap(dims, tuple(roots), base, whole.unit_bits, whole.element_bits, whole.bounds)

    def _axes(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """The axes that walk these dimensions, longer steps first."""
        found = [k for k, axis in enumerate(self.axes) if axis.dim in dims]
        return tuple(sorted(found, key=lambda k: (dims.index(self.axes[k].dim), -self.axes[k].step)))

    def _tree(self, root: Root, axes: tuple[int, ...], first: int) -> Tree | None:
        """The tree of one dimension where its axes follow each other without a hole."""
        reach = step = self.axes[axes[-1]].step if axes else 1
        for k in reversed(axes):
            own = self.axes[k]
            if own.step != reach and own.size > 1:
                return None
            reach *= own.size
        count = prod(self.axes[k].size for k in axes)
        return coalesce_tree(Window(count, root.tree, first, step))

    def _table(self, root: Root, axes: tuple[int, ...], dims: tuple[int, ...], first: int) -> Tree:
        """The offsets point by point."""
        walked, starts = [self.axes[k] for k in axes], self.starts
        origin = int(evaluate_tree(root.tree, first))

        def offsets(rows: Offsets) -> Offsets:
            index = {d: np.full_like(rows, starts[d]) for d in root.dims}
            for d, size, step in reversed(walked):
                index[d] = index[d] + rows % size * step
                rows = rows // size
            merged: Any = 0
            for d in root.dims:
                merged = merged * dims[d] + index[d]
            return np.asarray(evaluate_tree(root.tree, merged) - origin, np.int64)

        low, stop = access_map(self.tiled.layout).bounds
        return Opaque(prod(axis.size for axis in walked), offsets, low - stop, stop - low)


def local_tile(t: Any, tiler: Any, coord: Any, proj: Any = None) -> Any:
    """The tile at a coordinate among the tiles: of a TiledArray a TileView, of a layout CuTe's pair.

    >>> tilejit.cute.local_tile(t, (8, 128), (2, 0)).unpack()    # rows 16 to 23, columns 0 to 127
    >>> tilejit.cute.local_tile(t, (8, _), (2, _))              # the same rows, all columns
    (4,8):(1,4), (2, 4), (1, 0) -> (2,4):(1,4), 2

    tiler: a size, a one-dimensional layout or `_` for each dimension. coord: the number of the tile along
    each dimension, or `_` for all of them, which then follow the tile's own axes. A tile that the array ends
    in is smaller than the others.

    Raises:
        LayoutIndexError: there is no such tile.
        LayoutError: tiler or coordinate do not fit, or tiles kept by `_` pass the end of the array.
    """
    if not isinstance(t, TiledArray):
        return partition.local_tile(t, tiler, coord, proj)
    if proj is not None:
        raise TypeError("proj is for layouts; leave the mode out of tiler and coordinate instead")
    tilers, at = _per_dimension(tiler, t, "tiler"), _per_dimension(coord, t, "coordinate")
    starts: list[int] = []
    tiles: list[ViewAxis] = []
    rests: list[ViewAxis] = []
    for d, (part, place) in enumerate(zip(tilers, at, strict=True)):
        start, own, rest = _tile_of(t, d, part, place)
        starts.append(start)
        tiles += own
        rests += rest
    axes = (*tiles, *rests)
    return _checked_view(TileView(t, tuple(starts), axes, tuple(axis.size for axis in axes)))


def logical_divide(t: Any, tiler: Any) -> Any:
    """As (tile, rest), dimension by dimension: of a TiledArray a TileView, of a layout CuTe's layout.

    >>> tilejit.cute.logical_divide(t, (8, 128)).shape     # f32[16,256]
    ((8, 2), (128, 2))
    16:1, 4:2 -> (4,(2,2)):(2,(1,8))

    tiler: a size, a one-dimensional layout or `_` for each of the first dimensions. `unpack()` has an axis
    for each size, tile before rest.

    Raises:
        NoLayoutError: of a layout, where the tiler has no complement or a part is not a layout.
        LayoutError: more tilers than dimensions, or the tiles pass the end of the array.
    """
    if not isinstance(t, TiledArray):
        return division.logical_divide(t, tiler)
    axes: list[ViewAxis] = []
    profile: list[Any] = []
    for d, part in enumerate(_per_dimension(tiler, t, "tiler")):
        divided = Layout(t.shape[d]) if is_underscore(part) else _divided(t, d, part)
        own = _axes(d, divided)
        axes += own
        profile.append(unflatten(iter([axis.size for axis in own]), divided.shape))
    return _checked_view(TileView(t, (0,) * t.ndim, tuple(axes), tuple(profile)))


def _per_dimension(given: Any, t: TiledArray, what: str) -> tuple[Any, ...]:
    """One part a dimension, `_` behind those that are given."""
    if isinstance(given, str):
        raise TypeError(f"a {what} is a number, a layout, `_` or a tuple, not str")
    parts = tuple(given) if isinstance(given, tuple | list) else (given,)
    if isinstance(given, Layout) and t.ndim != 1:
        raise LayoutError(f"a {what} of one layout goes through all dimensions\n  give one a dimension")
    if len(parts) > t.ndim:
        raise LayoutError(
            f"the {what} has {len(parts)} parts, but the array {t.ndim} dimension(s)\n"
            "  give at most one a dimension"
        )
    if any(isinstance(part, bool) for part in parts):
        raise TypeError(f"a {what} is made of numbers and `_`, not of bool")
    return (*parts, *(None for _ in range(t.ndim - len(parts))))


def _tile_of(t: TiledArray, d: int, part: Any, place: Any) -> tuple[int, list[ViewAxis], list[ViewAxis]]:
    """Where the tile starts along one dimension, its axes, and those of the tiles that `_` keeps."""
    extent = t.shape[d]
    if is_underscore(part):
        if not is_underscore(place) and (number := integer(place, f"coord[{d}]")):
            raise LayoutIndexError(
                f"dimension {d} is one tile: there is no tile {shown(number)}\n  give 0 or `_`"
            )
        return 0, [ViewAxis(d, extent, 1)], []
    divided = _divided(t, d, part)
    tile, rest = divided
    if is_underscore(place):
        return 0, _axes(d, tile), _axes(d, rest)
    number = integer(place, f"coord[{d}]")
    if not 0 <= number < rest.size:
        raise LayoutIndexError(
            f"there is no tile {shown(number)} along dimension {d}\n"
            f"  {shape_name(t.layout)} has {rest.size} there"
        )
    start = slice_and_offset(number, rest)[1]
    own = _axes(d, tile)
    if len(own) == 1 and own[0].step > 0:
        _, size, step = own[0]
        own = [ViewAxis(d, min(size, -(-(extent - start) // step)), step)]
    return start, own, []


def _divided(t: TiledArray, d: int, part: Any) -> Layout:
    """One dimension as (tile, rest)."""
    if not t.shape[d]:
        raise LayoutError(
            f"dimension {d} of {shape_name(t.layout)} has no elements, so no tiles\n  keep it whole with `_`"
        )
    return division.logical_divide(Layout(t.shape[d]), part)


def _axes(d: int, layout: Layout) -> list[ViewAxis]:
    return [ViewAxis(d, size, step) for size, step in flat_modes(layout)]


def _checked_view(view: TileView) -> TileView:
    """The view, if all its elements are the array's."""
    if len(view.axes) > MAX_RANK:
        raise LayoutError(f"the view has {len(view.axes)} sizes\n  NumPy's arrays have at most {MAX_RANK}")
    if any(axis.size == 0 for axis in view.axes):
        return view
    for d, (start, extent) in enumerate(zip(view.starts, view.tiled.shape, strict=True)):
        reaches = [(axis.size - 1) * axis.step for axis in view.axes if axis.dim == d]
        low, high = start + sum(min(0, r) for r in reaches), start + sum(max(0, r) for r in reaches)
        if low < 0 or high >= extent:
            raise LayoutError(
                f"the tiles reach index {low if low < 0 else high} of dimension {d}, which has {extent}\n"
                "  give tiles that divide it, or take the last one by its coordinate"
            )
    return view
