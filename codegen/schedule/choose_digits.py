"""Choose how the digits of a strided copy lie in a block in cache, between two stages.

    for block in blocks:  cached[...] = src[block];  dst[block] = cached[...]

Where source rows and destination runs have no long digit in common, one pass moves parts of lines on one
side. A block has long parts of both. Two simpler permutations move it: from the source into the order of the
block, and from there to the destination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import TypeAlias

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import Digit, StridedBox
from codegen.maps.block_grid import BlockGrid, Dims
from codegen.schedule.call_limits import may_stage_digits
from codegen.schedule.choose_grid import has_few_kinds
from codegen.schedule.choose_shuffle import cycles_of
from codegen.schedule.directives import Assemble
from codegen.schedule.machine import ALIAS_BYTES, machine
from codegen.schedule.schedule import Schedule
from codegen.schedule.staging import BoxSchedule, Cached, SinglePass, StageCopy, Staging, cached_map
from codegen.support.lookups import expect

Order: TypeAlias = tuple[int, ...]
"""The numbers of digits, outermost first."""

BLOCK_RUN_BYTES = tuple(n << k for k in range(14, 6, -1) for n in (4, 3))
"""Bytes of source rows and of destination runs per block that are tried, the longest first."""

MOST_DIGITS = 12
"""Copies with more digits run in one pass. Each digit adds up to four orders in cache, and every order is
scheduled: copies of 24 digits took 1 s to plan. Tiles along each of six dimensions have twelve."""

PITCH_BYTES = 256
"""Rows of a block from this length on are an odd number of lines apart."""

SLOW_CYCLES, SLOWEST_CYCLES = 3.9, 6.0
"""Cycles per 16 bytes from which two stages are considered: for bytes, and for wider elements. From the
second one on, `STAGED_SHARES` has its second.

