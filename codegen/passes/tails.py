"""The iterations of a loop that fill no super-vector: narrower ones, or a last one that begins earlier.

Copies and kernels obey their tails here, whether a super-vector is a register, several, a strip or a block.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, compare, greatest, least, let, minus, multiple, plus, rest, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.integer_operators import number_in
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import MANY, For, If
from codegen.ir.rewriting import Body, substituted
from codegen.passes.loop_bounds import before, full_blocks_end, iterations, named, with_ends
from codegen.passes.new_names import NewNames, wanted
from codegen.schedule.directives import Tail
from codegen.support.dataclasses import dataclass

LEFT = "left"
"""The number of iterations of a body that runs any number of them."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """A body that runs iterations of a loop at once.

    count   how many; 0 for any number, which is `left`
    lanes   lanes per register, if the body is that of a loop of a kernel; 0 for others
    fewest  how many there are at least, if they may be any number
    """

    count: int
    body: Body
    lanes: int = 0
    fewest: int = 0

    @property
    def is_any(self) -> bool:
        """Whether the body runs any number of iterations."""
        return self.count == 0


def obeyed(loop: For, bodies: tuple[Vectors, ...], tail: Tail | None, names: NewNames | None = None) -> Body:
    """The iterations of a loop, by as few bodies as it needs, the widest first.

    tail   None if the widest body fills the loop
    names  of the locals of a kernel, whose loops may have any names
    """
    (first,), (last,), full = loop.lower, loop.upper, bodies[0]
    trips = number_in(iterations(first, last, loop.step))
    for vectors in bodies:
        if not vectors.is_any and vectors.count in (trips, loop.most if loop.most == loop.fewest else None):
            return at_index(loop, vectors, first)
    if tail is None or (trips and trips % full.count == 0):
        return (whole(loop, full),)
    if tail.how == "shift" and names is not None and len(bodies) > 2:
        return ended_early(loop, bodies, names)
    if loop.most < full.count:
        few = tuple(x for x in bodies if x.count <= loop.most)
        if few[-1].is_any and loop.most < LINE_BYTES:  # more than it can run at once
            few = few[-1:]
        return shifted(loop, few, compact=tail.how == "clamp", names=names)
    if loop.fewest >= full.count or len(bodies) == 1:
        return (clamped(loop, full, start_of_last(loop, full.count), names),)
    if tail.how in ("shift", "clamp"):
        return shifted(loop, bodies, compact=tail.how == "clamp", names=names)
    return followed(loop, bodies, 0, names)


def at_index(loop: For, vectors: Vectors, index: Index, count: Index | None = None) -> Body:
    """The body of a loop at an index."""
    if vectors.lanes:  # a loop of one iteration, until it is split into registers
        return (with_ends(whole(loop, vectors), index, plus(index, vectors.count * loop.step)),)
    body = tuple(substituted(statement, loop.index, index) for statement in vectors.body)
    if count is not None:
        body = tuple(substituted(statement, LEFT, count) for statement in body)
    return body


def whole(loop: For, vectors: Vectors) -> For:
    """The loop over super-vectors that fill it."""
    size = vectors.count if vectors.lanes else 1
    made = replace(loop, step=loop.step * vectors.count, body=vectors.body, fewest=0, most=MANY)
    return replace(made, size=size, lanes=vectors.lanes)


def alone(loop: For, vectors: Vectors) -> Body:
    """All iterations of a loop by one of its bodies, which runs single ones or any number."""
    (first,), (last,) = loop.lower, loop.upper
    if vectors.is_any:
        return at_index(loop, vectors, first, iterations(first, last, loop.step))
    return (whole(loop, vectors),)


def start_of_last(loop: For, count: int) -> Index:
    """The index at which the last iterations of a loop begin, as many as a super-vector has."""
    (first,), (last,) = loop.lower, loop.upper
    if loop.step == 1:
        return minus(last, count)
    return plus(first, times(minus(iterations(first, last, loop.step), count), loop.step))


def if_enough(loop: For, count: int, then: Body, otherwise: Body) -> Body:
    """Statements for a loop that has so many iterations, and others if it may have fewer."""
    if loop.fewest >= count:
        return then
    (first,), (last,) = loop.lower, loop.upper
    return (If((compare(iterations(first, last, loop.step), "ge", count),), then, otherwise),)


def clamped(loop: For, vectors: Vectors, latest: Index, names: NewNames | None = None) -> For:
    """A loop whose last super-vector begins earlier, at `latest`, so that it is full.

    before:  for row in row_tile..row_stop: …
    after:   for row_block in row_tile..row_stop step 16: row = min(row_block, rows - 16); … [16]
    """
    if vectors.count == 1:
        return whole(loop, vectors)
    at, body = wanted(loop.index), vectors.body
    block = f"{at}_block"
    if names is not None:
        block, at = names.name(block), names.name(at)
        body = at_index(loop, vectors, index_symbol(at))
    begun = let(at, _earlier(loop, block, latest))
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
    made: Body = ()
    for k, vectors in reversed(list(enumerate(bodies))):
        size = vectors.count
        if size <= 1:
            made = alone(loop, vectors)
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
        made = if_enough(loop, size, blocks, made)
    return made


def followed(loop: For, bodies: tuple[Vectors, ...], beyond: int = 0, names: NewNames | None = None) -> Body:
    """Full super-vectors, then narrower ones for the rest, which has at least `beyond` iterations.

    before:  for x in 0..count: dst[x] = src[x]                     4, 1
    after:   for x in 0..count // 4 * 4 step 4: dst[x] = src[x] [4]
             for x in count // 4 * 4..count: dst[x] = src[x]
    """
    (first,), (last,), (widest, *narrower) = loop.lower, loop.upper, bodies
    full, done = full_blocks(loop, widest, names, beyond)
    if not narrower[0].is_any:
        return *full, *shifted(replace(loop, lower=(done,)), tuple(narrower), compact=False, names=names)
    assert not beyond, "a body for any number of iterations runs fewer than a super-vector"
    left = at_index(loop, narrower[0], done, rest(minus(last, first), widest.count))
    return *full, *(left if names is None else (If((before(done, last, loop.step),), left),))


def ended_early(loop: For, bodies: tuple[Vectors, ...], names: NewNames) -> Body:
    """Full super-vectors, then narrower ones, which end with the loop: they begin early enough to be full.

    after:   if m >= 8:
               for j in 0..j_whole step 32: C[j] = A[j] [32]                  8 lanes, 4 registers
               for j_block in j_whole..m step 8: j = min(j_block, m - 8); C[j] = A[j] [8]
             else: for j in 0..m: C[j] = A[j]

    One body for any number of iterations begins at j_rest = min(j_whole, m - 8), if any are left.
    """
    widest, narrower, few = bodies
    (done,), (last,), size = loop.lower, loop.upper, narrower.count or narrower.fewest
    if loop.most < size:
        return alone(loop, few)
    some = replace(loop, fewest=max(loop.fewest, size))
    made: Body = ()
    if loop.most >= widest.count:
        made, done = full_blocks(some, widest, names)
    latest = start_of_last(loop, size)
    left: Body
    if narrower.is_any:
        lets, start = named(f"{wanted(loop.index)}_rest", _earlier(loop, done, latest), names)
        left = (If((before(done, last, loop.step),), (*lets, *at_index(loop, narrower, start))),)
    elif number_in(iterations(done, latest, loop.step)) is not None:
        left = with_ends(whole(loop, narrower), done, latest), *at_index(loop, narrower, latest)
    else:
        left = (clamped(with_ends(loop, done, last), narrower, latest, names),)
    return if_enough(loop, size, (*made, *left), alone(loop, few))


def full_blocks(
    loop: For, vectors: Vectors, names: NewNames | None = None, beyond: int = 0
) -> tuple[Body, Index]:
    """The loop over full super-vectors, and the index where it ends, which has a name in a kernel.

    beyond  the iterations after them that there are at least
    """
    (first,), (last,), count = loop.lower, loop.upper, vectors.count
    if names is not None:
        end = full_blocks_end(first, last, loop.step, count, some=loop.fewest > 0)
        lets, done = named(f"{wanted(loop.index)}_whole", end, names)
        return (*lets, with_ends(whole(loop, vectors), first, done)), done
    done = plus(first, multiple(minus(last, plus(first, beyond)), count))
    stop = done if first == Affine() and not beyond else minus(last, count + beyond - 1)
    return (replace(whole(loop, vectors), upper=(stop,)),), done


def _earlier(loop: For, a: Term, b: Term) -> Index:
    """The one of two indices that a loop reaches first."""
    return (least if loop.step > 0 else greatest)(a, b)
