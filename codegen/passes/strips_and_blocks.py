"""Full strips of loops over super-vectors, and square blocks of two, whose loops obey tails."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from codegen.analysis.bodies import flat
from codegen.ir.building import plus
from codegen.ir.index import Greatest, Index, Least, index_symbol, index_symbols
from codegen.ir.names import END
from codegen.ir.nodes import For, Statement
from codegen.ir.rewriting import Body, in_sizes, rewrite_body, substituted
from codegen.passes.loop_bounds import named_ends, with_ends
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.tails import Vectors, obeyed
from codegen.schedule.directives import Registers, Tail
from codegen.schedule.loop_schedule import LoopSchedule


def loop_in_strips(strips: For, schedule: LoopSchedule) -> tuple[For, Registers] | None:
    """The loop over super-vectors in each strip of a loop over strips; None if it is no such loop."""
    blocked = [x.axis for x in schedule.obeying(Registers) if x.rows]
    for each in flat(strips.body):
        if isinstance(each, For) and each.size > 1 and each.index not in blocked:
            registers = schedule.registers(each.index)
            if registers and _are_strips(strips, each):
                return each, registers
    return None


def full_strips(strips: For, loop: For, lanes: int, tail: Tail | None, names: NewNames) -> Body:
    """Full strips, in which no row has a tail of its own, then the iterations that are left.

    before:  for j_strip in 0..m step 32: for i: for j in j_strip..min(j_strip + 32, m) step 8: …
    after:   for j_strip in 0..j_whole step 32: for i: for j in j_strip..j_strip + 32 step 8: …
             if j_whole < m: for i: for j in j_whole..m step 8: …

    If iterations may repeat, those that are left begin early enough to fill a register:

    after:   if m >= 8: the same, with j_rest = min(j_whole, m - 8) instead of j_whole in the last loops
             else: for i: for j in 0..m: …

    lanes, tail  those of the loop over super-vectors
    """
    lets, first, last = named_ends(strips, names)
    step, strip = loop.step // loop.size, index_symbol(strips.index)
    size = strips.step // step

    def rows(count: int, end: Index, fewest: int, most: int) -> Vectors:
        """The body of the loop over strips, for the iterations from a strip to an index."""

        def changed(node: Statement) -> Body:
            if isinstance(node, For) and node.index == loop.index:
                return (replace(node, upper=(end,), fewest=fewest, most=most),)
            return (node,)

        return Vectors(count, rewrite_body(strips.body, changed), fewest=fewest)

    bodies = [rows(size, plus(strip, strips.step), size, size), rows(0, last, 0, size - 1)]
    if tail is None and size != loop.size:  # super-vectors fill the loop, but strips may not
        tail = Tail(loop.index, "narrow")
    if tail and tail.how == "shift":
        bodies[1:] = rows(0, last, lanes, max(lanes, size - 1)), rows(0, last, 0, lanes - 1)
    single = replace(with_ends(strips, first, last), step=step)
    return *lets, *obeyed(single, tuple(bodies), tail, names)


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


def _are_strips(strips: For, loop: For) -> bool:
    """Whether a loop runs over one strip of the iterations that the loop around it has.

    for j_strip in 0..m step 32: for j in j_strip..min(j_strip + 32, m)
    """
    bounds = (x.of if isinstance(x, Least | Greatest) else (x,) for x in strips.upper)
    last = (x for x in chain.from_iterable(bounds) if END not in index_symbols(x))  # not that of a thread
    strip = index_symbol(strips.index)
    return loop.lower == (strip,) and {*loop.upper} == {plus(strip, strips.step), *last}
