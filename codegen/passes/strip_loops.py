"""Strip-mine loops over super-vectors: strips of the requested size, and blocks of registers inside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.analysis.bodies import defined, flat, full_blocks, vector_nest
from codegen.ir.index import Affine, index_symbol
from codegen.ir.nodes import Carried, For, Function, Statement
from codegen.ir.rewriting import in_sizes, map_value, map_values
from codegen.ir.values import Local, Op, Reduce, Value
from codegen.passes.new_names import fresh_name
from codegen.passes.scan_values import masked
from codegen.passes.vector_values import Lane, lane_mask
from codegen.schedule.registers import StripSchedule
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect


def strip_loops(function: Function, schedule: StripSchedule) -> Function:
    """Make each super-vector a nest of loops: strips of its size, and blocks of registers inside them.

    before:  for i in 0..n step 256: C[i] = A[i] [256]                                     blocks of 64
    after:   for i_strip in 0..n step 256:
               for i in i_strip..min(i_strip + 256, n) step 64: C[i] = A[i] [64]

    before:  for i in 0..n step 32: for j in 0..m step 256: C[i, j] = A[i, j] [32, 256]    blocks of 1 x 64
    after:   for i_strip in 0..n step 32: for j_strip in 0..m step 256:
               for i in i_strip..min(i_strip + 32, n):
                 for j in j_strip..min(j_strip + 256, m) step 64: C[i, j] = A[i, j] [64]

    The order is that of super-vectors, and inside each one that of elements, so it is legal if both are.
    Strips carry the accumulators of a reduction from one to the next.
    """
    taken = {argument.name for argument in function.arguments} | defined(function.body)
    strips = _Strips(taken, iter(schedule.blocks), schedule.index)
    return replace(function, body=strips.body(function.body))


@dataclass(frozen=True, slots=True)
class _Strips:
    taken: set[str]
    blocks: Iterator[tuple[int, ...]]
    index: str

    def body(self, body: tuple[Statement, ...], position: int = 0) -> tuple[Statement, ...]:
        """A body inside `position` loops over super-vectors."""
        made: list[Statement] = []
        renamed: dict[str, Local] = {}
        for statement in body:
            if isinstance(statement, For):
                made.append(self.loop(statement, position, renamed))
            else:
                made.append(_combined(statement, renamed))
        return tuple(made)

    def loop(self, loop: For, position: int, renamed: dict[str, Local]) -> For:
        """A loop, in strips if it has blocks; `renamed` gets the accumulators after strips."""
        blocks = expect(self.blocks, f"blocks of {loop.index}", "the strips of a function")
        if not blocks:
            return replace(loop, body=self.body(loop.body, position + (loop.size > 1)))
        for statement in flat(loop.body):
            if isinstance(statement, For):
                expect(self.blocks, f"blocks of {statement.index}", "the strips of a function")
        nest = vector_nest(loop)
        names = [fresh_name(f"{each.index}_{self.index}", self.taken) for each in nest]
        made = _in_blocks(loop, blocks, names, position)
        for each, name in reversed(list(zip(nest, names, strict=True))):
            made = replace(each, index=name, size=1, carried=(), body=(made,))
        return self.carrying(made, loop, blocks[-1], renamed) if loop.carried else made

    def carrying(self, strips: For, loop: For, block: int, renamed: dict[str, Local]) -> For:
        """The strips of a reduction, which carry an accumulator for each lane of a block."""
        (inner,) = strips.body
        assert isinstance(inner, For), "a strip contains only its loop"
        inside, outside = [], []
        mask, inner = lane_mask(inner, Lane(inner.index, block, inner.step // block)), full_blocks(inner)
        for each in inner.carried:
            if not each.start.shape:  # a scan continues where the strip before ended
                number = Local(each.name, each.start.dtype)
                inside.append(replace(each, start=number))
                outside.append(replace(each, update=number))
                continue
            name = fresh_name(f"{each.name}.strips", self.taken)
            held = renamed[each.name] = Local(name, each.start.dtype, (block,))
            lanes = Local(each.name, held.dtype, held.shape)
            update = Op("select", (mask, each.update, lanes), held.dtype, held.shape) if mask else each.update
            inside.append(replace(each, start=held, update=update))
            outside.append(Carried(name, each.start, lanes, each.combiner))
        inner = replace(inner, body=masked(inner.body, mask), carried=tuple(inside))
        return replace(strips, body=(inner,), carried=tuple(outside))


def _in_blocks(loop: For, blocks: tuple[int, ...], names: list[str], position: int) -> For:
    """The loops inside strips: each runs through the strip of its name in blocks."""
    stop = index_symbol(names[0]) + Affine(loop.step)
    made = in_sizes(loop, blocks[0], position)
    made = replace(made, lower=(index_symbol(names[0]),), upper=(stop, *loop.upper), parallel=False)
    if not blocks[1:]:
        return made
    (inner,) = made.body
    assert isinstance(inner, For), "the loops of a nest stand alone in each other"
    return replace(made, body=(_in_blocks(inner, blocks[1:], names[1:], position + (blocks[0] > 1)),))


def _combined(statement: Statement, renamed: dict[str, Local]) -> Statement:
    """A statement after strips, which combines the lanes of a block."""

    def part(value: Value) -> Value:
        match value:
            case Reduce(_, Local(name)) if name in renamed:
                return replace(value, vector=renamed[name])
        return value

    return map_values(statement, lambda value: map_value(value, part)) if renamed else statement
