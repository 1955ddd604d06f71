"""Choose the axes of a box that are split into blocks."""

from __future__ import annotations

from math import ceil

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox, long_axis
from codegen.schedule.choose import transposed
from codegen.schedule.choose_inner import inner_loops
from codegen.schedule.choose_transpose import LONG_ROW_BYTES
from codegen.schedule.conditions import Conditions
from codegen.schedule.schedule import MOST_LOOPS, Cut, Schedule
from codegen.schedule.transpose_blocks import MOST_JOINED, STAGED_BYTES, joined_rows, size_of

JOINED_DIGITS = 1 << 13
"""The most elements of a short digit and of a block of the digit after it, which is joined to it."""

SHORT_RUN_BYTES, JOINED_BYTES = 256, 1536
"""Staged result rows shorter than the first are joined to runs of up to the second.

u8 [70,600,900] (2,1,0) is 2.1 times as fast, u16 [33,1000,500] 2.4, u32 [18,1024,512] 2.3, whose source rows
also share cache sets. Runs of 1024 bytes are as fast, rows of 400 bytes gain nothing (Zen 4, 2026-12).
"""

RUN_BLOCK_BYTES = 1 << 18
"""Bytes of a long run that threads take at a time."""


def choose_cuts(box: StridedBox, when: Conditions) -> tuple[Cut, ...]:
    """The cuts by which short digits are joined, or threads share a run."""
    if joined := _joined_digits(box, when):
        return joined
    return cuts_of_a_run(box, RUN_BLOCK_BYTES) if when.threads > 1 else ()


def _joined_digits(box: StridedBox, when: Conditions) -> tuple[Cut, ...]:
    """The cuts of digits that follow short ones, and are too long to be joined to them.

    for i in 20: for j in 30000: for k in 3:  dst[i + 20*j + 600000*k] = src[k + 3*j + 90000*i]
    ->  blocks of 400 of j, which are joined to i
    """
    row, column = box.contiguous("dst"), box.contiguous("src")
    if row is None or column is None or len(box.axes) >= MOST_LOOPS:
        return ()
    if inner_loops(box, past_cache=False):
        return ()
    if following := _too_long(box, "dst", MOST_JOINED):
        return _even(following, JOINED_DIGITS // row.extent)
    found = transposed(box, when)
    if found and (joined := _short_runs(box, found)):
        return joined
    run = size_of(joined_rows(box)) * box.width
    in_place = found and not found.stages_rows
    is_staged = run < LONG_ROW_BYTES and not in_place
    most = min(STAGED_BYTES // run, JOINED_DIGITS) if is_staged else JOINED_DIGITS
    if following := _too_long(box, "src", most if is_staged else MOST_JOINED):
        return _even(following, most // column.extent)
    return ()


def _short_runs(box: StridedBox, staged: Schedule) -> tuple[Cut, ...]:
    """The cut of the digit that follows short result rows, which begin inside lines: tiles write longer runs.

    for i in 500: for j in 1000: for k in 33:  dst[33000*i + 33*j + k] = src[i + 500*j + 500000*k]
    ->  blocks of 23 of j, which are joined to k: runs of 1518 bytes, not 66   (u16)
    """
    rows = tuple(map(box.axis, staged.rows))
    run = size_of(rows) * box.width
    following = next((x for x in box.axes if x.dst == run and x.name not in staged.columns), None)
    if not (staged.stream and staged.stages_rows and LINE_BYTES < run < SHORT_RUN_BYTES) or following is None:
        return ()
    if staged.layers or all(x.dst % LINE_BYTES == 0 for x in box.axes if x not in rows):
        return ()
    most = JOINED_BYTES // run
    block = ceil(following.extent / ceil(following.extent / most))
    return (Cut(following.name, block, long_axis(following.name)),) if 1 < block < following.extent else ()


def _too_long(box: StridedBox, side: Side, most: int) -> Axis | None:
    """The digit that follows the short contiguous one of a side, if both have more than `most` elements."""
    first, width = (box.row, box.width) if side == "dst" else (box.column, box.source_width)
    others = [x for x in box.axes if x not in (box.row, box.column)]
    following = next((x for x in others if x.stride(side) == first.extent * width), None)
    if following is None or first.extent >= box.per_line or first.extent * following.extent <= most:
        return None
    return following


def _even(axis: Axis, most: int) -> tuple[Cut, ...]:
    """The cut of an axis into blocks of about the same extent, a multiple of a lane and at most `most`."""
    most = max(most // LANE_BYTES, 1) * LANE_BYTES
    even = axis.extent / -(-axis.extent // most)
    block = ceil(even / LANE_BYTES) * LANE_BYTES
    return (Cut(axis.name, block, long_axis(axis.name)),) if block < axis.extent else ()


def cuts_of_a_run(box: StridedBox, block_bytes: int) -> tuple[Cut, ...]:
    """The cut of a box that is one long loop into blocks, which threads share."""
    if len(box.axes) != 1 or box.entries:
        return ()
    axis = box.axes[0]
    block = max(1, block_bytes * 8 // box.target.bits)
    return (Cut(axis.name, block, f"block_{axis.name}"),) if axis.extent >= 4 * block and axis.dst else ()
