"""Square blocks of two loops over super-vectors, which obey tails."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import plus
from codegen.ir.index import index_symbol
from codegen.ir.nodes import For
from codegen.ir.rewriting import Body, in_sizes, substituted
from codegen.passes.loop_bounds import named_ends, with_ends
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.tails import Vectors, obeyed
from codegen.schedule.directives import Registers, Tail
from codegen.schedule.loop_schedule import LoopSchedule


def square_blocks(outer: For, block: Registers, schedule: LoopSchedule, names: NewNames) -> Body:
    """Full blocks of two loops, and the rows and lanes that fill none, row by row.

    before:  for i step 16: for j step 64: C[j, i] = A[i, j] [16, 64]
    after:   for i_block in 0..i_whole step 16:
               for j_block in 0..j_whole step 16:
                 for i in i_block..i_block + 16 step 16: for j in j_block..j_block + 16 step 16:
                   C[j, i] = A[i, j] [16, 16]
               if j_whole < m: for i in i_block..i_block + 16: for j in j_whole..m: …
             for i in i_whole..n: for j: …

    Blocks of a clamped tail have one of two forms for each loop:

    after:   if n >= 16: for i_block in 0..n step 16: i = min(i_block, n - 16); the rows from there
             else: for i in 0..n: for j: …
    """
    lets, first, last = named_ends(outer, names)
    begin, tail = names.name(wanted(outer.index)), schedule.tail(outer.index)
    single = with_ends(in_sizes(outer, 1, 0), first, last)
    rows = with_ends(outer, index_symbol(begin), plus(begin, block.lanes * single.step))
    lane_tail = tail if tail and tail.how == "clamp" else schedule.tail(block.axis)
    full = Vectors(block.lanes, _between(rows, _only_loop(outer), block, lane_tail, names))
    alone = Vectors(1, tuple(substituted(x, outer.index, index_symbol(begin)) for x in single.body))
    return *lets, *obeyed(replace(single, index=begin), (full, alone), tail, names)


def _between(rows: For, loop: For, block: Registers, tail: Tail | None, names: NewNames) -> Body:
    """The loops between the outer and the inner loop of a block, then these two."""
    if loop.index != block.axis:
        return (replace(loop, body=_between(rows, _only_loop(loop), block, tail, names)),)
    lets, first, last = named_ends(loop, names)
    step, side = loop.step // loop.size, block.lanes
    begin = names.name(wanted(loop.index))
    # Statements of the inner loop have the dimensions of both.
    both = replace(rows, body=(with_ends(loop, index_symbol(begin), last),))
    square = in_sizes(both, side, 0)
    lanes = replace(in_sizes(_only_loop(square), side, 1), upper=(plus(begin, side * step),), lanes=side)
    full = replace(square, lanes=side, body=(lanes,))
    by_row = in_sizes(both, 1, 0)
    by_row = replace(by_row, body=(replace(_only_loop(by_row), most=side - 1),))
    single = replace(with_ends(loop, first, last), index=begin, step=step, size=1)
    return *lets, *obeyed(single, (Vectors(side, (full,)), Vectors(0, (by_row,))), tail, names)


def _only_loop(loop: For) -> For:
    """The only statement of a loop around a block."""
    (inner,) = loop.body
    assert isinstance(inner, For), "a block's loops stand alone in each other"
    return inner
