"""Choose the axes of a box that are split into blocks, and the schedules of the parts."""

from __future__ import annotations

from math import ceil

from codegen.ir.lines import LANE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox, long_axis
from codegen.schedule.choose import LONG_DIGIT, choose, streams_transposes
from codegen.schedule.choose_inner import inner_loops
from codegen.schedule.choose_order import window_cut
from codegen.schedule.choose_transpose import LONG_ROW_BYTES, transpose_schedule
from codegen.schedule.conditions import Conditions
from codegen.schedule.machine import ALWAYS_STREAM, NEVER_STREAM
from codegen.schedule.schedule import MOST_LOOPS, Cut, Schedule
from codegen.schedule.transpose_blocks import MOST_JOINED, STAGED_BYTES, joined_rows, size_of

JOINED_DIGITS = 1 << 13
"""The most elements of a short digit and of a block of the digit after it, which is joined to it."""

RUN_BLOCK_BYTES = 1 << 18
"""Bytes of a long run that threads take at a time."""


def choose_cuts(box: StridedBox, when: Conditions) -> tuple[Cut, ...]:
    """The cuts by which the source is read by windows, or short digits are joined, or threads share a run."""
    if window := _read_windows(box, when):
        return window
    if joined := _joined_digits(box, when):
        return joined
    return cuts_of_a_run(box, RUN_BLOCK_BYTES) if when.threads > 1 else ()


def _read_windows(box: StridedBox, when: Conditions) -> tuple[Cut, ...]:
    """The cut into windows, if it pays: it does only for a streamed interleave whose chunks are far apart."""
    if box.unit_bits == 1 or not when.go_past_cache(box):
        return ()
    inner = inner_loops(box, past_cache=True)
    found = window_cut(box, inner.inner) if inner and inner.packed == "dst" else None
    return (found,) if found else ()


def _joined_digits(box: StridedBox, when: Conditions) -> tuple[Cut, ...]:
    """The cuts of digits that follow digits shorter than a line, and are too long to be joined to them.

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
    run = size_of(joined_rows(box)) * box.width
    found = transpose_schedule(box, stream=streams_transposes(box, when))
    in_place = found and not found.stages_rows
    is_staged = run < LONG_ROW_BYTES and not in_place
    most = min(STAGED_BYTES // run, JOINED_DIGITS) if is_staged else JOINED_DIGITS
    if following := _too_long(box, "src", most if is_staged else MOST_JOINED):
        return _even(following, most // column.extent)
    return ()


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


def cuts_of_long_digits(box: StridedBox, block: int = LONG_DIGIT) -> tuple[Cut, ...]:
    """The cuts of the digits along which the sides are contiguous, so that tables of offsets stay small.

    for i in 5: for j in 20000:  dst[i + 5*j] = src[20000*i + j]  ->  blocks of 8192 of j
    """
    row, column = box.contiguous("dst"), box.contiguous("src")
    if box.unit_bits != 8 or row is None or column is None or row is column:
        return ()
    return (*_long(box, row.name, block), *_long(box, column.name, block))


def schedule_of_part(part: StridedBox, box: StridedBox, whole: Schedule, threads: int) -> Schedule:
    """The schedule of a part of a box whose long digits are split, chosen as that of the box."""
    given = whole.tile(box.extents, strips=True) if whole.sized else None
    stream_bytes = ALWAYS_STREAM if whole.stream else NEVER_STREAM
    return choose(part, Conditions(threads, stream_bytes=stream_bytes, given=given))


def _long(box: StridedBox, name: str, block: int) -> tuple[Cut, ...]:
    """The cut of an axis if it is longer than two blocks."""
    return (Cut(name, block, long_axis(name)),) if box.axis(name).extent > 2 * block else ()
