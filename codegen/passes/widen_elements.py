"""Widen the element: a short run that is contiguous on both sides moves as one element of 2 to 64 bytes."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Element, StridedBox
from codegen.schedule.choose_width import wider_axis


def widen_elements(box: StridedBox, _: object = None) -> StridedBox:
    """Move the axes that `wider_axis` chooses into the element.

    before:  for i in 9: for j in 2:  dst[u16: 40*i + 2*j] = src[u16: 4*i + 2*j]
    after:   for i in 9:              dst[u32: 40*i] = src[u32: 4*i]
    """
    while axis := wider_axis(box):
        bits = 8 * axis.extent * box.width
        wide = Element(f"u{bits}", bits)
        kept = box.with_axes(x for x in box.axes if x is not axis)
        box = replace(kept, source=wide, target=wide)
    return box
