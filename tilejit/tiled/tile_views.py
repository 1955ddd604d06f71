"""TileView: elements of an array in any order, read and written in place."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    map_offset,
    shown,
    thread_count,
)
from tilejit.arrays.memory import MAX_RANK, Array, address, array_map, empty
from tilejit.arrays.values import broadcast, elements, refuse_masked
from tilejit.cute.index_map import Identity, IndexMap, ViewAxis
from tilejit.cute.layout import Layout
from tilejit.cute.questions import is_injective
from tilejit.layout.dtypes import from_numpy
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import access_map
from tilejit.programs.compiled import buffer_element, compiled
from tilejit.support.tokens import MAX_INT64
from tilejit.tiled.tiled_array import TiledArray, address_of


@dataclass(frozen=True, slots=True)
class TileView:
    """A view of elements of an array in any order: `view[...]` reads them, `view[...] = x` writes them.

    >>> x = np.arange(32, dtype=np.float32).reshape(4, 8)
    >>> tile = local_tile(tilejit.pack(x, "{1,0:T(2,4)}"), (2, 4), (1, 0))
    >>> tile.unpack()
    array([[16., 17., 18., 19.],
           [24., 25., 26., 27.]], dtype=float32)
    >>> tile[...] = 0
    >>> float(tile.unpack().sum())
    0.0

    `local_tile`, `logical_divide` and their relatives create it.

    Attributes:
        array: the TiledArray or NumPy array that holds the elements.
        index_map: the map from coordinates of the view to indices of the array.
        fill_value: the value to read where the view passes the end of the array; None if it never does.
    """

    array: TiledArray | Array
    index_map: IndexMap
    fill_value: Any = None

    @property
    def shape(self) -> Any:
        """The sizes in elements, nested as in CuTe; from left to right they are the shape of `unpack()`."""
        return self.index_map.profile

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.array.dtype

    @property
    def predicate(self) -> NDArray[np.bool_]:
        """Whether each coordinate is an element of the array, with one axis for each size.

        >>> logical_divide(np.arange(5), 4, fill_value=0).predicate
        array([[ True,  True],
               [ True, False],
               [ True, False],
               [ True, False]])

        Without `fill_value`, all are True.
        """
        inside = empty(self.index_map.sizes, np.bool_)
        inside[...] = True
        return self.index_map.predicate(inside)

    def unpack(self) -> Array:
        """Copy the elements to a new array.

        >>> logical_divide(np.arange(5), 4, fill_value=-1).unpack()
        array([[ 0,  4],
               [ 1, -1],
               [ 2, -1],
               [ 3, -1]])

        Returns:
            An array in C order, with one axis for each size.
        """
        out = empty(self.index_map.sizes, self.dtype)
        if self.fill_value is not None:
            out[...] = self.fill_value
            self._read_inside(out)
        elif out.size and isinstance(self.array, TiledArray):
            _copy(self.array, self._access(self.array), out, writes=False)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a view of tiles must be unpacked, which makes a copy")
        array = self.unpack()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Array:
        """Read the elements; any NumPy key selects from them.

        Raises:
            LayoutIndexError: the key is out of bounds, or is not a NumPy key.
        """
        whole = self.unpack()
        try:
            picked: Array = whole[key]
        except (IndexError, ValueError) as error:
            raise LayoutIndexError(f"{error}\n  the view has the sizes {dims_text(whole.shape)}") from error
        return picked

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write all elements in place: the key is `...` or `:`; the value broadcasts and converts.

        Values where `predicate` is False are dropped.

        Raises:
            LayoutError: the array is read-only, a value does not fit, or two coordinates of the view share an
                element.
            TypeError: another key.
        """
        if key is not Ellipsis and not (isinstance(key, slice) and key == slice(None)):
            raise TypeError(
                "a view can only be written as a whole: view[...] = values\n"
                "  index the array to write fewer elements"
            )
        array, sizes = self.array, self.index_map.sizes
        buffer = array.writable_buffer() if isinstance(array, TiledArray) else _writable(array)
        own = _values_for(array, value)
        self._check_distinct()
        if np.may_share_memory(own, buffer):
            own = own.copy()
        values = broadcast(own, sizes)
        if self.fill_value is not None:
            self._write_inside(values)
        elif values.size and isinstance(array, TiledArray):
            _copy(array, self._access(array), values, writes=True)

    def _check_distinct(self) -> None:
        """Raise if two coordinates share an element."""
        own = self.index_map
        if 0 in own.sizes:
            return
        reaches = [own.reach(dim) for dim in range(len(own.dims))]
        identity = Identity.of(own.dims, [2 * (high - low) + 1 for low, high in reaches])
        if not is_injective(Layout(own.sizes, tuple(identity.stride(axis.steps) for axis in own.axes))):
            raise LayoutError(
                "the view contains elements more than once\n  write to tiles that do not overlap"
            )

    def _inside(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """The predicate, and the row-major numbers of the coordinates where it is True."""
        inside = self.predicate
        return inside, np.flatnonzero(inside).astype(np.int64)

    def _read_inside(self, out: Array) -> None:
        """Read the coordinates that are elements into an array of the view's sizes."""
        inside, numbers = self._inside()
        if numbers.size and isinstance(self.array, TiledArray):
            found = empty(numbers.shape, self.dtype)
            _copy(self.array, self._points(self.array, numbers), found, writes=False)
            out[inside] = found
        elif numbers.size:
            out[inside] = self.array[self.index_map.indices(numbers)]

    def _write_inside(self, values: Array) -> None:
        """Write the values whose coordinates are elements."""
        inside, numbers = self._inside()
        if numbers.size and isinstance(self.array, TiledArray):
            own = np.ascontiguousarray(values[inside])
            _copy(self.array, self._points(self.array, numbers), own, writes=True)
        elif numbers.size:
            self.array[self.index_map.indices(numbers)] = values[inside]

    def _points(
        self, tiled: TiledArray, numbers: NDArray[np.int64], dims: tuple[int, ...] | None = None
    ) -> AccessMap:
        """The map of some coordinates, point by point, on one axis or on those of `dims`."""
        whole, own = access_map(tiled.layout), self.index_map
        base = int(np.asarray(map_offset(whole, own.indices(numbers[:1]))).reshape(-1)[0])

        def offsets(rows: Offsets) -> Offsets:
            found = np.asarray(map_offset(whole, own.indices(numbers[rows])) - base, np.int64)
            return np.broadcast_to(found, rows.shape)

        dims = (len(numbers),) if dims is None else dims
        low, stop = whole.bounds
        tree = Opaque(len(numbers), offsets, low - stop, stop - low)
        roots = (Root(tuple(range(len(dims))), tree),)
        return AccessMap(dims, roots, base, whole.unit_bits, whole.element_bits, whole.bounds)

    def _access(self, tiled: TiledArray) -> AccessMap:
        """The map of the view: each root of the array's map over the axes that traverse its dimensions."""
        whole, own = access_map(tiled.layout), self.index_map
        inner = logical_roots(whole)
        owners = [_owners(axis, inner) for axis in own.axes]
        if any(len(found) > 1 for found in owners):
            return self._points(tiled, np.arange(prod(own.sizes), dtype=np.int64), own.sizes)
        roots, base = [], whole.base
        for k, root in enumerate(inner):
            first = 0
            for d in root.dims:
                first = first * whole.dims[d] + own.starts[d]
            base += int(evaluate_tree(root.tree, first))
            axes = self._axes(root.dims, [n for n, found in enumerate(owners) if (found or [0]) == [k]])
            tree = self._tree(root, axes, first) if len(root.dims) == 1 else None
            roots.append(Root(axes, tree or self._table(tiled, root, axes, first)))
        roots = [root for root in roots if root.dims]
        return AccessMap(own.sizes, tuple(roots), base, whole.unit_bits, whole.element_bits, whole.bounds)

    def _axes(self, dims: tuple[int, ...], found: list[int]) -> tuple[int, ...]:
        """Axes that traverse some dimensions, longer steps first; those of one element precede all others."""
        axes = self.index_map.axes

        def order(k: int) -> tuple[bool, list[int]]:
            return axes[k].size > 1, [-axes[k].steps[d] for d in dims]

        return tuple(sorted(found, key=order))

    def _tree(self, root: Root, axes: tuple[int, ...], first: int) -> Tree | None:
        """The tree of one dimension, if its axes follow each other without a gap."""
        (dim,) = root.dims
        walked = [axis for axis in (self.index_map.axes[k] for k in axes) if axis.size > 1]
        reach = step = walked[-1].steps[dim] if walked else 1
        if step < 1:
            return None
        for axis in reversed(walked):
            if axis.steps[dim] != reach:
                return None
            reach *= axis.size
        count = prod(axis.size for axis in walked)
        return coalesce_tree(Window(count, root.tree, first, step))

    def _table(self, tiled: TiledArray, root: Root, axes: tuple[int, ...], first: int) -> Tree:
        """The offsets point by point."""
        whole, own = access_map(tiled.layout), self.index_map
        walked = IndexMap(own.dims, own.starts, tuple(own.axes[k] for k in axes), None)
        origin = int(evaluate_tree(root.tree, first))

        def offsets(rows: Offsets) -> Offsets:
            index = walked.indices(rows)
            merged: Any = 0
            for d in root.dims:
                merged = merged * whole.dims[d] + index[d]
            return np.asarray(evaluate_tree(root.tree, merged) - origin, np.int64)

        low, stop = whole.bounds
        return Opaque(prod(walked.sizes), offsets, low - stop, stop - low)


def view_of(array: TiledArray | Array, index_map: IndexMap, fill_value: Any = None) -> Any:
    """Return the view of an array through a map: a TileView, or an ndarray if fill_value is not needed.

    Raises:
        LayoutError: the map exceeds the end of the array and there is no fill_value, or the fill_value does
            not fit.
    """
    own = index_map
    if len(own.axes) > MAX_RANK:
        raise LayoutError(f"the view has {len(own.axes)} sizes\n  NumPy's arrays have at most {MAX_RANK}")
    if fill_value is not None:
        value = _values_for(array, fill_value)
        if value.shape:
            raise LayoutError(f"fill_value has shape {value.shape}\n  pass one value")
        return TileView(array, own, value[()])
    dim = own.beyond()
    if dim is not None:
        low, high = own.reach(dim)
        raise LayoutError(
            f"the tiles reach index {shown(low if low < 0 else high)} of dimension {dim}, which has "
            f"{own.dims[dim]}\n"
            "  use tiles that divide it, take the last one by its coordinate, or pass a fill_value"
        )
    if isinstance(array, TiledArray):
        return TileView(array, own)
    strides = tuple(sum(s * b for s, b in zip(axis.steps, array.strides, strict=True)) for axis in own.axes)
    return strided_view(array, own.starts, own.sizes, strides)


def strided_view(
    array: Array, starts: tuple[int, ...], sizes: tuple[int, ...], strides: tuple[int, ...]
) -> Array:
    """Return a NumPy view that begins at an index; it is read-only if two elements may be the same.

    Args:
        array: the array.
        starts: the index of the first element.
        sizes: the shape of the view.
        strides: its strides in bytes.

    Raises:
        LayoutError: NumPy cannot have arrays of that many elements.
    """
    key: Any = (..., *(slice(start, start + 1) for start in starts))
    first: Array = array[key]
    if prod(sizes) * array.itemsize > MAX_INT64:
        raise LayoutError(f"the view has {shown(prod(sizes))} elements\n  pass a smaller tiler")
    try:
        distinct = 0 in sizes or is_injective(Layout(sizes, strides))
    except LayoutError:  # too large to check
        distinct = False
    return np.lib.stride_tricks.as_strided(first, sizes, strides, writeable=distinct)


def _copy(tiled: TiledArray, view: AccessMap, array: Array, *, writes: bool) -> None:
    """Copy between elements of a tiled array and an array of the view's sizes."""
    own = array_map(array)
    stored = buffer_element(tiled.layout)
    element = Element(from_numpy(array.dtype).name, 8 * array.itemsize)
    count = thread_count(None, 2 * array.nbytes)
    if writes:
        program = compiled(own, view, element, stored, threads=count)
        program.run(address(array), address_of(tiled), count, alive=(array, tiled))
    else:
        program = compiled(view, own, stored, element, threads=count)
        program.run(address_of(tiled), address(array), count, alive=(tiled, array))


def _owners(axis: ViewAxis, roots: tuple[Root, ...]) -> list[int]:
    """The roots whose dimensions an axis traverses."""
    return [k for k, root in enumerate(roots) if axis.size > 1 and any(axis.steps[d] for d in root.dims)]


def _writable(array: Array) -> Array:
    if not array.flags.writeable:
        raise LayoutError("the array is read-only\n  copy it first")
    return array


def _values_for(array: TiledArray | Array, value: Any) -> Array:
    """A value as elements of an array, converted as in NumPy assignment.

    Raises:
        LayoutError: the dtype cannot hold it.
    """
    if isinstance(array, TiledArray):
        return elements(value, array.layout.element)
    refuse_masked(value)
    dtype = array.dtype
    try:
        given = np.asarray(value)
        out = np.empty(given.shape, dtype)
        out[...] = value
    except (TypeError, ValueError, ArithmeticError) as error:
        raise LayoutError(
            f"cannot convert the value to {dtype}: {error}\n  pass values of that dtype"
        ) from error
    return out
