"""Widen the element: a short run that is contiguous on both sides moves as one element of 2 to 64 bytes."""

from __future__ import annotations

from codegen.ir.strided_box import StridedBox, in_element


def widen_elements(box: StridedBox, axes: tuple[str, ...]) -> StridedBox:
    """Move the axes that `wide_axes` chose into the element, one after the other.

    before:  for i in 9: for j in 2:  dst[u16: 40*i + 2*j] = src[u16: 4*i + 2*j]
    after:   for i in 9:              dst[u32: 40*i] = src[u32: 4*i]
    """
    for name in axes:
        box = in_element(box, name)
    return box
