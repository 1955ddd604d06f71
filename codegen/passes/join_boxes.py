"""Turn all boxes of a copy into one nest."""

from __future__ import annotations

from codegen.ir.strided_box import Element, StridedBox
from codegen.schedule.choose_joined import JoinedBoxes
from codegen.schedule.choose_swizzle import ChunkTable
from codegen.schedule.copy_nest import CopyNest, shared_among_threads
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import OffsetTable


def join_boxes(_: StridedBox, joined: JoinedBoxes) -> CopyNest:
    """Copy all boxes in one nest, which reads their offsets or segments from a table.

    before:  for i in 9: for j in 2:  dst[64*i + 16*j] = src[64*i + 32*j]
             for i in 9: for j in 2:  dst[64*i + 16*j + 32] = src[64*i - 32*j + 48]
    after:   for i in 9: dst += 64, src += 64:
               for x in 4: dst[16*x] = src[line_offsets[x]]         line_offsets 0, 32, 48, 16
    """
    schedule, table = joined.schedule, joined.table
    loops, around = tuple[Loop, ...](), tuple[Loop, ...]()
    if isinstance(table, ChunkTable):
        offsets = OffsetTable(listed=table.offsets)
        loops = (Loop("x", len(table.offsets), 0, table.width, src_table=offsets),)
        around = tuple(Loop(axis, *digit) for axis, digit in zip(schedule.outer, table.outer, strict=True))
    bits = 8 * table.width if isinstance(table, ChunkTable) else 8
    element = Element(f"u{bits}", bits)
    return shared_among_threads(CopyNest(loops, element, element, None, schedule.directives, around))
