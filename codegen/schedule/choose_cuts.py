"""Choose the axes of a box that are split into blocks, and the schedules of the parts."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.strided_box import StridedBox, long_axis
from codegen.schedule.choose import LONG_DIGIT, choose, goes_past_cache, transfer_of
from codegen.schedule.choose_order import window_cut
from codegen.schedule.schedule import Schedule, Thresholds

RUN_BLOCK_BYTES = 1 << 18
"""Bytes of a long run that threads take at a time."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An axis that is split into blocks of that extent; `outer` names the axis over the blocks."""

    axis: str
    block: int
    outer: str


def choose_cuts(box: StridedBox, threads: int, footprint: int, thresholds: Thresholds) -> tuple[Cut, ...]:
    """The cuts by which the source is read by windows, or else those by which threads share a long run."""
    if window := _read_windows(box, footprint, thresholds):
        return window
    return cuts_of_a_run(box, RUN_BLOCK_BYTES) if threads > 1 else ()


def _read_windows(box: StridedBox, footprint: int, thresholds: Thresholds) -> tuple[Cut, ...]:
    """The cut into windows, if it pays: it does only for a streamed interleave whose chunks are far apart."""
    if box.unit_bits == 1 or not goes_past_cache(box, footprint, thresholds):
        return ()
    mode, inner, interleave = transfer_of(box, past_cache=True)
    found = window_cut(box, inner) if mode == "interleave" and interleave == "dst" else None
    return _long(box, *found) if found else ()


def cuts_of_a_run(box: StridedBox, block_bytes: int) -> tuple[Cut, ...]:
    """The cut of a box that is one long loop into blocks, which threads share."""
    if len(box.axes) != 1 or box.entries:
        return ()
    axis = box.axes[0]
    block = max(1, block_bytes * 8 // box.target.bits)
    return (Cut(axis.name, block, "block"),) if axis.extent >= 4 * block and axis.dst else ()


def cuts_of_long_digits(box: StridedBox, block: int = LONG_DIGIT) -> tuple[Cut, ...]:
    """The cuts of the digits along which the sides are contiguous, so that tables of offsets stay small.

    for i in 5: for j in 20000:  dst[i + 5*j] = src[20000*i + j]  ->  blocks of 8192 of j
    """
    row, column = box.contiguous("dst"), box.contiguous("src")
    if box.unit_bits != 8 or row is None or column is None or row is column:
        return ()
    return (*_long(box, row.name, block), *_long(box, column.name, block))


def schedule_of_part(part: StridedBox, whole: Schedule, threads: int) -> Schedule:
    """The schedule of a part of a box whose long digits are split, chosen as that of the box."""
    cut = whole.transpose
    if cut is None:
        raise AssertionError("only transposes are split")
    always, never = Thresholds(stream_bytes=0), Thresholds(stream_bytes=1 << 62)
    size = cut.tile if whole.sized else None
    thresholds = always if cut.stream else never
    return choose(part, threads=threads, thresholds=thresholds, virtual_vector_size=size)


def _long(box: StridedBox, name: str, block: int) -> tuple[Cut, ...]:
    """The cut of an axis if it is longer than two blocks."""
    return (Cut(name, block, long_axis(name)),) if box.axis(name).extent > 2 * block else ()
