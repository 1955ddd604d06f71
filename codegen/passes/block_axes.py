"""Cut a box into blocks that stay in cache; its outermost loops count the blocks."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import StridedBox, cut_axis
from codegen.schedule.choose_cache_blocks import CacheBlocks


def block_axes(box: StridedBox, blocks: CacheBlocks) -> tuple[StridedBox, ...]:
    """Move the loops over blocks outermost; the last block of the cut axis, if shorter, is a separate box.

    before:  for i in 363: for j in 504: for k in 36:                    dst[36288*i + 72*j + 2*k] = src[…]
    after:   for block_j in 25: for i in 363: for j in 20: for k in 36:  dst[1440*block_j + 36288*i + …] = …
             for block_j in 1:  for i in 363: for j in 4:  for k in 36:  dst[36000 + 36288*i + …] = …

    Both boxes have the same axes, so they share kernels.
    """
    name = f"block_{blocks.cut}"
    parts = cut_axis(box, blocks.cut, blocks.extent, name)
    return tuple(_with_blocks_outermost(part, name, blocks.outer) for part in parts)


def _with_blocks_outermost(box: StridedBox, name: str, outer: tuple[str, ...]) -> StridedBox:
    around = (*(x for x in box.axes if x.name in outer), box.axis(name))
    return replace(box, axes=(*around, *(x for x in box.axes if x not in around)), blocks=len(around))