Of 347 random copies of 8 to 190 MB and four digits or more, 13 have 3.9 cycles or more. Seven of 6 or more
are 1.1 to 2.8 times as fast in two stages. At 4 cycles u32 [470,4,8,102,3] (2,3,0,4,1) has 0.75 of its speed
in two stages (Zen 4, 2026-11)."""

STAGED_SHARES = 0.6, 1.1
"""Two stages that take up to this share of the cycles are faster: they also move full lines. At half of 4
cycles u8 [6,3,2449,9,33] (0,3,2,4,1) has 0.29 of memcpy in one pass and 0.62 in two stages; at 0.7 of 4.9
cycles u8 [5,324,1460,8] (2,1,3,0) has 0.6 and 0.4."""

EVICTED_LINES, EVICTED_RUN_BYTES = 3, 2048
"""Staged tiles are slow where source rows share cache sets, if they read parts of fewer lines of each row,
and write runs of up to this length: u16 [150,3,1024,7,2] (1,4,3,2,0) has 0.1 of memcpy in one pass and 0.4 in
two stages, u32 [39,1024,8,2,10] (3,1,2,4,0) 0.13 and 0.22."""

RUN_CYCLES, MOVE_CYCLES = 0.5, 1.5
"""Cycles per 16 bytes of runs, and of other stages that fill registers."""

TRANSPOSE_CYCLES = {1: 2.5, 2: 2.0}
"""The same of transposes, by element size in bytes."""

SCATTERED = 1.5
"""How much slower transposes are that write to memory: they write parts of many lines at a time."""


def digit_staging(
    copy: SinglePass, digits: Sequence[Digit], schedules: Callable[[StageCopy], Sequence[BoxSchedule]]
) -> Staging | None:
    """The copy between two strided arrays in blocks; None if one pass is as fast, or if no blocks fit.

    digits     of the copy, in the order of the destination
    schedules  how a stage moves each of its boxes
    """
    if not may_stage_digits(len(digits), copy.footprint) or copy.src.base or copy.dst.base:
        return None
    if any(src <= 0 or dst <= 0 for _, src, dst in digits):
        return None
    if copy.choice is None and not may_be_slow(copy.boxes):
        return None
    width = copy.target.bits // 8
    grid = digit_grid(digits, width, copy.part)
    if grid is None:
        return None
    over = copy.over(digits)

    def cached(order: Order) -> Cached:
        strides = cached_strides(digits, grid.extents, order, width)
        return partial(cached_map, strides=strides, element=copy.target)

    first = expect(grid.ends(), "a block", grid)
    order, cycles = order_in_cache(
        digits, width, lambda x: staged_cycles(*map(schedules, over.through(grid, first, cached(x))))
    )
    if copy.choice is None and not goes_in_digits(copy.boxes, digits, grid.extents, cycles):
        return None
    return over.in_blocks(grid, cached(order))


def may_be_slow(boxes: Sequence[BoxSchedule]) -> bool:
    """Whether a copy in one pass is so slow that two stages are considered."""
    least = SLOW_CYCLES if all(x.box.width == 1 for x in boxes) else SLOWEST_CYCLES
    return _slow_cycles(boxes) >= least or any(_evicts_lines(x) for x in boxes)


def goes_in_digits(
    boxes: Sequence[BoxSchedule], digits: Sequence[Digit], extents: Dims, stages_cycles: float
) -> bool:
    """Whether two stages of `stages_cycles` per 16 bytes are faster than a copy in one pass.

    Blocks that have all of some digits and one of the others gain nothing: one pass also moves them in cache.
    """
    if not any(1 < e < n for e, (n, _, _) in zip(extents, digits, strict=True)):
        return False
    cycles = _slow_cycles(boxes)
    share = STAGED_SHARES[cycles >= SLOWEST_CYCLES]
    return stages_cycles <= share * cycles or any(_evicts_lines(x) for x in boxes)


def _slow_cycles(boxes: Sequence[BoxSchedule]) -> float:
    """Cycles per 16 bytes of a copy in one pass; those that fill registers or read lines once count as 0."""
    slow = (x for x in boxes if not _reads_once(x))
    return sum(cycles_of(x.box, x.schedule) * x.bytes_moved for x in slow) / _moved(boxes)


def _reads_once(moved: BoxSchedule) -> bool:
    """Whether a shuffle reads all bytes of a line together.

    u16 [3,36780,4,3,8] (1,2,4,3,0) has 0.77 of memcpy in one pass, and 0.16 in two stages.
    """
    schedule = moved.schedule
    within = (name for name in schedule.outer if abs(moved.box.axis(name).src) < LINE_BYTES)
    return bool(schedule.obeying(Assemble)) and not any(within)


def _evicts_lines(moved: BoxSchedule) -> bool:
    """Whether staged tiles read lines in parts that are evicted before the next tile reads the rest."""
    cut = moved.schedule
    if not cut.stream or not cut.stages_rows:
        return False
    part, run = _tile_bytes(moved.box, cut)
    share_sets = all(moved.box.axis(name).src % ALIAS_BYTES == 0 for name in cut.rows)
    in_parts = part % LINE_BYTES != 0 and part < EVICTED_LINES * LINE_BYTES
    return share_sets and in_parts and run <= EVICTED_RUN_BYTES


def _tile_bytes(box: StridedBox, cut: Schedule) -> tuple[int, int]:
    """Bytes that a tile of a transpose reads in one place of a source row, and writes in one place."""
    tall, wide = cut.tile(box.extents)
    run, part = tall * box.width, wide * box.width
    columns, layers = (tuple(map(box.axis, names)) for names in (cut.columns, cut.layers))
    for axis, extent in (*((x, x.extent) for x in columns), *((x, cut.together) for x in layers)):
        run *= extent if axis.dst == run else 1
    return part * (cut.together if any(x.src == part for x in layers) else 1), run


def staged_cycles(reads: Sequence[BoxSchedule], writes: Sequence[BoxSchedule]) -> float:
    """Cycles per 16 bytes of both stages."""
    scatters = any(x.schedule.transposes for x in writes)
    return _mean_cycles(reads) + _mean_cycles(writes) * (SCATTERED if scatters else 1)


def _mean_cycles(boxes: Sequence[BoxSchedule]) -> float:
    return sum(_cycles(x) * x.bytes_moved for x in boxes) / _moved(boxes)


def _moved(boxes: Sequence[BoxSchedule]) -> int:
    return max(1, sum(x.bytes_moved for x in boxes))


def _cycles(moved: BoxSchedule) -> float:
    found = cycles_of(moved.box, moved.schedule)
    if found:
        return found
    if moved.schedule.transposes:
        return TRANSPOSE_CYCLES.get(moved.box.width, MOVE_CYCLES) / _filled(moved)
    return RUN_CYCLES if moved.schedule.moves_bytes else MOVE_CYCLES


def _filled(moved: BoxSchedule) -> float:
    """The share of registers that the rows and the columns of a transpose fill."""
    cut, box = moved.schedule, moved.box
    if cut.short:
        return 1.0
    side, share = max(1, LANE_BYTES // box.width), 1.0
    for count in cut.counts(box.extents):
        share *= count / (-(-count // side) * side)
    return share


def order_in_cache(
    digits: Sequence[Digit], width: int, cycles: Callable[[Order], float]
) -> tuple[Order, float]:
    """The order of a block's digits in cache for which both stages take the fewest cycles, and the cycles.

    digits, width  as in `cached_orders`
    cycles         of both stages in an order, as in `staged_cycles`
    """
    found = {order: cycles(order) for order in dict.fromkeys(cached_orders(digits, width))}
    best = min(found, key=found.__getitem__)
    return best, found[best]


def cached_orders(digits: Sequence[Digit], width: int) -> Iterator[Order]:
    """The orders of a block's digits in cache that are tried: those of both sides, and orders between them.

    digits  (extent, source stride, destination stride)
    width   bytes per element

    The most minor digits of one side are the innermost or the outermost ones, in their order there. The
    others are in the order of the other side. A digit that is contiguous on both sides stays innermost.
    """
    every = range(len(digits))
    kept = [k for k in every if digits[k][1] == digits[k][2] == width]
    moved = [k for k in every if k not in kept]
    by_src = sorted(moved, key=lambda k: -digits[k][1])
    by_dst = sorted(moved, key=lambda k: -digits[k][2])
    for order, other in ((by_dst, by_src), (by_src, by_dst)):
        yield (*order, *kept)
        for count in range(1, len(order) - 1):
            minor = other[-count:]
            others = [k for k in order if k not in minor]
            yield (*others, *minor, *kept)
            yield (*minor, *others, *kept)


def digit_grid(digits: Sequence[Digit], width: int, part: int = 1) -> BlockGrid | None:
    """The blocks of a copy, of the extents in `block_extents`, which also has the arguments.

    None if there are more than `MOST_DIGITS` digits, or too many kinds of blocks.
    """
    extents = block_extents(digits, width, part) if len(digits) <= MOST_DIGITS else None
    grid = BlockGrid(tuple(n for n, _, _ in digits), extents) if extents else None
    return grid if grid and has_few_kinds(grid) else None


def block_extents(digits: Sequence[Digit], width: int, part: int = 1) -> Dims | None:
    """The extents of blocks with the longest rows and runs that stay in cache; None if these are short.

    digits, width  as in `cached_orders`
    part           blocks have 1/part of the largest size
    """
    most = machine().second_cache_bytes // 2 // part
    for run in BLOCK_RUN_BYTES:
        extents = tuple(map(max, _in_run(digits, width, 1, run), _in_run(digits, width, 2, run)))
        if prod(extents) * width <= most:
            return tuple(-(-n // -(-n // e)) for (n, _, _), e in zip(digits, extents, strict=True))
    return None


def _in_run(digits: Sequence[Digit], width: int, side: int, run: int) -> Dims:
    """The extents of a block whose parts of a side have `run` contiguous bytes, if the side has as many."""
    extents, size = [1] * len(digits), width
    for k in sorted(range(len(digits)), key=lambda k: digits[k][side]):
        extents[k] = min(digits[k][0], max(1, -(-run // size)))
        size *= extents[k]
    return tuple(extents)


def cached_strides(digits: Sequence[Digit], extents: Dims, order: Order, width: int) -> Dims:
    """The strides in bytes of a block in cache: dense, except that rows share no cache sets.

    digits, width  as in `cached_orders`; a row has all digits that are contiguous on one side
    """
    strides, size, padded = [0] * len(digits), width, False
    for inner, k in zip((None, *reversed(order)), reversed(order), strict=False):
        if inner is not None and not padded and size >= PITCH_BYTES and not _follow(digits[k], digits[inner]):
            size, padded = (-(-size // LINE_BYTES) | 1) * LINE_BYTES, True
        strides[k] = size
        size *= extents[k]
    return tuple(strides)


def _follow(outer: Digit, inner: Digit) -> bool:
    """Whether one loop could take two digits on one side."""
    extent, *steps = inner
    return any(step == extent * near for step, near in zip(outer[1:], steps, strict=True))
