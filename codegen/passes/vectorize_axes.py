"""Run loops of a copy as the lanes of super-vectors, with the tails that its directives name."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import compare, plus, times
from codegen.ir.index import Index, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Call, For, Function, If, Let, Narrow, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.ir.values import Entries, Load, Local, Op, Step
from codegen.passes.lane_orders import Lane, Placed, reordered
from codegen.passes.lower_copies.lowered import Sides, converted, named, sides_of
from codegen.passes.lower_copies.moves import FILL, element_by_address
from codegen.passes.lower_copies.runs import part
from codegen.schedule.directives import REST, Ahead, CopyBlock, Tail, Vectorize
from codegen.schedule.offset_tables import LINE_TABLE
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import Moves, TransferNest
from codegen.support.dataclasses import dataclass

PATTERN = Local("pattern", "bits8", (LINE_BYTES,))
"""A line of padding."""


def vectorize_axes(function: Function, nest: TransferNest) -> Function:
    """Run iterations of some loops at once, as the lanes of super-vectors.

    before:  for column in 0..columns: for row in 0..2: dst[4*column + 2*row] = src[2*column + row_src*row]
    after:   for column in 0..columns step 32:                       Vectorize(column=32, row=2)
               block = src[2*column] [2, 32]
               dst[4*column] = interleaved(block) [64]
             narrower: 16, 8 and single columns                      Tail("column", "shift", 16, 8, 1)

    The lanes of a load and a store are those that are adjacent in memory. Where they differ, an instruction
    changes their order: see `lane_orders`.
    """
    moves = nest.transfer
    if not isinstance(moves, Moves) or not moves.obeying(Vectorize):
        return function
    vectors = _Vectors(moves, sides_of(nest))

    def widened(node: Statement) -> Body:
        if isinstance(node, For) and node.index == moves.loops[0].axis:
            return vectors.widened(node)
        return (node,)

    body = rewrite_body(function.body, widened)
    if moves.source is None:
        low, high = (Local(name, "i64") for name in FILL)
        body = (Let(PATTERN.name, Op("repeated_line", (low, high), PATTERN.dtype, PATTERN.shape)), *body)
    return replace(function, body=body)


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The loops of moves, which all run as lanes; the first one has the tail."""

    moves: Moves
    sides: Sides

    def widened(self, node: For) -> Body:
        """The outermost loop over super-vectors."""
        moves, (vectors,) = self.moves, self.moves.obeying(Vectorize)
        (axis, count), *_ = vectors.lanes
        tails, streams = moves.obeying(Tail), moves.obeying(Stream)
        block, beyond = self.block(axis, count)
        blocks = Blocks(streamed=streams)
        ahead = sum(x.distance_bytes for x in moves.obeying(Ahead))
        if tails:
            (tail,) = tails
            narrower = tuple(self.narrow(node, size) for size in tail.sizes)
            blocks = replace(blocks, narrower=narrower, shifts=tail.how == "shift", beyond=int(beyond))
        made = replace(node, step=count, body=block, blocks=replace(blocks, prefetch_bytes=ahead))
        for long in moves.obeying(CopyBlock):
            (size,) = node.upper
            whole = Call("copy_block", (self.sides.dst, self.sides.src, size))
            return (If((compare(size, "ge", long.least),), (whole,), (made,)),)
        return (made,)

    def narrow(self, node: For, size: int) -> Narrow:
        """Fewer iterations at once."""
        if size == REST:
            return Narrow("left", self.rest())
        if size > 1 or self.moves.convert:
            return Narrow(size, self.block(node.index, size)[0])
        if isinstance(node.body[0], For):
            (inner,) = node.body
            assert isinstance(inner, For), "loops stand alone in each other"
            return Narrow(1, (replace(inner, body=element_by_address(self.moves, self.sides)),))
        return Narrow(1, element_by_address(self.moves, self.sides))

    def rest(self) -> Body:
        """The bytes that are left."""
        if self.moves.source:
            return part(self.sides.dst, self.sides.src, "x", "left")
        few = Call("fill_part", ("tail", index_symbol("left"), *map(index_symbol, FILL)))
        return View("tail", self.sides.dst, index_symbol("x")), few

    def block(self, axis: str, count: int) -> tuple[Body, bool]:
        """`count` iterations of the first loop and all of the others, and whether it stores beyond them."""
        moves, sides = self.moves, self.sides
        (vectors,) = moves.obeying(Vectorize)
        counts = {**dict(vectors.lanes), axis: count}
        long = moves.loops[0]
        to: Index = times(axis, long.dst)
        if moves.source is None:
            return (Store(sides.dst, (to,), PATTERN, (0,), (1,)),), False
        width, source_width = moves.target.bits // 8, moves.source.bits // 8
        lanes = tuple(Lane(counts[x.axis], self.step(x), x.dst) for x in moves.loops)
        found = reordered(lanes, source_width, width)
        at = plus(times(axis, long.src), found.load.first)
        load = Load(sides.src, (at,), f"bits{8 * source_width}", found.load.shape, *_dimensions(found.load))
        value = converted(moves.convert, load)
        to = plus(to, found.store.first)
        if value is load and not found.instructions:
            return (Store(sides.dst, (to,), load, *_dimensions(found.store)),), False
        block = Let("block", value)
        moved: Local | Op = named(block.name, value)
        for name, shape in found.instructions:
            moved = Op(name, (moved,), moved.dtype, shape)
        return (block, Store(sides.dst, (to,), moved, *_dimensions(found.store))), found.beyond

    def step(self, x: Loop) -> Step:
        """The distance from lane to lane in the source."""
        return Entries(LINE_TABLE, index_symbol(x.axis)) if x.table else x.src


def _dimensions(placed: Placed) -> tuple[tuple[int, ...], tuple[Step, ...]]:
    """The subscripts along which the dimensions of a super-vector vary, and their steps."""
    return (0,) * len(placed.shape), placed.steps
