"""The iterations of a loop that fill no super-vector: narrower ones, or a last one that begins earlier."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, least, let, minus, multiple, plus, rest
from codegen.ir.index import Affine, Index
from codegen.ir.nodes import MANY, For, If, View
from codegen.ir.rewriting import Body, on_buffers, substituted
from codegen.support.dataclasses import dataclass

LEFT = "left"
"""The number of iterations of a body that runs any number of them."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """A body that runs iterations of a loop at once.

    count  how many; 0 for any number, which is `left`
    """

    count: int
    body: Body

    @property
    def is_any(self) -> bool:
        """Whether the body runs any number of iterations."""
        return self.count == 0


def at_index(loop: For, vectors: Vectors, index: Index, count: Index | None = None) -> Body:
    """The body of a loop at an index, without views that begin where their buffers do."""
    body = tuple(substituted(statement, loop.index, index) for statement in vectors.body)
    if vectors.is_any:
        assert count is not None, "a body for any number of iterations needs their count"
        body = tuple(substituted(statement, LEFT, count) for statement in body)
    same = {x.name: x.buffer for x in body if isinstance(x, View) and x.offset == Affine()}
    kept = (x for x in body if not isinstance(x, View) or x.name not in same)
    return tuple(on_buffers(x, same) for x in kept) if same else body


def whole(loop: For, vectors: Vectors) -> For:
    """The loop over super-vectors that fill it."""
    return replace(loop, step=vectors.count, body=vectors.body, fewest=0, most=MANY)


def clamped(loop: For, vectors: Vectors, latest: Index) -> For:
    """A loop whose last super-vector begins earlier, at `latest`, so that it is full.

    before:  for row in row_tile..row_stop: …
    after:   for row_block in row_tile..row_stop step 16: row = min(row_block, rows - 16); … [16]
    """
    if vectors.count == 1:
        return whole(loop, vectors)
    index = f"{loop.index}_block"
    first = let(loop.index, least(index, latest))
    return replace(whole(loop, vectors), index=index, body=(first, *vectors.body))


def shifted(loop: For, bodies: tuple[Vectors, ...], *, compact: bool) -> Body:
    """The widest super-vectors that fit; the last one begins early enough to be full.

    before:  for x in 0..count: dst[x] = src[x]                     16, 4, 1
    after:   if count >= 16:
               for x in 0..count - 16 step 16: dst[x] = src[x] [16]
               dst[count - 16] = src[count - 16] [16]
             elif count >= 4: the same with 4
             else: for x in 0..count: dst[x] = src[x]

    compact  whether the last one shares the code of the others, by a limit of the index
    """
    (first,), (last,) = loop.lower, loop.upper
    made: Body = ()
    for k, vectors in reversed(list(enumerate(bodies))):
        size = vectors.count
        if vectors.is_any:
            made = at_index(loop, vectors, first, minus(last, first))
            continue
        if size == 1:
            made = (whole(loop, vectors),)
            continue
        start, left = minus(last, size), minus(last, first)
        at_end = at_index(loop, vectors, start)
        if compact:
            blocks: Body = (clamped(loop, vectors, start),)
        elif k and bodies[k - 1].count == 2 * size:
            once = at_index(loop, vectors, first)
            blocks = (*once, If((compare(last, "gt", plus(first, size)),), at_end))
        else:
            blocks = (replace(whole(loop, vectors), upper=(start,)), *at_end)
        made = (If((compare(left, "ge", size),), blocks, made),)
    return made


def followed(loop: For, bodies: tuple[Vectors, ...], beyond: int) -> Body:
    """Full super-vectors, then narrower ones for the rest, which has at least `beyond` iterations.

    before:  for x in 0..count: dst[x] = src[x]                     4, 1
    after:   for x in 0..count // 4 * 4 step 4: dst[x] = src[x] [4]
             for x in count // 4 * 4..count: dst[x] = src[x]
    """
    (first,), (last,), (widest, *narrower) = loop.lower, loop.upper, bodies
    done = plus(first, multiple(minus(last, plus(first, beyond)), widest.count))
    stop = done if first == Affine() and not beyond else minus(last, widest.count + beyond - 1)
    full = replace(whole(loop, widest), upper=(stop,))
    if narrower[0].is_any:
        assert not beyond, "a body for any number of iterations runs fewer than a super-vector"
        return full, *at_index(loop, narrower[0], done, rest(minus(last, first), widest.count))
    return full, *shifted(replace(loop, lower=(done,)), tuple(narrower), compact=False)
