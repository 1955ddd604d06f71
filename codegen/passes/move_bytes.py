"""Move the bytes of elements in a loop of their own."""

from __future__ import annotations

from codegen.ir.strided_box import StridedBox, in_bytes
from codegen.schedule.schedule import Schedule


def move_bytes(box: StridedBox, schedule: Schedule) -> StridedBox:
    """Make the bytes of elements the most minor loop, if the schedule says so.

    before:  for i in 9:              dst[u32: 40*i] = src[u32: 4*i]
    after:   for i in 9: for b in 4:  dst[u8: 40*i + b] = src[u8: 4*i + b]
    """
    return in_bytes(box) if schedule.in_bytes else box
