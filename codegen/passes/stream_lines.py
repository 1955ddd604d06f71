"""Store the lines of a copy without going through the cache, if the destination allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.ir.building import compare, least, let, minus, multiple, plus, rest, times
from codegen.ir.element_types import bits_of
from codegen.ir.index import FloorDiv, Index, index_symbol, substitute_index
from codegen.ir.integer_operators import number_in
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Compare, For, Function, If, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import Each
from codegen.passes.carry_lines import carry_lines
from codegen.passes.lines import full_lines, streaming, to_line
from codegen.passes.loop_bounds import with_ends
from codegen.passes.peel_vectors import super_vector
from codegen.passes.sides import sides_of
from codegen.passes.stream_tiles import stream_tiles
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import REST
from codegen.schedule.loops import int_size


def stream_lines(function: Function, nest: CopyNest) -> Function:
    """Stream full lines if they begin where lines of the destination do.

    before:  for x in 0..count: dst[x] = src[x]                     Vectorize(x=64), Stream("full"),
    after:   if dst % 64 == 0 and count % 64 == 0:                  Stream("headed", least=256)
               for x_line in 0..count step 64: for x in x_line..x_line + 64: dst[x] = src[x] @streamed
             elif count >= 256:
               head = -dst % 64; stop = (count - head) // 64 * 64 + head
               for x in 0..head: dst[x] = src[x]
               for x_line in head..stop step 64: for x in x_line..x_line + 64: dst[x] = src[x] @streamed
               for x in stop..count: dst[x] = src[x]
             else: for x in 0..count: dst[x] = src[x]

    If the destination begins a line, `begun` streams all full super-vectors, then narrower ones that fill
    lines. The rest goes through the cache. Tiles of a transpose are streamed as in `stream_tiles` or
    `carry_lines`. Those of a stage have left scratch in lines.
    """
    if nest.carried:
        return replace(function, body=carry_lines(function.body, nest))
    if nest.staged or not nest.lanes:
        return function
    if nest.transposes:
        return replace(function, body=stream_tiles(function.body, nest)) if nest.stream else function

    def streamed(node: Statement) -> Body:
        if isinstance(node, For) and node.index == nest.loops[0].axis:
            return _alternatives(node, nest, nest.obeying(Stream))
        return (node,)

    return replace(function, body=rewrite_body(function.body, streamed))


def _alternatives(loop: For, nest: CopyNest, forms: Sequence[Stream]) -> Body:
    """Each form of the streamed loop, and last the loop as it is."""
    made: Body = (loop,)
    for form in reversed(forms):
        tests, body = FORMS[form.form](loop, nest, form)
        made = (If(tests, body, made),) if tests else body
    return made


def _stores(loop: For, nest: CopyNest, count: int) -> list[Store]:
    """What super-vectors of a number of iterations store."""
    body = super_vector(loop, {**nest.lanes, loop.index: count})
    return [x for x in body if isinstance(x, Store)]


def _lines(
    loop: For, nest: CopyNest, first: Index, last: Index, form: Stream, *, shifts: bool = False
) -> Body:
    """The full super-vectors of a loop, streamed; if the last one `shifts`, it begins early enough."""
    lanes, name = nest.lanes[loop.index], f"{loop.index}_line"
    at = let(f"{loop.index}_first", least(name, minus(last, lanes)))
    body = loop.body if form.form == "aligned" else streaming(loop.body)
    begin = at.name if shifts else name
    inside = _part(replace(loop, body=body), index_symbol(begin), plus(begin, lanes), lanes)
    return (For(name, (first,), (last,), lanes, (*[at] * shifts, inside)),)


def _part(loop: For, first: Index, last: Index, most: int) -> For:
    """Some iterations of a loop, without its promise of how many there are at least."""
    return replace(with_ends(loop, first, last), fewest=0, most=most)


def _begins_line(loop: For, nest: CopyNest) -> tuple[Compare, ...]:
    """Whether each row that the first iteration stores begins a line."""
    tests: list[Compare] = []
    for store in _stores(loop, nest, nest.lanes[loop.index]):
        at = (substitute_index(s, loop.index, *loop.lower) for s in store.subscripts)
        tests.append(compare(rest(plus(store.array, *at), LINE_BYTES), "eq", 0))
        for step in store.steps[:-1]:
            pitch = step.step if isinstance(step, Each) else step
            if isinstance(pitch, int | str) and pitch != _row_bytes(store):  # else rows follow each other
                tests.append(compare(rest(pitch, LINE_BYTES), "eq", 0))
    return tuple(dict.fromkeys(tests))


def _row_bytes(store: Store) -> int:
    """The bytes that a store writes to each row."""
    return bits_of(store.value.dtype) // 8 * store.value.shape[-1]


def _full(loop: For, nest: CopyNest, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """All super-vectors, which are full; a last one may begin earlier."""
    (first,), (last,) = loop.lower, loop.upper
    lanes, tail, tests = nest.lanes[loop.index], nest.tail(loop.index), _begins_line(loop, nest)
    if tail is None or tail.sizes:
        tests = (*tests, compare(rest(minus(last, first), lanes), "eq", 0))
    return tests, _lines(loop, nest, first, last, form, shifts=tail is not None and not tail.sizes)


def _begun(loop: For, nest: CopyNest, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """Full super-vectors from the first iteration on, narrower ones that fill lines, and the rest."""
    (first,), (last,), lanes = loop.lower, loop.upper, nest.lanes[loop.index]
    tail, tests, count = nest.tail(loop.index), _begins_line(loop, nest), minus(last, first)
    if (number_in(count) or 1) % lanes == 0:
        return tests, _lines(loop, nest, first, last, form)
    body: Body = (
        let("whole", plus(first, multiple(count, lanes))),
        *_lines(loop, nest, first, index_symbol("whole"), form),
    )
    if tail is None or not tail.sizes:
        once = _part(loop, minus(last, lanes), last, lanes)
        return tests, (*body, If((compare("whole", "lt", last),), (once,)))
    done, wider = "whole", lanes
    for size in (x for x in tail.sizes if isinstance(x, int) and x > 1):
        if wider != 2 * size or not _fills_lines(loop, nest, size):
            break
        fits, line = compare(rest(count, wider), "ge", size), replace(loop, body=streaming(loop.body))
        at_end = _part(line, index_symbol(done), plus(done, size), size)
        done, wider = f"whole_{size}s", size
        body = (*body, If((fits,), (at_end,)), let(done, plus(first, multiple(count, size))))
    return tests, (*body, _part(loop, index_symbol(done), last, wider - 1))


def _fills_lines(loop: For, nest: CopyNest, size: int) -> bool:
    """Whether each row that super-vectors of a size store consists of full lines."""
    return all(_row_bytes(x) % LINE_BYTES == 0 for x in _stores(loop, nest, size) if x.value.shape)


def _headed(loop: For, nest: CopyNest, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """The iterations before the first line, the lines, and the iterations after the last one."""
    (first,), (last,), lanes, dst = loop.lower, loop.upper, nest.lanes[loop.index], sides_of(nest).dst
    width = int_size(nest.loops[0].dst)
    assert width, "iterations follow each other in the destination"
    tests = [compare(minus(last, first), "ge", form.least)] * bool(form.least)
    if width > 1:  # else no iteration begins a line
        tests.append(compare(rest(dst, width), "eq", 0))
    gap = to_line(plus(dst, times(first, width)))
    head = plus(first, FloorDiv(gap, width) if width > 1 else gap)
    bounds = full_lines(head if form.least * width >= LINE_BYTES else least(head, last), last, lanes)
    before: Body = (_part(loop, first, index_symbol("head"), lanes - 1),)
    after: Body = (_part(loop, index_symbol("stop"), last, lanes - 1),)
    tail = nest.tail(loop.index)
    if not form.least or not (tail and REST in tail.sizes):  # most have no such iterations
        before = (If((compare("head", "gt", first),), before),)
        after = (If((compare("stop", "lt", last),), after),)
    lines = _lines(loop, nest, index_symbol("head"), index_symbol("stop"), form)
    return tuple(tests), (*bounds, *before, *lines, *after)


FORMS = {"full": _full, "begun": _begun, "headed": _headed, "aligned": _headed}
"""The tests and the body of each form of a streamed loop."""
