"""Prefetch lines of the source between runs of elements that are converted one by one."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, let, loop, multiple, plus, times
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Call, For, Function, Statement, View
from codegen.ir.rewriting import Body, on_buffers, rewrite_body, substituted
from codegen.passes.lower_copies.lowered import sides_of
from codegen.schedule.offset_tables import PREFETCH_ARGUMENT, PREFETCH_ELEMENTS
from codegen.schedule.transfers import Elementwise, TransferNest


def prefetch_elements(function: Function, nest: TransferNest) -> Function:
    """Cut a loop over elements into runs, which LLVM vectorizes, and prefetch between them.

    before:  for x in 0..count: dst[2*x] = cast(src[4*x])            {ahead = elements}
    after:   stop = count // 64 * 64
             for x in 0..stop step 64:
               for k in 0..64: dst[2*(x + k)] = cast(src[4*(x + k)])
               prefetch the lines of 64 elements of src, prefetch_distance bytes ahead
             for x in stop..count: dst[2*x] = cast(src[4*x])
    """

    def cut(node: Statement) -> Body:
        match node:
            case For(blocks=Blocks(ahead="elements")):
                return _in_runs(node, nest)
        return (node,)

    return replace(function, body=rewrite_body(function.body, cut))


def _in_runs(node: For, nest: TransferNest) -> Body:
    """Full runs of elements, then the remaining elements."""
    stmt, sides, x, (count,) = nest.transfer, sides_of(nest), node.index, node.upper
    assert isinstance(stmt, Elementwise), "elements have steps"
    views = (
        View("dst_x", sides.dst, times(x, stmt.dst_step)),
        View("src_x", sides.src, times(x, stmt.src_step)),
    )
    names = {view.buffer: view.name for view in views}
    ahead = Call("prefetch_line", (plus("src_x", "y", PREFETCH_ARGUMENT),))
    lines = loop("y", 0, times(stmt.src_step, PREFETCH_ELEMENTS), ahead, step=LINE_BYTES)
    body = (on_buffers(substituted(each, x, index_symbol("k")), names) for each in node.body)
    few = loop("k", 0, PREFETCH_ELEMENTS, *body, step=node.step)
    runs = loop(x, 0, "stop", *views, few, lines, step=PREFETCH_ELEMENTS)
    others = replace(node, lower=(index_of("stop"),), blocks=replace(node.blocks or Blocks(), ahead=""))
    return let("stop", multiple(count, PREFETCH_ELEMENTS)), runs, others
