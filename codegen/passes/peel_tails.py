"""Split loops over super-vectors into full blocks of registers and the remaining iterations."""

from __future__ import annotations

from dataclasses import field, replace
from itertools import chain

from codegen.analysis.bodies import flat, unmasked
from codegen.ir.building import least, plus
from codegen.ir.index import Greatest, Index, Least, index_symbol, index_symbols
from codegen.ir.integer_operators import number_in
from codegen.ir.names import END
from codegen.ir.nodes import MANY, Carried, For, Function, If, Let, Statement
from codegen.ir.rewriting import (
    Body,
    in_sizes,
    map_value,
    map_values,
    rename_carried,
    resized,
    rewrite_body,
    substituted,
)
from codegen.ir.values import IndexValue, Local, Op, Reduce, Value
from codegen.passes.lines import line_head, streaming
from codegen.passes.loop_bounds import full_blocks_end, iterations, named, named_ends, with_ends
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.tails import Vectors, obeyed
from codegen.schedule.directives import OVERLAPPING, Registers, Tail
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
    If lines are streamed, a masked register handles the iterations before the first full line.
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

    def statement(self, node: Statement) -> list[Statement]:
        match node:
            case If(tests, then, otherwise):
                return [If(tests, self.body(then), self.body(otherwise))]
            case For():
                if node.lanes:
                    return [node]
                if node.size > 1 and (block := self.schedule.block(node.index)):
                    return self.blocks(node, block)
                if node.size > 1 and (registers := self.schedule.registers(node.index)):
                    return self.vector_loop(unmasked(node), registers)  # tails mask their own lanes
                if any(c.start.shape for c in node.carried):
                    return [self.strips(node)]
                if found := self.in_strips(node):
                    return self.full_strips(node, *found)
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

    def in_strips(self, strips: For) -> tuple[For, Registers] | None:
        """The loop over super-vectors in each strip of a loop over strips; None if it is no such loop."""
        blocked = [x.axis for x in self.schedule.obeying(Registers) if x.rows]
        for each in flat(strips.body):
            if isinstance(each, For) and each.size > 1 and each.index not in blocked and not strips.carried:
                registers = self.schedule.registers(each.index)
                if registers and _are_strips(strips, each):
                    return each, registers
        return None

    def full_strips(self, strips: For, loop: For, registers: Registers) -> list[Statement]:
        """Full strips, in which no row has a tail of its own, then the iterations that are left.

        before:  for j_strip in 0..m step 32: for i: for j in j_strip..min(j_strip + 32, m) step 8: …
        after:   for j_strip in 0..j_whole step 32: for i: for j in j_strip..j_strip + 32 step 8: …
                 if j_whole < m: for i: for j in j_whole..m step 8: …

        If iterations may repeat, those that are left begin early enough to fill a register:

        after:   if m >= 8: the same, with j_rest = min(j_whole, m - 8) instead of j_whole in the last loops
                 else: for i: for j in 0..m: …
        """
        lets, first, last = named_ends(strips, self.names)
        step, lanes, tail = loop.step // loop.size, registers.lanes, self.schedule.tail(loop.index)
        size, strip = strips.step // step, index_symbol(strips.index)

        def rows(count: int, end: Index, fewest: int, most: int) -> Vectors:
            """The body of the loop over strips, for the iterations from a strip to an index."""

            def changed(node: Statement) -> Body:
                if isinstance(node, For) and node.index == loop.index:
                    return (replace(node, upper=(end,), fewest=fewest, most=most),)
                return (node,)

            return Vectors(count, rewrite_body(strips.body, changed), fewest=fewest)

        bodies = [rows(size, plus(strip, strips.step), size, size), rows(0, last, 0, size - 1)]
        if tail and tail.how == "shift":
            bodies[1:] = rows(0, last, lanes, max(lanes, size - 1)), rows(0, last, 0, lanes - 1)
        single = replace(with_ends(strips, first, last), step=step)
        return [*lets, *self.body(obeyed(single, tuple(bodies), tail, self.names))]

    def vector_loop(self, loop: For, registers: Registers) -> list[Statement]:
        """Full blocks of registers, then the tail."""
        lanes, count, streamed = registers.lanes, registers.count, registers.streamed
        step, block, most = loop.step // loop.size, lanes * count, loop.most
        tail = self.schedule.tail(loop.index)
        lets, first, last = named_ends(loop, self.names)
        loop, how = with_ends(loop, first, last), "" if tail is None else str(tail.how)
        if how in OVERLAPPING:
            held = {block: block if registers.whole else lanes, lanes: lanes, 1: 1}
            bodies = tuple(Vectors(size, in_sizes(loop, size, 0).body, each) for size, each in held.items())
            return [*lets, *obeyed(in_sizes(loop, 1, 0), bodies, tail, self.names)]
        out, loop = list[Statement](lets), replace(loop, fewest=0, most=MANY)
        trips = None if streamed else number_in(iterations(first, last, step))
        if trips is not None and trips % lanes == 0:
            how = "registers" if how and trips % block else ""
        once = replace(in_sizes(loop, lanes, 0), lanes=lanes)
        full = replace(in_sizes(loop, block, 0), lanes=block if registers.whole else lanes)
        begin = first
        if streamed:
            made, begin = line_head(self.names, once, streamed, (first, last))
            head = self.live(with_ends(once, first, begin), begin)
            out += [*made, head]
            full = replace(_going_on(full), body=streaming(full.body, streamed))
        once = _going_on(once)
        parts = [("whole", full)] if most >= block or loop.carried else []
        if count > 1 and (streamed or how in ("scalar", "registers")):
            parts.append(("done", replace(once, body=streaming(once.body, streamed)) if streamed else once))
        sums = dict[str, Local]()
        for what, part in parts:
            blocks_end = full_blocks_end(begin, last, step, part.size)
            names_end, end = named(f"{loop.index}_{what}", blocks_end, self.names)
            out += [*names_end, *self.with_sums(with_ends(part, begin, end), sums)]
            begin = end
            sums = sums or {
                c.name: Local(c.name, c.start.dtype, (block,)) for c in loop.carried if c.start.shape
            }
        if how == "mask":
            left = trips % block if trips is not None else (lanes if streamed else block) - 1
            if min(most, left) < lanes and not loop.carried:
                part = replace(once, lower=(begin,), upper=(last, plus(begin, once.step)))
                out.append(self.live(part, last, full=False))
            else:
                out += self.with_sums(self.live(with_ends(once, begin, last), last), sums)
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

    def blocks(self, outer: For, block: Registers) -> list[Statement]:
        """Full blocks, and the rows and lanes that fill none, row by row.

        before:  for i step 16: for j step 64: C[j, i] = A[i, j] [16, 64]
        after:   for i_block in 0..i_whole step 16:
                   for j_block in 0..j_whole step 16:
                     for i in i_block..i_block + 16 step 16: for j in j_block..j_block + 16 step 16:
                       C[j, i] = A[i, j] [16, 16]
                   if j_whole < m: for i in i_block..i_block + 16: for j in j_whole..m: …
                 for i in i_whole..n: for j: …

        Blocks of a clamped tail have one of two forms for each loop:

        after:   if n >= 16: for i_block in 0..n step 16: i = min(i_block, n - 16); the rows from there
                 else: for i in 0..n: for j: …
        """
        lets, first, last = named_ends(outer, self.names)
        begin, tail = self.names.name(wanted(outer.index)), self.schedule.tail(outer.index)
        single = with_ends(in_sizes(outer, 1, 0), first, last)
        rows = with_ends(outer, index_symbol(begin), plus(begin, block.lanes * single.step))
        (inner,) = outer.body
        assert isinstance(inner, For), "a block's loops stand alone in each other"
        full = Vectors(block.lanes, self.between(rows, inner, block, tail))
        alone = Vectors(1, tuple(substituted(x, outer.index, index_symbol(begin)) for x in single.body))
        made = obeyed(replace(single, index=begin), (full, alone), tail, self.names)
        return [*lets, *self.body(made)]

    def between(self, rows: For, loop: For, block: Registers, tail: Tail | None) -> Body:
        """The loops between the outer and the inner loop of a block, then these two."""
        if loop.index != block.axis:
            (inner,) = loop.body
            assert isinstance(inner, For), "a block's loops stand alone in each other"
            alone = in_sizes(replace(loop, body=()), 1, 0)
            outer = resized(inner, 1, 1) if loop.size > 1 else inner
            assert isinstance(outer, For)
            return (replace(alone, body=self.between(rows, outer, block, tail)),)
        lets, first, last = named_ends(loop, self.names)
        step, side, row_step = loop.step // loop.size, block.lanes, rows.step // rows.size
        begin = self.names.name(wanted(loop.index))
        # Statements of the inner loop have the dimensions of both.
        (inside,) = in_sizes(replace(rows, body=(loop,)), side, 0).body
        assert isinstance(inside, For)
        lanes = replace(in_sizes(inside, side, 1), lanes=side)
        lanes = with_ends(lanes, index_symbol(begin), plus(begin, side * step))
        full = replace(rows, step=side * row_step, size=side, lanes=side, body=(lanes,))
        rest = replace(with_ends(resized(loop, 1, 0), index_symbol(begin), last), most=side - 1)  # type: ignore[arg-type]
        by_row = replace(rows, step=row_step, size=1, body=(rest,))
        single = replace(with_ends(loop, first, last), index=begin, step=step, size=1)
        if tail is None or tail.how != "clamp":
            tail = self.schedule.tail(block.axis)
        return *lets, *obeyed(single, (Vectors(side, (full,)), Vectors(0, (by_row,))), tail, self.names)


def _are_strips(strips: For, loop: For) -> bool:
    """Whether a loop runs over one strip of the iterations that the loop around it has.

    for j_strip in 0..m step 32: for j in j_strip..min(j_strip + 32, m)
    """
    bounds = (x.of if isinstance(x, Least | Greatest) else (x,) for x in strips.upper)
    last = (x for x in chain.from_iterable(bounds) if END not in index_symbols(x))  # not that of a thread
    strip = index_symbol(strips.index)
    return loop.lower == (strip,) and {*loop.upper} == {plus(strip, strips.step), *last}


def _going_on(loop: For) -> For:
    """A loop whose scans start from the final values of the part before it."""
    carried = tuple(
        c if c.start.shape else replace(c, start=Local(c.name, c.start.dtype)) for c in loop.carried
    )
    return replace(loop, carried=carried)
