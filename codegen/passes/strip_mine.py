"""Strip-mine the axes that a schedule cuts; boxes take the tails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.ir.strided_box import Axis, StridedBox, cut_axis
from codegen.schedule.schedule import Cut, Schedule


def strip_mine(box: StridedBox, schedule: Schedule) -> tuple[StridedBox, ...]:
    """Split an inner loop into full strips, and a box for the remainder.

    before:  for i in 9: for j in 100:                    dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: for strip in 3: for j in 32:     dst[512*i + 128*strip + 4*j] = src[…]
             for i in 9: for strip in 1: for j in 4:      dst[384 + 512*i + 4*j] = src[…]

    Super-vectors that have rows also split an outer loop:

    before:  for i in 9: for j in 100:                                                4 x 32
    after:   for row_strip in 2: for strip in 3: for i in 4: for j in 32:             and three remainders

    All boxes have all axes that the schedule names.
    """
    parts: tuple[StridedBox, ...] = (box,)
    for cut in schedule.cuts:
        if cut.outer in (*schedule.outer, *schedule.inner):
            parts = tuple(x for part in parts for x in _strips(part, cut))
    return parts


def _strips(box: StridedBox, cut: Cut) -> Iterator[StridedBox]:
    """A box in full strips, and a box for the remainder, whose loop over strips runs once."""
    for part in cut_axis(box, cut.axis, cut.block, cut.outer):
        yield _with_strips(part, cut.axis, cut.outer)


def _with_strips(box: StridedBox, name: str, strips: str) -> StridedBox:
    """The box with an axis over strips, which a remainder lacks."""
    if any(axis.name == strips for axis in box.axes):
        return box
    at = box.axes.index(box.axis(name))
    return replace(box, axes=(*box.axes[:at], Axis(strips, 1, 0, 0), *box.axes[at:]))
