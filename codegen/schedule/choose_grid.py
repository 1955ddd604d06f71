"""Choose the blocks of a staged copy: the largest ones that stay in cache, and how they lie there."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from typing import TypeAlias

import numpy as np

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, logical_roots, map_offset
from codegen.maps.block_grid import BlockGrid, Dims, grains
from codegen.maps.digit_trees import Leaf, ceil_div
from codegen.schedule.machine import machine
from codegen.schedule.staging import bytes_held, cached_map

BLOCK_BYTES = 384 << 10
"""Most bytes of a block, on any machine."""

LEAST_STEP_BYTES, LEAST_CHUNK_BYTES = LINE_BYTES, LINE_BYTES // 2
"""A layout that advances as far from element to element of a row, or has its runs along another dimension,
has few elements of a row in a line, unless that many bytes of it are in one place. Blocks of long rows read
such lines in parts or out of order, which no hardware prefetches: 4 GB/s from memory. In near blocks, such
copies are 1.1 to 2 times as fast, others 0.7 to 1.1, and those that stay in the last cache 0.7 to 1.0 (Zen 4,
AVX2, 2026-11)."""

NEAR_ROW_BYTES, NEAR_RUN_BYTES = 4 * LINE_BYTES, 8 * LINE_BYTES
"""Least bytes of such a block in a row, and in one place of the destination, where there is room. The rest
makes it longer in the source."""

MOST_KINDS = 16
"""The most kinds of blocks; each one has its own programs."""

Run: TypeAlias = tuple[int, int]
"""The dimension along which a layout is contiguous, and the bytes from element to element along it."""


def common_grid(
    dims: Dims, layouts: Sequence[AccessMap], itemsize: int, part: int = 1, *, far: bool = False
) -> BlockGrid | None:
    """The largest blocks that stay in cache after which all these layouts repeat.

    layouts: the source first. itemsize: bytes per element in cache, of all arrays together. part: blocks have
    1/part of that size. far: the source is in memory, and not in the last cache. None for a number, if there
    are no such blocks, if some begin inside a byte, or if there are too many kinds of them.
    """
    if not dims or 0 in dims:
        return None
    common = least = (1,) * len(dims)
    for layout in layouts:
        own = grains(layout)
        if own is None:
            return None
        common = tuple(map(lcm, common, own))
        least = tuple(map(max, least, _of_a_line(layout)))
    wide = tuple(ceil_div(min(n, m), g) * g for n, m, g in zip(dims, least, common, strict=True))
    runs = [_run(layout, dims, common) for layout in layouts]
    is_near = far and _reads_parts(layouts[0], runs[0])
    near = _near_extents(dims, wide, runs, part * itemsize) if is_near else None
    extents = near or _extents(dims, wide, part * itemsize) or _extents(dims, common, part * itemsize)
    grid = BlockGrid(dims, extents) if extents else None
    if grid is None or not has_few_kinds(grid) or any(grid.steps(layout) is None for layout in layouts):
        return None
    return grid


def has_few_kinds(grid: BlockGrid) -> bool:
    """Whether the grid has few enough kinds of blocks that each can have its own programs."""
    return 1 << sum(grid.short) <= MOST_KINDS


def _of_a_line(layout: AccessMap) -> Dims:
    """Elements along each dimension that share a line if the dimension has one stride, else 1."""
    steps = {r.dims: r.tree.stride for r in logical_roots(layout) if isinstance(r.tree, Leaf)}
    bits = [abs(steps.get((d,), 0)) * layout.unit_bits for d in range(len(layout.dims))]
    return tuple(max(1, 8 * LINE_BYTES // b) if b else 1 for b in bits)


def _run(layout: AccessMap, dims: Dims, common: Dims) -> Run:
    """The run of blocks of these grains: where the layout advances least."""
    steps = BlockGrid(dims, common).steps(layout) or (0,) * len(dims)
    step, d = min(((abs(step), d) for d, step in enumerate(steps) if step), default=(0, len(dims) - 1))
    return d, step // common[d]


def _reads_parts(source: AccessMap, run: Run) -> bool:
    """Whether blocks of long rows read most lines of a source in parts, or out of order."""
    d, step = run
    if d == len(source.dims) - 1 and step < LEAST_STEP_BYTES:
        return False
    count = min(source.dims[-1], 8 * LEAST_CHUNK_BYTES // source.element_bits)
    row = map_offset(source, (*(0 for _ in source.dims[1:]), np.arange(count)))
    return bool((np.diff(row) != source.width).any())


def _near_extents(dims: Dims, grains: Dims, runs: Sequence[Run], itemsize: int) -> Dims | None:
    """The extents of a block in the first cache: grains, doubled along one dimension after the other.

    runs: of the source first, and of the destination last
    """
    out = [min(n, g) for n, g in zip(dims, grains, strict=True)]
    most = _most_near_bytes()
    if prod(out) * itemsize > most:
        return None
    inner, (source, _), (target, step) = len(dims) - 1, runs[0], runs[-1]
    while 2 * prod(out[:-1]) * max(out[-1] * itemsize, LINE_BYTES) <= most:
        order = [inner] * (out[inner] * itemsize < NEAR_ROW_BYTES)
        order += [target] * (out[target] * step < NEAR_RUN_BYTES)
        order += [source, *reversed(range(len(dims)))]
        longer = next((d for d in order if out[d] < dims[d]), None)
        if longer is None:
            break
        out[longer] = min(dims[longer], 2 * out[longer])
    return tuple(out)


def _extents(dims: Dims, grains: Dims, itemsize: int) -> Dims | None:
    """Complete inner dimensions while they fit; then as many grains of the next one as fit."""
    out = [min(n, g) for n, g in zip(dims, grains, strict=True)]
    most = _most_bytes()
    if prod(out) * itemsize > most:
        return None
    for d in reversed(range(len(dims))):
        room = most // (prod(out) * itemsize)
        out[d] = min(dims[d], out[d] * room)
    return tuple(out)


def _most_bytes() -> int:
    """Most bytes of a block: with the memory that is read and written meanwhile, it fits in the second cache.

    With a cache of 512 KiB, blocks of 192 KiB are 1.15 times as fast as blocks of 384 (Zen 3, 2026-11).
    """
    return min(BLOCK_BYTES, machine().second_cache_bytes * 3 // 8)


def _most_near_bytes() -> int:
    """Most bytes of a near block: it stays in the first cache while the lines of the next one are requested
    into the second.
    """
    return machine().first_cache_bytes // 2


def block_strides(extents: Dims, itemsize: int) -> Dims:
    """Strides of a block in cache: rows begin on lines, an odd number of them apart, and share no sets."""
    row = (-(-extents[-1] * itemsize // LINE_BYTES) | 1) * LINE_BYTES
    return (*(row * prod(extents[d + 1 : -1]) for d in range(len(extents) - 1)), itemsize)


def block_bytes(extents: Dims, itemsize: int) -> int:
    """Bytes of a block with these strides: (24, 16), 4 -> 1536"""
    return block_strides((1, *extents), itemsize)[0]


def pitched_map(extents: Dims, element: Element) -> AccessMap:
    """A block in cache with these strides."""
    return cached_map(extents, block_strides(extents, bytes_held(element)), element)


def stays_near(extents: Dims, itemsize: int) -> bool:
    """Whether a block with these strides stays in the first cache."""
    return block_bytes(extents, itemsize) <= 2 * _most_near_bytes()


def stays_in_cache(extents: Dims, itemsize: int) -> bool:
    """Whether a block with these strides fits: with short rows, it is larger than its elements."""
    return block_bytes(extents, itemsize) <= 2 * _most_bytes()
