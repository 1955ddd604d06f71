"""Prefetch source lines some distance ahead of the block that is being copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from codegen.ir.building import compare, index_of, least, minus, plus, rest
from codegen.ir.nodes import Blocks, Call, For, Function, If, Let, Prefetch, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Entries, Load
from codegen.ir.visit import loads
from codegen.schedule.limits import GATHERED_MOVES, MOVE_PREFETCH_INTERVALS
from codegen.schedule.segments import HALF


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

    Blocks with a prefetched buffer request lines of that buffer, at the offsets from which they load. The
    table entries are read before any store, so that LLVM reads them only once.

    before:  for move in 0..count step 4: buffer[«to»[move]] = src[«from»[move]] [4, 64]    {prefetched: next}
    after:   for move in 0..count step 4:
               ahead_0 = «from»[move], …
               buffer[«to»[move]] = src[«from»[move]] [4, 64]
               prefetch next[ahead_0], …
    """
    return replace(function, body=rewrite_body(function.body, _prefetched))


def _prefetched(node: Statement) -> Body:
    if not isinstance(node, For) or node.blocks is None:
        return (node,)
    if node.blocks.prefetched:
        return (_at_the_same_offsets(node, node.blocks),)
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


def _at_the_same_offsets(loop: For, blocks: Blocks) -> For:
    """A loop whose blocks, and narrower ones, request the lines of another buffer."""
    narrower = tuple(replace(x, body=_requesting(x.body, blocks.prefetched)) for x in blocks.narrower)
    body = _requesting(loop.body, blocks.prefetched)
    return replace(loop, body=body, blocks=replace(blocks, narrower=narrower, prefetched=""))


def _requesting(body: Body, buffer: str) -> Body:
    """A block that also requests lines; fewer for narrow chunks, which mostly share them."""
    (load,) = _read(body)
    offsets, (count, width) = load.steps[0], load.shape
    assert isinstance(offsets, Entries), "chunks are loaded at the offsets of a table"
    numbers = range(0, count, MOVE_PREFETCH_INTERVALS.get(width, GATHERED_MOVES))
    lets, requests = [], []
    for k in numbers:
        entry, name = Load(offsets.table, (plus(offsets.first, k),), "i64"), f"ahead_{k}"
        lets.append(Let(name, entry))
        at = rest(name, HALF) if offsets.half == "low" else index_of(name)
        requests.append(Call("prefetch_line", (plus(buffer, at),)))
    return (*lets, *body, *requests)


def _with(loop: For, *requests: Statement) -> For:
    return replace(loop, body=(*loop.body, *requests))


def _read(body: Body) -> Iterator[Load]:
    """The super-vectors that a body loads."""
    for node in body:
        if isinstance(node, Let | Store):
            yield from (load for load in loads(node.value) if load.shape)
