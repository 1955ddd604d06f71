"""Strip-mine the loop of a 1-D transfer, or the last joined loop of an interleave; a box takes the tail."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Axis, StridedBox, cut_axis
from codegen.schedule.schedule import STRIP, Schedule


def strip_mine(box: StridedBox, schedule: Schedule) -> tuple[StridedBox, ...]:
    """Split a loop of the transfer into full strips, and a box for the remainder.

    before:  for i in 9: for j in 100:                    dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: for strip in 3: for j in 32:     dst[512*i + 128*strip + 4*j] = src[…]
             for i in 9: for strip in 1: for j in 4:      dst[384 + 512*i + 4*j] = src[…]

    Both boxes have all axes that the schedule names.
    """
    if schedule.strip is None:
        return (box,)
    return tuple(
        _with_strips(part, schedule.stripped)
        for part in cut_axis(box, schedule.stripped, schedule.strip, STRIP)
    )


def _with_strips(box: StridedBox, name: str) -> StridedBox:
    """The box with an axis over strips, which a remainder lacks."""
    if any(axis.name == STRIP for axis in box.axes):
        return box
    at = next(k for k, axis in enumerate(box.axes) if axis.name == name)
    return replace(box, axes=(*box.axes[:at], Axis(STRIP, 1, 0, 0), *box.axes[at:]))
