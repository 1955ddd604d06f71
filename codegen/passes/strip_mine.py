"""Strip-mine the axes that a schedule cuts; boxes take the tails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from codegen.ir.strided_box import Axis, StridedBox, cut_axis
from codegen.schedule.schedule import COLUMNS, ROWS, Cut, Schedule


def strip_mine(box: StridedBox, schedule: Schedule) -> tuple[StridedBox, ...]:
    """Split an inner loop into full strips, and a box for the remainder.

    before:  for i in 9: for j in 100:                    dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: for strip in 3: for j in 32:     dst[512*i + 128*strip + 4*j] = src[…]
             for i in 9: for strip in 1: for j in 4:      dst[384 + 512*i + 4*j] = src[…]

    Super-vectors that have rows also split an outer loop:

    before:  for i in 9: for j in 100:                                                4 x 32
    after:   for row_strip in 2: for strip in 3: for i in 4: for j in 32:             and three remainders

    All boxes have all axes that the schedule names. Sizes of full super-vectors of the caller are literals
    of kernels, which have no loop over a remainder.
    """
    parts: tuple[StridedBox, ...] = (box,)
    for cut in schedule.cuts:
        if cut.outer in (*schedule.outer, *schedule.inner):
            parts = tuple(x for part in parts for x in _strips(part, cut))
    return tuple(_with_tiles(part, schedule) for part in parts)


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


def _with_tiles(box: StridedBox, schedule: Schedule) -> StridedBox:
    """The box whose axes inside full super-vectors of the caller are fixed, as are loops over one of them."""
    fixed = set[str]()
    for cut in (x for x in schedule.cuts if x.outer in (COLUMNS, ROWS)):
        parts = {cut.axis, *(x.outer for x in schedule.cuts if x.axis == cut.axis and x is not cut)}
        if prod(x.extent for x in box.axes if x.name in parts) == cut.block:
            fixed.update(schedule.inner if cut.outer == COLUMNS else (cut.axis,))
        fixed.update(x.name for x in box.axes if x.name == cut.outer and x.extent == 1)
    return box.with_axes(replace(x, fixed=True) if x.name in fixed else x for x in box.axes)
