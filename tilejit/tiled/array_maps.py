"""CuTe's algebra on arrays: the indices that views of tiles, threads and values hold."""

from __future__ import annotations

from itertools import zip_longest
from math import prod
from typing import Any

from codegen import LayoutError, LayoutIndexError, shown
from tilejit.cute import partition, thread_values
from tilejit.cute.construct import product_each
from tilejit.cute.coordinates import whole_number
from tilejit.cute.digits import Mode
from tilejit.cute.division import zipped_divide
from tilejit.cute.index_map import Identity, IndexMap, Operation, ViewAxis, along, flat_map, reach_of
from tilejit.cute.int_tuple import as_integer, limit_nesting
from tilejit.cute.layout import Layout, expect_layout, is_composed
from tilejit.cute.modes import flat_modes
from tilejit.cute.slicing import slice_and_offset
from tilejit.cute.underscore import is_underscore
from tilejit.cute.witness import NoLayoutError
from tilejit.layout.helpers import dims_text

Dims = tuple[int, ...]


def changed(dims: Dims, tiler: Any, change: Operation) -> IndexMap:
    """Return the view of an array for an operation of the algebra: a division or composition by a tiler.

    (16, 256), (8, 128), zipped_divide -> ((8,128),(2,2)) with steps 1 and 8, 1 and 128

    Raises:
        NoLayoutError: the tiler has no complement, or no layout describes the view.
        LayoutError: there are more tilers than dimensions, or a dimension without elements is divided.
        TypeError: it is not a tiler.
    """
    parts = tilers(dims, tiler)
    if parts is not None:
        for dim, part in enumerate(parts):
            if not is_underscore(part):
                _check_elements(dims, dim)
        identity = Identity.by_dimension(dims, parts)
        return identity.read(change(identity.layout, parts))
    if 0 in dims:
        raise LayoutError(
            f"{dims_text(dims)} has no elements for a tiler of all dimensions\n"
            "  pass a tiler for each dimension, `_` for those to keep whole"
        )
    change(Layout(prod(dims)), tiler)  # raises its own error if no array has such a view
    identity = Identity.across(dims, dims)
    try:
        return identity.read(change(identity.layout, tiler))
    except NoLayoutError as error:
        raise NoLayoutError(
            f"no view has the strides of {str(tiler)[:80]} across the dimensions of {dims_text(dims)}\n"
            "  pass a tiler for each dimension, or a NumPy array in Fortran order (np.asfortranarray)",
            error.witness,
        ) from error


