"""Split loops over super-vectors into full blocks of registers and the remaining iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from codegen.analysis.bodies import unmasked
from codegen.ir.building import least, plus
from codegen.ir.index import Index, index_symbol
from codegen.ir.integer_operators import number_in
from codegen.ir.nodes import MANY, Carried, For, Function, If, Let, Statement
from codegen.ir.rewriting import (
    Body,
    in_sizes,
    map_value,
    map_values,
    rename_carried,
)
from codegen.ir.values import IndexValue, Local, Op, Reduce, Value
from codegen.passes.lines import line_head, streaming
from codegen.passes.loop_bounds import full_blocks_end, iterations, named, named_ends, with_ends
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.square_blocks import square_blocks
from codegen.passes.tails import Vectors, obeyed
from codegen.schedule.directives import OVERLAPPING, Registers
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.support.dataclasses import dataclass


def peel_tails(function: Function, schedule: LoopSchedule) -> Function:
    """Run full blocks of registers, then the tail, as the schedule says.

    before:  for j in 0..m step 256: C[j] = A[j] [256]                    16 lanes, 4 registers, masked
    after:   j_whole = max(m, 0) // 64 * 64
             for j in 0..j_whole step 64: C[j] = A[j] [64]
             for j in j_whole..m step 16: C[j] = A[j] [16]                j_live = min(m - j, 16) lanes

    After blocks of one register, the tail has at most one iteration, which its second bound says.
    A block that the schedule prints whole is one value of 64 lanes, which LLVM splits into registers.

    A scalar tail runs element by element. In a shifted one, the last register begins early enough to be full.
    If lines are streamed, a masked register handles the iterations before the first full line. The tail masks
    its own lanes, so the selects of reductions that did are dropped.
    """
    peel = _Peel(NewNames("peel"), schedule)
    body = peel.body(function.body)
    return replace(function, body=body, results=tuple(map(peel.value, function.results)))


@dataclass(frozen=True, slots=True)
class _Sums:
    """The accumulators that a loop leaves: those of one or more registers, and those of a scalar tail."""

    lanes: Local
    rest: Local | None


@dataclass(frozen=True, slots=True)
class _Peel:
    names: NewNames
    schedule: LoopSchedule
    sums: dict[str, _Sums] = field(default_factory=dict)
    rests: dict[str, Local] = field(default_factory=dict)

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """A body that is not inside lanes."""
        return tuple(made for statement in body for made in self.statement(statement))

    def statement(self, node: Statement) -> Sequence[Statement]:
        match node:
            case If(tests, then, otherwise):
                return [If(tests, self.body(then), self.body(otherwise))]
            case For():
                if node.lanes:
                    return [node]
                if node.size > 1 and (block := self.schedule.block(node.index)):
                    return self.body(square_blocks(node, block, self.schedule, self.names))
                if node.size > 1 and (registers := self.schedule.registers(node.index)):
                    return self.vector_loop(unmasked(node), registers)
                if any(c.start.shape for c in node.carried):
                    return [self.strips(node)]
                carried = tuple(replace(c, start=self.value(c.start)) for c in node.carried)
                body = self.body(node.body)
                carried = tuple(replace(c, update=self.value(c.update)) for c in carried)
                return [replace(node, body=body, carried=carried)]
            case _:
                return [map_values(node, self.value)]

    def value(self, value: Value) -> Value:
        """A value outside of super-vectors, with the accumulators of peeled loops."""

        def part(node: Value) -> Value:
            match node:
                case Reduce(combiner, Local(name), start, dtype) if name in self.sums:
                    found = self.sums[name]
                    if found.rest is None:
                        return replace(node, vector=found.lanes)
                    total = Op(f"reduce_{combiner}", (found.lanes,), dtype)
                    return Op(combiner, (start, Op(combiner, (total, found.rest), dtype)), dtype)
            return node

        return map_value(value, part)

    def strips(self, strips: For) -> For:
        """Strips that carry an accumulator for each lane of a block, and those of scalar tails."""
        sums = [c for c in strips.carried if c.start.shape]
        for c in sums:
            self.rests[c.name] = Local(self.names.name(wanted(c.name)), c.start.dtype)
        body, carried = self.body(strips.body), [c for c in strips.carried if c not in sums]
        for c in sums:
            assert isinstance(c.update, Local), "strips carry what their loops carry"
            found, rest = self.sums[c.update.name], self.rests[c.name]
            start = replace(c.start, shape=found.lanes.shape)
            carried.append(replace(c, start=start, update=found.lanes))
            if found.rest is not None:
                carried.append(Carried(rest.name, replace(start, shape=()), found.rest, c.combiner))
            lanes = Local(c.name, c.start.dtype, start.shape)
            self.sums[c.name] = _Sums(lanes, None if found.rest is None else rest)
        return replace(strips, body=body, carried=tuple(carried))

    def vector_loop(self, loop: For, registers: Registers) -> Body:
        """Full blocks of registers, then the tail."""
        lanes, block = registers.lanes, registers.lanes * registers.count
        tail, (lets, first, last) = self.schedule.tail(loop.index), named_ends(loop, self.names)
        loop = with_ends(loop, first, last)
        if tail is None or tail.how not in OVERLAPPING:
            return *lets, *self.parts(loop, registers, "" if tail is None else tail.how)
        held = {block: block if registers.whole else lanes, lanes: lanes, 1: 1}
        bodies = tuple(Vectors(size, in_sizes(loop, size, 0).body, each) for size, each in held.items())
        return *lets, *obeyed(in_sizes(loop, 1, 0), bodies, tail, self.names)

    def parts(self, loop: For, registers: Registers, how: str) -> list[Statement]:
        """Full blocks, then a tail that repeats no iterations; each part continues the accumulators."""
        lanes, count, streamed = registers.lanes, registers.count, registers.streamed
        step, block, most = loop.step // loop.size, lanes * count, loop.most
        out, (first,), (last,) = list[Statement](), loop.lower, loop.upper
        loop = replace(loop, fewest=0, most=MANY)
        trips = None if streamed else number_in(iterations(first, last, step))
        if trips is not None and trips % lanes == 0:
            how = "registers" if how and trips % block else ""
        once = replace(in_sizes(loop, lanes, 0), lanes=lanes)
        full = replace(in_sizes(loop, block, 0), lanes=block if registers.whole else lanes)
        begin, once_more = first, _going_on(once)
        if streamed:
            made, begin = line_head(self.names, once, streamed, (first, last))
            out += [*made, self.live(with_ends(once, first, begin), begin)]
            full = _going_on(full)
        filled = [full] if most >= block or loop.carried else []
        singles = how == "mask" and (trips or 0) % block > lanes  # full ones have no masks
        filled += [once_more] if count > 1 and (streamed or singles or how in ("scalar", "registers")) else []
        sums = dict[str, Local]()
        for what, part in zip(("whole", "done"), filled, strict=False):
            done = full_blocks_end(begin, last, step, part.size)
            end_lets, end = named(f"{loop.index}_{what}", done, self.names)
            part = replace(part, body=streaming(part.body, streamed)) if streamed else part
            out += [*end_lets, *self.with_sums(with_ends(part, begin, end), sums)]
            lanewise = (c for c in loop.carried if c.start.shape)
            begin, sums = end, sums or {c.name: Local(c.name, c.start.dtype, (block,)) for c in lanewise}
        if how == "mask":
            left = (
                (lanes if streamed or singles else block) - 1 if trips is None or singles else trips % block
            )
            if min(most, left) < lanes and not loop.carried:
                part = replace(once_more, lower=(begin,), upper=(last, plus(begin, once.step)))
                out.append(self.live(part, last, full=False))
            else:
                out += self.with_sums(self.live(with_ends(once_more, begin, last), last), sums)
        rest: dict[str, Local] = {}
        if how == "scalar":
            single, rest = self.scalar(loop, begin, last)
            out.append(single)
        self.sums.update({name: _Sums(held, rest.get(name)) for name, held in sums.items()})
        return out

    def live(self, loop: For, last: Index, *, full: bool = True) -> For:
        """A loop whose last iteration has fewer active lanes, which a local counts; some may be full."""
        name, step = self.names.name(f"{loop.index}_live"), loop.step // loop.size
        left = iterations(index_symbol(loop.index), last, step)
        count = least(left, loop.size) if full else left
        return replace(loop, body=(Let(name, IndexValue(count)), *loop.body), live=name)

    def with_sums(self, loop: For, sums: dict[str, Local]) -> list[Statement]:
        """A loop over single registers that continues with the first register of each accumulator."""
        shape = (loop.size,)
        new = {name: self.names.name(wanted(name)) for name in sums}
        given, loop = loop, rename_carried(loop, new)
        carried, after = [], []
        for name, each in zip((c.name for c in given.carried), loop.carried, strict=True):
            if name not in sums:
                carried.append(each)
                continue
            held = sums[name]
            start = Op("register", (held,), held.dtype, shape)
            carried.append(replace(each, start=start))
            merged = Op("with_register", (held, Local(each.name, held.dtype, shape)), held.dtype, held.shape)
            sums[name] = Local(self.names.name(wanted(name)), held.dtype, held.shape)
            after.append(Let(sums[name].name, merged))
        return [replace(loop, carried=tuple(carried)), *after]

    def scalar(self, loop: For, first: Index, last: Index) -> tuple[For, dict[str, Local]]:
        """The tail element by element, and the names of its accumulators."""
        new = {c.name: self.names.name(wanted(c.name)) for c in loop.carried if c.start.shape}
        single = replace(rename_carried(in_sizes(_going_on(loop), 1, 0), new), lanes=1)
        single = replace(single, carried=tuple(map(self.after_strips, single.carried)))
        rest = {c.name: Local(new[c.name], c.start.dtype) for c in loop.carried if c.name in new}
        return with_ends(single, first, last), rest

    def after_strips(self, carried: Carried) -> Carried:
        """The accumulator of a scalar tail, which continues that of the strips before."""
        match carried.start:
            case Local(name) if name in self.rests:
                return replace(carried, start=self.rests[name])
        return carried


def _going_on(loop: For) -> For:
    """A loop whose scans start from the final values of the part before it."""
    carried = tuple(
        c if c.start.shape else replace(c, start=Local(c.name, c.start.dtype)) for c in loop.carried
    )
    return replace(loop, carried=carried)
