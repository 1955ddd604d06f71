"""Split super-vectors into registers, and unroll the statements over them."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import flat
from codegen.ir.combiners import scans_by
from codegen.ir.index import Affine, index_symbol
from codegen.ir.nodes import Carried, For, Function, If, Let, Statement, Store
from codegen.ir.rewriting import substituted
from codegen.ir.values import IndexValue, Local, Op, Value
from codegen.passes.block_values import BlockValues
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.register_scans import scanned
from codegen.passes.register_scope import Lanes, Registers, Scope, spread
from codegen.passes.register_values import offset_of, registers_of
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError
from codegen.support.lookups import expect


def split_registers(function: Function, _: LoopSchedule) -> Function:
    """Run each statement of a loop over super-vectors once for each register.

    before:  for j in 0..j_whole step 32: t = A[4*j] [32]; C[4*j] = t * broadcast(x)         16 lanes
    after:   for j in 0..j_whole step 32: t_0 = A[4*j] [16]; t_1 = A[4*j + 64] [16]
                                          C[4*j] = t_0 * broadcast(x); C[4*j + 64] = t_1 * broadcast(x)

    The lanes of a tail are those of a single register, of which `first` are active. A loop of one iteration
    becomes its body.
    """
    return replace(function, body=tuple(_Split(NewNames("lanes")).body(function.body, Scope())))


@dataclass(frozen=True, slots=True)
class _Split:
    names: NewNames

    def body(self, body: tuple[Statement, ...], scope: Scope) -> list[Statement]:
        """The statements of a body; `scope.held` records the values that they assign."""
        out: list[Statement] = []
        for statement in body:
            match statement:
                case For():
                    out += self.loop(statement, scope)
                case Let(name, Op("with_register", (vector, first))):
                    registers = registers_of(vector, scope)
                    (new,) = registers_of(first, scope)  # type: ignore[misc]
                    scope.held[name] = (new, *registers[1:])  # type: ignore[index]
                case Let(name, Op(given, (terms,), _, (_,))) if scope.lanes and (how := scans_by(given)):
                    found = registers_of(terms, scope)
                    scope.held[name] = scanned(name, how, found, scope.lanes, self.names, out)
                case Let(name, value):
                    scope.held[name] = self.named(name, registers_of(value, scope), out)
                case Store():
                    out += self.store(statement, scope)
                case If(tests, then, otherwise):
                    held = dict(scope.held)
                    bodies = (self.body(b, replace(scope, held=dict(held))) for b in (then, otherwise))
                    out.append(If(tests, *map(tuple, bodies)))
                case _:
                    out.append(statement)
        return out

    def named(self, name: str, value: Registers, out: list[Statement]) -> Registers:
        """Assign a value to its name, or to one name per register if its lanes differ."""
        if not isinstance(value, tuple):
            out.append(Let(name, value))
            return Local(name, value.dtype)
        held = self.register_names(name, value)
        out += [Let(local.name, each) for local, each in zip(held, value, strict=True)]
        return held

    def register_names(self, name: str, values: tuple[Value, ...]) -> tuple[Local, ...]:
        many = len(values) > 1
        return tuple(
            Local(self.names.name(f"{wanted(name)}_{k}" if many else wanted(name)), each.dtype, each.shape)
            for k, each in enumerate(values)
        )

    def loop(self, loop: For, scope: Scope) -> list[Statement]:
        """A loop, which assigns the locals that it carries."""
        match loop.body:
            case (For(lanes=count) as inner,) if loop.lanes and count:
                return self.block(loop, inner, scope)
        if loop.size > 1:
            step = loop.step // loop.size
            live = index_symbol(loop.live) if loop.live else None
            scope = replace(scope, lanes=Lanes(loop.index, loop.lanes, loop.size // loop.lanes, step, live))
        elif scope.lanes is None and (blocks := _carries_blocks(loop)):
            scope = replace(scope, lanes=blocks)
        inside = replace(scope, held=dict(scope.held))
        starts = [self.started(each, scope, inside) for each in loop.carried]
        body = self.body(loop.body, inside)
        carried: list[Carried] = []
        for each, start in zip(loop.carried, starts, strict=True):
            held = scope.held[each.name] = inside.held[each.name]
            carried += _carried(each, start, held, registers_of(each.update, inside), inside.lanes)
        return [replace(loop, body=tuple(body), carried=tuple(carried), size=1, lanes=0, live="")]

    def started(self, each: Carried, scope: Scope, inside: Scope) -> Registers:
        """The start of a carried value; the scope inside the loop gets its locals."""
        match each.start:
            case Op("register", (vector,)):
                first = inside.held[each.name] = registers_of(vector, scope)[:1]  # type: ignore[index]
                return first
        start = registers_of(each.start, scope)
        if scope.lanes is not None and (each.start.shape or each.update.shape):
            start = spread(start, scope.lanes)
        if isinstance(start, tuple):
            inside.held[each.name] = self.register_names(each.name, start)
        else:
            inside.held[each.name] = Local(each.name, start.dtype)
        return start

    def block(self, rows: For, inner: For, scope: Scope) -> list[Statement]:
        """A square block of two loops, of which the outer one runs once: its iterations are the rows."""
        (inner,) = _from_start(rows).body  # type: ignore[assignment]
        values = BlockValues(rows.size, replace(scope, lanes=None), self.names)
        return [replace(inner, body=values.body(inner.body), size=1, lanes=0)]

    def store(self, store: Store, scope: Scope) -> list[Statement]:
        """The store of one element, or one store for each register; a single mask becomes a branch.

        Raises:
            KernelError: all lanes would be stored to the same element.
        """
        value, lanes = registers_of(store.value, scope), scope.lanes
        where = None if store.where is None else registers_of(store.where, scope)
        if store.offsets is not None:
            return _scattered(store, value, where, registers_of(store.offsets, scope), lanes)
        if lanes is None or not store.steps or store.steps[0] == 0:
            if isinstance(value, tuple) or isinstance(where, tuple):
                raise KernelError(f"all lanes would be stored to the same element of {store.array}")
            return _where(where, [replace(store, value=value, steps=(), where=None)])
        masks = where if isinstance(where, tuple) else None
        out: list[Statement] = []
        for register, each in enumerate(spread(value, lanes)):
            out.append(
                replace(
                    store,
                    subscripts=tuple(lanes.shifted(s, register) for s in store.subscripts),
                    value=each,
                    first=lanes.live if masks is None else None,
                    where=None if masks is None else _active(masks[register], lanes),
                    streamed=store.streamed and masks is None and lanes.live is None,
                )
            )
        return _where(None if isinstance(where, tuple) else where, out)


def _scattered(
    store: Store, value: Registers, where: Registers | None, offsets: Registers, lanes: Lanes | None
) -> list[Statement]:
    """Stores of registers whose lanes have offsets of their own, or of a number at its offset."""
    if not isinstance(offsets, tuple):
        assert not isinstance(value, tuple), "expected one offset for one number"
        at = (*store.subscripts, offset_of(offsets))
        one = replace(store, subscripts=at, value=value, steps=(), where=None, offsets=None)
        return _where(where, [one])  # type: ignore[arg-type]
    assert lanes is not None, "expected registers inside lanes"
    masks = spread(where, lanes) if isinstance(where, tuple) else None
    out: list[Statement] = [
        replace(
            store,
            value=each,
            steps=(),
            first=lanes.live if masks is None else None,
            where=None if masks is None else _active(masks[register], lanes),
            offsets=offsets[register],
        )
        for register, each in enumerate(spread(value, lanes))
    ]
    return _where(None if isinstance(where, tuple) else where, out)


def _where(test: Value | None, body: list[Statement]) -> list[Statement]:
    return body if test is None else [If((test,), tuple(body))]


def _first(lanes: Lanes) -> Value:
    """The active lanes."""
    assert lanes.live is not None
    return Op("first", (IndexValue(lanes.live),), "i1", lanes.shape)


def _active(mask: Value, lanes: Lanes) -> Value:
    return mask if lanes.live is None else Op("and", (mask, _first(lanes)), "i1", lanes.shape)


def _carried(
    each: Carried, start: Registers, held: Registers, update: Registers, lanes: Lanes | None
) -> list[Carried]:
    """A carried number, or one for each register."""
    if not isinstance(held, tuple):
        if isinstance(update, tuple) or isinstance(start, tuple):
            raise KernelError(f"{each.name} starts as a number, but its update is a super-vector")
        assert isinstance(held, Local)
        return [replace(each, name=held.name, start=start, update=update)]
    assert lanes is not None, f"{each.name} holds lanes, but no vectorized loop carries it"
    assert isinstance(start, tuple)
    made: list[Carried] = []
    for local, begin, new in zip(held, start, spread(update, lanes), strict=False):
        assert isinstance(local, Local)
        if lanes.live is not None:
            new = Op("select", (_first(lanes), new, local), new.dtype, new.shape)
        made.append(replace(each, name=local.name, start=begin, update=new))
    return made


def _carries_blocks(loop: For) -> Lanes | None:
    """The registers that a loop over strips carries: those of the blocks in it."""
    shapes = [c.start.shape for c in loop.carried if c.start.shape]
    if not shapes:
        return None
    (block,) = shapes[0]
    inner = (s.lanes for s in flat(loop.body) if isinstance(s, For) and s.lanes)
    lanes = expect(inner, "a loop of lanes", f"the loop over {loop.index}")
    return Lanes(loop.index, lanes, block // lanes, 0)


def _from_start(loop: For) -> For:
    """A loop of one iteration, whose index is the symbol that it starts at."""
    (start,) = loop.lower
    assert isinstance(start, Affine), "a loop that runs once starts at a symbol"
    ((name, _),) = start.terms
    return replace(loop, index=name, body=tuple(substituted(s, loop.index, start) for s in loop.body))
