"""Split loops over blocks of a copy into full blocks and the remaining iterations."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, least, let, minus, multiple, plus, rest
from codegen.ir.index import Affine, Index, index_symbol, substitute_index
from codegen.ir.nodes import Blocks, Compare, For, Function, If, Narrow, Statement, View
from codegen.ir.rewriting import Body, on_buffers, rewrite_body, substituted


def narrow_tails(function: Function, _: object = None) -> Function:
    """Run the last iterations in narrower blocks, or in a last block that begins earlier.

    before:  for x in 0..count step 16: dst[x] = src[x] [16]         {shifts; narrower 4, narrower 1}
    after:   if count >= 16:
               for x in 0..count - 16 step 16: dst[x] = src[x] [16]
               dst[count - 16] = src[count - 16] [16]
             elif count >= 4: the same with 4
             else: for x in 0..count: dst[x] = src[x]

    before:  for row in row_tile..row_stop step 16: …                {latest = rows - 16}
    after:   for row_block in row_tile..row_stop step 16:
               row = min(row_block, rows - 16)
               …

    A block must not run if its lanes would end past the source. Its narrower body runs instead:

    before:  for row in row_tile..row_stop step 64: …   {latest = rows - 64; narrower where row >= start: …}
    after:   for row_block in row_tile..row_stop step 64:
               if row_block >= start: the narrower body, from row_block to min(row_block + 64, row_stop)
               else: row = min(row_block, rows - 64); …

    Blocks that do not shift are followed by narrower ones: 4*n iterations at once, then single ones. Blocks
    that also store a part of the iterations after them leave at least those iterations to narrower ones.
    """
    return replace(function, body=rewrite_body(function.body, _narrowed))


def run_narrower(loop: For, narrower: tuple[Narrow, ...], first: Index, last: Index) -> Body:
    """The iterations of a loop over blocks from `first` to `last`, in narrower blocks."""
    compact = loop.blocks is not None and loop.blocks.compact
    widest, *others = narrower
    if isinstance(widest.count, str):
        return body_at(loop, widest, first, minus(last, first))
    blocks = Blocks(tuple(others), compact=compact) if others else None
    return (For(loop.index, (first,), (last,), widest.count, widest.body, blocks=blocks),)


def body_at(loop: For, narrow: Narrow, index: Index, count: Index | None = None) -> Body:
    """A body of a loop over blocks at an index; views that begin where their buffers do are dropped."""
    body = tuple(substituted(statement, loop.index, index) for statement in narrow.body)
    if isinstance(narrow.count, str):
        assert count is not None, "a body for any number of iterations needs their count"
        body = tuple(substituted(statement, narrow.count, count) for statement in body)
    same = {x.name: x.buffer for x in body if isinstance(x, View) and x.offset == Affine()}
    kept = (x for x in body if not isinstance(x, View) or x.name not in same)
    return tuple(on_buffers(x, same) for x in kept) if same else body


def _narrowed(node: Statement) -> Body:
    if not isinstance(node, For) or node.blocks is None:
        return (node,)
    blocks, plain = node.blocks, replace(node, blocks=None)
    if blocks.latest is not None:
        return (_clamped(plain, blocks.latest, blocks.narrower),)
    if not blocks.narrower:
        return (plain,)
    (first,), (last,) = node.lower, node.upper
    bodies = Narrow(node.step, node.body), *blocks.narrower
    if not blocks.shifts:
        return _followed(plain, bodies, first, last, blocks.beyond)
    return _shifted(plain, bodies, first, last, compact=blocks.compact)


def _clamped(loop: For, latest: Index, instead: tuple[Narrow, ...] = ()) -> For:
    """Blocks that begin at `latest` or earlier; narrower bodies replace blocks that must not run."""
    index = f"{loop.index}_block"
    body: Body = (let(loop.index, least(index, latest)), *loop.body)
    for narrow in instead:
        stop = least(plus(index, loop.step), *loop.upper)
        at = index_symbol(index)
        tests = (Compare(substitute_index(x.left, loop.index, at), x.relation, x.right) for x in narrow.where)
        body = (If(tuple(tests), body_at(loop, narrow, at, minus(stop, index)), body),)
    return replace(loop, index=index, body=body)


def _shifted(loop: For, bodies: tuple[Narrow, ...], first: Index, last: Index, *, compact: bool) -> Body:
    """The widest blocks that fit; the last one begins early enough to be full."""
    made: Body = ()
    for k, narrow in reversed(list(enumerate(bodies))):
        size = narrow.count
        if isinstance(size, str):
            made = body_at(loop, narrow, first, minus(last, first))
            continue
        if size == 1:
            made = (replace(loop, lower=(first,), upper=(last,), step=1, body=narrow.body),)
            continue
        start, left = minus(last, size), minus(last, first)
        at_end = body_at(loop, narrow, start)
        if compact:
            each = replace(loop, lower=(first,), upper=(last,), step=size, body=narrow.body)
            blocks: Body = (_clamped(each, start),)
        elif k and bodies[k - 1].count == 2 * size:
            once = body_at(loop, narrow, first)
            blocks = (*once, If((compare(last, "gt", plus(first, size)),), at_end))
        else:
            all_but_last = replace(loop, lower=(first,), upper=(start,), step=size, body=narrow.body)
            blocks = (all_but_last, *at_end)
        made = (If((compare(left, "ge", size),), blocks, made),)
    return made


def _followed(loop: For, bodies: tuple[Narrow, ...], first: Index, last: Index, beyond: int) -> Body:
    """Full blocks, then narrower ones for the rest, which has at least `beyond` iterations."""
    widest, *others = bodies
    assert isinstance(widest.count, int), "the blocks of a loop have a size"
    whole = plus(first, multiple(minus(last, plus(first, beyond)), widest.count))
    stop = whole if first == Affine() and not beyond else minus(last, widest.count + beyond - 1)
    full = replace(loop, lower=(first,), upper=(stop,), step=widest.count, body=widest.body)
    if isinstance(others[0].count, str):
        assert not beyond, "a body for any number of iterations runs fewer than a block"
        return full, *body_at(loop, others[0], whole, rest(minus(last, first), widest.count))
    narrower = run_narrower(loop, tuple(others), whole, last)
    return full, *(made for each in narrower for made in _narrowed(each))
