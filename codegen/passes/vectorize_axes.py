"""Run loops of a copy as the lanes of super-vectors, with the tails that its directives name."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import flat
from codegen.ir.building import compare, minus
from codegen.ir.element_types import is_bits
from codegen.ir.integer_operators import number_in
from codegen.ir.nodes import MANY, Call, For, Function, If, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Each, Local, Op, Step
from codegen.ir.visit import coefficient, loads
from codegen.passes.lines import streaming
from codegen.passes.scalar_statement import element_by_address
from codegen.passes.sides import FILL, Sides, sides_of
from codegen.passes.super_vectors import PATTERN, few_bytes, super_vector
from codegen.passes.tails import Vectors, at_index, clamped, followed, shifted, whole
from codegen.passes.vectorize_tiles import vectorize_tiles
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import CopyBlock, Tail, Vectorize


def vectorize_axes(function: Function, nest: CopyNest) -> Function:
    """Run iterations of some loops at once, as the lanes of super-vectors.

    before:  for column in 0..columns: for row in 0..2: dst[4*column + 2*row] = src[2*column + row_src*row]
    after:   if columns >= 32:                       Vectorize(column=32, row=2)
               for column in 0..columns - 32 step 32:
                 block = src[2*column] [2, 32]
                 dst[4*column] = interleaved(block) [64]
               the same at columns - 32
             elif columns >= 16: 16 at once, and again at columns - 16 if there are more
             …                                       Tail("column", "shift", sizes=(16, 8, 1))

    The lanes of a load and a store are those that are adjacent in memory. Where they differ, an instruction
    changes their order: see `lane_orders`. Two loops in tiles run as blocks: see `vectorize_tiles`.

    A loop that has fewer iterations than a super-vector runs narrower ones only, and one that has exactly as
    many as one of them becomes its body. Super-vectors go past the cache where single elements did.
    """
    if not nest.obeying(Vectorize):
        return function
    if nest.order:
        return replace(function, body=vectorize_tiles(function.body, nest))

    def widened(node: Statement) -> Body:
        if isinstance(node, For) and node.index == nest.loops[0].axis and node.step == 1:
            return _widened(node, nest)
        return (node,)

    body = rewrite_body(function.body, widened)
    if nest.fills:
        low, high = (Local(name, "i64") for name in FILL)
        body = (Let(PATTERN.name, Op("repeated_line", (low, high), PATTERN.dtype, PATTERN.shape)), *body)
    return replace(function, body=body)


def _widened(loop: For, nest: CopyNest) -> Body:
    """The outermost inner loop, over super-vectors."""
    stores = [x for x in flat(loop.body) if isinstance(x, Store)]
    nest, sides = _place(loop.body, stores, nest)
    count, tail = nest.lanes[loop.index], nest.tail(loop.index)
    body, beyond = super_vector(nest, sides, count)
    narrower = (_narrow(loop, nest, sides, size) for size in (tail.sizes if tail else ()))
    bodies: tuple[Vectors, ...] = (Vectors(count, body), *narrower)
    if any(store.streamed for store in stores):
        bodies = tuple(Vectors(x.count, streaming(x.body)) for x in bodies)
    if beyond:
        return followed(loop, bodies, 1)
    made = _run(loop, bodies, tail)
    for long in nest.obeying(CopyBlock) if loop.most == MANY else ():
        block = Call("copy_block", (sides.dst, sides.src, *loop.upper))
        made = (If((compare(loop.upper[0], "ge", long.least),), (block,), made),)
    return made


def _run(loop: For, bodies: tuple[Vectors, ...], tail: Tail | None) -> Body:
    """The iterations of a loop, by as few bodies as it needs."""
    (first,), (last,), full = loop.lower, loop.upper, bodies[0]
    trips = number_in(minus(last, first))
    for vectors in bodies:
        if not vectors.is_any and trips == vectors.count:
            return at_index(loop, vectors, first)
    if tail is None or (trips and trips % full.count == 0):
        return (whole(loop, full),)
    if loop.most < full.count:
        few = tuple(x for x in bodies if x.count <= loop.most)
        return shifted(loop, few[-1:] if few[-1].is_any else few, compact=tail.how == "clamp")
    if loop.fewest >= full.count or not tail.sizes:
        return (clamped(loop, full, minus(last, full.count)),)
    if tail.how == "narrow":
        return followed(loop, bodies, 0)
    return shifted(loop, bodies, compact=tail.how == "clamp")


def _narrow(loop: For, nest: CopyNest, sides: Sides, size: int | str) -> Vectors:
    """Fewer iterations at once; single ones as they are, if their elements are only moved."""
    if isinstance(size, str):
        return Vectors(0, few_bytes(nest, sides))
    if size > 1 or not nest.copies:
        return Vectors(size, super_vector(nest, sides, size)[0])
    return Vectors(1, _around(loop.body, element_by_address(nest, sides)))


def _place(body: Body, stores: list[Store], nest: CopyNest) -> tuple[CopyNest, Sides]:
    """The nest, and the views that a scalar statement reads and writes.

    Rows in scratch are another distance apart than those of the destination.
    """
    if not stores or nest.source is None:
        return nest, sides_of(nest)
    store, views = stores[0], {x.name: x for x in flat(body) if isinstance(x, View)}
    values = (store.value, *(x.value for x in flat(body) if isinstance(x, Let)))
    reads = (load.array for value in values for load in loads(value) if is_bits(load.dtype))
    dst, src = (views[x].buffer if x in views else x for x in (store.array, next(reads)))
    *others, short = nest.loops
    pitch: Step | None = short.dst
    if len(store.value.shape) > 1:
        pitch = store.steps[0].step if isinstance(store.steps[0], Each) else store.steps[0]
    elif others and not store.value.shape:
        to = views[store.array].offset if store.array in views else store.subscripts[0]
        pitch = coefficient(to, short.axis)
    if isinstance(pitch, int) and pitch != short.dst:
        nest = replace(nest, loops=(*others, replace(short, dst=pitch)))
    return nest, Sides(dst, src)


def _around(loops: Body, body: Body) -> Body:
    """Perfectly nested loops with another body."""
    match loops:
        case (For() as loop,):
            return (replace(loop, body=_around(loop.body, body)),)
    return body
