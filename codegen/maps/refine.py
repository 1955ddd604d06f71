"""Refine two digit trees to their common digits, and list the guard-free boxes of the result.

Partial tiles become separate boxes, so no loop contains a bound. If two trees have no common refinement,
their offsets are a table that the copy fills in at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import gcd, lcm, prod
from typing import TypeAlias

import numpy as np

from codegen.maps.digit_trees import (
    Leaf,
    Offsets,
    Switch,
    Tree,
    ceil_div,
    coalesce_tree,
    evaluate_tree,
    split_tree,
    tree_cuts,
)
from codegen.support.dataclasses import dataclass

Digit: TypeAlias = tuple[int, int, int]
"""(extent, source stride, destination stride)."""

LONGEST_TILE = 256
"""The most elements along a digit of a tile. Longer digits mostly are parts of an array, such as one of two
halves, so their sizes are arguments: one kernel serves all shapes."""

OffsetFunction: TypeAlias = Callable[[Offsets], Offsets]


@dataclass(frozen=True, slots=True)
class PairLeaf:
    """A digit that each side traverses with one stride; `tile` is as in `Box`."""

    extent: int
    src: int
    dst: int
    tile: int = 0


@dataclass(frozen=True, slots=True)
class PairSplit:
    """Two common digits; `extent` bounds their combined index."""

    extent: int
    tile: int
    high: PairTree
    low: PairTree


@dataclass(frozen=True, slots=True)
class PairTable:
    """An index range without common digits: offsets point by point."""

    extent: int
    src: OffsetFunction
    dst: OffsetFunction


@dataclass(frozen=True, slots=True)
class PairSwitch:
    """A digit that selects the tree below it; `starts` are (source, destination) offsets of the cases."""

    extent: int
    tile: int
    starts: tuple[tuple[int, int], ...]
    cases: tuple[PairTree, ...]


PairTree: TypeAlias = PairLeaf | PairSplit | PairSwitch | PairTable


@dataclass(frozen=True, slots=True)
class Box:
    """A guard-free part of the copy: bases, affine digits, and tables for offsets that are not affine.

    names  of the digits: see `digit_names`
    tiles  the extents that a layout gives the digits, of which edges have a part; 0 if the shape decides
    """

    src_base: int
    dst_base: int
    digits: tuple[Digit, ...]
    names: tuple[str, ...]
    tables: tuple[PairTable, ...] = ()
    tiles: tuple[int, ...] = ()

    @property
    def volume(self) -> int:
        """Elements in the box."""
        return prod(d[0] for d in self.digits) * prod(t.extent for t in self.tables)


def refine(a: Tree, b: Tree) -> PairTree:
    """The two trees over their common digits; a table if there are none."""
    a, b = coalesce_tree(a), coalesce_tree(b)
    extent = a.extent
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        return PairLeaf(extent, a.stride, b.stride)
    switched = _refine_switch(a, b)
    if switched:
        return switched
    cuts_a, cuts_b = tree_cuts(a), tree_cuts(b)
    candidates: Iterable[int] = [
        *sorted(cuts_a | cuts_b, reverse=True),
        *sorted({lcm(x, y) for x in cuts_a for y in cuts_b}),
        *sorted({gcd(x, y) for x in cuts_a for y in cuts_b}, reverse=True),
    ]
    for tile in candidates:
        if 1 < tile < extent:
            pair_a, pair_b = split_tree(a, tile), split_tree(b, tile)
            if pair_a and pair_b:
                high = refine(pair_a[0], pair_b[0])
                return PairSplit(extent, tile, high, refine(pair_a[1], pair_b[1]))
    return PairTable(extent, lambda m: evaluate_tree(a, m), lambda m: evaluate_tree(b, m))


def _refine_switch(a: Tree, b: Tree) -> PairTree | None:
    """The pair if one side is a switch and the other can be split at the same tile; otherwise None."""
    switch = a if isinstance(a, Switch) else b
    if not isinstance(switch, Switch):
        return None
    tile, count = switch.tile, len(switch.cases)
    sides = _cases(a, tile, count), _cases(b, tile, count)
    if sides[0] is None or sides[1] is None:
        return None
    (starts_a, cases_a), (starts_b, cases_b) = sides[0], sides[1]
    cases = tuple(refine(x, y) for x, y in zip(cases_a, cases_b, strict=True))
    return PairSwitch(a.extent, tile, tuple(zip(starts_a, starts_b, strict=True)), cases)


def _cases(tree: Tree, tile: int, count: int) -> tuple[tuple[int, ...], tuple[Tree, ...]] | None:
    """Starts and trees of `count` parts of a tree, `tile` indices each; None if it cannot be split there."""
    if isinstance(tree, Switch) and tree.tile == tile:
        return tree.starts, tree.cases
    pair = split_tree(tree, tile)
    if pair is None:
        return None
    return tuple(int(evaluate_tree(pair[0], k)) for k in range(count)), (pair[1],) * count


def coalesce_pair(tree: PairTree) -> PairTree:
    """Merge digits of one root that each side traverses with one stride; the result keeps the bound."""
    if isinstance(tree, PairSwitch):
        return replace(tree, cases=tuple(coalesce_pair(case) for case in tree.cases))
    if not isinstance(tree, PairSplit):
        return tree
    high, low = coalesce_pair(tree.high), coalesce_pair(tree.low)
    if isinstance(high, PairLeaf) and isinstance(low, PairLeaf):
        joins = high.src == tree.tile * low.src and high.dst == tree.tile * low.dst
        if joins or tree.tile == 1:
            return PairLeaf(tree.extent, low.src, low.dst) if tree.tile > 1 else high
    return PairSplit(tree.extent, tree.tile, high, low)


def with_tiles(tree: PairTree, *, inside: bool = False) -> PairTree:
    """The tree with the extents that a layout gives its digits: all but the outermost one.

    inside  whether the tree counts the elements of a tile
    """
    match tree:
        case PairLeaf(extent) if inside and extent <= LONGEST_TILE:
            return replace(tree, tile=extent)
        case PairSplit(_, _, high, low):
            return replace(tree, high=with_tiles(high, inside=inside), low=with_tiles(low, inside=True))
        case PairSwitch(cases=cases):
            return replace(tree, cases=tuple(with_tiles(x, inside=inside) for x in cases))
    return tree


def pair_offsets(tree: PairTree, index: int) -> tuple[int, int]:
    """(source, destination) offset at one index."""
    match tree:
        case PairLeaf(_, src, dst):
            return index * src, index * dst
        case PairSplit(_, tile, high, low):
            a, b = pair_offsets(high, index // tile), pair_offsets(low, index % tile)
            return a[0] + b[0], a[1] + b[1]
        case PairSwitch(_, tile, starts, cases):
            a, b = starts[index // tile], pair_offsets(cases[index // tile], index % tile)
            return a[0] + b[0], a[1] + b[1]
        case PairTable(_, src_of, dst_of):
            m = np.array([index], np.int64)
            return int(src_of(m)[0]), int(dst_of(m)[0])


def pair_levels(tree: PairTree) -> int:
    """The most digits that a box of one root has."""
    match tree:
        case PairSplit(_, _, high, low):
            return pair_levels(high) + pair_levels(low)
        case PairSwitch(cases=cases):
            return max(map(pair_levels, cases))
    return 1


def tree_boxes(tree: PairTree, names: Sequence[str]) -> list[Box]:
    """The guard-free boxes of one root, the full one first; `names` are those of digits, innermost first."""
    match tree:
        case PairLeaf(extent, src, dst, tile):
            return [Box(0, 0, ((extent, src, dst),), (names[0],), tiles=(tile,))]
        case PairTable():
            return [Box(0, 0, (), (), (tree,))]
        case PairSwitch():
            return [
                replace(box, src_base=box.src_base + start[0], dst_base=box.dst_base + start[1])
                for start, case in _bounded_cases(tree)
                for box in tree_boxes(case, names)
            ]
    full, rest = divmod(tree.extent, tree.tile)
    out: list[Box] = []
    if full:
        outer = names[pair_levels(tree.low) :]
        highs, lows = tree_boxes(_truncated(tree.high, full), outer), tree_boxes(tree.low, names)
        for high, low in product(highs, lows):
            out.append(
                Box(
                    high.src_base + low.src_base,
                    high.dst_base + low.dst_base,
                    high.digits + low.digits,
                    high.names + low.names,
                    high.tables + low.tables,
                    high.tiles + low.tiles,
                )
            )
    if rest:
        src, dst = pair_offsets(tree.high, full)
        for low in tree_boxes(_truncated(tree.low, rest), names):
            out.append(replace(low, src_base=src + low.src_base, dst_base=dst + low.dst_base))
    return out


def _bounded_cases(tree: PairSwitch) -> Iterator[tuple[tuple[int, int], PairTree]]:
    """The start of each case within the bound, and its tree truncated to the bound."""
    for k, (start, case) in enumerate(zip(tree.starts, tree.cases, strict=True)):
        left = tree.extent - k * tree.tile
        if left > 0:
            yield start, case if left >= tree.tile else _truncated(case, left)


def _truncated(tree: PairTree, extent: int) -> PairTree:
    match tree:
        case PairLeaf():
            return replace(tree, extent=extent)
        case PairTable(_, src_of, dst_of):
            return PairTable(extent, src_of, dst_of)
        case PairSwitch():
            return _truncated(tree.cases[0], extent) if extent <= tree.tile else replace(tree, extent=extent)
    if extent <= tree.tile:
        return _truncated(tree.low, extent)
    return PairSplit(extent, tree.tile, _truncated(tree.high, ceil_div(extent, tree.tile)), tree.low)


def count_boxes(tree: PairTree) -> int:
    """The number of boxes that `tree_boxes` returns, without building them."""
    if isinstance(tree, PairSwitch):
        return sum(count_boxes(case) for _, case in _bounded_cases(tree))
    if not isinstance(tree, PairSplit):
        return 1
    full, rest = divmod(tree.extent, tree.tile)
    in_full_tiles = count_boxes(_truncated(tree.high, full)) * count_boxes(tree.low) if full else 0
    return in_full_tiles + (count_boxes(_truncated(tree.low, rest)) if rest else 0)


def tabulate(tree: PairTree) -> PairTable:
    """The same pairs of offsets as a table."""
    return PairTable(tree.extent, lambda m: _evaluate_pair(tree, m, 0), lambda m: _evaluate_pair(tree, m, 1))


def _evaluate_pair(tree: PairTree, index: Offsets, side: int) -> Offsets:
    match tree:
        case PairLeaf(_, src, dst):
            return index * (dst if side else src)
        case PairSplit(_, tile, high, low):
            return _evaluate_pair(high, index // tile, side) + _evaluate_pair(low, index % tile, side)
        case PairSwitch(_, tile, starts, cases):
            which, below = index // tile, index % tile
            out = np.take(np.array([start[side] for start in starts], np.int64), which)
            for k, case in enumerate(cases):
                out = out + np.where(which == k, _evaluate_pair(case, below, side), 0)
            return np.asarray(out, np.int64)
        case PairTable(_, src_of, dst_of):
            return (dst_of if side else src_of)(index)
