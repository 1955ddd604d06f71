"""Choose the width of a box's elements."""

from __future__ import annotations

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox, in_element
from codegen.schedule.machine import ALIAS_BYTES

WIDTHS = (2, 4, 8, 16, 32, 64)

MOST_AROUND_LINES = 2
"""The most loops around runs of a line that are worth the tiles of a transpose."""


def wide_axes(box: StridedBox) -> tuple[str, ...]:
    """The axes that move faster as part of the element, in the order in which it becomes wider."""
    axis = _wide_axis(box)
    return (axis.name, *wide_axes(in_element(box, axis.name))) if axis else ()


def _wide_axis(box: StridedBox) -> Axis | None:
    """The next such axis: a short run on both sides, if other loops remain."""
    if box.source is None or box.converts or box.unit_bits != 8 or len(box.axes) < 2:
        return None
    for axis in box.axes:
        run = axis.extent * box.width
        if run == LINE_BYTES and not _worth_tiles(box):
            continue
        if axis.dst == axis.src == box.width and run in WIDTHS:
            return axis
    return None


def _worth_tiles(box: StridedBox) -> bool:
    """Whether runs of a full line move faster in the tiles of a transpose than in order.

    They do if source rows share cache sets, except in a deep nest, whose own order touches fewer pages.
    """
    far = any(axis.src and axis.src % ALIAS_BYTES == 0 for axis in box.axes)
    return far and len(box.axes) <= MOST_AROUND_LINES + 1
