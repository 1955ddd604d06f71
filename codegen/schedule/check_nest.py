"""Check that passes can obey the directives of a copy, whoever chose them.

The compiler's own schedules must also pass; tests check all of them.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.streams import Stream
from codegen.schedule.check_directives import (
    check_directives,
    check_names,
    check_order,
    check_tiles,
    first,
    refuse_any,
)
from codegen.schedule.check_prefetches import check_prefetches
from codegen.schedule.check_transpose import check_parts, check_transpose, layers
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    REST,
    Assemble,
    CopyBlock,
    Diagonal,
    Directive,
    Gather,
    Parallel,
    Registers,
    Relax,
    Reorder,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.loops import Loop, int_size
from codegen.schedule.read_directives import refuse


def check_nest(nest: CopyNest) -> None:
    """Check the directives of a nest whose sizes are numbers.

    Raises:
        ScheduleError: passes cannot obey them.
    """
    check_directives(nest.directives)
    refuse_any(nest, (Registers, Relax), "a copy does not take {}, which kernels have")
    check_names(nest.directives, [x.axis for x in (*nest.around, *nest.loops)])
    check_tiles(_filled(nest), {x.axis: int_size(x.extent) for x in (*nest.around, *nest.loops)})
    for x in nest.obeying(Parallel):
        if x.loop not in nest.shareable:
            listed = ", ".join(nest.shareable) or "no loop"
            refuse(f"expected threads to share {listed}, got {x}", x)
    _check_tiled_loops(nest)
    _check_order(nest)
    if nest.transposes:
        others = CopyBlock, Table, Assemble, Gather, Request
        refuse_any(nest, others, "a transpose does not take {}")
        check_transpose(nest)
    else:
        refuse_any(nest, (Diagonal,), "{} needs blocks of rows and columns")
        _check_staged_parts(nest)
        _check_lanes(nest)
        _check_streamed_lanes(nest)
    check_prefetches(nest)


def _filled(nest: CopyNest) -> list[Directive]:
    """The directives without strips that may end with a part of a super-vector, which a tail runs.

    Strips of lines that a table lists have a super-vector or more, and full lines.
    """

    def has_tails(x: Directive) -> bool:
        if not isinstance(x, Tile) or x.level != "strip" or nest.transposes:
            return False
        tail, lanes, size = nest.tail(x.axis), nest.lanes.get(x.axis, 1), int_size(x.size)
        in_lines = size >= lanes and size * prod(nest.lanes.values()) % (lanes * lanes) == 0
        return tail is not None and (bool(tail.sizes) or in_lines)

    return [x for x in nest.directives if not has_tails(x)]


def _check_tiled_loops(nest: CopyNest) -> None:
    """Only loops around one statement are tiled or reordered, and only those that a super-vector leaves."""
    if nest.obeying(Gather):
        refuse_any(nest, (Tile, Reorder), "a copy with Gather does not take {}")
    for rows in nest.obeying(Assemble):
        for x in (x for x in nest.obeying(Tile) if x.axis in (loop.axis for loop in nest.loops)):
            if x.axis != rows.axis or int_size(x.size) % (rows.rows * int_size(rows.steps)):
                refuse(f"expected tiles of {rows.axis}, of {rows.rows} rows of {rows.steps}, got {x}", x)
    for x in nest.obeying(Tile):
        if nest.transposes and x.axis in (loop.axis for loop in nest.around):
            refuse(f"expected tiles of the loops of a block, got {x}", x)
        if not nest.transposes and x.axis in [*nest.lanes][1:]:
            refuse(f"expected all iterations of {x.axis} as lanes, got {x}", x)


def _check_order(nest: CopyNest) -> None:
    """All loops are ordered: super-vectors last, and outermost tiles of blocks first, before layers."""
    order = first(nest, Reorder)
    if order is None:
        return
    for other in nest.obeying(Reorder)[1:]:
        refuse(f"expected one Reorder of all loops, got {other} as well", other)
    axes = ordered_axes(nest)
    levels = [[*(x.index for x in nest.tiles(axis)), axis] for axis in axes]
    check_order(order, [*(x.index for x in nest.obeying(Tile)), *axes], levels)
    assembled = [x.axis for x in nest.loops if nest.obeying(Assemble)]
    inner = tuple(axis for axis in axes if axis in nest.lanes or axis in assembled)
    last = order.loops[len(order.loops) - len(inner) :]
    if last != inner and not (nest.transposes and {*last} == {*inner}):
        refuse(f"expected {' and '.join(inner)} last, got {order}", order)
    leading = (*nest.outer, *layers(nest))
    if nest.transposes and order.loops[: len(leading)] != leading:
        refuse(f"expected {' and '.join(['the outermost tiles', *layers(nest)])} first, got {order}", order)


def _check_staged_parts(nest: CopyNest) -> None:
    """Rows that are packed together go through scratch in parts, of which super-vectors have all rows."""
    for stage in nest.obeying(Stage):
        if len(nest.loops) != 2 or not nest.lanes or 8 * int_size(nest.loops[0].dst) != nest.target.bits:
            refuse(f"{stage} needs blocks of rows and columns", stage)
        row, column = nest.loops
        if [x.form for x in nest.obeying(Stream)] != ["headed"]:
            refuse('Stage needs Stream("headed")', first(nest, Stream) or stage)
        if first(nest, Tail) != Tail(row.axis, "clamp"):
            refuse(f'Stage needs Tail("{row.axis}", "clamp")', first(nest, Tail) or stage)
        if not nest.tiles(row.axis) or nest.tiles(column.axis):
            refuse(f'Stage needs tiles of {row.axis}, such as Tile("{row.axis}", 256)', stage)
        check_parts(nest, stage)


def _check_lanes(nest: CopyNest) -> None:
    """Instructions move the lanes of super-vectors, and of the narrower ones after them."""
    lanes = first(nest, Vectorize)
    if lanes is None:
        refuse_any(nest, (Tail, Stream, CopyBlock), "{} needs Vectorize")
        return
    long, *others = nest.loops
    is_flat = nest.copies and not others and (nest.target.bits, long.src, long.dst) == (8, 1, 1)
    if not is_flat or nest.tiles(long.axis) or first(nest, Stream):
        refuse_any(nest, (CopyBlock,), "{} needs a run of bytes without tiles and Stream")
    whole = prod(int_size(x.extent) for x in nest.loops[1:])
    for x in nest.obeying(Tail):
        if x.axis != long.axis:
            refuse(f"expected a tail of {long.axis}, got {x}", x)
    count = nest.lanes[long.axis]
    _check_tail(nest, long, count)
    if len(nest.lanes) > 1 and prod(nest.lanes.values()) != count * whole:
        refuse(f"expected all iterations of the loops inside {long.axis} as lanes, got {lanes}", lanes)


def _check_streamed_lanes(nest: CopyNest) -> None:
    """The limits of streams have a meaning in the nest."""
    lanes = first(nest, Vectorize)
    for x in nest.obeying(Stream):
        if prod(nest.lanes.values()) * nest.target.bits // 8 < LANE_BYTES:
            refuse(f"{x} needs lanes of at least {LANE_BYTES} bytes, got {lanes}", lanes)
        if x.least < 0:
            refuse(f"expected least of 0 or more, got {x}", x)
        if x.least and x.form in ("given", "full", "begun"):
            refuse(f'Stream("{x.form}") takes no least, got {x}', x)


def _check_tail(nest: CopyNest, long: Loop, count: int) -> None:
    """The iterations that fill no super-vector have narrower ones, or a last one that begins earlier."""
    extent, tail = int_size(long.extent), nest.tail(long.axis)
    if tail is None:
        if extent % count and not nest.obeying(Request):
            refuse(f"{long.axis} has {extent} iterations, so lanes of {count} need a Tail")
        return
    if tail.how == "clamp" and not tail.sizes:
        if extent < count:
            refuse(f"{tail} needs {count} iterations or more, got {extent}", tail)
        return
    if tail.how not in ("shift", "clamp", "narrow"):
        refuse(f'expected "shift", "clamp" or "narrow" for the tail of a copy, got {tail}', tail)
    sizes = [count, *(0 if x == REST else x for x in tail.sizes)]
    if not tail.sizes or sizes[-1] > 1:
        refuse(f'expected a tail that ends with size 1 or "{REST}", got {tail}', tail)
    if any(inner >= max(outer, 2) for outer, inner in pairwise(sizes)) or min(sizes) < 0:
        refuse(f'expected sizes that decrease, "{REST}" last, got {tail}', tail)
    if tail.sizes[-1] == REST and sizes[-2] > LINE_BYTES:
        refuse(f'expected a size of at most {LINE_BYTES} before "{REST}", got {tail}', tail)


def ordered_axes(nest: CopyNest) -> list[str]:
    """The axes that orders name: all but the columns of source rows shorter than a lane."""
    return [x.axis for x in (*nest.around, *nest.loops) if not (nest.short and x.axis == "column")]
