"""Cut a box into blocks that stay in cache, which its outermost loops count."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Axis, StridedBox, cut_axis
from codegen.schedule.choose_cache_blocks import CacheBlocks

BLOCK = "block"
"""The axis that counts the parts of the axis that is cut."""


def block_axes(box: StridedBox, blocks: CacheBlocks) -> tuple[StridedBox, ...]:
    """Move the loops around blocks outermost; the last, shorter part of the cut axis is a box of its own.

    before:  for k in 36: for j in 281: for i in 315:                   dst[22680*j + …] = src[…]
    after:   for block in 12: for k in 36: for j in 22: for i in 315:   dst[498960*block + 22680*j + …] = …
             for block in 1:  for k in 36: for j in 17: for i in 315:   dst[5987520 + 22680*j + …] = …

    Both boxes have the same axes, so that they share kernels.
    """
    parts = cut_axis(box, blocks.cut, blocks.extent, BLOCK)
    return tuple(_with_blocks_outermost(part, blocks.outer) for part in parts)


def _with_blocks_outermost(box: StridedBox, outer: tuple[str, ...]) -> StridedBox:
    count = next((x for x in box.axes if x.name == BLOCK), Axis(BLOCK, 1, 0, 0))
    around = (*(x for x in box.axes if x.name in outer), count)
    return replace(box, axes=(*around, *(x for x in box.axes if x not in around)), blocks=len(around))
