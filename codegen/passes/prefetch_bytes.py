"""Request the source some bytes further on, after each super-vector or between runs of elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.analysis.bodies import flat
from codegen.ir import nodes
from codegen.ir.building import compare, index_of, least, let, loop, minus, multiple, plus, times
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, For, Function, If, Let, Statement, Store, View
from codegen.ir.rewriting import Body, on_buffers, rewrite_body
from codegen.ir.values import Entries, Load
from codegen.ir.visit import loads
from codegen.passes.loop_bounds import ends
from codegen.passes.sides import sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Assemble, Prefetch

RUN = 64
"""Single elements between one batch of requests and the next: LLVM vectorizes their loop."""


def prefetch_bytes(function: Function, nest: CopyNest, how: Prefetch) -> Function:
    """Request the source some bytes further on, after each super-vector or between runs of elements."""
    runs = not nest.lanes and not nest.obeying(Assemble)
    source = _views_of(function, "src")

    def requested(node: Statement) -> Body:
        if not isinstance(node, For) or any(isinstance(x, For) for x in node.body):
            return (node,)
        if runs:
            return _in_runs(node, nest, how) if node.index == how.loop else (node,)
        is_full = nest.transposes or node.step == nest.lanes.get(how.loop, node.step)
        found = [x for x in vector_loads(node.body) if x.array in source and is_full]
        if not found:
            return (node,)
        if isinstance(found[0].steps[0], Entries) and not nest.transposes:
            (load,), (store,) = found, [x for x in node.body if isinstance(x, Store)]
            return _later_chunks(node, load, store, how)
        return (with_requests(node, *(_further(x, how) for x in found)),)

    return replace(function, body=rewrite_body(function.body, requested))


def _views_of(function: Function, buffer: str) -> set[str]:
    """A buffer and its views."""
    found = {buffer}
    for x in flat(function.body):
        if isinstance(x, View) and x.buffer in found:
            found.add(x.name)
    return found


def vector_loads(body: Body) -> Iterator[Load]:
    """The super-vectors that the statements of a body load."""
    for node in body:
        if isinstance(node, Let | Store):
            yield from (x for x in loads(node.value) if x.shape)


def with_requests(loop: For, *requests: Statement) -> For:
    """A loop that ends with requests."""
    return replace(loop, body=(*loop.body, *requests))


def _further(load: Load, how: Prefetch) -> Statement:
    """The request for what a super-vector loads so many bytes further on."""
    return nodes.Prefetch(replace(load, subscripts=(plus(*load.subscripts, how.distance),)))


def _later_chunks(node: For, load: Load, store: Store, how: Prefetch) -> Body:
    """Super-vectors of chunks at the offsets of a table.

    If there are few chunks, most of them are adjacent in the source, as they are in the destination. If there
    are more, the chunk some entries further on is requested:

    after:   for x in 0..count step 4: …; prefetch src[«x_offsets»[min(x + 64, count - 1)]]
    """
    steps, (count,) = load.steps[0], node.upper
    assert isinstance(steps, Entries), "chunks are at the offsets of a table"
    at = plus(load.array, *store.subscripts, how.distance)
    near = with_requests(node, Call("prefetch_line", (at,)))
    if not how.chunks:
        return (near,)
    later = least(plus(steps.first, how.chunks), minus(count, 1))
    offset = Let(f"{node.index}_later", Load(steps.table, (later,), "i64"))
    far = with_requests(node, offset, Call("prefetch_line", (plus(load.array, offset.name),)))
    return (If((compare(count, "le", how.chunks),), (near,), (far,)),)


def _in_runs(node: For, nest: CopyNest, how: Prefetch) -> Body:
    """Single elements in runs, which LLVM vectorizes, and requests between them.

    before:  for x in 0..count: dst[2*x] = cast(src[4*x])            Prefetch("x", 256)
    after:   stop = count // 64 * 64
             for x_run in 0..stop step 64:
               for x in 0..64: dst[2*(x_run + x)] = cast(src[4*(x_run + x)])
               prefetch the lines of 64 elements of src, 256 bytes ahead
             for x in stop..count: dst[2*x] = cast(src[4*x])
    """
    run, (steps,), sides = f"{node.index}_run", nest.loops, sides_of(nest)
    first, last = ends(node)
    views = View("dst_x", sides.dst, times(run, steps.dst)), View("src_x", sides.src, times(run, steps.src))
    names = {view.buffer: view.name for view in views}
    line = Call("prefetch_line", (plus("src_x", "y", how.distance),))
    lines = loop("y", 0, times(index_of(RUN), steps.src), line, step=LINE_BYTES)
    few = loop(node.index, 0, RUN, *(on_buffers(each, names) for each in node.body))
    runs = loop(run, first, "stop", *views, few, lines, step=RUN)
    stop = let("stop", plus(first, multiple(minus(last, first), RUN)))
    return stop, runs, replace(node, lower=(index_of("stop"),))
