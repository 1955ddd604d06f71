"""Turn all boxes of a copy into one nest."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.streams import Stream
from codegen.ir.strided_box import StridedBox
from codegen.schedule.choose_directives import BYTE, chunk_nest
from codegen.schedule.choose_joined import JoinedBoxes
from codegen.schedule.copy_nest import CopyNest, shared_among_threads
from codegen.schedule.directives import Gather
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.segments import Segments


def join_boxes(_: StridedBox, joined: JoinedBoxes) -> CopyNest:
    """Copy all boxes in one nest, which reads their offsets or segments from a table.

    before:  for i in 9: for j in 2:  dst[64*i + 16*j] = src[64*i + 32*j]
             for i in 9: for j in 2:  dst[64*i + 16*j + 32] = src[64*i - 32*j + 48]
    after:   for i in 9: dst += 64, src += 64:
               for x in 4: dst[16*x] = src[line_offsets[x]]         line_offsets 0, 32, 48, 16
    """
    schedule, table = joined.schedule, joined.table
    if isinstance(table, Segments):
        gather = Gather(table.buffer_bytes, table), Stream("given")
        return shared_among_threads(CopyNest((), BYTE, BYTE, None, gather))
    loops = tuple(Loop(axis, *digit) for axis, digit in zip(schedule.outer, table.outer, strict=True))
    count, offsets = len(table.offsets), OffsetTable(listed=table.offsets)
    return shared_among_threads(replace(chunk_nest(table.width, count, offsets, schedule), around=loops))
