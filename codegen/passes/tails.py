"""The iterations of a loop that fill no super-vector: narrower ones, or a last one that begins earlier."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, greatest, least, let, minus, multiple, plus, rest, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.integer_operators import number_in
from codegen.ir.nodes import MANY, For, If, View
from codegen.ir.rewriting import Body, on_buffers, substituted
from codegen.passes.loop_bounds import iterations, with_ends
from codegen.passes.new_names import NewNames
from codegen.schedule.directives import Tail
from codegen.support.dataclasses import dataclass

LEFT = "left"
"""The number of iterations of a body that runs any number of them."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """A body that runs iterations of a loop at once.

    count  how many; 0 for any number, which is `left`
    lanes  lanes per register, if the body is that of a loop of a kernel; 0 for copies
    """

    count: int
    body: Body
    lanes: int = 0

    @property
    def is_any(self) -> bool:
        """Whether the body runs any number of iterations."""
        return self.count == 0


def obeyed(loop: For, bodies: tuple[Vectors, ...], tail: Tail | None, names: NewNames | None = None) -> Body:
    """The iterations of a loop, by as few bodies as it needs, the widest first.

    names  of the locals of a kernel, whose loops may have any names
    """
    (first,), (last,), full = loop.lower, loop.upper, bodies[0]
    trips = number_in(iterations(first, last, loop.step))
    for vectors in bodies:
        if not vectors.is_any and vectors.count in (trips, loop.most if loop.most == loop.fewest else None):
            return at_index(loop, vectors, first)
    if tail is None or (trips and trips % full.count == 0):
        return (whole(loop, full),)
    if loop.most < full.count:
        few = tuple(x for x in bodies if x.count <= loop.most)
        return shifted(loop, few[-1:] if few[-1].is_any else few, compact=tail.how == "clamp", names=names)
    if loop.fewest >= full.count or len(bodies) == 1:
        return (clamped(loop, full, start_of_last(loop, full.count), names),)
    if tail.how == "narrow":
        return followed(loop, bodies, 0)
    return shifted(loop, bodies, compact=tail.how == "clamp", names=names)


def at_index(loop: For, vectors: Vectors, index: Index, count: Index | None = None) -> Body:
    """The body of a loop at an index, without views that begin where their buffers do."""
    if vectors.lanes:  # a loop of one iteration, until it is split into registers
        return (with_ends(whole(loop, vectors), index, plus(index, vectors.count * loop.step)),)
    body = tuple(substituted(statement, loop.index, index) for statement in vectors.body)
    if vectors.is_any:
        assert count is not None, "a body for any number of iterations needs their count"
        body = tuple(substituted(statement, LEFT, count) for statement in body)
    same = {x.name: x.buffer for x in body if isinstance(x, View) and x.offset == Affine()}
    kept = (x for x in body if not isinstance(x, View) or x.name not in same)
    return tuple(on_buffers(x, same) for x in kept) if same else body


def whole(loop: For, vectors: Vectors) -> For:
    """The loop over super-vectors that fill it."""
    size = vectors.count if vectors.lanes else 1
    made = replace(loop, step=loop.step * vectors.count, body=vectors.body, fewest=0, most=MANY)
    return replace(made, size=size, lanes=vectors.lanes)


def start_of_last(loop: For, count: int) -> Index:
    """The index at which the last iterations of a loop begin, as many as a super-vector has."""
    (first,), (last,) = loop.lower, loop.upper
    if loop.step == 1:
        return minus(last, count)
    return plus(first, times(minus(iterations(first, last, loop.step), count), loop.step))


def clamped(loop: For, vectors: Vectors, latest: Index, names: NewNames | None = None) -> For:
    """A loop whose last super-vector begins earlier, at `latest`, so that it is full.

    before:  for row in row_tile..row_stop: …
    after:   for row_block in row_tile..row_stop step 16: row = min(row_block, rows - 16); … [16]
    """
    if vectors.count == 1:
        return whole(loop, vectors)
    block, at, body = f"{loop.index}_block", loop.index, vectors.body
    if names is not None:
        block, at = names.name(block), names.name(at)
        body = at_index(loop, vectors, index_symbol(at))
    begun = let(at, (least if loop.step > 0 else greatest)(block, latest))
    made = replace(whole(loop, vectors), index=block, body=(begun, *body))
    return replace(made, size=1, lanes=0)


def shifted(loop: For, bodies: tuple[Vectors, ...], *, compact: bool, names: NewNames | None = None) -> Body:
    """The widest super-vectors that fit; the last one begins early enough to be full.

    before:  for x in 0..count: dst[x] = src[x]                     16, 4, 1
    after:   if count >= 16:
               for x in 0..count - 16 step 16: dst[x] = src[x] [16]
               dst[count - 16] = src[count - 16] [16]
             elif count >= 4: the same with 4
             else: for x in 0..count: dst[x] = src[x]

    compact  whether the last one shares the code of the others, by a limit of the index
    """
    (first,), (last,), step = loop.lower, loop.upper, loop.step
    left = iterations(first, last, step)
    made: Body = ()
    for k, vectors in reversed(list(enumerate(bodies))):
        size = vectors.count
        if vectors.is_any:
            made = at_index(loop, vectors, first, left)
            continue
        if size == 1:
            made = (whole(loop, vectors),)
            continue
        start = start_of_last(loop, size)
        at_end = at_index(loop, vectors, start)
        if compact:
            blocks: Body = (clamped(loop, vectors, start, names),)
        elif k and bodies[k - 1].count == 2 * size:
            once = at_index(loop, vectors, first)
            more = compare(last, "gt" if step > 0 else "lt", plus(first, size * step))
            blocks = (*once, If((more,), at_end))
        else:
            blocks = (replace(whole(loop, vectors), upper=(start,)), *at_end)
        made = blocks if loop.fewest >= size else (If((compare(left, "ge", size),), blocks, made),)
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
