"""Convert two access maps to the boxes of a copy, over the common digits of both sides.

Roots that share a dimension are joined, and refined into digits that each side traverses with one stride.
Their products are guard-free boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, permutations, product
from math import prod

import numpy as np

from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.maps.access import AccessMap, Root, logical_roots, map_offset
from codegen.maps.boxed_copy import BoxedCopy
from codegen.maps.digit_names import digit_names
from codegen.maps.digit_trees import Offsets, Split, Tree
from codegen.maps.padding import lower_padding
from codegen.maps.refine import (
    Box,
    OffsetFunction,
    PairTable,
    PairTree,
    coalesce_pair,
    count_boxes,
    pair_levels,
    refine,
    tabulate,
    tree_boxes,
    with_tiles,
)
from codegen.support.lookups import expect

MAX_BOXES = 64
"""With more boxes than this, roots become tables: the number of boxes is a product over roots."""


def box_copy(src: AccessMap, dst: AccessMap) -> BoxedCopy:
    """The boxes that copy every element of `src` to its offset in `dst`, and the padding of `dst`.

    Both maps have the same dims and units. The strides and bases of the boxes are in those units.
    """
    if src.dims != dst.dims:
        raise AssertionError(f"box_copy: the sides disagree: {src.dims} and {dst.dims}")
    pads, fill_first = lower_padding(dst)
    if 0 in src.dims:
        return BoxedCopy(src, dst, (), (), pads, fill_first)
    dims, found = zip(*pair_trees(src, dst), strict=True) if src.dims else ((), ())
    # Joined dimensions are split by their sizes, which are those of the array.
    bounded = zip(dims, _bounded(found), strict=True)
    trees = tuple(with_tiles(tree) if len(d) == 1 else tree for d, tree in bounded)
    names = [digit_names(d, pair_levels(tree)) for d, tree in zip(dims, trees, strict=True)]
    zero = (0,) * len(src.dims)
    src_base, dst_base = int(map_offset(src, zero)), int(map_offset(dst, zero))
    boxes = tuple(
        Box(
            src_base + sum(p.src_base for p in parts),
            dst_base + sum(p.dst_base for p in parts),
            tuple(d for p in parts for d in p.digits),
            tuple(name for p in parts for name in p.names),
            tuple(t for p in parts for t in p.tables),
            tuple(tile for p in parts for tile in p.tiles),
        )
        for parts in product(*map(tree_boxes, trees, names))
    )
    return BoxedCopy(src, dst, trees, boxes, pads, fill_first)


def pair_trees(src: AccessMap, dst: AccessMap) -> Iterator[tuple[list[int], PairTree]]:
    """One refined tree for each connected component of dimensions, and these."""
    sides = logical_roots(src), logical_roots(dst)
    for dims in _components(len(src.dims), sides):
        parts = tuple([r for r in side if set(r.dims) & set(dims)] for side in sides)
        order = _common_order(dims, parts)
        if order is None:
            yield dims, _component_table(dims, src, dst)
        else:
            joined = [_join(sorted(p, key=lambda r: order.index(r.dims[0]))) for p in parts]
            yield dims, coalesce_pair(refine(joined[0], joined[1]))


def _bounded(trees: Iterable[PairTree]) -> list[PairTree]:
    """Trees with at most MAX_BOXES boxes in total; the shortest roots become tables first."""
    out = list(trees)
    counts = [count_boxes(t) for t in out]
    for k in sorted(range(len(out)), key=lambda k: (out[k].extent, k)):
        if prod(counts) <= MAX_BOXES:
            break
        if counts[k] > 1:
            out[k], counts[k] = tabulate(out[k]), 1
    return out


def _components(rank: int, sides: tuple[tuple[Root, ...], ...]) -> list[list[int]]:
    """Groups of dimensions that share a root on either side, directly or through others."""
    parent = list(range(rank))

    def find(x: int) -> int:
        while parent[x] != x:
            x = parent[x]
        return x

    for side in sides:
        for root in side:
            for d in root.dims[1:]:
                parent[find(d)] = find(root.dims[0])
    groups: dict[int, list[int]] = {}
    for d in range(rank):
        groups.setdefault(find(d), []).append(d)
    return list(groups.values())


def _common_order(dims: list[int], parts: tuple[list[Root], ...]) -> tuple[int, ...] | None:
    """An order of the dimensions that keeps those of every root adjacent and in the root's order, or None."""
    merged = [r.dims for side in parts for r in side if len(r.dims) > 1]
    if not merged:
        return tuple(dims)
    if len(dims) > 5:
        longest = max(merged, key=len)
        rest = [d for d in dims if d not in longest]
        orders: Iterable[tuple[int, ...]] = [tuple(rest) + longest, longest + tuple(rest)]
    else:
        orders = permutations(dims)
    for order in orders:
        position = {d: i for i, d in enumerate(order)}
        if all(position[b] == position[a] + 1 for r in merged for a, b in pairwise(r)):
            return order
    return None