def tile(dims: Dims, tiler: Any, coord: Any, proj: Any, *, cut: bool) -> IndexMap:
    """Return the tile at a coordinate.

    Args:
        dims: the dimensions of the array.
        tiler: the tiler, as in `changed`.
        coord: the coordinate of the tile.
        proj: `_` or None for each mode of the tiler and the coordinate to drop; None keeps all.
        cut: whether the tile at the end of the array is smaller than the others.

    Raises:
        LayoutIndexError: the tile does not exist.
        LayoutError, NoLayoutError, TypeError: as `changed`, and for a coordinate that does not match.
    """
    if proj is not None:
        tiler = partition.projected(tiler, proj, "tiler")
        coord = partition.projected(coord, proj, "coordinate")
    parts = tilers(dims, tiler)
    if parts is None:
        if 0 in dims:
            changed(dims, tiler, zipped_divide)
        identity = Identity.across(dims, dims)
        return identity.read(*partition.local_tile(identity.layout, tiler, coord))
    coords = _coordinates(dims, coord)
    starts: list[int] = []
    tiles: list[ViewAxis] = []
    rests: list[ViewAxis] = []
    for dim, size in enumerate(dims):
        part, at = (parts[dim] if dim < len(parts) else None), coords[dim]
        start, own, rest = _tile_along(dims, dim, part, at)
        if cut and len(own) == 1 and own[0].stride > 0 and not is_underscore(at):
            count, step = own[0]
            own = [Mode(min(count, max(0, -(-(size - start) // step))), step)]
        starts.append(start)
        tiles += [ViewAxis(count, along(dim, len(dims), step)) for count, step in own]
        rests += [ViewAxis(count, along(dim, len(dims), step)) for count, step in rest]
    return flat_map(dims, starts, [*tiles, *rests])


def thread(dims: Dims, threads: Any, index: Any, proj: Any, *, cut: bool) -> IndexMap:
    """Return the elements of one thread, one in every tile of the threads' shape.

    Args:
        dims: the dimensions of the array.
        threads: the layout of threads.
        index: the number of the thread.
        proj: as in `tile`, for modes of `threads`.
        cut: as in `tile`.

    Raises:
        LayoutIndexError: the thread does not exist.
        LayoutError: the threads have more modes than the array has dimensions, or no view exists.
        TypeError: the threads are not a layout.
    """
    sizes: Any = product_each(expect_layout(threads).shape)
    at: Any = partition.thread_at(threads, whole_number(index))
    if proj is not None:
        sizes, at = partition.projected(sizes, proj, "threads"), partition.projected(at, proj, "threads")
    tilers(dims, sizes)
    starts = [*at, *(0 for _ in dims[len(at) :])]
    axes: list[ViewAxis] = []
    for dim, size in enumerate(dims):
        step = sizes[dim] if dim < len(sizes) else 1
        count = -(-max(0, size - (starts[dim] if cut else 0)) // step)
        axes.append(ViewAxis(count, along(dim, len(dims), step)))
    return flat_map(dims, starts, axes)


def values(dims: Dims, tiler: Any, layout_tv: Any, thread: Any) -> IndexMap:
    """Return the values of one thread in all tiles, or of all threads.

    Raises:
        LayoutIndexError: the thread does not exist.
        LayoutError, NoLayoutError, TypeError: as `changed`, and for a layout that does not match the tiler.
    """
    thread_values.check_layout_tv(layout_tv)
    parts = tilers(dims, tiler)
    for dim in range(len(dims)):
        if parts is None or (dim < len(parts) and not is_underscore(parts[dim])):
            _check_elements(dims, dim)
    reaches = dims if parts is None else [reach_of(n, part) for n, part in zip_longest(dims, parts)]
    identity = Identity.across(dims, reaches)
    whole = tiler if parts is None else parts
    thread_values.check_tile(layout_tv, zipped_divide(identity.layout, whole)[0].size)
    try:
        return identity.read(*thread_values.partition(identity.layout, whole, layout_tv, thread))
    except NoLayoutError as error:
        raise NoLayoutError(
            f"no view has the strides of {str(layout_tv)[:80]} across a tile of {dims_text(dims)}\n"
            "  pass a layout whose modes each stay in one dimension of the tile",
            error.witness,
        ) from error


def tilers(dims: Dims, tiler: Any) -> tuple[Any, ...] | None:
    """A tiler for each dimension as a tuple; None for a size or layout that counts all dimensions.

    With one dimension, every tiler is for that dimension.

    Raises:
        LayoutError: there are more tilers than dimensions.
        TypeError: it is not a tiler.
    """
    limit_nesting(tiler, "a tiler")
    if is_underscore(tiler):
        return ()
    if isinstance(tiler, tuple | list):
        if len(tiler) > len(dims):
            raise LayoutError(
                f"the tiler has {len(tiler)} parts, but the array has {len(dims)} dimension(s)\n"
                "  pass at most one for each dimension"
            )
        for part in tiler:
            _check_tiler(part)
        return tuple(tiler)
    _check_tiler(tiler)
    return (tiler,) if len(dims) == 1 else None


def _check_tiler(part: Any) -> None:
    if isinstance(part, tuple | list):
        for inner in part:
            _check_tiler(inner)
    elif is_composed(part):
        raise LayoutError(
            f"the tiler {str(part)[:80]} has no strides\n"
            "  pick elements with its offsets: x.reshape(-1, order='F')[tilejit.cute.offsets(tiler)]"
        )
    elif not (isinstance(part, Layout) or is_underscore(part) or _is_number(part)):
        raise TypeError(
            f"expected numbers, layouts, `_` and tuples in a tiler, got {type(part).__name__}\n"
            "  tilejit.cute.parse reads a tiler from text"
        )


def _is_number(part: Any) -> bool:
    return hasattr(part, "__index__") and not isinstance(part, bool)


def _coordinates(dims: Dims, coord: Any) -> tuple[Any, ...]:
    """One coordinate for each dimension; None, like `_`, for missing ones."""
    limit_nesting(coord, "a coordinate")
    parts = tuple(coord) if isinstance(coord, tuple | list) else (coord,)
    if len(parts) > len(dims):
        raise LayoutError(
            f"the coordinate has {len(parts)} parts, but the array has {len(dims)} dimension(s)\n"
            "  pass at most one for each dimension"
        )
    if any(isinstance(part, bool) for part in parts):
        raise TypeError("expected numbers and `_` in a coordinate, got bool")
    return (*parts, *(None for _ in range(len(dims) - len(parts))))


def _tile_along(dims: Dims, dim: int, part: Any, coord: Any) -> tuple[int, list[Mode], list[Mode]]:
    """The start of the tile along a dimension, its modes, and those of the tiles that `_` keeps."""
    size = dims[dim]
    if is_underscore(part):
        if not is_underscore(coord) and (number := as_integer(coord, f"coord[{dim}]")):
            raise LayoutIndexError(
                f"dimension {dim} is one tile, so tile {shown(number)} does not exist\n  pass 0 or `_`"
            )
        return 0, [Mode(size, 1)], []
    _check_elements(dims, dim)
    own, rest = zipped_divide(Layout(size), part)
    if is_underscore(coord):
        return 0, flat_modes(own), flat_modes(rest)
    number = as_integer(coord, f"coord[{dim}]")
    if not 0 <= number < rest.size:
        raise LayoutIndexError(
            f"tile {shown(number)} does not exist along dimension {dim}\n"
            f"  {dims_text(dims)} has {shown(rest.size)} there"
        )
    return slice_and_offset(number, rest)[1], flat_modes(own), []


def _check_elements(dims: Dims, dim: int) -> None:
    if not dims[dim]:
        raise LayoutError(
            f"dimension {dim} of {dims_text(dims)} has no elements, so no tiles\n  keep it whole with `_`"
        )
