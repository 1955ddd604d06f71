"""Widen the element: a short run that is contiguous on both sides moves as one element of 2 to 64 bytes."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Element, StridedBox
from codegen.schedule.limits import MOST_AROUND_LINES, WIDE_ALIAS_BYTES

WIDTHS = (2, 4, 8, 16, 32, 64)


def widen(box: StridedBox) -> StridedBox:
    """Move the loop that is contiguous on both sides into the element, if it is short and other loops remain.

    before:  for i in 9: for j in 2:  dst[u16: 40*i + 2*j] = src[u16: 4*i + 2*j]
    after:   for i in 9:              dst[u32: 40*i] = src[u32: 4*i]
    """
    if box.source is None or box.converts or box.unit_bits != 8 or len(box.axes) < 2:
        return box
    for axis in box.axes:
        run = axis.extent * box.width
        if run == LINE_BYTES and not _worth_tiles(box):
            continue
        if axis.dst == axis.src == box.width and run in WIDTHS:
            wide = Element(f"u{8 * run}", 8 * run)
            kept = box.with_axes(x for x in box.axes if x is not axis)
            return widen(replace(kept, source=wide, target=wide))
    return box


def _worth_tiles(box: StridedBox) -> bool:
    """Whether runs of a full line move faster in the tiles of a transpose than in order.

    They do if source rows share cache sets, except in a deep nest, whose own order touches fewer pages.
    """
    far = any(axis.src and axis.src % WIDE_ALIAS_BYTES == 0 for axis in box.axes)
    return far and len(box.axes) <= MOST_AROUND_LINES + 1