def _join(roots: list[Root]) -> Tree:
    """One tree over the row-major index of all the roots' dims."""
    joined = roots[0].tree
    for root in roots[1:]:
        extent = root.tree.extent
        joined = Split(joined.extent * extent, extent, joined, root.tree) if extent else root.tree
    return joined


def _component_table(dims: list[int], src: AccessMap, dst: AccessMap) -> PairTable:
    extents = [src.dims[d] for d in dims]

    def offsets_of(access: AccessMap) -> OffsetFunction:
        zero = (0,) * len(access.dims)
        origin = int(map_offset(access, zero))

        def offsets(m: Offsets) -> Offsets:
            index: list[Offsets | int] = [0] * len(access.dims)
            for d, extent in zip(reversed(dims), reversed(extents), strict=True):
                index[d], m = m % extent, m // extent
            return np.asarray(map_offset(access, tuple(index)) - origin, np.int64)

        return offsets

    return PairTable(prod(extents), offsets_of(src), offsets_of(dst))


def copied_box(
    copy: BoxedCopy, box: Box, source: Element, target: Element, *, swap: bool = False
) -> StridedBox:
    """One box of a copy with its elements: an axis for each digit, dst[…] = src[…].

    `swap` reverses the bytes of every source element. A `target` other than `source` adds a conversion.

    Extents of full tiles are literals of kernels. Parts of tiles have none: layouts share their kernels.
    """
    is_full = all(tile in (0, extent) for tile, (extent, *_) in zip(box.tiles, box.digits, strict=True))
    digits = zip(box.names, box.digits, box.tiles, strict=True)
    axes = tuple(Axis(name, *digit, fixed=is_full and tile > 0) for name, digit, tile in digits)
    entries = prod(t.extent for t in box.tables) if box.tables else 0
    return StridedBox(axes, box.src_base, box.dst_base, source, target, copy.dst.unit_bits, swap, entries)


def padding_box(copy: BoxedCopy, box: Box, target: Element, size_bytes: int) -> StridedBox:
    """One box of slots that receive a padding value of `size_bytes`; the source side of `box` is zero.

    Parts of complex numbers are swapped one by one, but their padding stays together.
    """
    axes = tuple(Axis(name, *digit) for name, digit in zip(box.names, box.digits, strict=True))
    parts = 8 * size_bytes // target.bits
    if target.bits >= 8 and parts > 1:
        found = (x for x in axes if x.dst == target.bits // 8 and x.extent % parts == 0)
        whole = expect(found, "an axis over the parts of elements", axes)
        axes = tuple(_together(x, parts) if x is whole else x for x in axes)
        target = Element(f"u{8 * size_bytes}", 8 * size_bytes)
    entries = prod(t.extent for t in box.tables) if box.tables else 0
    return StridedBox(axes, 0, box.dst_base, None, target, copy.dst.unit_bits, entries=entries)


def _together(axis: Axis, parts: int) -> Axis:
    """An axis over parts of elements as one over elements."""
    return Axis(axis.name, axis.extent // parts, axis.src * parts, axis.dst * parts)
