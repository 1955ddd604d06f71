"""A loop kernel as readable Python source that Numba compiles.

A kernel is `kernel(results, scratch, sizes, begin, end)`: the address of the table of its results, an unused
address, the address of its table of 64-bit arguments (addresses, extents, strides in bytes, scalars), and the
range [begin, end) of its first loop's indices, if that loop can be split among calls.

In a nest of loops over super-vectors, the innermost loop works on registers. The outer loops run row by row,
an order between that of elements and that of super-vectors, which is legal if both are.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256

from codegen.analysis.bodies import flat, full_blocks, shared_loop, stored, values
from codegen.analysis.bounds import loads
from codegen.analysis.strides import HALVES, held_dtype
from codegen.emit.blocks import emit_blocks, transposed_loads
from codegen.emit.names import Names, Table
from codegen.emit.ranges import least_steps_text, range_text, whole_text
from codegen.emit.scope import Hoisted, Lanes, Partial, Scope, Text
from codegen.emit.stores import emit_store
from codegen.emit.tails import head_loop, single_lines, tail_loops
from codegen.emit.values import spread, unwrapped, value_text
from codegen.emit.writer import Writer
from codegen.ir.nodes import Carried, For, Function, Let, Statement, Store
from codegen.schedule.registers import LoopPlan, RegisterSchedule, TransposedLoops, VectorLoop
from codegen.support.errors import KernelError

MOST_OF_A_NAME = 80
"""Maximum number of characters of the function's name in the kernel's source."""


@dataclass(frozen=True, slots=True)
class LoopsSource:
    """A kernel's source and the table of arguments that it reads.

    entries   `A` for an address, `A.shape[0]`, `A.stride[0]` in bytes, or a scalar's name; in order
    results   the dtypes of its results, 8 bytes each
    streamed  the arrays whose full lines it stores past the cache
    shared    whether begin and end select the range of the first loop that runs
    """

    name: str
    source: str
    entries: tuple[str, ...]
    results: tuple[str, ...]
    shared: bool
    streamed: tuple[str, ...] = ()


def emit_loops(function: Function, schedule: RegisterSchedule, *, fast: bool = False) -> LoopsSource:
    """The source of a function, scalar or super-vectorized, whose loops run as the schedule says.

    With `fast`, float vectors use the routines named `fast_…`.

    Raises:
        KernelError: no kernel can express the function, or the schedule is that of another function.
    """
    names = Names()
    emitter = _Emitter(function, names, Table(names), _plans(function, schedule), fast)
    body = Writer()
    emitter.function_body(body)
    entries = emitter.table.entries
    used = set(re.findall(r"\w+", body.text()))
    entries = tuple((entry, name) for entry, name in entries if name in used)
    arguments = Writer()
    for k, (entry, name) in enumerate(entries):
        arguments.line(f"{name} = {_entry(function, entry, k)}")
    digest = sha256((arguments.text() + body.text()).encode()).hexdigest()[:12]
    plain = re.sub(r"[^0-9A-Za-z_]", "_", function.name[:MOST_OF_A_NAME]).strip("_") or "loops"
    name = f"{plain}_{digest}"
    out = Writer()
    past = f", lines of {' and '.join(emitter.streamed)} past the cache" if emitter.streamed else ""
    # A function's name may contain anything, even quotation marks and statements.
    title = re.sub(r"[^0-9A-Za-z_<>]", "_", function.name[:MOST_OF_A_NAME])
    out.line(
        f'"""{title}, super-vectors in registers of {schedule.register_bytes} bytes at most, '
        f'tail {schedule.tail}{past}."""'
    )
    out.line()
    with out.block(f"def {name}(results, scratch, sizes, begin, end):"):
        out.lines(arguments)
        out.lines(body)
    dtypes = tuple(value.dtype for value in function.results)
    return LoopsSource(
        name,
        out.text(),
        tuple(e for e, _ in entries),
        dtypes,
        shared_loop(function) is not None,
        tuple(emitter.streamed),
    )


def _plans(function: Function, schedule: RegisterSchedule) -> dict[int, LoopPlan]:
    """The plan of each loop, by the identity of its node."""
    loops = [statement for statement in flat(function.body) if isinstance(statement, For)]
    if len(loops) != len(schedule.loops):
        raise KernelError(f"{function.name} has {len(loops)} loops, its schedule {len(schedule.loops)}")
    return {id(loop): plan for loop, plan in zip(loops, schedule.loops, strict=True)}


def _entry(function: Function, entry: str, k: int) -> str:
    for argument in function.arguments:
        if (
            argument.name == entry
            and argument.dtype in ("f32", "f64", *HALVES)
            and not hasattr(argument, "rank")
        ):
            return f"read_{held_dtype(argument.dtype)}_at(sizes, {8 * k})"
        if argument.name == entry and argument.dtype == "i1" and not hasattr(argument, "rank"):
            return f"int64_at(sizes, {k}) != 0"
    return f"int64_at(sizes, {k})"


