"""Run loops of a copy as the lanes of super-vectors, with the tails that its directives name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from codegen.ir.building import compare
from codegen.ir.nodes import MANY, Call, For, Function, If, Let, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load, Local, Op
from codegen.passes.scalar_statement import moved_by_address
from codegen.passes.sides import FILL
from codegen.passes.super_vectors import PATTERN, rest_of, super_vector
from codegen.passes.tails import Vectors, followed, obeyed
from codegen.passes.vectorize_tiles import vectorize_tiles
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import CopyBlock


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
    if nest.transposes:
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
    tail, full = nest.tail(loop.index), Vectors(nest.lanes[loop.index], super_vector(loop.body, nest.lanes))
    bodies = (full, *(_fewer(loop, nest.lanes, size) for size in (tail.sizes if tail else ())))
    if any(prod(x.value.shape) > prod(nest.lanes.values()) for x in full.body if isinstance(x, Store)):
        return followed(loop, bodies, 1)  # the last one also stores lanes after those of its iterations
    made = obeyed(loop, bodies, tail)
    for long in nest.obeying(CopyBlock) if loop.most == MANY else ():
        (store,) = loop.body
        assert isinstance(store, Store), "the bytes of a run are moved as they are"
        assert isinstance(store.value, Load), "the bytes of a run are moved as they are"
        block = Call("copy_block", (store.array, store.value.array, *loop.upper))
        made = (If((compare(loop.upper[0], "ge", long.least),), (block,), made),)
    return made


def _fewer(loop: For, lanes: Mapping[str, int], size: int | str) -> Vectors:
    """Fewer iterations at once; single ones as they are, if their elements are only moved."""
    if isinstance(size, str):
        return Vectors(0, rest_of(loop.body, lanes))
    if size == 1 and (alone := moved_by_address(loop.body)) != loop.body:
        return Vectors(1, alone)
    return Vectors(size, super_vector(loop.body, {**lanes, loop.index: size}))
