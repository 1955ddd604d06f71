"""Choose the blocks of permuted layouts, such as swizzled ones: through cache without the permutation.

In one pass, a permuted layout is copied box by box, one for each value of the bits that choose. Staged, it
is two plain copies: the layout without the permutation, to or from a part of it that stays in cache, and that
part to or from memory, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.maps.access import AccessMap
from codegen.maps.block_grid import BlockGrid, Dims
from codegen.maps.digit_trees import Leaf
from codegen.maps.permuted import PermutedMap, block_digits, period_maps, unpermuted_map
from codegen.schedule.choose_grid import has_few_kinds
from codegen.schedule.directives import Gather
from codegen.schedule.machine import machine
from codegen.schedule.schedule import Schedule
from codegen.schedule.staging import BoxSchedule, SinglePass, Staging, block_map, bytes_held, steps_of
from codegen.support.lookups import Known

BLOCK_BYTES = 256 << 10
"""Most bytes of a block, on any machine."""

MOST_COLUMNS = 1 << 12
"""Columns per tile if a block is transposed, a line of each row at a time: the hardware follows 32 rows, not
64. f16 packed in columns: 0.3 of memcpy by tiles of several lines each way, 0.5 by these (Zen 5, 2026-11)."""


def period_staging(copy: SinglePass, layout: PermutedMap) -> Staging | None:
    """The copy between a strided array and a permuted layout in blocks; None if one pass is as fast."""
    packs = copy.src.slots is None
    array, storage = (copy.src, copy.dst) if packs else (copy.dst, copy.src)
    strides, itemsize = _strides(array), bytes_held(copy.target)
    if strides is None or (
        copy.choice is None and not goes_in_periods(copy.boxes, packs=packs, streams=copy.streams)
    ):
        return None
    extents = _extents(layout, array.dims, strides, copy.part * itemsize)
    grid = BlockGrid(array.dims, extents) if extents else None
    steps = grid.steps(storage) if grid and has_few_kinds(grid) else None
    if grid is None or steps is None or any(step % (layout.period * itemsize) for step in steps):
        return None
    kinds = {}
    for ends in grid.ends():
        _, extents = grid.box(ends)
        digits = block_digits(layout, extents)
        if digits is None:
            return None
        plain = block_map(array, grid, ends), unpermuted_map(layout, extents, digits, copy.target.bits)
        periods = period_maps(layout, digits, copy.target.bits)
        if packs:
            kinds[ends] = copy.stages(plain, periods, packing_tile(itemsize))
        else:
            kinds[ends] = copy.stages(periods[::-1], plain[::-1])
    return Staging(grid, (steps_of(grid, copy.src), steps_of(grid, copy.dst)), kinds)


def _strides(array: AccessMap) -> Dims | None:
    """The strides in bytes of a strided array; None for another layout."""
    found = Known((r.dims, r.tree.stride) for r in array.roots if isinstance(r.tree, Leaf))
    if array.base or array.unit_bits != 8 or len(found) != len(array.dims):
        return None
    return tuple(found[(d,)] for d in range(len(array.dims)))


def _extents(layout: PermutedMap, dims: Dims, strides: Dims, itemsize: int) -> Dims | None:
    """Blocks as long as possible along the array's rows, then along the other dimensions.

    If those fill no periods, the other way round.
    """
    grains = layout.grains()
    if any(n % g for n, g in zip(dims, grains, strict=True)):
        return None
    most = min(BLOCK_BYTES, machine().second_cache_bytes // 4)  # a block, and what is read and written for it
    by_rows = sorted(range(len(dims)), key=lambda d: abs(strides[d]))
    for order in (by_rows, by_rows[::-1]):
        out = list(grains)
        for d in order:
            room = most // itemsize // prod(out)
            out[d] = _even(dims[d] // grains[d], room) * grains[d] if room else out[d]
        if prod(out) * itemsize <= 2 * most and block_digits(layout, tuple(out)):
            return tuple(out)
    return None


def _even(count: int, room: int) -> int:
    """Grains of `count` that fit: an even share of them unless that is less than half of what fits."""
    most = min(count, max(room, 1))
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


def goes_in_periods(boxes: Sequence[BoxSchedule], *, packs: bool, streams: bool) -> bool:
    """Whether blocks are faster: where most bytes are transposed, or are read from the storage box by box.

    packs: whether the copy writes the storage. streams: whether it outgrows the caches

    Transposed boxes run at 0.03 to 0.3 of memcpy, blocks at 0.3 to 0.65. Lines assembled from chunks of the
    storage run at 0.35 to 0.6, blocks at 0.6 to 0.85 (Zen 5, 2026-11). Gathered lines need no blocks, nor do
    chunks that are written to the storage, or that stay in the last cache: these are read at 0.65 to 0.74 of
    memcpy, in blocks at 0.31 to 0.35 (8 MB, Zen 4, 2026-11).
    """
    if not boxes or any(x.schedule.obeying(Gather) for x in boxes):
        return False
    return (streams and not packs) or not all(_copies_lines(x.schedule) for x in boxes)


def _copies_lines(schedule: Schedule) -> bool:
    """Whether runs or chunks are copied a line at a time."""
    has_table = not schedule.loops or any(x.table for x in schedule.loops)
    return schedule.moves_bytes or (bool(schedule.lanes) and not schedule.transposes and has_table)


def packing_tile(itemsize: int) -> tuple[int, int]:
    """Rows and columns that are transposed together on the way into a block."""
    return LINE_BYTES // itemsize or 1, MOST_COLUMNS
