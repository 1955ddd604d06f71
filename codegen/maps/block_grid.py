"""Arrays cut into blocks after which layouts repeat, so that a few programs serve all blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.maps.access import AccessMap, logical_roots, map_offset
from codegen.maps.digit_trees import Leaf, Tree, ceil_div, coalesce_tree, split_tree, tree_cuts
from codegen.support.dataclasses import dataclass

Dims: TypeAlias = tuple[int, ...]
Ends: TypeAlias = tuple[bool, ...]
"""A kind of block: the dimensions along which it is the last one and has another extent."""

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """An array of extents `dims` cut into blocks of `extents`; the last block of a dimension may be shorter.

    dims (61, 83), extents (24, 16) -> counts (3, 6), short (True, True)
    """

    dims: Dims
    extents: Dims

    @property
    def counts(self) -> Dims:
        """Blocks along each dimension."""
        return tuple(ceil_div(n, e) for n, e in zip(self.dims, self.extents, strict=True))

    @property
    def short(self) -> tuple[bool, ...]:
        """Whether the last block along a dimension has another extent."""
        return tuple(n % e != 0 for n, e in zip(self.dims, self.extents, strict=True))

    def ends(self) -> Iterator[Ends]:
        """Every kind of block in the grid."""
        return product(*self._ends)

    @property
    def _ends(self) -> tuple[Ends, ...]:
        """Along each dimension, whether blocks are a last one of another extent; both if some are."""
        each = zip(self.short, self.counts, strict=True)
        return tuple((False,) if not s else (True,) if n == 1 else (False, True) for s, n in each)

    def offsets(self, steps: Dims) -> Integers:
        """Bytes from the first block to each block, in C order."""
        return _sums([step * np.arange(n) for step, n in zip(steps, self.counts, strict=True)])

    def kinds(self) -> Integers:
        """The kind of each block, in C order, as its number in `ends`."""
        parts, both = [], [len(x) for x in self._ends]
        for d, n in enumerate(self.counts):
            is_last = (np.arange(n) == n - 1) & (both[d] == 2)
            parts.append(prod(both[d + 1 :]) * is_last)
        return _sums(parts)

    def first(self, ends: Ends) -> Dims:
        """The position of the first block of a kind."""
        return tuple(n - 1 if cut else 0 for n, cut in zip(self.counts, ends, strict=True))

    def box(self, ends: Ends) -> tuple[Dims, Dims]:
        """The first index and the extents of the first block of a kind."""
        starts = tuple(k * e for k, e in zip(self.first(ends), self.extents, strict=True))
        each = zip(self.dims, self.extents, starts, ends, strict=True)
        return starts, tuple(n - s if cut else min(n, e) for n, e, s, cut in each)

    def steps(self, access: AccessMap) -> Dims | None:
        """Bytes from one block to the next along each dimension; None if a block begins inside a byte."""
        zero = (0,) * len(self.dims)
        first, out = map_offset(access, zero), []
        for d, (n, extent) in enumerate(zip(self.dims, self.extents, strict=True)):
            there = map_offset(access, (*zero[:d], extent, *zero[d + 1 :])) if extent < n else first
            out.append(int(there - first) * access.unit_bits)
        return None if any(step % 8 for step in out) else tuple(step // 8 for step in out)


def _sums(parts: Sequence[Integers]) -> Integers:
    """One element of each part in every combination, added up, in C order."""
    total = np.zeros(1, np.int64)
    for part in parts:
        total = (total[:, None] + part).reshape(-1)
    return total


def block_offset(place: Dims, steps: Dims) -> int:
    """Bytes from the first block to the block at a position."""
    return sum(k * step for k, step in zip(place, steps, strict=True))


def grains(layout: AccessMap) -> Dims | None:
    """The fewest elements along each dimension after which the offsets repeat."""
    trees = {r.dims: r.tree for r in logical_roots(layout)}
    found = tuple(_grain(trees[(d,)]) if (d,) in trees else None for d in range(len(layout.dims)))
    return None if None in found else tuple(g for g in found if g is not None)


def _grain(tree: Tree) -> int | None:
    if isinstance(tree, Leaf):
        return 1
    for tile in sorted(tree_cuts(tree)):
        pair = split_tree(tree, tile)
        if pair and isinstance(coalesce_tree(pair[0]), Leaf):
            return tile
    return None
