"""Arrays cut into blocks after which layouts repeat themselves: a few programs serve all the blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm, prod
from typing import TypeAlias

from codegen import (
    AccessMap,
    Leaf,
    Tree,
    ceil_div,
    coalesce_tree,
    logical_roots,
    machine,
    map_offset,
    split_tree,
    tree_cuts,
)
from tilejit.memory import LINE_BYTES

BLOCK_BYTES = min(384 << 10, machine().second_cache_bytes * 3 // 8)
"""What a block takes as an array: with what is read and written beside it, no more than a second cache.
Of one of 512 KiB, blocks of 192 KiB are 1.15 times as fast as those of 384 (Zen 3, 2026-11)."""

MOST_PROGRAMS = 16

Dims: TypeAlias = tuple[int, ...]
Ends: TypeAlias = tuple[bool, ...]
"""Along which dimensions a block is the last one, cut off."""


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """An array of `dims` cut into blocks of `extents`, the last one along a dimension as short as need be.

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
        """Whether the last block along a dimension is cut off."""
        return tuple(n % e != 0 for n, e in zip(self.dims, self.extents, strict=True))

    @property
    def is_of_few_sorts(self) -> bool:
        """Whether a program for each sort of block is not too much."""
        return 1 << sum(self.short) <= MOST_PROGRAMS

    def ends(self) -> Iterator[Ends]:
        """Every sort of block: whole, or cut off along some dimensions."""
        return product(*((False, True) if s else (False,) for s in self.short))

    def blocks(self) -> Iterator[tuple[Dims, Ends]]:
        """Where each block stands, in C order, and which sort it is."""
        counts, short = self.counts, self.short
        for place in product(*map(range, counts)):
            yield place, tuple(s and k == n - 1 for s, k, n in zip(short, place, counts, strict=True))

    def box(self, ends: Ends) -> tuple[Dims, Dims]:
        """Where the first block of a sort begins, or the last where it is cut off, and its extents."""
        each = list(zip(self.dims, self.extents, ends, strict=True))
        starts = tuple((n - 1) // e * e if cut else 0 for n, e, cut in each)
        return starts, tuple(min(e, n - s) for (n, e, _), s in zip(each, starts, strict=True))

    def steps(self, access: AccessMap) -> Dims | None:
        """Bytes from one block to the next along each dimension; None where they begin inside bytes."""
        zero = (0,) * len(self.dims)
        first, out = map_offset(access, zero), []
        for d, (n, extent) in enumerate(zip(self.dims, self.extents, strict=True)):
            there = map_offset(access, (*zero[:d], extent, *zero[d + 1 :])) if extent < n else first
            out.append(int(there - first) * access.unit_bits)
        return None if any(step % 8 for step in out) else tuple(step // 8 for step in out)


def block_offset(place: Dims, ends: Ends, steps: Dims) -> int:
    """Bytes to a block at a place from the one that programs of its sort are made for."""
    return sum(k * step for k, step, cut in zip(place, steps, ends, strict=True) if not cut)


def common_grid(dims: Dims, layouts: Sequence[AccessMap], itemsize: int) -> BlockGrid | None:
    """The largest blocks that stay in cache after which all these layouts repeat themselves.

    itemsize: bytes of an element there, of all arrays together. None where there are no such blocks, where
    some begin inside bytes, or where there are too many sorts of them.
    """
    if 0 in dims:
        return None
    common = least = (1,) * len(dims)
    for layout in layouts:
        own = grains(layout)
        if own is None:
            return None
        common = tuple(map(lcm, common, own))
        least = tuple(map(max, least, _of_a_line(layout)))
    wide = tuple(ceil_div(min(n, m), g) * g for n, m, g in zip(dims, least, common, strict=True))
    extents = _extents(dims, wide, itemsize) or _extents(dims, common, itemsize)
    grid = BlockGrid(dims, extents) if extents else None
    if grid is None or not grid.is_of_few_sorts or any(grid.steps(layout) is None for layout in layouts):
        return None
    return grid


def grains(layout: AccessMap) -> Dims | None:
    """The fewest elements along each dimension after which the offsets repeat themselves."""
    trees = {r.dims: r.tree for r in logical_roots(layout)}
    found = tuple(_grain(trees[(d,)]) if (d,) in trees else None for d in range(len(layout.dims)))
    return None if None in found else tuple(g for g in found if g is not None)


def _of_a_line(layout: AccessMap) -> Dims:
    """Elements along each dimension that share lines, where one stride is all that it has; else 1."""
    steps = {r.dims: r.tree.stride for r in logical_roots(layout) if isinstance(r.tree, Leaf)}
    bits = [abs(steps.get((d,), 0)) * layout.unit_bits for d in range(len(layout.dims))]
    return tuple(max(1, 8 * LINE_BYTES // b) if b else 1 for b in bits)


def _grain(tree: Tree) -> int | None:
    if isinstance(tree, Leaf):
        return 1
    for tile in sorted(tree_cuts(tree)):
        pair = split_tree(tree, tile)
        if pair and isinstance(coalesce_tree(pair[0]), Leaf):
            return tile
    return None


def _extents(dims: Dims, grains: Dims, itemsize: int) -> Dims | None:
    """Whole inner dimensions as long as they fit, the outer ones cut to whole grains."""
    out = [min(n, g) for n, g in zip(dims, grains, strict=True)]
    if prod(out) * itemsize > BLOCK_BYTES:
        return None
    for d in reversed(range(len(dims))):
        room = BLOCK_BYTES // (prod(out) * itemsize)
        out[d] = min(dims[d], out[d] * room)
    return tuple(out)


def block_strides(extents: Dims, itemsize: int) -> Dims:
    """Strides of a block in cache: rows begin on lines, an odd number of them apart, and share no sets."""
    row = (-(-extents[-1] * itemsize // LINE_BYTES) | 1) * LINE_BYTES
    return (*(row * prod(extents[d + 1 : -1]) for d in range(len(extents) - 1)), itemsize)


def block_bytes(extents: Dims, itemsize: int) -> int:
    """What a block takes in cache with such strides: (24, 16), 4 -> 1536"""
    return block_strides((1, *extents), itemsize)[0]


def stays_in_cache(extents: Dims, itemsize: int) -> bool:
    """Whether a block does with such strides: those of short rows are longer than the rows."""
    return block_bytes(extents, itemsize) <= 2 * BLOCK_BYTES
