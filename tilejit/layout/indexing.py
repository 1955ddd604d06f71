"""Where an element of a shape lives, and what lives at a slot: straight from XLA's definition, or CuTe's.

One tile step turns an index e into (e // t, e mod t); `linear_index` runs the steps forward, `multi_index`
undoes them. `access_map` gives the compiler the same fact as digit trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen import AccessMap, LayoutIndexError, Leaf, Offsets, Opaque, Root, Split, Tree, cached
from tilejit.layout.cute_index import cute_access_map, cute_index, cute_slot
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import ElementLike
from tilejit.layout.shape import Shape
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.layout.tiling import TileStep

if TYPE_CHECKING:
    from tilejit.layout.as_layout import LayoutLike

Index: TypeAlias = int | NDArray[np.int64]


class Tiled(Protocol):
    """A `TiledArray`, which has its layout."""

    @property
    def layout(self) -> Spec:
        """The shape and its layout."""


def linear_index(
    layout: LayoutLike | Tiled,
    index: tuple[Any, ...],
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Any:
    """The slot of the element at a multi-index.

    >>> tilejit.linear_index("f32[3,5]{1,0:T(2,2)}", (2, 3))
    17
    >>> tilejit.linear_index("f32[3,5]{1,0:T(2,2)}", (2, np.arange(5)))
    array([12, 13, 16, 17, 20])
    >>> tilejit.linear_index("blis-a", (2, 3), dtype="f32", dims=(3, 5), mr=2)
    16

    Args:
        layout: a Shape, a TiledArray, or anything else that `as_layout` reads.
        index: an integer for each dimension, from 0 on; or arrays of integers, which broadcast.
        dtype: the array's dtype, where the layout is not a complete shape.
        dims: the array's dimensions, where the layout is not a complete shape.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        The slot, counted in elements from the start of the buffer: an int, or an int64 array for arrays.

    Raises:
        LayoutIndexError: an index is outside its dimension, there are too few or too many, or arrays of
            indices do not broadcast.
        LayoutError: the layout cannot be read.
        TypeError: an index is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout, dtype, dims, parameters)
    checked = _checked_index(shape, index)
    slot = _RULES[type(shape)].slot(shape, checked)
    return slot if isinstance(slot, int) else np.asarray(slot, np.int64)


