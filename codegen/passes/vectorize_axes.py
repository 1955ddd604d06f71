"""Run loops of a copy as the lanes of super-vectors, with the tails that its directives name."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, minus
from codegen.ir.nodes import Blocks, Call, For, Function, If, Let, Narrow, Statement
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import Local, Op
from codegen.passes.scalar_statement import element_by_address
from codegen.passes.sides import FILL, sides_of
from codegen.passes.super_vectors import PATTERN, few_bytes, super_vector
from codegen.passes.vectorize_tiles import vectorize_tiles
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Ahead, CopyBlock, Groups, Tail, Vectorize


def vectorize_axes(function: Function, nest: CopyNest) -> Function:
    """Run iterations of some loops at once, as the lanes of super-vectors.

    before:  for column in 0..columns: for row in 0..2: dst[4*column + 2*row] = src[2*column + row_src*row]
    after:   for column in 0..columns step 32:                       Vectorize(column=32, row=2)
               block = src[2*column] [2, 32]
               dst[4*column] = interleaved(block) [64]
             narrower: 16, 8 and single columns                      Tail("column", "shift", sizes=(16, 8, 1))

    The lanes of a load and a store are those that are adjacent in memory. Where they differ, an instruction
    changes their order: see `lane_orders`. Two loops in tiles run as blocks: see `vectorize_tiles`.
    """
    if not nest.obeying(Vectorize):
        return function
    if nest.order:
        return replace(function, body=vectorize_tiles(function.body, nest))

    def widened(node: Statement) -> Body:
        if isinstance(node, For) and node.index == nest.loops[0].axis:
            return (_widened(node, nest),)
        return (node,)

    body = rewrite_body(function.body, widened)
    if nest.fills:
        low, high = (Local(name, "i64") for name in FILL)
        body = (Let(PATTERN.name, Op("repeated_line", (low, high), PATTERN.dtype, PATTERN.shape)), *body)
    return replace(function, body=body)


def _widened(node: For, nest: CopyNest) -> Statement:
    """The outermost inner loop, over super-vectors."""
    (vectors,) = nest.obeying(Vectorize)
    count = vectors.lanes[0][1]
    body, beyond = super_vector(nest, count)
    ahead = sum(x.distance_bytes for x in nest.obeying(Ahead))
    streamed = () if nest.obeying(Groups) else nest.obeying(Stream)
    blocks = Blocks(streamed=streamed, prefetch_bytes=ahead, beyond=int(beyond))
    for tail in nest.obeying(Tail):
        if not tail.sizes:
            blocks = replace(blocks, latest=minus(node.upper[0], count))
            continue
        narrower = tuple(_narrow(node, nest, size) for size in tail.sizes)
        shifts, compact = tail.how != "narrow", tail.how == "clamp"
        blocks = replace(blocks, narrower=narrower, shifts=shifts, compact=compact)
    made = replace(node, step=count, body=body, blocks=blocks)
    for long in nest.obeying(CopyBlock):
        (size,), sides = node.upper, sides_of(nest)
        whole = Call("copy_block", (sides.dst, sides.src, size))
        return If((compare(size, "ge", long.least),), (whole,), (made,))
    return made


def _narrow(node: For, nest: CopyNest, size: int | str) -> Narrow:
    """Fewer iterations at once; single ones as they are, if their elements are only moved."""
    if isinstance(size, str):
        return Narrow("left", few_bytes(nest))
    if size > 1 or not nest.copies:
        return Narrow(size, super_vector(nest, size)[0])
    return Narrow(1, _inside(node.body, element_by_address(nest)))


def _inside(loops: Body, body: Body) -> Body:
    """Perfectly nested loops with another body."""
    match loops:
        case (For() as loop,):
            return (replace(loop, body=_inside(loop.body, body)),)
    return body
