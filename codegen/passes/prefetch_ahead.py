"""Prefetch source lines some distance ahead of the block that is being copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from codegen.ir.building import compare, index_of, least, minus, plus
from codegen.ir.nodes import Blocks, Call, For, Function, If, Let, Prefetch, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Entries, Load
from codegen.ir.visit import loads


def prefetch_ahead(function: Function, _: object = None) -> Function:
    """After each block, prefetch the source some bytes further on.

    before:  for x in 0..count step 64: dst[x] = src[x] [64]        {prefetch_bytes = 256}
    after:   for x in 0..count step 64: dst[x] = src[x] [64]; prefetch src[x + 256] [64]

    If there are few chunks at the offsets of a table, most of them are adjacent in the source. If there are
    more, the chunk some entries further on is prefetched:

    before:  for x in 0..count step 4: …       {prefetch_bytes = 256, entries_ahead = 64}
    after:   for x in 0..count step 4:
               dst[16*x] = joined(src[«line_offsets»[x..x + 4]] [4, 1]) streamed
               prefetch src[«line_offsets»[min(x + 64, count - 1)]]
    """
    return replace(function, body=rewrite_body(function.body, _prefetched))


def _prefetched(node: Statement) -> Body:
    if not isinstance(node, For) or node.blocks is None:
        return (node,)
    if not node.blocks.prefetch_bytes:
        return (node,)
    distance, entries = node.blocks.prefetch_bytes, node.blocks.entries_ahead
    loop = replace(node, blocks=replace(node.blocks, prefetch_bytes=0, entries_ahead=0))
    if any(isinstance(x, For) for x in node.body):  # rows that are converted one by one
        row = Blocks(prefetch_bytes=distance)
        body = [_prefetched(replace(x, blocks=row)) if isinstance(x, For) else (x,) for x in node.body]
        return (replace(loop, body=tuple(chain(*body))),)
    (load,) = _read(node.body)
    if not isinstance(load.steps[0], Entries):
        return (_with(loop, Prefetch(replace(load, subscripts=(plus(*load.subscripts, distance),)))),)
    (store,), (count,) = [x for x in node.body if isinstance(x, Store)], node.upper
    near = _with(loop, Call("prefetch_line", (plus(load.array, *store.subscripts, distance),)))
    if not entries:
        return (near,)
    later = least(plus(node.index, entries), minus(count, 1))
    ahead = Let(f"{node.index}_ahead", Load(load.steps[0].table, (later,), "i64"))
    far = _with(loop, ahead, Call("prefetch_line", (plus(load.array, index_of(ahead.name)),)))
    return (If((compare(count, "le", entries),), (near,), (far,)),)


def _with(loop: For, *requests: Statement) -> For:
    return replace(loop, body=(*loop.body, *requests))


def _read(body: Body) -> Iterator[Load]:
    """The super-vectors that a body loads."""
    for node in body:
        if isinstance(node, Let | Store):
            yield from (load for load in loads(node.value) if load.shape)
