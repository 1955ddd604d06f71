"""Prefetch for a later entry of the offset tables while a copy runs at the current one."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, least, let, loop, minus, plus, times
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import MANY, Call, For, Function, If, Let, Statement, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.sides import sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.limits import PAGE_PREFETCH_BYTES
from codegen.schedule.loops import int_size
from codegen.schedule.offset_tables import OFFSET_TABLES
from codegen.support.lookups import expect


def prefetch_later_entry(function: Function, nest: CopyNest) -> Function:
    """If lines are streamed, request the source lines of a later entry: hardware cannot predict entries.

    before:  for entry in begin..end: src_offset = src_offsets[entry]; …
    after:   for entry in begin..end: src_offset = src_offsets[entry]; …
               later_offset = src_offsets[min(entry + prefetch_entries, end - 1)]
               for x in 0..prefetch_bytes step 64: prefetch src[later_offset + prefetch_low + x]

    A copy that reads its entry in order prefetches while it runs, by the distance between the entries:
    requests for all lines at once would stall.
    """
    if not (nest.entries and nest.stream):
        return function

    def in_entries(node: Statement) -> Body:
        return (_in_entry(node, nest),) if isinstance(node, For) and node.index == "entry" else (node,)

    return replace(function, body=rewrite_body(function.body, in_entries))


def _in_entry(node: For, nest: CopyNest) -> For:
    """The loop over entries, which requests the lines of a later entry, or computes the distance to them."""
    later = least(plus(node.index, "prefetch_entries"), plus(*node.upper, -1))
    requests: Body = (Let("later_offset", Load(OFFSET_TABLES[0], (later,), "i64")),)
    if not nest.reads_in_order:
        line = Call("prefetch_line", (plus("src", "later_offset", "prefetch_low", "x"),))
        return _after_views(node, *requests, loop("x", 0, "prefetch_bytes", line, step=LINE_BYTES))
    requests = (*requests, let("prefetch_distance", minus("later_offset", "src_offset")))
    if len(nest.loops) > 1:
        return _after_views(_rows_ahead(node, nest), *requests)
    (run,) = nest.loops
    apart = let("later", plus("prefetch_distance", least(minus(PAGE_PREFETCH_BYTES, run.extent), 0)))
    return _after_views(_run_ahead(node, nest), *requests, apart)


def _after_views(node: For, *requests: Statement) -> For:
    """A loop with statements after its views."""
    numbered = (k for k, x in enumerate(node.body) if not isinstance(x, Let | View))
    first = expect(numbered, "a statement", f"the loop over {node.index}")
    return replace(node, body=(*node.body[:first], *requests, *node.body[first:]))


def _run_ahead(node: For, nest: CopyNest) -> For:
    """Each line of a run requests the line a page ahead; past the end, these are lines of a later run."""
    (run,), src = nest.loops, sides_of(nest).src

    def there(at: Term) -> Statement:
        return Call("prefetch_line", (plus(src, at, "later"),))

    def ahead(node: Statement) -> Body:
        if not isinstance(node, For):
            return (node,)
        if node.index == run.axis and node.most < MANY:
            return there(*node.lower), node
        if node.index == f"{run.axis}_line":
            later = plus(node.index, PAGE_PREFETCH_BYTES)
            here = Call("prefetch_line", (plus(src, later),))
            either = If((compare(later, "lt", run.extent),), (here,), (there(node.index),))
            return (replace(node, body=(either, *node.body)),)
        return (node,)

    return replace(node, body=rewrite_body(node.body, ahead))


def _rows_ahead(node: For, nest: CopyNest) -> For:
    """Request the packed rows of a later entry before these are deinterleaved."""
    line = Call("prefetch_line", (plus(sides_of(nest).src, "prefetch_distance", "x"),))
    size = times(nest.loops[0].extent, int_size(nest.loops[0].src))
    innermost = nest.around[-1].axis if nest.around else node.index

    def ahead(node: Statement) -> Body:
        if isinstance(node, For) and node.index == innermost:
            return (_after_views(node, loop("x", 0, size, line, step=LINE_BYTES)),)
        return (node,)

    (made,) = rewrite_body((node,), ahead)
    assert isinstance(made, For), "a loop stays a loop"
    return made
