"""Split loops into full blocks and a remainder, so that threads can share the blocks."""

from __future__ import annotations

from codegen.ir.strided_box import StridedBox, cut_axis, cut_long
from codegen.schedule.limits import LONG_DIGIT, RUN_BLOCK_BYTES


def split_run(box: StridedBox, block_bytes: int = RUN_BLOCK_BYTES) -> tuple[StridedBox, ...]:
    """Split a box that is one long loop into blocks, and a box for the remainder.

    before:  for i in 1000:                  dst[i] = src[i]
    after:   for block in 3: for i in 300:   dst[300*block + i] = src[300*block + i]
             for i in 100:                   dst[900 + i] = src[900 + i]
    """
    if len(box.axes) != 1 or box.entries:
        return (box,)
    axis = box.axes[0]
    block = max(1, block_bytes * 8 // box.target.bits)
    if axis.extent < 4 * block or axis.dst == 0:
        return (box,)
    return cut_axis(box, axis.name, block, "block")


def split_long(box: StridedBox, block: int = LONG_DIGIT) -> tuple[StridedBox, ...]:
    """Split the digits along which the sides are contiguous, so that tables of rows and columns stay small.

    before:  for i in 5: for j in 20000:                   dst[i + 5*j] = src[20000*i + j]
    after:   for i in 5: for long_j in 2: for j in 8192:   dst[i + 40960*long_j + 5*j] = src[…]
             for i in 5: for j in 3616:                    dst[81920 + i + 5*j] = src[16384 + 20000*i + j]
    """
    row, column = box.contiguous("dst"), box.contiguous("src")
    if box.unit_bits != 8 or row is None or column is None or row is column:
        return (box,)
    boxes: tuple[StridedBox, ...] = (box,)
    for axis in (row, column):
        boxes = tuple(x for part in boxes for x in cut_long(part, axis.name, block))
    return boxes