def multi_index(
    layout: LayoutLike | Tiled,
    slot: ArrayLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Any:
    """The multi-index of the element in a slot.

    >>> tilejit.multi_index("f32[3,5]{1,0:T(2,2)}", 17)
    (2, 3)
    >>> tilejit.multi_index("f32[3,5]{1,0:T(2,2)}", 9) is None
    True
    >>> tilejit.multi_index("f32[3,5]{1,0:T(2,2)}", [17, 9])
    (array([ 2, -1]), array([ 3, -1]))

    Args:
        layout: a Shape, a TiledArray, or anything else that `as_layout` reads.
        slot: counted in elements from the start of the buffer: an integer, or an array of integers.
        dtype: the array's dtype, where the layout is not a complete shape.
        dims: the array's dimensions, where the layout is not a complete shape.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        For an integer, the index as a tuple of ints, or None if the slot is padding. For an array, an int64
        array of its shape for each dimension, -1 in all of them where the slot is padding.

    Raises:
        LayoutIndexError: a slot is outside the buffer.
        LayoutError: the layout cannot be read.
        TypeError: a slot is not an integer, or the layout has another type.
    """
    shape = _shape_of(layout, dtype, dims, parameters)
    slots = _integer(slot, "a slot")
    size = shape.physical_size
    low, high = (slots, slots) if isinstance(slots, int) else _span(slots)
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise LayoutIndexError(
            f"slot {wrong} lies outside the buffer\n  {shape_name(shape)} has slots 0 to {size - 1}"
            if size
            else f"slot {wrong} lies outside the buffer\n  {shape_name(shape)} has no slots"
        )
    index, valid = _RULES[type(shape)].index(shape, slots)
    if isinstance(slots, int):
        return tuple(int(i) for i in index) if valid else None
    empty = np.full(slots.shape, -1, np.int64)
    return tuple(np.where(valid, i, empty) for i in index)


@cached(1024)
def access_map(shape: Spec) -> AccessMap:
    """The shape's buffer as the compiler sees it, in units of elements.

    Raises:
        LayoutError: the shape's size is not known (`?` and the like).
    """
    return _RULES[type(shape)].access_map(shape)


def _xla_access_map(shape: Shape) -> AccessMap:
    steps, extents = tile_steps_of(shape)
    final, bits = extents[-1], shape.bits
    size = shape.physical_size
    if bits < 8:
        size = -(-size * bits // 8) * 8 // bits  # the rest of the last byte is padding too
    tail = size - prod(final)
    if 0 in shape.dimensions:
        return AccessMap(shape.dimensions, (), 0, bits, bits, (0, size), size, 0)
    roots = _tree_roots(shape, steps, final)
    if roots is None:
        dims = tuple(range(shape.rank))
        opaque = Opaque(prod(shape.dimensions), lambda m: _offsets_of_rows(shape, m), 0, prod(final) - 1)
        roots = (Root(dims, opaque),)
    return AccessMap(shape.dimensions, roots, 0, bits, bits, (0, size), size, tail)


@dataclass(slots=True)
class _Node:
    """A digit while the tree grows: cut in two by a tile step, or left with a stride at the end."""

    extent: int
    cut: tuple[int, _Node, _Node] | None = None
    stride: int = 0

    def tree(self) -> Tree:
        if self.cut is None:
            return Leaf(self.extent, self.stride)
        tile, high, low = self.cut
        return Split(self.extent, tile, high.tree(), low.tree())


def _tree_roots(shape: Shape, steps: tuple[TileStep, ...], final: tuple[int, ...]) -> tuple[Root, ...] | None:
    """One tree a root, or None where `*` merges digits rather than whole dimensions."""
    padded = shape.padded_dimensions or shape.dimensions
    order = _physical_order(shape)
    nodes = {d: _Node(shape.dimensions[d]) for d in order}
    roots: dict[int, tuple[int, ...]] = {id(nodes[d]): (d,) for d in order}
    tops: list[tuple[tuple[int, ...], _Node]] = [((d,), nodes[d]) for d in order]
    axes = [nodes[d] for d in order]
    for k, d in enumerate(order):
        if padded[d] != shape.dimensions[d]:
            axes[k] = _Node(padded[d])
            nodes[d].cut = (padded[d], _Node(1), axes[k])
    for step in steps:
        ones = [_Node(1) for _ in range(step.lead)]
        tops += [((), one) for one in ones]
        axes = ones + axes
        tiled: list[_Node] = []
        for group in step.groups:
            members = [axes[k] for k in group]
            members = [m for m in members if m.extent != 1] or members[-1:]
            if len(members) == 1:
                tiled.append(members[0])
                continue
            if any(id(m) not in roots for m in members):
                return None
            dims = tuple(d for m in members for d in roots[id(m)])
            merged = _Node(prod(m.extent for m in members))
            tops = [(ds, node) for ds, node in tops if all(node is not m for m in members)]
            tops.append((dims, merged))
            tiled.append(merged)
        highs, lows = [], []
        for node, tile in zip(tiled, step.tile, strict=True):
            node.cut = (tile, _Node(-(-node.extent // tile)), _Node(tile))
            roots.pop(id(node), None)
            highs.append(node.cut[1])
            lows.append(node.cut[2])
        axes = axes[: step.untouched] + highs + lows
    stride = 1
    for node, extent in zip(reversed(axes), reversed(final), strict=True):
        node.stride = stride
        stride *= extent
    return tuple(Root(dims, node.tree()) for dims, node in tops)


def _physical_order(shape: Shape) -> tuple[int, ...]:
    """The dimensions from the most major to the most minor."""
    layout = shape.layout
    if layout is None:
        return tuple(range(shape.rank))
    return tuple(reversed(layout.minor_to_major))


def _forward(shape: Shape, index: tuple[Index, ...]) -> Any:
    steps, extents = tile_steps_of(shape)
    values: list[Any] = [index[d] for d in _physical_order(shape)]
    for step, before in zip(steps, extents, strict=False):
        values = [0] * step.lead + values
        axes = (1,) * step.lead + before
        highs, lows = [], []
        for group, tile in zip(step.groups, step.tile, strict=True):
            merged: Any = 0
            for k in group:
                merged = merged * axes[k] + values[k]
            highs.append(merged // tile)
            lows.append(merged % tile)
        values = values[: step.untouched] + highs + lows
    slot: Any = 0
    for value, extent in zip(values, extents[-1], strict=True):
        slot = slot * extent + value
    return slot


def _backward(shape: Shape, slot: Any) -> tuple[list[Any], Any]:
    steps, extents = tile_steps_of(shape)
    values: list[Any] = []
    rest = slot
    for extent in reversed(extents[-1]):
        values.append(rest % extent if extent else rest)
        rest = rest // extent if extent else rest
    valid: Any = rest == 0
    values.reverse()
    for step, before in reversed(list(zip(steps, extents, strict=False))):
        axes = (1,) * step.lead + before
        count = len(step.tile)
        highs, lows = values[-2 * count : -count], values[-count:]
        outer: list[Any] = [0] * len(axes)
        outer[: step.untouched] = values[: step.untouched]
        for group, tile, high, low in zip(step.groups, step.tile, highs, lows, strict=True):
            merged = high * tile + low
            for k in reversed(group):
                outer[k] = merged % axes[k] if axes[k] else merged
                merged = merged // axes[k] if axes[k] else merged
            valid = valid & (merged == 0)
        values = outer[step.lead :]
        for one in outer[: step.lead]:
            valid = valid & (one == 0)
    index: list[Any] = [0] * shape.rank
    for d, value in zip(_physical_order(shape), values, strict=True):
        index[d] = value
        valid = valid & (value < shape.dimensions[d])
    return index, valid


def _offsets_of_rows(shape: Shape, rows: Offsets) -> Offsets:
    """The slots of elements given by their row-major numbers."""
    index: list[Index] = []
    for extent in reversed(shape.dimensions):
        index.append(rows % extent)
        rows = rows // extent
    return np.asarray(_forward(shape, tuple(reversed(index))), np.int64)


def _checked_index(shape: Spec, index: tuple[Any, ...]) -> tuple[Index, ...]:
    if not isinstance(index, tuple | list):
        raise TypeError(f"an index is a tuple of integers or arrays, not {type(index).__name__}")
    if len(index) != shape.rank:
        raise LayoutIndexError(f"{shape_name(shape)} takes {shape.rank} indices, not {len(index)}")
    out: list[Index] = []
    for d, (value, extent) in enumerate(zip(index, shape.dimensions, strict=True)):
        checked = _integer(value, f"the index of dimension {d}")
        low, high = (checked, checked) if isinstance(checked, int) else _span(checked)
        if low < 0 or high >= extent:
            wrong = low if low < 0 else high
            raise LayoutIndexError(
                f"index {wrong} lies outside dimension {d}\n  {shape_name(shape)} has {extent} there; "
                + (f"write 0 to {extent - 1}" if extent else "there are no elements")
            )
        out.append(checked)
    try:
        np.broadcast_shapes(*(value.shape for value in out if not isinstance(value, int)))
    except ValueError as error:
        raise LayoutIndexError(f"the arrays of indices do not broadcast: {error}") from error
    return tuple(out)


def _shape_of(
    layout: Any, dtype: ElementLike | None, dims: Iterable[int] | None, parameters: dict[str, Any]
) -> Spec:
    """The shape that a caller means: a shape itself, that of a tiled array, or what `as_layout` reads."""
    own = layout if isinstance(layout, Shape | CuteShape) else getattr(layout, "layout", None)
    shape = own if isinstance(own, Shape | CuteShape) else None
    if shape is not None and dtype is None and dims is None and not parameters:
        return shape
    from tilejit.layout.as_layout import as_layout

    return as_layout(layout if shape is None else shape, dtype=dtype, dims=dims, **parameters)


def _integer(value: Any, what: str) -> Index:
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} is a truth value, not an integer")
    if isinstance(value, int | np.integer):
        return int(value)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise LayoutIndexError(
            f"{what}: expected an integer or an array, got {type(value).__name__}: {error}"
        ) from error
    if array.dtype.kind not in "iu":
        if array.size == 0:
            return array.astype(np.int64)
        raise TypeError(f"{what} is of type {array.dtype}, not an integer or an array of integers")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise LayoutIndexError(f"{what} is {int(array.max())}, beyond every buffer")
    return array.astype(np.int64, copy=False)


def _span(array: NDArray[np.int64]) -> tuple[int, int]:
    """The least and the greatest value; an empty array asks for nothing."""
    return (int(array.min()), int(array.max())) if array.size else (0, -1)


def shape_name(shape: Spec) -> str:
    """A shape for a message: XLA's or CuTe's text, or the repr where that has no place for the padding."""
    return _RULES[type(shape)].name(shape)


def _xla_name(shape: Shape) -> str:
    plain = shape.padded_dimensions is None and shape.padding_value is None
    return str(shape) if plain else repr(shape)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one sort of shape answers."""

    access_map: Callable[[Any], AccessMap]
    slot: Callable[[Any, tuple[Index, ...]], Any]
    index: Callable[[Any, Any], tuple[list[Any], Any]]
    name: Callable[[Any], str]


_RULES: dict[type, _Rules] = {
    Shape: _Rules(_xla_access_map, _forward, _backward, _xla_name),
    CuteShape: _Rules(cute_access_map, cute_slot, cute_index, str),
}
