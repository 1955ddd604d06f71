"""Packed rows that begin anywhere in a line: chunks go through scratch, from which full lines are stored."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, quotient, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, For, Function, If, Let, Statement, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import IndexValue, Op
from codegen.passes.row_buffers import drained
from codegen.passes.scalar_statement import inner_loops
from codegen.passes.sides import Sides, sides_of
from codegen.schedule.copy_nest import CopyNest, group_table
from codegen.schedule.loops import int_size
from codegen.schedule.offset_tables import CHUNK_BYTES, GROUP_COUNT, GROUP_RUN, MOST_GROUPED

ROW_PITCH = CHUNK_BYTES + 2 * LINE_BYTES
"""Bytes from one row in scratch to the next; the line before a row holds the bytes that fill no line yet."""

ROWS = "scratch_rows"
"""The view of the first row in scratch."""


def stage_rows(function: Function, nest: CopyNest) -> Function:
    """Move chunks of all rows into scratch, then store the chunk of each row in lines.

    before:  for x in 0..count: for row in 0..2: dst[4*x + pitch*row] = src[8*x + 4*row]
    after:   if count >= 128:
               for first in 0..count - 15 step 64:
                 chunk_rows = 64, or the rest of the rows, if there is less than a line more
                 src_chunk = src + 8*first
                 for x in 0..chunk_rows: for row in 0..2: scratch_rows[4*x + 384*row] = src_chunk[8*x + 4*row]
                 for row in 0..2: store the row from scratch_rows[384*row]
             else: for x in 0..count: for row in 0..2: dst[4*x + pitch*row] = src[8*x + 4*row]

    `Stream("headed")` has the number of rows from which on they are staged. Rows that begin lines don't need
    scratch: `stream_lines` has taken them. Groups of rows are staged at the same time: see `_groups`.
    """
    if nest.transposes:
        return function
    (form,) = (x for x in nest.obeying(Stream) if x.form == "headed")
    (long, short), groups = nest.loops, group_table(nest)
    every = (Affine(),), (index_of(long.extent),)

    def staged(node: Statement) -> Body:
        match node:
            case For("group") if groups:
                return (If((compare(long.extent, "lt", form.least),), (node,), _groups(node, nest)),)
            case For(long.axis) if not groups and (node.lower, node.upper) == every:
                return (If((compare(long.extent, "ge", form.least),), (_chunks(nest),), (node,)),)
        return (node,)

    count = MOST_GROUPED if groups else nest.lanes[short.axis]
    scratch = Alloc("row_buffers", count * ROW_PITCH), View(ROWS, "row_buffers", index_of(LINE_BYTES))
    return replace(function, body=(*scratch, *rewrite_body(function.body, staged)))


def _chunks(nest: CopyNest) -> For:
    """Chunk by chunk: all rows into scratch, and from there to the destination."""
    (long, short), sides, width = nest.loops, sides_of(nest), nest.target.bits // 8
    lanes, most = nest.lanes[long.axis], CHUNK_BYTES // width
    return loop(
        "first",
        0,
        minus(long.extent, lanes - 1),
        *_sized("chunk_rows", minus(long.extent, "first"), most, lanes),
        let("chunk_bytes", times("chunk_rows", width)),
        View("src_chunk", sides.src, times("first", int_size(long.src)), opaque=True),
        _filled(nest, Sides(ROWS, "src_chunk"), index_of(0), index_of("chunk_rows")),
        _drained(nest, sides.dst, times("first", width), index_of(short.axis)),
        step=most,
    )


def _groups(node: For, nest: CopyNest) -> Body:
    """The same rows of all groups at the same time, so that the source is read in order.

    before:  for group in 0..group_count:
               for row in 0..rows: for column in 0..2: dst_at[4*row + pitch*column] = src_at[…]
    after:   for number in chunks of rows:
               for part in runs of the chunk: for group in 0..group_count:
                 for row in past..past + run_rows: for column in 0..2: held[4*row + 384*column] = src_at[…]
               for group in 0..group_count: for column in 0..2: store the row from scratch

    `run` elements, at least a line, are contiguous; less than a line at the end joins the run before it.
    """
    src_offset, dst_offset, src, dst, _ = node.body
    assert isinstance(src, View), "a group has a view of the source"
    assert isinstance(dst, View), "a group has a view of the destination"
    (long, short), sides, width = nest.loops, sides_of(nest), nest.target.bits // 8
    lanes, rows, most = nest.lanes[long.axis], nest.lanes[short.axis], CHUNK_BYTES // width
    held = plus(times("group", rows * ROW_PITCH), times("first", -width))
    last = plus("past", "run_rows")
    fill = loop(
        "part",
        0,
        plus(quotient(minus("chunk_rows", lanes), "run"), 1),
        let("part_first", times("part", "run")),
        *_sized("run_rows", minus("chunk_rows", "part_first"), "run", lanes),
        let("past", plus("first", "part_first")),
        loop(
            "group",
            0,
            GROUP_COUNT,
            *(src_offset, src),
            View("held", ROWS, held, opaque=True),
            _filled(nest, Sides("held", sides.src), index_of("past"), last),
        ),
    )
    row = plus(times("group", rows), short.axis)
    drain = dst_offset, dst, _drained(nest, dst.name, times("first", width), row)
    return (
        let("run", least(GROUP_RUN, most)),
        let("chunk", times(quotient(most, "run"), "run")),
        loop(
            "number",
            0,
            plus(quotient(minus(long.extent, lanes), "chunk"), 1),
            let("first", times("number", "chunk")),
            *_sized("chunk_rows", minus(long.extent, "first"), "chunk", lanes),
            let("chunk_bytes", times("chunk_rows", width)),
            fill,
            loop("group", 0, GROUP_COUNT, *drain),
        ),
    )


def _sized(name: str, left: Index, size: Term, least: int) -> tuple[Statement, ...]:
    """name = left if left < size + least else size: less than a line at the end joins the chunk before it."""
    rest = f"{name}_left"
    rows = IndexValue(index_symbol(rest))
    is_last = Op("lt", (rows, IndexValue(plus(size, least))), "i1")
    chosen = Op("select", (is_last, rows, IndexValue(index_of(size))), "i64")
    return let(rest, left), Let(name, chosen)


def _filled(nest: CopyNest, sides: Sides, first: Index, last: Index) -> For:
    """The loops of a nest whose rows are in scratch; at least a super-vector of each is moved."""
    long, short = nest.loops
    held = replace(nest, loops=(long, replace(short, dst=ROW_PITCH)))
    (made,) = inner_loops(held, sides)
    assert isinstance(made, For), "a nest has a loop over rows"
    return replace(made, lower=(first,), upper=(last,), fewest=nest.lanes[long.axis])


def _drained(nest: CopyNest, dst: str, start: Index, row: Index) -> For:
    """Store the chunk of each row from scratch. row: its number there; start: in the destination."""
    long, short = nest.loops
    ends = compare("first", "eq", 0), compare(plus("first", "chunk_rows"), "eq", long.extent)
    return loop(
        short.axis,
        0,
        nest.lanes[short.axis],
        View("dst_row", dst, plus(times(short.axis, short.dst), start), opaque=True),
        View("held", ROWS, times(row, ROW_PITCH), opaque=True),
        *drained("dst_row", "held", "chunk_bytes", ends),
    )
