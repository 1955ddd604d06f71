"""Blocks of two loops as super-vectors of two dimensions, of which some are transposed."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace

from codegen.ir.nodes import For, If, Let, Statement, Store
from codegen.ir.values import Load, Local, Op, Value, VectorShape
from codegen.ir.visit import loads, values_of
from codegen.passes.lane_orders import Instructions
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.register_scope import Scope
from codegen.passes.register_values import number_of
from codegen.passes.strided_groups import in_rows
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


@dataclass(frozen=True, slots=True)
class BlockValues:
    """The statements of a square block: `side` rows, each of as many lanes.

    before:  C[j, i] = A[i, j] * broadcast(x) [16, 16]          A is contiguous along j, C along i
    after:   block = A[i, j] [16, 16] * broadcast(x); C[j, i] = transposed(block) [16, 16]

    What is the same in all rows is a register, or a number. A block that is loaded more than once gets a
    name, which the following loads read until a statement stores: LLVM does not see that their addresses are
    equal.

    Attributes:
        side: the rows of a block.
        scope: the values of the locals around it.
        names: the names of new locals.
        own: the locals of the block.
        out: its statements so far.
        known: the names of loads.
    """

    side: int
    scope: Scope
    names: NewNames
    own: dict[str, Local] = field(default_factory=dict)
    out: list[Statement] = field(default_factory=list)
    known: dict[Load, Local | None] = field(default_factory=dict)

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The statements of a body, each after those that name what it transposes."""
        return tuple(self.inside(body).out)

    def inside(self, body: tuple[Statement, ...]) -> BlockValues:
        """A body, whose statements are in `out`."""
        counts = Counter(load for value in values_of(body) for load in loads(value))
        inside = replace(self, out=[], known={load: None for load, count in counts.items() if count > 1})
        for statement in body:
            inside.out.append(inside.statement(statement))
            if not isinstance(statement, Let):
                inside.known.update(dict.fromkeys(inside.known))
        return inside

    def statement(self, node: Statement) -> Statement:
        """A statement."""
        match node:
            case Let(name, value):
                made = self.value(value)
                self.own[name] = Local(self.names.name(wanted(name)), made.dtype, made.shape)
                return Let(self.own[name].name, made)
            case Store():
                return self.store(node)
            case For():
                return self.loop(node)
            case If(tests, then, otherwise):
                return If(tests, self.body(then), self.body(otherwise))
        return node

    def loop(self, loop: For) -> For:
        """A loop inside of a block, which may carry blocks."""
        starts = [self.spread(self.value(c.start), c.start.shape) for c in loop.carried]
        for c, start in zip(loop.carried, starts, strict=True):
            self.own[c.name] = Local(self.names.name(wanted(c.name)), start.dtype, start.shape)
        inside = self.inside(loop.body)
        carried = tuple(
            replace(
                c,
                name=self.own[c.name].name,
                start=start,
                update=inside.spread(inside.value(c.update), start.shape),
            )
            for c, start in zip(loop.carried, starts, strict=True)
        )
        return replace(loop, body=tuple(inside.out), carried=carried)

    def value(self, value: Value) -> Value:
        """A value of all rows, a register that is the same in all rows, or a number."""
        match value:
            case Local(name) if name in self.own:
                return self.own[name]
            case Load() if any(value.steps):
                return self.load(value)
            case Op("broadcast", (operand,)):
                return self.value(operand)
            case Op(name, operands, dtype, (_, *_)):
                made = [self.value(operand) for operand in operands]
                shape = max((each.shape for each in made), key=len)
                return Op(name, tuple(self.spread(each, shape) for each in made), dtype, shape)
        return number_of(value, self.scope)

    def spread(self, value: Value, shape: VectorShape) -> Value:
        """A value with more dimensions: a number in all lanes and rows, a register in all rows."""
        if value.shape == shape:
            return value
        return Op("repeat" if value.shape else "broadcast", (value,), value.dtype, shape)

    def load(self, load: Load) -> Value:
        """A load by rows of adjacent elements, if any are, in the order of the block."""
        rows, lanes = load.steps
        if not rows:
            return replace(load, shape=(self.side,), steps=(lanes,))
        if (local := self.known.get(load)) is not None:
            return local
        made = self.reordered(*in_rows(load, load.shape, load.dtype))
        if load not in self.known:
            return made
        local = self.known[load] = self.named(made)
        return local

    def store(self, store: Store) -> Store:
        """The store of a block by rows of adjacent elements, if any are.

        Raises:
            KernelError: all lanes would be stored to the same element.
        """
        if not (store.steps and store.steps[-1]):
            raise KernelError(f"all lanes would be stored to the same element of {store.array}")
        shape = self.side, self.side
        value = self.spread(self.value(store.value), shape)
        where = None if store.where is None else self.spread(self.value(store.where), shape)
        made, instructions = in_rows(store, shape, value.dtype)
        value = self.reordered(value, instructions)
        return replace(made, value=value, where=where and self.reordered(where, instructions))

    def reordered(self, value: Value, instructions: Instructions) -> Value:
        """A value in another order; what is reordered gets a name."""
        for name, shape in instructions:
            value = Op(name, (self.named(value),), value.dtype, shape)
        return value

    def named(self, value: Value) -> Local:
        """The local that holds a value."""
        if isinstance(value, Local):
            return value
        self.out.append(Let(self.names.name("block"), value))
        return Local(self.out[-1].name, value.dtype, value.shape)  # type: ignore[union-attr]
