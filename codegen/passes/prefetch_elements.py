"""Prefetch lines of the source between runs of elements that are converted one by one."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import index_of, let, loop, multiple, plus, times
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, For, Function, Statement, View
from codegen.ir.rewriting import Body, on_buffers, rewrite_body
from codegen.passes.sides import Sides, sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Prefetch
from codegen.schedule.offset_tables import PREFETCH_ARGUMENT


def prefetch_elements(function: Function, nest: CopyNest) -> Function:
    """Cut a loop over elements into runs, which LLVM vectorizes, and prefetch between them.

    before:  for x in 0..count: dst[2*x] = cast(src[4*x])            Prefetch("x", 64)
    after:   stop = count // 64 * 64
             for x_run in 0..stop step 64:
               for x in 0..64: dst[2*(x_run + x)] = cast(src[4*(x_run + x)])
               prefetch the lines of 64 elements of src, prefetch_distance bytes ahead
             for x in stop..count: dst[2*x] = cast(src[4*x])
    """
    (how,) = nest.obeying(Prefetch)

    def cut(node: Statement) -> Body:
        if isinstance(node, For) and node.index == how.axis:
            return _in_runs(node, how.iterations, nest, sides_of(nest))
        return (node,)

    return replace(function, body=rewrite_body(function.body, cut))


def _in_runs(node: For, size: int, nest: CopyNest, sides: Sides) -> Body:
    """Full runs of iterations, then the others."""
    run, (count,), (steps,) = f"{node.index}_run", node.upper, nest.loops
    views = View("dst_x", sides.dst, times(run, steps.dst)), View("src_x", sides.src, times(run, steps.src))
    names = {view.buffer: view.name for view in views}
    ahead = Call("prefetch_line", (plus("src_x", "y", PREFETCH_ARGUMENT),))
    lines = loop("y", 0, times(index_of(size), steps.src), ahead, step=LINE_BYTES)
    few = loop(node.index, 0, size, *(on_buffers(each, names) for each in node.body))
    runs = loop(run, 0, "stop", *views, few, lines, step=size)
    return let("stop", multiple(count, size)), runs, replace(node, lower=(index_of("stop"),))