@dataclass(frozen=True, slots=True)
class _Emitter:
    function: Function
    names: Names
    table: Table
    plans: dict[int, LoopPlan]
    fast: bool = False
    streamed: list[str] = field(default_factory=list)

    def function_body(self, out: Writer) -> None:
        """Write all statements, then the results."""
        scope = Scope(self.function, self.table)
        shared = shared_loop(self.function)
        if shared is not None:
            self.loop(shared, scope, out, ("begin", "end"))
        else:
            scope = self.statements(self.function.body, scope, out)
        for k, value in enumerate(self.function.results):
            text = value_text(value, scope)
            if not isinstance(text, str):
                raise KernelError("expected results that are numbers, got a super-vector")
            out.line(f"write_{held_dtype(value.dtype)}_at(results, {8 * k}, {unwrapped(text)})")
        if self.streamed:
            out.line("stream_fence()")
        if not self.function.body and not self.function.results:
            out.line("pass")

    def statements(self, body: tuple[Statement, ...], scope: Scope, out: Writer) -> Scope:
        """Write a body; return the scope after it."""
        scope = replace(scope, held=dict(scope.held))
        for statement in body:
            scope = transposed_loads(statement, scope, self.names, out)
            match statement:
                case For():
                    self.loop(statement, scope, out)
                case Let(name, value):
                    scope.held[name] = self.named(name, value_text(value, scope), out)
                case Store():
                    emit_store(statement, scope, self.names, out)
                case _:
                    raise AssertionError(f"emit: no rule for {type(statement).__name__}")
        return replace(scope, transposed={}) if scope.transposed else scope

    def named(self, name: str, text: Text, out: Writer) -> Text:
        """Assign a value to a fresh name, or to one name per register if its lanes differ."""
        if isinstance(text, str):
            fresh = self.names.fresh(name)
            out.line(f"{fresh} = {unwrapped(text)}")
            return fresh
        many = len(text) > 1
        held = tuple(self.names.fresh(f"{name}_{k}" if many else name) for k in range(len(text)))
        for fresh, register in zip(held, text, strict=True):
            out.line(f"{fresh} = {unwrapped(register)}")
        return held

    def loop(self, loop: For, scope: Scope, out: Writer, ends: tuple[str, str] | None = None) -> None:
        """Write a loop; `scope` holds the carried values after it."""
        lower, upper = ends or self.ends(loop, scope)
        match self.plans[id(loop)] if scope.lanes is None else None:
            case VectorLoop() as plan:
                self.vector_loop(loop, plan, lower, upper, scope, out)
                return
            case TransposedLoops() as plan:
                emit_blocks(self, loop, plan, (lower, upper), scope, out)
                return
        loop = replace(loop, step=loop.step // loop.size, size=1)
        inside, carried = self.carry(loop.carried, scope, out)
        if inside.hoisted is not None:  # This loop may not run at all.
            inside = replace(inside, hoisted=replace(inside.hoisted, readable=frozenset()))
        self.plain_loop(loop, lower, upper, inside, carried, out)
        scope.held.update(carried)

    def ends(self, loop: For, scope: Scope) -> tuple[str, str]:
        """The lower and upper bounds of a loop."""
        near, far = ("max", "min") if loop.step > 0 else ("min", "max")
        return self.bound(loop.lower, near, scope), self.bound(loop.upper, far, scope)

    def bound(self, bounds: tuple[object, ...], which: str, scope: Scope) -> str:
        """The max or min of several bounds."""
        texts = [scope.index(bound) for bound in bounds]  # type: ignore[arg-type]
        return texts[0] if len(texts) == 1 else f"{which}({', '.join(texts)})"

    def carry(
        self, carried: tuple[Carried, ...], scope: Scope, out: Writer
    ) -> tuple[Scope, dict[str, Text | Partial]]:
        """Assign start values to fresh names; return the scope inside a loop, and the carried names."""
        held: dict[str, Text | Partial] = {}
        for each in carried:
            text = value_text(each.start, scope)
            if scope.lanes is not None and (each.start.shape or each.update.shape):
                text = spread(text, each.update.dtype, scope.lanes)
            held[each.name] = self.named(each.name, text, out)
        return replace(scope, held={**scope.held, **held}), held

    def plain_loop(
        self,
        loop: For,
        lower: str,
        upper: str,
        scope: Scope,
        carried: dict[str, Text | Partial],
        out: Writer,
        fill: str = "",
    ) -> None:
        """Write a `for` loop; `fill` is the name for its number of active lanes, "" if all are active."""
        index = self.names.fresh(loop.index)
        inside = replace(scope, indices={**scope.indices, loop.index: index})
        with out.block(f"for {index} in {range_text(lower, upper, loop.step)}:"):
            if fill and inside.lanes is not None:
                steps = f"{upper} - {index}" if loop.step > 0 else f"{index} - {upper}"
                out.line(f"{fill} = {least_steps_text(steps, abs(inside.lanes.step), inside.lanes.count)}")
            inside = self.statements(loop.body, inside, out)
            if not self.update(loop.carried, carried, inside, out) and not loop.body:
                out.line("pass")

    def update(
        self,
        carried: tuple[Carried, ...],
        held: dict[str, Text | Partial],
        scope: Scope,
        out: Writer,
    ) -> bool:
        """Write the assignments at the end of an iteration, in one statement: one value may read another.

        Values that do not change need no assignment. Returns whether there are any.
        """
        names: list[str] = []
        values: list[str] = []
        for each in carried:
            old, text = held[each.name], value_text(each.update, scope)
            if isinstance(old, str):
                if not isinstance(text, str):
                    raise KernelError(f"{each.name} starts as a number, but its update is a super-vector")
                names.append(old)
                values.append(unwrapped(text))
                continue
            if isinstance(old, Partial) or scope.lanes is None:
                raise AssertionError(f"emit: {each.name} holds lanes, but no vectorized loop carries it")
            lanes = scope.lanes
            for register, new in zip(old, spread(text, each.update.dtype, lanes), strict=False):
                kept = f"select(first_{lanes.count}({lanes.live}), {unwrapped(new)}, {register})"
                names.append(register)
                values.append(kept if lanes.live else unwrapped(new))
        pairs = [(n, v) for n, v in zip(names, values, strict=True) if n != v]
        if pairs:
            out.line(f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}")
        return bool(pairs)

    def vector_loop(
        self, loop: For, plan: VectorLoop, lower: str, upper: str, scope: Scope, out: Writer
    ) -> None:
        """Write full blocks of registers, then the tail."""
        loop, held = full_blocks(loop), scope.held
        step = loop.step // loop.size
        lanes = Lanes(loop.index, plan.lanes, plan.registers, step, fast=self.fast)
        block = lanes.count * lanes.registers
        first, last = self.bound_name(loop, lower, "lower", out), self.bound_name(loop, upper, "upper", out)
        streamed = next((s for s in loop.body if isinstance(s, Store) and s.array == plan.streamed), None)
        whole = self.names.fresh(f"{loop.index}_whole")
        if streamed is None:
            out.line(f"{whole} = {whole_text(first, last, step, block)}")
        hoisted, loops = self.hoisted(loop), Writer()
        inside, carried = self.carry(loop.carried, replace(scope, lanes=lanes), out)
        inside, scope = replace(inside, hoisted=hoisted), replace(scope, hoisted=hoisted)
        begin = first
        if streamed is not None:
            self.streamed.append(streamed.array)
            begin = head_loop(self, loop, streamed, (first, last), inside, loops)
            loops.line(f"{whole} = {whole_text(begin, last, step, block)}")
            inside = replace(inside, streamed=streamed)
        once = replace(loop, step=block * step, size=1)
        self.plain_loop(once, begin, whole, inside, carried, loops)
        if streamed is not None and lanes.registers > 1:
            whole = single_lines(self, loop, (whole, last), inside, loops)
        rest = tail_loops(self, loop, plan.tail, (first, whole, last), scope, lanes, carried, loops)
        with out.block(f"if {first} {'<' if step > 0 else '>'} {last}:") if hoisted.loads else nullcontext():
            out.lines(hoisted.out)
            out.lines(loops)
        for each in loop.carried:
            registers = carried[each.name]
            assert isinstance(registers, tuple)
            held[each.name] = Partial(registers, rest.get(each.name, ""))

    def hoisted(self, loop: For) -> Hoisted:
        """The code to hoist before a loop: addresses of rows, and elements of arrays that it only reads.

        If the loop carries values, elements are not hoisted: the values must exist even if no iteration runs.
        """
        moving = {loop.index} | {s.index for s in flat(loop.body) if isinstance(s, For)}
        arrays = {load.array for value in values(loop.body) for load in loads(value)}
        readable = arrays - stored(loop.body) if not loop.carried else set()
        return Hoisted(self.names, Writer(), frozenset(moving), frozenset(readable))

    def bound_name(self, loop: For, bound: str, what: str, out: Writer) -> str:
        """A bound as a name or a number, because it is used more than once."""
        if bound.isidentifier() or bound.isdigit():
            return bound
        name = self.names.fresh(f"{loop.index}_{what}")
        out.line(f"{name} = {bound}")
        return name
