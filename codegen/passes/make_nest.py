"""Turn a box into a nest whose directives say how the loops run, as its schedule decided."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Digit, Side, StridedBox
from codegen.schedule.copy_nest import BYTE, CopyNest, shared_among_threads
from codegen.schedule.directives import Assemble, Directive, Table
from codegen.schedule.loops import Loop
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import Joined, Schedule
from codegen.schedule.shuffles import part_tables
from codegen.schedule.transposed_nest import with_tables


def make_nest(box: StridedBox, schedule: Schedule) -> CopyNest:
    """Join axes of a box to the inner loops of a schedule, whose directives get their tables.

    before:  for i in 9: for j in 128:  dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: dst += 512, src += 1200:
               for x in 512: dst[x] = src[x]        Vectorize(x=64), Tail("x", "shift", sizes=("rest",))
    """
    # Super-vectors of packed elements begin at bytes.
    unit_bits = 8 if schedule.lanes else box.unit_bits
    scale = unit_bits // box.unit_bits
    source, target = box.source, box.target
    if any(x.in_bytes for x in schedule.loops):
        source, target = source and BYTE, BYTE
    elif scale > 1:
        source, target = source and source.unsigned, target.unsigned
    listed = [x.side for x in schedule.obeying(Table)]
    loops = (_joined(box, x, scale, listed) for x in schedule.loops)
    around = (_loop(box.axis(name), scale) for name in schedule.outer)
    nest = CopyNest(
        tuple(loops),
        target,
        source,
        box.conversion,
        tuple(_with_table(box, schedule, x) for x in schedule.directives),
        tuple(around),
        box.entries,
        unit_bits,
    )
    return shared_among_threads(with_tables(nest) if nest.transposes or nest.staged else nest)


def _loop(axis: Axis, scale: int) -> Loop:
    """A loop over an axis, whose strides are multiples of a scale."""
    return Loop(axis.name, axis.extent, axis.src // scale, axis.dst // scale, fixed=axis.fixed)


def _joined(box: StridedBox, loop: Joined, scale: int, listed: Collection[Side]) -> Loop:
    """A loop that joins axes. A side where these do not follow each other has a table of offsets.

    listed  the sides whose tables directives hold
    """
    digits = box.digits(loop.axes)
    if loop.in_bytes and box.width > 1:
        digits = (box.width, 1, 1), *digits
    digits = digits or ((1, 0, 0),)
    count = prod(n for n, _, _ in digits)
    fixed = bool(loop.axes) and all(box.axis(name).fixed for name in loop.axes)
    src, src_table = _along("src", digits) if box.source else (0, None)
    dst, dst_table = _along("dst", digits)
    if loop.table:
        src, src_table = 0, OffsetTable(tuple((n, step) for n, step, _ in digits))
    if "src" in listed:
        src, src_table = digits[0][1], None
    if "dst" in listed:
        dst, dst_table = digits[0][2], None
    if loop.in_bytes:  # a stride of one unit of the box becomes one byte
        return Loop(loop.name, count * box.unit_bits // 8, src, dst, src_table, dst_table, fixed)
    return Loop(loop.name, count, src // scale, dst // scale, src_table, dst_table, fixed)


def _along(side: Side, digits: Sequence[Digit]) -> tuple[int, OffsetTable | None]:
    """The stride of joined digits on a side, or their table."""
    steps = [(n, src if side == "src" else dst) for n, src, dst in digits]
    if all(step == n * before for (n, before), (_, step) in pairwise(steps)):
        return steps[0][1], None
    return 0, OffsetTable(tuple(steps))


def _with_table(box: StridedBox, schedule: Schedule, directive: Directive) -> Directive:
    """A directive with what its table holds, which depends on the box."""
    match directive:
        case Table(side):
            return Table(side, _packed_lines(box, schedule, side))
        case Assemble():
            step, period = schedule.joined(directive.axis), schedule.joined("x")
            return replace(directive, tables=part_tables(box, period, step, directive))
    return directive


def _packed_lines(box: StridedBox, schedule: Schedule, side: Side) -> OffsetTable:
    """The lines of short rows that are packed together: those of the first digits, and of the others."""
    (long, *joined), short = schedule.loops[0].axes, schedule.loops[1].axes[0]
    first = box.extents[long] * box.extents[short] * box.width // LINE_BYTES
    others = ((box.axis(name).extent, box.axis(name).stride(side)) for name in joined)
    return OffsetTable(((first, LINE_BYTES), *others))
