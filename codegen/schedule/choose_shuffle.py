"""Choose how a copy with digits shorter than registers is shuffled, and estimate what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd, prod

import numpy as np

from codegen.ir.instructions import SHUFFLED_BYTES, SHUFFLED_ROWS, instruction
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox, strip_axis
from codegen.schedule.choose_interleave import least_block
from codegen.schedule.choose_order import shared_first
from codegen.schedule.conditions import Conditions
from codegen.schedule.directives import Assemble, Prefetch, Reorder, Request, Tile
from codegen.schedule.loops import int_size
from codegen.schedule.machine import SET_BYTES, machine
from codegen.schedule.schedule import Joined, Schedule
from codegen.schedule.shuffles import PARTS, period_offsets, register_parts

MOST_PERIOD_BYTES = 1 << 10
"""Longer periods have tables that crowd the source out of the first cache."""

STRIP_LINES = 256
"""Source lines that are read again before the next ones: half of the first cache."""

LEAST_SHUFFLED_BYTES = 1 << 13
"""Smaller boxes are not worth a kernel that few others share."""

AHEAD_BYTES = 2 * LINE_BYTES
"""Distance of prefetches: two lines, each of which serves several periods."""

SHORT_BYTES = 32
"""Shorter rows and runs do not fill the registers of other methods."""

FEW_BYTES = 4
"""Staged tiles of several layers whose source rows are as short fill a small part of each block."""

FEW_ROWS = 8
"""Staged tiles of up to this many rows leave half of each block empty or more."""

STAGED_CYCLES = {1: 48.0, 2: 19.0, 4: 20.0}
"""Cycles per 16 bytes of a staged tile of few rows, times rows, by element size in bytes. Streamed ones of
wider elements than bytes are faster than a shuffle in every case."""

PAIRS_CYCLES = {1: 9.0, 2: 5.0}
"""Cycles per 16 bytes of blocks of source rows of two elements in place, by element size in bytes. Blocks of
longer ones are as fast as a shuffle or faster."""

ELEMENT_CYCLES, LOOP_CYCLES, SHORT_RUN_CYCLES, SHORT_BLOCK_CYCLES = 1.0, 5.0, 9.0, 11.5
"""Cycles per element that moves on its own, per loop over such elements, per short run, and per 16 bytes of
short rows. For every second to sixth element of 32 KiB to 64 MiB, shuffles have 4.8 to 1.1 of the speed of
such loops for bytes, 1.3 to 0.8 for four bytes, and 1.0 to 0.6 for eight. Loops over four u64 have 0.45 of
the speed of a shuffle, loops over sixteen 1.3 (Zen 4, 2026-11)."""

SCALAR_CYCLES, SCALAR_WIDTHS = 1.0, (1, 2)
"""Cycles per element of an interleave whose rows are shorter than a block: elements of these sizes in bytes
move one by one. In seven of 17 to 167 MB, shuffles are 1.3 to 3.1 times as fast; those of four bytes have 0.4
to 1.1 of the speed of interleaves (Zen 4, 2026-11)."""

FEWEST_BYTES = 2
"""Bytes of a register per part: more parts are not worth their loads."""

LONG_CYCLES = 1.2
"""Cycles per part of a register of 64 bytes, where one register holds it."""

FAR_SHARE = 2 / 5
"""Shuffles prefetch from this share of the threshold on. Below, prefetches cost up to a quarter; above, most
shuffles are 1.2 to 2.6 times as fast with them (30 shuffles of 1 to 85 MB, Zen 4, 2026-11)."""

STEPS_TRIED = 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64


def shuffle_instead(box: StridedBox, schedule: Schedule, when: Conditions) -> Schedule | None:
    """The schedule of a shuffle if it is faster than another schedule, else None."""
    found = shuffle_beside(box, schedule, when)
    return found if found and _shuffle_cycles(box, found) < _short_move_cycles(box, schedule) else None


def shuffle_beside(box: StridedBox, schedule: Schedule, when: Conditions) -> Schedule | None:
    """The schedule of a shuffle, if another schedule moves few bytes at a time."""
    if not _short_move_cycles(box, schedule) or box.size_bytes < LEAST_SHUFFLED_BYTES:
        return None
    how = _best(box)
    if how is None:
        return None
    far = when.go_past_share(box, FAR_SHARE)
    return _scheduled(box, how.changed(Prefetch("step", AHEAD_BYTES)) if far else how, when.threads)


def _best(box: StridedBox) -> Schedule | None:
    """The cheapest way to shuffle a box; None if its bytes change, or the CPU level shuffles none."""
    fits = box.unit_bits == 8 and box.source is not None and not box.converts and not box.entries
    if not fits or machine().level not in instruction("shuffled").levels:
        return None
    return min(_ways(box), key=lambda how: _shuffle_cycles(box, how), default=None)


def _short_move_cycles(box: StridedBox, schedule: Schedule) -> float:
    """Cycles per 16 bytes of a schedule that moves few bytes at a time; 0 for others.

    These are measured, from the second cache (Zen 4, 2026-11).
    """
    width, extents = box.width, box.extents
    if schedule.transposes:
        return _short_block_cycles(box, schedule)
    if schedule.moves_bytes and box.source and not schedule.obeying(Request):
        run = prod(extents[name] for name in schedule.inner) * width
        return SHORT_RUN_CYCLES * LANE_BYTES / run if run < SHORT_BYTES else 0
    if schedule.packed and not schedule.joins_rows:
        long, short = (extents[x.axes[0]] for x in schedule.loops)
        if width in SCALAR_WIDTHS and long < least_block(short, width):
            return SCALAR_CYCLES * LANE_BYTES / width
        return SHORT_BLOCK_CYCLES if long * width < (LANE_BYTES if schedule.stream else SHORT_BYTES) else 0
    if schedule.moves_elements:
        count = prod(extents[name] for name in schedule.inner)
        return (ELEMENT_CYCLES + LOOP_CYCLES / count) * LANE_BYTES / width
    return 0


def _short_block_cycles(box: StridedBox, cut: Schedule) -> float:
    """The same of a transpose: few staged rows or columns, and source rows of two elements in place."""
    width = box.width
    if cut.stages_rows:
        rows, columns = cut.tile(box.extents)
        few = max(rows, columns) * width < SHORT_BYTES or columns * width <= FEW_BYTES
        if cut.layers and few:
            return SHORT_BLOCK_CYCLES
        if rows > FEW_ROWS or (cut.stream and width > 1):
            return 0
        return STAGED_CYCLES.get(width, 0) / rows
    if cut.short and not cut.stream:
        return PAIRS_CYCLES.get(width, 0) if cut.counts(box.extents)[1] == 2 else 0
    return 0


def cycles_of(box: StridedBox, schedule: Schedule) -> float:
    """Cycles per 16 bytes of a shuffle, or of a schedule that moves few bytes at a time; 0 for others."""
    shuffles = bool(schedule.obeying(Assemble))
    return _shuffle_cycles(box, schedule) if shuffles else _short_move_cycles(box, schedule)


def _scheduled(box: StridedBox, how: Schedule, threads: int) -> Schedule:
    """The schedule of a shuffle.

    The loops along which lines of the source continue run last. Where the axis has more lines than stay in
    cache meanwhile, they run once for each strip of it.
    """
    others, axis = [x for x in box.axes if x.name not in how.inner], how.joined("step")
    within = [x for x in others if abs(x.src) < LINE_BYTES]
    around = [x for x in others if x not in within]
    strip = _strip(box, how) if within else None
    loops = [*around, *sorted(within, key=lambda x: -abs(x.src))]
    if strip is None:
        return replace(how, outer=shared_first(loops, loops, threads))
    tile = Tile("step", strip, "strip")
    loops.insert(len(around), strip_axis(box.axis(axis[0]), strip, tile.index))
    order = shared_first(loops, loops, threads)
    outer = tuple(name for name in order if name != tile.index)
    reordered = Reorder((*order, *(x.name for x in how.loops)))
    return replace(how, outer=outer, directives=(tile, reordered, *how.directives))


def _strip(box: StridedBox, how: Schedule) -> int | None:
    """Indices of the axis whose source lines stay in the first cache; None if all of them do."""
    if not how.joined("step"):
        return None
    (assemble,), (axis,) = how.obeying(Assemble), map(box.axis, how.joined("step"))
    steps = int_size(assemble.steps)
    block, offsets = steps * assemble.rows, period_offsets(box, how.joined("x"), (axis.name,), steps)
    lines = len(np.unique(offsets // LINE_BYTES)) / steps
    strip = max(1, int(_lines_held(axis.src) / lines / block)) * block
    while strip < axis.extent and 0 < axis.extent % strip < block:
        strip += block
    return strip if strip < axis.extent else None


def _lines_held(pitch: int) -> int:
    """How many lines at a distance stay in the first cache: fewer if they share its sets."""
    sets = SET_BYTES // LINE_BYTES
    sharing = gcd(pitch // LINE_BYTES, sets) if pitch and pitch % LINE_BYTES == 0 else 1
    return min(STRIP_LINES, machine().first_cache_ways * sets // sharing)


def _ways(box: StridedBox) -> Iterator[Schedule]:
    """Periods of the most minor digits of the destination and of several indices of the next one."""
    chain = _contiguous(box)
    for count in range(len(chain) + 1):
        period = tuple(axis.name for axis in chain[:count])
        if count == len(chain):
            others = [axis for axis in box.axes if axis.name not in period]
            axis, steps = (min(others, key=lambda x: abs(x.dst)) if others else None), [1]
        else:
            axis = chain[count]
            steps = [n for n in STEPS_TRIED if n < axis.extent]
        for n in steps:
            size = box.width * prod(x.extent for x in chain[:count]) * n
            if size <= MOST_PERIOD_BYTES:
                fitting = (register for register in SHUFFLED_BYTES if register <= size)
                yield from filter(None, (_in_parts(box, period, axis, n, register) for register in fitting))


def _contiguous(box: StridedBox) -> list[Axis]:
    """The axes along which the destination is contiguous, most minor first."""
    chain: list[Axis] = []
    size = box.width
    while following := next((x for x in box.axes if x.dst == size and x.extent > 1), None):
        chain.append(following)
        size *= following.extent
    return chain


def _in_parts(
    box: StridedBox, period: tuple[str, ...], axis: Axis | None, steps: int, register: int
) -> Schedule | None:
    """How such periods are assembled, if that takes few enough parts."""
    step = (axis.name,) if axis else ()
    offsets = period_offsets(box, period, step, steps)
    if offsets.max() - offsets.min() < LANE_BYTES - 1:
        return None
    begins, _ = register_parts(offsets, register)
    parts = next((n for n in PARTS if begins.shape[1] <= n <= register // FEWEST_BYTES), None)
    if parts is None:
        return None
    rows = SHUFFLED_ROWS if axis and axis.extent >= SHUFFLED_ROWS * steps else 1
    inside = [Joined("x", period, table=True, in_bytes=True)] * (bool(period) or box.width > 1)
    assemble = Assemble("step", rows, steps, register, parts)
    return Schedule((), (Joined("step", step), *inside), (assemble,))


def _shuffle_cycles(box: StridedBox, how: Schedule) -> float:
    """Cycles per 16 bytes of the destination, with what overlaps."""
    (assemble,), extents = how.obeying(Assemble), box.extents
    steps = int_size(assemble.steps)
    rows, register, parts = assemble.rows, assemble.register, assemble.parts
    size = box.width * prod(extents[name] for name in how.joined("x")) * steps
    extent, block = prod(extents[name] for name in how.joined("step")), steps * rows
    twice = -(-size // register) * register / size * (-(-extent // block) * block / extent)
    if register == LANE_BYTES:
        return (1 + parts * (0.6 + 1 / rows)) * twice
    cycles = LONG_CYCLES * LINE_BYTES / machine().register_bytes
    return (4 + parts * (cycles + 1 / rows)) * LANE_BYTES / register * twice
