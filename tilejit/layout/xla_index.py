"""Map elements of an XLA shape to slots and back, directly from XLA's definition.

One tile step maps an index e to (e // t, e mod t). `xla_slot` runs the steps forward, and `xla_index` runs
them backward. `xla_access_map` describes the same map to the compiler as digit trees.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import AccessMap, Leaf, Offsets, Opaque, Root, Split, Tree, dataclass
from tilejit.cute.function import rows_of
from tilejit.layout.shape import Shape
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.layout.tiling import TileStep

Index: TypeAlias = int | NDArray[np.int64]


def xla_access_map(shape: Shape) -> AccessMap:
    """The buffer of an XLA shape as an access map, in elements."""
    steps, extents = tile_steps_of(shape)
    final, bits = extents[-1], shape.bits
    size = shape.physical_size
    if bits < 8:
        size = -(-size * bits // 8) * 8 // bits  # the rest of the last byte is padding as well
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
    """A digit while the tree grows: it is cut in two by a tile step, or keeps a stride at the end."""

    extent: int
    cut: tuple[int, _Node, _Node] | None = None
    stride: int = 0

    def tree(self) -> Tree:
        if self.cut is None:
            return Leaf(self.extent, self.stride)
        tile, high, low = self.cut
        return Split(self.extent, tile, high.tree(), low.tree())


def _tree_roots(shape: Shape, steps: tuple[TileStep, ...], final: tuple[int, ...]) -> tuple[Root, ...] | None:
    """One tree for each root, or None if `*` merges digits rather than whole dimensions."""
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


def xla_slot(shape: Shape, index: tuple[Index, ...]) -> Any:
    """The slot of a checked index."""
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


def xla_index(shape: Shape, slot: Any) -> tuple[list[Any], Any]:
    """The index of the element in a slot, and whether there is one."""
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
    return np.asarray(xla_slot(shape, rows_of(shape.dimensions, rows)), np.int64)
