"""Split axes into full blocks and a remainder: for threads, and for rows and columns of joined axes."""

from __future__ import annotations

from codegen.ir.strided_box import StridedBox, cut_axis
from codegen.schedule.schedule import Cut, Schedule


def split_axes(box: StridedBox, cuts: tuple[Cut, ...]) -> tuple[StridedBox, ...]:
    """Split each axis that a cut names into blocks, and a box for the remainder.

    before:  for i in 1000:                  dst[i] = src[i]
    after:   for block in 3: for i in 300:   dst[300*block + i] = src[300*block + i]
             for block in 1: for i in 100:   dst[900 + i] = src[900 + i]
    """
    boxes: tuple[StridedBox, ...] = (box,)
    for cut in cuts:
        boxes = tuple(x for part in boxes for x in cut_axis(part, cut.axis, cut.block, cut.outer))
    return boxes


def cut_axes(box: StridedBox, schedule: Schedule) -> tuple[StridedBox, ...]:
    """Split the axes that a schedule cuts: see `split_axes`."""
    return split_axes(box, schedule.cuts)
