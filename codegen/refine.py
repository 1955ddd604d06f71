"""Two digit trees over their common digits, and the guard-free boxes of the result.

Partial tiles become separate boxes, so no bound is left inside a loop; where two trees have no common
refinement, their offsets are a table that the copy fills in when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from math import gcd, lcm, prod
from typing import TypeAlias

import numpy as np

from codegen.access import Leaf, Offsets, Tree, ceil_div, coalesce, cuts, evaluate, split

Digit: TypeAlias = tuple[int, int, int]
"""(extent, source stride, destination stride)."""

OffsetFunction: TypeAlias = Callable[[Offsets], Offsets]


@dataclass(frozen=True, slots=True)
class PairLeaf:
    """A digit that both sides walk with one stride."""

    extent: int
    src: int
    dst: int


@dataclass(frozen=True, slots=True)
class PairSplit:
    """Two common digits; the extent is the bound."""

    extent: int
    tile: int
    high: PairTree
    low: PairTree


@dataclass(frozen=True, slots=True)
class PairTable:
    """A digit on which the sides disagree: offsets point by point."""

    extent: int
    src: OffsetFunction
    dst: OffsetFunction


PairTree: TypeAlias = PairLeaf | PairSplit | PairTable


@dataclass(frozen=True, slots=True)
class Box:
    """A guard-free part of the copy: bases, affine digits, and tables for what is not affine."""

    src_base: int
    dst_base: int
    digits: tuple[Digit, ...]
    tables: tuple[PairTable, ...] = ()

    @property
    def volume(self) -> int:
        """Elements in the box."""
        return prod(d[0] for d in self.digits) * prod(t.extent for t in self.tables)


def refine(a: Tree, b: Tree) -> PairTree:
    """The two trees over their common digits; a table where there are none."""
    a, b = coalesce(a), coalesce(b)
    extent = a.extent
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        return PairLeaf(extent, a.stride, b.stride)
    cuts_a, cuts_b = cuts(a), cuts(b)
    candidates: Iterable[int] = [
        *sorted(cuts_a | cuts_b, reverse=True),
        *sorted({lcm(x, y) for x in cuts_a for y in cuts_b}),
        *sorted({gcd(x, y) for x in cuts_a for y in cuts_b}, reverse=True),
    ]
    for tile in candidates:
        if 1 < tile < extent:
            pair_a, pair_b = split(a, tile), split(b, tile)
            if pair_a and pair_b:
                high = refine(pair_a[0], pair_b[0])
                return PairSplit(extent, tile, high, refine(pair_a[1], pair_b[1]))
    return PairTable(extent, lambda m: evaluate(a, m), lambda m: evaluate(b, m))


def coalesce_pair(tree: PairTree) -> PairTree:
    """Merge digits of one root that both sides walk as one; the bound rides on the result."""
    if not isinstance(tree, PairSplit):
        return tree
    high, low = coalesce_pair(tree.high), coalesce_pair(tree.low)
    if isinstance(high, PairLeaf) and isinstance(low, PairLeaf):
        joins = high.src == tree.tile * low.src and high.dst == tree.tile * low.dst
        if joins or tree.tile == 1:
            return PairLeaf(tree.extent, low.src, low.dst) if tree.tile > 1 else high
    return PairSplit(tree.extent, tree.tile, high, low)


def pair_offsets(tree: PairTree, index: int) -> tuple[int, int]:
    """(source, destination) offset at one index."""
    match tree:
        case PairLeaf(_, src, dst):
            return index * src, index * dst
        case PairSplit(_, tile, high, low):
            a, b = pair_offsets(high, index // tile), pair_offsets(low, index % tile)
            return a[0] + b[0], a[1] + b[1]
        case PairTable(_, src_of, dst_of):
            m = np.array([index], np.int64)
            return int(src_of(m)[0]), int(dst_of(m)[0])


def tree_boxes(tree: PairTree) -> list[Box]:
    """The guard-free boxes of one root, the full one first."""
    match tree:
        case PairLeaf(extent, src, dst):
            return [Box(0, 0, ((extent, src, dst),))]
        case PairTable():
            return [Box(0, 0, (), (tree,))]
    whole, rest = divmod(tree.extent, tree.tile)
    out: list[Box] = []
    if whole:
        for high, low in product(tree_boxes(_truncated(tree.high, whole)), tree_boxes(tree.low)):
            out.append(
                Box(
                    high.src_base + low.src_base,
                    high.dst_base + low.dst_base,
                    high.digits + low.digits,
                    high.tables + low.tables,
                )
            )
    if rest:
        src, dst = pair_offsets(tree.high, whole)
        for low in tree_boxes(_truncated(tree.low, rest)):
            out.append(Box(src + low.src_base, dst + low.dst_base, low.digits, low.tables))
    return out


def _truncated(tree: PairTree, extent: int) -> PairTree:
    match tree:
        case PairLeaf(_, src, dst):
            return PairLeaf(extent, src, dst)
        case PairTable(_, src_of, dst_of):
            return PairTable(extent, src_of, dst_of)
    if extent <= tree.tile:
        return _truncated(tree.low, extent)
    return PairSplit(extent, tree.tile, _truncated(tree.high, ceil_div(extent, tree.tile)), tree.low)


def count_boxes(tree: PairTree) -> int:
    """How many boxes `tree_boxes` gives, without making them."""
    if not isinstance(tree, PairSplit):
        return 1
    whole, rest = divmod(tree.extent, tree.tile)
    full = count_boxes(_truncated(tree.high, whole)) * count_boxes(tree.low) if whole else 0
    return full + (count_boxes(_truncated(tree.low, rest)) if rest else 0)


def tabulate(tree: PairTree) -> PairTable:
    """The same pairs of offsets as a table."""
    return PairTable(tree.extent, lambda m: _evaluate_pair(tree, m, 0), lambda m: _evaluate_pair(tree, m, 1))


def _evaluate_pair(tree: PairTree, index: Offsets, side: int) -> Offsets:
    match tree:
        case PairLeaf(_, src, dst):
            return index * (dst if side else src)
        case PairSplit(_, tile, high, low):
            return _evaluate_pair(high, index // tile, side) + _evaluate_pair(low, index % tile, side)
        case PairTable(_, src_of, dst_of):
            return (dst_of if side else src_of)(index)
