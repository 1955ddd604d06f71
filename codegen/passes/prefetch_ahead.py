"""Prefetch source lines some distance ahead of the super-vector that is being copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.ir.building import compare, index_of, least, minus, plus
from codegen.ir.nodes import Call, For, Function, If, Let, Prefetch, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body, substituted
from codegen.ir.streams import Stream
from codegen.ir.values import Entries, Load
from codegen.ir.visit import loads
from codegen.passes.super_vectors import super_vector
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Ahead


def prefetch_ahead(function: Function, nest: CopyNest) -> Function:
    """After each super-vector, prefetch the source some bytes further on.

    before:  for x in 0..count step 64: dst[x] = src[x] [64]                         Ahead(256)
    after:   for x in 0..count step 64: dst[x] = src[x] [64]; prefetch src[x + 256] [64]

    Lines that are streamed have requests of their own: see `requesting`.
    """
    distance = sum(x.distance_bytes for x in nest.obeying(Ahead))

    def prefetched(node: Statement) -> Body:
        if not isinstance(node, For) or any(isinstance(x, For) for x in node.body):
            return (node,)
        found = [load for load in _loads(node.body) if load.shape]
        moves = _is_stored(node.body, nest) if nest.transposes else node.index == nest.loops[0].axis
        return (_with(node, _request(found[0], node.body, distance)),) if found and moves else (node,)

    return replace(function, body=rewrite_body(function.body, prefetched))


def requesting(lines: For, nest: CopyNest, form: Stream) -> Body:
    """A loop over streamed lines that prefetches the source as a form of streaming says.

    after:   for x_line in head..stop step 64:
               for x in x_line..x_line + 64: dst[x] = src[x] @streamed
               prefetch src[x_line + 256] [64]

    If there are few chunks at the offsets of a table, most of them are adjacent in the source. If there are
    more, the chunk some entries further on is prefetched:

    after:   for x_line in 0..count step 4: …; prefetch src[«line_offsets»[min(x_line + 64, count - 1)]]
    """
    if not form.prefetch_bytes:
        return (lines,)
    *_, inside = lines.body
    assert isinstance(inside, For), "a loop over lines has one over their elements"
    vectors = super_vector(inside.body, nest.lanes)
    body = tuple(substituted(x, inside.index, index_of(lines.index)) for x in vectors)
    (load,) = (x for x in _loads(body) if x.shape)
    near, (count,) = _with(lines, _request(load, body, form.prefetch_bytes)), lines.upper
    if not (isinstance(load.steps[0], Entries) and form.entries_ahead):
        return (near,)
    later = least(plus(lines.index, form.entries_ahead), minus(count, 1))
    ahead = Let(f"{lines.index}_ahead", Load(load.steps[0].table, (later,), "i64"))
    far = _with(lines, ahead, Call("prefetch_line", (plus(load.array, index_of(ahead.name)),)))
    return (If((compare(count, "le", form.entries_ahead),), (near,), (far,)),)


def _request(load: Load, body: Body, distance: int) -> Statement:
    """The request for what a super-vector loads so many bytes later."""
    if not isinstance(load.steps[0], Entries):
        return Prefetch(replace(load, subscripts=(plus(*load.subscripts, distance),)))
    (store,) = (x for x in body if isinstance(x, Store))
    return Call("prefetch_line", (plus(load.array, *store.subscripts, distance),))


def _with(loop: For, *requests: Statement) -> For:
    return replace(loop, body=(*loop.body, *requests))


def _is_stored(body: Body, nest: CopyNest) -> bool:
    """Whether a tile's block is stored as the nest says; those at the ends of rows are not."""
    stores = [x for x in body if isinstance(x, Store)]
    return nest.staged or not nest.stream or not stores or any(x.streamed for x in stores)


def _loads(body: Body) -> Iterator[Load]:
    """What the statements of a body load."""
    for node in body:
        if isinstance(node, Let | Store):
            yield from loads(node.value)
