"""Store the lines of a copy without going through the cache, if the destination allows it."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, least, let, minus, multiple, plus, rest, times
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, FloorDiv, Index, index_symbol, substitute_index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Compare, For, Function, If, Narrow, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import Each
from codegen.ir.visit import coefficient
from codegen.passes.narrow_tails import body_at, run_narrower
from codegen.passes.row_buffers import scratch_rows
from codegen.passes.staged_groups import staged_groups
from codegen.passes.staged_rows import through_scratch
from codegen.schedule.copy_nest import CopyNest, group_table
from codegen.schedule.offset_tables import MOST_GROUPED


def stream_lines(function: Function, nest: CopyNest) -> Function:
    """Stream full lines if they begin where lines of the destination do.

    before:  for x in 0..count step 64: dst[x] = src[x] [64]        {streamed = [full, headed from 256]}
    after:   if dst % 64 == 0 and count % 64 == 0:
               for x in 0..count step 64: dst[x] = src[x] [64] streamed
             elif count >= 256:
               head = -dst % 64; stop = (count - head) // 64 * 64 + head
               the iterations from 0 to head, in narrower blocks
               for x in head..stop step 64: dst[x] = src[x] [64] streamed
               the iterations from stop to count, in narrower blocks
             else: for x in 0..count step 64: dst[x] = src[x] [64]

    If the destination begins a line, `begun` streams all full blocks, then narrower ones that fill lines.
    The rest goes through the cache. With `staged`, rows go through scratch: see `staged_rows`.
    """
    staged = any(x.form == "staged" for x in nest.obeying(Stream))

    def streamed(node: Statement) -> Body:
        if staged and group_table(nest) and isinstance(node, For) and node.index == "group":
            return _together(node, nest)
        return _alternatives(node)

    body = rewrite_body(function.body, streamed)
    if not staged:
        return replace(function, body=body)
    _, short = nest.loops
    rows = MOST_GROUPED if group_table(nest) else nest.lanes[short.axis]
    return replace(function, body=(*scratch_rows(rows), *body))


def _together(node: For, nest: CopyNest) -> Body:
    """The loop over groups; if rows are long, all groups go through scratch at the same time."""
    (length, *_), (form,) = nest.loops, nest.obeying(Stream)
    return (If((compare(length.extent, "lt", form.least),), (node,), staged_groups(node)),)


def _alternatives(node: Statement) -> Body:
    """Each form of the streamed loop, and last the loop as it is."""
    if not isinstance(node, For) or node.blocks is None or not node.blocks.streamed:
        return (node,)
    forms, loop = node.blocks.streamed, replace(node, blocks=replace(node.blocks, streamed=()))
    made: Body = (loop,)
    for form in reversed(forms):
        tests, body = FORMS[form.form](loop, form)
        made = (If(tests, body, made),) if tests else body
    return made


def _stores(loop: For) -> list[Store]:
    return [x for x in loop.body if isinstance(x, Store)]


def _streaming(body: Body) -> Body:
    """A body whose stores of super-vectors bypass the cache, including those in branches."""

    def streamed(node: Statement) -> Statement:
        match node:
            case Store() if node.value.shape:
                return replace(node, streamed=True)
            case If(tests, then, otherwise):
                return If(tests, _streaming(then), _streaming(otherwise))
        return node

    return tuple(map(streamed, body))


def _main(loop: For, first: Index, last: Index, form: Stream, latest: Index | None = None) -> For:
    """The full blocks of a loop, streamed."""
    assert not (loop.blocks and any(x.where for x in loop.blocks.narrower)), "some blocks must not run"
    blocks = Blocks(latest=latest, prefetch_bytes=form.prefetch_bytes, entries_ahead=form.entries_ahead)
    return replace(loop, lower=(first,), upper=(last,), body=_streaming(loop.body), blocks=blocks)


def _begins_line(loop: For) -> tuple[Compare, ...]:
    """Whether each row that the first iteration stores begins a line."""
    tests: list[Compare] = []
    for store in _stores(loop):
        first = plus(store.array, *(substitute_index(s, loop.index, Affine()) for s in store.subscripts))
        tests.append(compare(rest(first, LINE_BYTES), "eq", 0))
        for step in store.steps[:-1]:
            pitch = step.step if isinstance(step, Each) else step
            if isinstance(pitch, int | str) and pitch != _row_bytes(store):  # else rows follow each other
                tests.append(compare(rest(pitch, LINE_BYTES), "eq", 0))
    return tuple(dict.fromkeys(tests))


def _row_bytes(store: Store) -> int:
    """The bytes that a store writes to each row."""
    return bits_of(store.value.dtype) // 8 * store.value.shape[-1]


def _full(loop: For, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """All blocks, which are full."""
    (last,), latest = loop.upper, loop.blocks.latest if loop.blocks else None
    tests = _begins_line(loop)
    if latest is None:
        tests = (*tests, compare(rest(last, loop.step), "eq", 0))
    return tests, (_main(loop, Affine(), last, form, latest),)


def _begun(loop: For, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """Full blocks from the first iteration on, narrower ones as far as they fill lines, and the rest."""
    (last,), blocks = loop.upper, loop.blocks or Blocks()
    whole = let("whole", multiple(last, loop.step))
    body: Body = (whole, _main(loop, Affine(), index_symbol("whole"), form))
    if blocks.latest is not None:
        rest_ = compare("whole", "lt", last)
        once = body_at(loop, Narrow(loop.step, loop.body), blocks.latest)
        return _begins_line(loop), (*body, If((rest_,), once))
    done, wider, narrower = "whole", loop.step, blocks.narrower
    while narrower and wider == 2 * _count(narrower[0]) and _fills_lines(narrower[0]):
        size, one = _count(narrower[0]), narrower[0]
        fits = compare(rest(last, wider), "ge", size)
        at_end = body_at(loop, replace(one, body=_streaming(one.body)), index_symbol(done))
        done, wider, narrower = f"whole_{size}s", size, narrower[1:]
        body = (*body, If((fits,), at_end), let(done, multiple(last, size)))
    return _begins_line(loop), (*body, *run_narrower(loop, narrower, index_symbol(done), last))


def _count(narrow: Narrow) -> int:
    """Iterations of a body; 0 if it runs any number."""
    return narrow.count if isinstance(narrow.count, int) else 0


def _fills_lines(narrow: Narrow) -> bool:
    """Whether each row that a body stores consists of full lines."""
    stores = [x for x in narrow.body if isinstance(x, Store)]
    rows = [_row_bytes(x) for x in stores if x.value.shape]
    return bool(stores) and all(size % LINE_BYTES == 0 for size in rows)


def _headed(loop: For, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """The iterations before the first line, the lines, and the iterations after the last one."""
    (store,), (last,) = _stores(loop), loop.upper
    narrower = loop.blocks.narrower if loop.blocks else ()
    width = coefficient(store.subscripts[0], loop.index)
    assert width, "iterations follow each other in the destination"
    tests = [compare(last, "ge", form.least)] * bool(form.least)
    if width > 1:  # else no iteration begins a line
        tests.append(compare(rest(store.array, width), "eq", 0))
    to_line = rest(times(store.array, -1), LINE_BYTES)
    head = FloorDiv(to_line, width) if width > 1 else to_line
    bounds = (
        let("head", head if form.least * width >= LINE_BYTES else least(head, last)),
        let("stop", plus("head", multiple(minus(last, "head"), loop.step))),
    )
    ends = narrower if _count(narrower[-1]) else narrower[-1:]
    before = run_narrower(loop, ends, Affine(), index_symbol("head"))
    after = run_narrower(loop, ends, index_symbol("stop"), last)
    if not form.least or _count(ends[0]):  # most have no such iterations, or branch on their number
        before = (If((compare("head", "gt", 0),), before),)
        after = (If((compare("stop", "lt", last),), after),)
    lines = _main(loop, index_symbol("head"), index_symbol("stop"), form)
    if form.form == "aligned":
        lines = replace(lines, body=loop.body)
    return tuple(tests), (*bounds, *before, lines, *after)


def _staged(loop: For, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """Rows that go through scratch."""
    return (compare(loop.upper[0], "ge", form.least),), (through_scratch(loop),)


def _given(loop: For, form: Stream) -> tuple[tuple[Compare, ...], Body]:
    """The loop with streamed stores, for calls whose destination rows always begin lines."""
    return (), (replace(loop, body=_streaming(loop.body)),)


FORMS = {
    "given": _given,
    "full": _full,
    "begun": _begun,
    "headed": _headed,
    "aligned": _headed,
    "staged": _staged,
}
"""The tests and the body of each form of a streamed loop."""
