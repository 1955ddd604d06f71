"""Choose the blocks of a staged copy: the largest ones that stay in cache, and how they lie there."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod

from codegen.ir.lines import LINE_BYTES
from codegen.maps.access import AccessMap, logical_roots
from codegen.maps.block_grid import BlockGrid, Dims, grains
from codegen.maps.digit_trees import Leaf, ceil_div
from codegen.schedule.machine import machine

BLOCK_BYTES = min(384 << 10, machine().second_cache_bytes * 3 // 8)
"""Most bytes of a block: with the memory that is read and written meanwhile, it fits in the second cache.
With a cache of 512 KiB, blocks of 192 KiB are 1.15 times as fast as blocks of 384 (Zen 3, 2026-11)."""

MOST_SORTS = 16
"""Most sorts of blocks: each one has its own programs."""


def common_grid(dims: Dims, layouts: Sequence[AccessMap], itemsize: int, part: int = 1) -> BlockGrid | None:
    """The largest blocks that stay in cache after which all these layouts repeat.

    itemsize: bytes per element in cache, of all arrays together. part: blocks have 1/part of that size. None
    if there are no such blocks, if some begin inside a byte, or if there are too many sorts of them.
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
    extents = _extents(dims, wide, part * itemsize) or _extents(dims, common, part * itemsize)
    grid = BlockGrid(dims, extents) if extents else None
    if grid is None or not has_few_sorts(grid) or any(grid.steps(layout) is None for layout in layouts):
        return None
    return grid


def has_few_sorts(grid: BlockGrid) -> bool:
    """Whether the grid has few enough sorts of blocks that each can have its own programs."""
    return 1 << sum(grid.short) <= MOST_SORTS


def _of_a_line(layout: AccessMap) -> Dims:
    """Elements along each dimension that share a line if the dimension has one stride, else 1."""
    steps = {r.dims: r.tree.stride for r in logical_roots(layout) if isinstance(r.tree, Leaf)}
    bits = [abs(steps.get((d,), 0)) * layout.unit_bits for d in range(len(layout.dims))]
    return tuple(max(1, 8 * LINE_BYTES // b) if b else 1 for b in bits)


def _extents(dims: Dims, grains: Dims, itemsize: int) -> Dims | None:
    """Complete inner dimensions while they fit; then as many grains of the next one as fit."""
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
    """Bytes of a block with these strides: (24, 16), 4 -> 1536"""
    return block_strides((1, *extents), itemsize)[0]


def stays_in_cache(extents: Dims, itemsize: int) -> bool:
    """Whether a block with these strides fits: where rows are short, it is larger than its elements."""
    return block_bytes(extents, itemsize) <= 2 * BLOCK_BYTES
