"""Choose the blocks of copies that convert and transpose: rows converted into cache, transposed from there.

Blocks of registers that hold wide elements and narrow ones at the same time spill. Converting along the rows
of the source needs no such blocks, and the transpose then moves narrow elements. The lines of the next block
are prefetched meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Digit
from codegen.maps.block_grid import BlockGrid
from codegen.schedule.choose_grid import pitched_map
from codegen.schedule.choose_transpose import MANY_WAYS
from codegen.schedule.machine import ALIAS_BYTES, machine
from codegen.schedule.schedule import Schedule
from codegen.schedule.staging import SinglePass, Staging

BLOCK = (192, 256)
"""Rows and columns of the source in a block. f32[4096,6144] to bf16, of memcpy (Zen 5, 2026-11): 64x256 0.75,
128x256 0.87, 192x192 0.89, 192x256 0.89, 256x256 0.91, 128x512 0.78, 128x1024 0.62; f64[4001,6001] to f32:
128x256 0.63, 192x192 0.69, 192x256 0.68, 256x256 0.59."""

LONG_ROWS = (64, 1024)
"""The same if result rows are lines that are stored in place, on a first cache of few ways.

Two lines of each are enough then, and longer parts of source rows touch fewer pages: f32[4096,6144] to bf16
is 1.2 to 1.6 times as fast as in blocks of 192x256, on AVX2 and on AVX-512 (Zen 4, 2026-11; 0.67 to 0.84 of
memcpy on AVX2). Rows that begin inside lines, f32[4001,6001], are slower: 0.41 and 0.32. On Zen 5, which has
12 ways, longer parts of source rows were slower.
"""

MOST_TARGET_BYTES, LEAST_SOURCE_BYTES = 2, 8
"""On a first cache of few ways, blocks pay for targets of up to two bytes, and blocks other than `LONG_ROWS`
only for sources of eight. In one pass, eight bytes to four are 1.1 to 1.5 times as fast as in blocks, and
four bytes to two or one mostly 1.05 to 2.0 times where result rows begin inside lines or source rows are
short. Eight bytes to two are 1.0 to 1.5 times as fast in blocks (Zen 4, AVX2 and AVX-512, 2026-11)."""

LEAST = (64, 192)
"""Shorter digits leave too little of a block."""

SHORT_ROWS = 384
"""Rows below which a transpose in place is as fast, unless they share sets of the cache: f32[64,C,56,56] to
NHWC, C 64 and 256: blocks 0.7 of memcpy, in one pass 0.9 and 0.77."""

LEAST_CONVERTED_BYTES = 24 << 20
"""Smaller copies are as fast in one pass: their source is in the last cache."""

MOST_BLOCKS = 1 << 16
"""More blocks would need a table of some MiB."""


def conversion_staging(copy: SinglePass, digits: Sequence[Digit], starts: tuple[int, int]) -> Staging | None:
    """A large copy of one box in blocks, if elements become narrower and are transposed past the cache.

    digits: of the copy, in the order of the destination. starts: the first byte of each side. Any copy that
    fits blocks has some if a choice is given. With many ways, f64 to f32 gains a twentieth, f32 to bf16 a
    half. Conversions to wider elements gain nothing. Where the destination begins inside a line, a copy whose
    result rows begin lines is 1.3 to 2.3 times as fast in one pass (f32 to bf16 and f16, f64 to f32, Zen 4,
    2026-11).
    """
    wide, narrow = copy.source.bits // 8, copy.target.bits // 8
    schedules, guesses = [x.schedule for x in copy.boxes], copy.choice is None
    if guesses and not _may_gain((wide, narrow), schedules, copy.footprint):
        return None
    row = next((d for d in digits[::-1] if d[2] == narrow), None)
    column = next((d for d in digits[::-1] if d[1] == wide), None)
    if row is None or column is None or row is column or row[0] < LEAST[0] or column[0] < LEAST[1]:
        return None
    in_place = not any(x.staged for x in schedules)
    if guesses and in_place and row[0] < SHORT_ROWS and row[1] % ALIAS_BYTES:
        return None
    few_ways = machine().first_cache_ways < MANY_WAYS
    in_lines = few_ways and column[2] % LINE_BYTES == 0 and column[0] >= LONG_ROWS[1]
    pays = narrow <= MOST_TARGET_BYTES and (in_lines or wide >= LEAST_SOURCE_BYTES)
    if guesses and few_ways and not pays:
        return None
    rows, columns = LONG_ROWS if in_lines else BLOCK
    block = rows // copy.part, columns
    others = [d for d in digits[::-1] if d not in (row, column)]
    dims = tuple(n for n, _, _ in (*others, row, column))
    grid = BlockGrid(dims, (*(1 for _ in others), *block), merges=True)
    if prod(grid.counts) > MOST_BLOCKS:
        return None
    # The destination is written past the caches. Rows are converted in one way only.
    choice = replace(copy.choice, reads=0) if copy.choice else None
    over = replace(copy.over((*others, row, column), starts), streams=True, choice=choice)
    cached, on_lines = partial(pitched_map, element=copy.target), column[2] % LINE_BYTES == 0
    return over.in_blocks(grid, cached, block, "rows", on_lines=guesses and on_lines)


def _may_gain(widths: tuple[int, int], schedules: Sequence[Schedule], footprint: int) -> bool:
    """Whether elements of a large copy become narrower and are transposed past the cache."""
    narrows = footprint >= LEAST_CONVERTED_BYTES and widths[1] < widths[0]
    return narrows and bool(schedules) and all(x.transposes and x.stream for x in schedules)
