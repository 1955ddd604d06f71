"""Run full strips of innermost loops, then the iterations that are left."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from codegen.analysis.bodies import defined, flat
from codegen.ir.building import least, plus
from codegen.ir.index import Greatest, Index, Least, index_symbol, index_symbols
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.passes.loop_bounds import named_ends, with_ends
from codegen.passes.new_names import FreshNames, NewNames
from codegen.passes.tails import Vectors, obeyed
from codegen.schedule.directives import Directed, Registers, Tail


def peel_strips(function: Function, schedule: Directed) -> Function:
    """Run full strips, in which no row has a tail of its own, then the iterations that are left.

    before:  for j_strip in 0..m step 32: for i: for j in j_strip..min(j_strip + 32, m) step 8: …
    after:   for j_strip in 0..j_whole step 32: for i: for j in j_strip..j_strip + 32 step 8: …
             if j_whole < m: for i: for j in j_whole..m step 8: …

    If iterations may repeat, those that are left begin early enough to fill a register:

    after:   if m >= 8: the same, with j_rest = min(j_whole, m - 8) instead of j_whole in the last loops
             else: for i: for j in 0..m: …
    """
    blocks = schedule.obeying(Registers)
    square = {x.axis for x in blocks if x.rows}
    lanes = schedule.lanes | {x.axis: x.lanes for x in blocks if x.axis not in square}
    taken = {argument.name for argument in function.arguments} | defined(function.body)
    names = FreshNames(taken=taken)

    def peeled(node: Statement) -> Body:
        if not isinstance(node, For) or node.carried:
            return (node,)
        loops = (x for x in flat(node.body) if isinstance(x, For) and x.index not in square)
        peels = (x for x in loops if x.index in lanes or _is_innermost(x))
        found = next((x for x in peels if _are_strips(node, x)), None)
        if found is None:
            return (node,)
        taken.discard(node.index)  # strips that begin earlier have its name
        count, tail = lanes.get(found.index, 1), schedule.tail(found.index)
        if function.buffers and BEGIN in index_symbols(node.lower[0]):  # a count is never negative
            node = replace(node, lower=(least(*node.lower, *_own_ends(node)),))
        if function.buffers and tail and not tail.sizes:  # the loop has a full super-vector
            node, tail = replace(node, fewest=count), Tail(found.index, "shift")
        return _full_strips(node, found, count, tail, names)

    return replace(function, body=rewrite_body(function.body, peeled))


def _full_strips(strips: For, loop: For, lanes: int, tail: Tail | None, names: NewNames) -> Body:
    """Full strips, and what is left; `lanes` and `tail` are those of the innermost loop."""
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


def _is_innermost(loop: For) -> bool:
    """Whether a loop has no other inside: LLVM may vectorize it, if it knows how many iterations it has."""
    return not any(isinstance(x, For) for x in flat(loop.body))


def _are_strips(strips: For, loop: For) -> bool:
    """Whether a loop runs over one strip of the iterations that the loop around it has.

    for j_strip in 0..m step 32: for j in j_strip..min(j_strip + 32, m)
    """
    begin, end = index_symbol(strips.index), plus(strips.index, strips.step)
    is_single = strips.step == loop.step // loop.size
    return (
        loop.lower == (begin,)
        and end in loop.upper
        and (is_single or {*loop.upper} == {end, *_own_ends(strips)})
    )


def _own_ends(strips: For) -> list[Index]:
    """The bounds at which a loop ends, without that of a thread."""
    bounds = (x.of if isinstance(x, Least | Greatest) else (x,) for x in strips.upper)
    return [x for x in chain.from_iterable(bounds) if END not in index_symbols(x)]
