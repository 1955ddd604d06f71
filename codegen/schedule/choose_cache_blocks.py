"""Choose the copies that go block by block through the caches: past them, they would move parts of lines.

    for block in blocks:  dst[block] = src[block]

A block and what it reads fit in the second cache. There, lines that are read or written in parts cost little.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose import choose
from codegen.schedule.conditions import Conditions
from codegen.schedule.machine import machine
from codegen.schedule.schedule import MOST_LOOPS, Schedule
from codegen.support.dataclasses import dataclass

SHORT_RUN_BYTES, SHORT_CUT_RUN_BYTES = 3 * LINE_BYTES // 2, 6 * LINE_BYTES
"""Staged tiles write runs of up to this length in parts of lines, unless they are full lines; the second one
is for runs whose digit is cut in two, so that the copy visits their lines twice."""

LEAST_CHUNK_WIDTH = 4
"""Bytes per element from which interleaves of such chunks gain: u64 [597,921,6,2] (1,0,3,2) 0.22 of memcpy
and 0.67 in blocks, u8 [6,3,2449,9,33] (0,3,2,4,1) 0.25 and 0.11 (Zen 4, 2026-11)."""

KEPT_ROWS = 32
"""The lines of fewer source rows stay in the first cache until the next tile reads the rest of them."""

NEAR_PART_BYTES, NEAR_ROWS = 80, 320
"""The longest parts of source rows in a staged tile, and the most rows, for which blocks pay if half of the
last cache holds the copy: the lines of such parts are read twice. u8 [103,66612] (1,0) has 0.26 of memcpy
without blocks and 0.46 in blocks, but u8 [342,22550] 0.28 and 0.18, u16 [127,53215] of 27 MB 0.67 and 0.32
(Zen 4, 2026-11)."""


@dataclass(frozen=True, slots=True)
class CacheBlocks:
    """Which axes of a box run around its blocks.

    outer   the axes that blocks do not have
    cut     the axis of which each block has a part
    extent  iterations of `cut` per block
    """

    outer: tuple[str, ...]
    cut: str
    extent: int


def cache_blocks(box: StridedBox, part: StridedBox, when: Conditions) -> CacheBlocks | None:
    """The blocks of a copy; None if it is faster without them.

    part: the first part of the box as it would be split without blocks, or the box
    """
    if box.source is None or box.converts or box.entries or box.unit_bits != 8:
        return None
    if box.size_bytes < 2 * _most_bytes() or len(box.axes) >= MOST_LOOPS:
        return None
    schedule, past_cache = choose(part, when), when.go_past_share(box, 1)
    short = SHORT_RUN_BYTES if part is box else SHORT_CUT_RUN_BYTES
    return _blocks(box) if _moves_parts_of_lines(part, schedule, short, past_cache=past_cache) else None


def _moves_parts_of_lines(box: StridedBox, schedule: Schedule, short: int, *, past_cache: bool) -> bool:
    """Whether a schedule past the caches reads or writes most lines in parts.

    Of 260 random copies of 4 to 190 MB, such copies run at 0.05 to 0.4 of memcpy, in blocks at 0.25 to 0.8;
    others at 0.3 to 2.5, in blocks at 0.05 to 0.7, also those whose source rows share cache sets (Zen 4,
    2026-11).
    """
    if schedule.stream and schedule.transposes and schedule.staged:
        tile = StagedTraffic.of(box, schedule)
        return tile.has_narrow_parts(past_cache=past_cache) or (past_cache and tile.has_short_runs(short))
    if not schedule.packed or not schedule.stream or schedule.joins_rows:
        return False
    chunk = prod(box.extents[name] for name in schedule.inner) * box.width
    return box.width >= LEAST_CHUNK_WIDTH and LINE_BYTES < chunk < 2 * LINE_BYTES


@dataclass(frozen=True, slots=True)
class StagedTraffic:
    """What a tile of a streamed transpose reads and writes.

    cut    its schedule
    rows   the axes of its source rows
    tall   its source rows
    part   bytes that it reads in one place of a source row
    run    bytes that it writes in one place
    lines  whether runs are full lines
    """

    cut: Schedule
    rows: tuple[Axis, ...]
    tall: int
    part: int
    run: int
    lines: bool

    @classmethod
    def of(cls, box: StridedBox, cut: Schedule) -> StagedTraffic:
        """The tile of a schedule."""
        rows = tuple(map(box.axis, cut.rows))
        tall, wide = cut.tile(box.extents)
        run, part = tall * box.width, wide * box.width
        following = [(box.axis(name), box.axis(name).extent) for name in cut.columns]
        layers = tuple(map(box.axis, cut.layers))
        following += [(x, cut.together) for x in layers]
        for axis, extent in following:
            run *= extent if axis.dst == run else 1
        if any(x.src == part for x in layers):
            part *= cut.together
        ends = run, *(x.dst for x in box.axes if x not in rows)
        return cls(cut, rows, tall, part, run, all(end % LINE_BYTES == 0 for end in ends))

    def has_short_runs(self, most: int) -> bool:
        """Whether it stores most lines in parts, or has blocks of few bytes."""
        if not self.cut.stages_rows:
            return False
        return self.cut.short or (self.run <= most and not self.lines)

    def has_narrow_parts(self, *, past_cache: bool) -> bool:
        """Whether the next tile reads most lines of the source again, and finds them evicted."""
        pitch = min(abs(row.src) for row in self.rows)
        if pitch <= max(self.part, LINE_BYTES):
            return False
        if past_cache:
            return self.part < LINE_BYTES and self.tall >= KEPT_ROWS
        return self.part <= NEAR_PART_BYTES and self.tall <= NEAR_ROWS


def _blocks(box: StridedBox) -> CacheBlocks | None:
    """The blocks: complete axes, those with the smallest stride on either side first, and a part of one more.

    Blocks have all axes whose iterations share a line, so the longest of these is cut if they do not fit.

    for i in 363: for j in 504: for k in 36:  dst[36288*i + 72*j + 2*k] = src[2*i + 726*j + 365904*k]
    ->  blocks of all of i and k, and 20 of j
    """
    room = _most_bytes() // box.width
    near = sorted(box.axes, key=lambda x: (_step(x), abs(x.dst)))
    inside = [x for x in near if _step(x) < LINE_BYTES]
    for axis in near[len(inside) :]:
        if _size(inside) > room:
            break
        inside.append(axis)
    if _size(inside) <= room:
        return None
    cut = inside[-1] if _step(inside[-1]) >= LINE_BYTES else max(inside, key=lambda x: x.extent)
    most = room // _size(x for x in inside if x is not cut)
    if most < 2:
        return None
    extent = -(-cut.extent // -(-cut.extent // most))
    return CacheBlocks(tuple(x.name for x in box.axes if x not in inside), cut.name, extent)


def _most_bytes() -> int:
    """Most bytes that a block writes. Half and a quarter of them are up to a third slower (Zen 4)."""
    return machine().second_cache_bytes // 2


def _step(axis: Axis) -> int:
    return min(abs(axis.src), abs(axis.dst))


def _size(axes: Iterable[Axis]) -> int:
    return prod(x.extent for x in axes)
