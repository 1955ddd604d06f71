"""Loop-carried locals: their updates, with lets inlined, and the reductions among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.analysis.reductions import picked
from codegen.ir.nodes import COMBINERS, Carried, For, Let, Statement, Store
from codegen.ir.values import Load, Local, Op, Reduce, Value
from codegen.support.dataclasses import dataclass


def finish(
    statements: Sequence[Statement],
    names: Mapping[str, str],
    starts: Mapping[str, Value],
    updates: Mapping[str, Value],
) -> tuple[tuple[Statement, ...], tuple[Carried, ...]]:
    """A body and the locals it carries; `names` gives the name in the body of each local of the source.

    before:  let acc.1 = acc + A[i]        carried acc: acc.1
    after:                                 carried acc: acc + A[i], combiner "add"
    """
    body = list(statements)
    found = dict(updates)
    for name in names:
        while (inlined := _inline(found[name], body, found.values())) is not None:
            found[name] = inlined
        others = [update for other, update in found.items() if other != name]
        found[name] = _inlined_comparison(names[name], found[name], body, others)
    carried = []
    for name, given in names.items():
        update, combiner = _reduction(given, found[name], body, found.values())
        carried.append(Carried(given, starts[name], update, combiner))
    return tuple(body), tuple(carried)


def _inline(update: Value, body: list[Statement], updates: Iterable[Value]) -> Value | None:
    """Remove the let that an update refers to, and return its value; None if the let must stay."""
    if not isinstance(update, Local):
        return None
    for k, statement in enumerate(body):
        if not isinstance(statement, Let) or statement.name != update.name:
            continue
        loaded = {part.array for part in parts(statement.value) if isinstance(part, Load)}
        if _uses(update.name, body, updates) > 1 or loaded & set(_stored(body[k + 1 :])):
            return None
        del body[k]
        return statement.value
    return None


def _inlined_comparison(name: str, update: Value, body: list[Statement], others: list[Value]) -> Value:
    """A select by a comparison with the local itself, with the condition and the operands inlined.

    before:  let tested = A[i] > best; let best.1 = A[i]    best: best.1 if tested else best
    after:                                                  best: A[i] if A[i] > best else best
    """
    match update:
        case Op("select", (Local(tested), *_)) if any(
            isinstance(s, Let) and s.name == tested and name in _locals(s.value) for s in body
        ):
            for k, operand in enumerate(update.operands):
                inlined = _inline(operand, body, [*others, update]) or operand
                update = replace(update, operands=(*update.operands[:k], inlined, *update.operands[k + 1 :]))
    return update


def _reduction(
    name: str, update: Value, body: Sequence[Statement], updates: Iterable[Value]
) -> tuple[Value, str]:
    """The update and its combiner, "" if the local is not a reduction.

    acc + x -> "add"    acc - x -> acc + -x, "add"    (acc + x) + y -> "add"    acc + x if c else acc -> "add"
    x if x > acc else acc -> "max"
    """
    path = _Path(name, body, {})
    combiners = set(path.combiners(update))
    known = len(combiners) == 1 and combiners <= set(COMBINERS)
    if not known or any(_uses(local, body, updates) != times for local, times in path.met.items()):
        return update, ""
    if isinstance(update, Op) and update.name == "sub":
        one, two = update.operands
        update = Op("add", (one, Op("neg", (two,), two.dtype)), update.dtype)
    return update, combiners.pop()


@dataclass(frozen=True, slots=True)
class _Path:
    """The path from a carried local to its update.

    met   how often the local, and each let and loop on the path, is used on the path: no other use is allowed
    """

    name: str
    body: Sequence[Statement]
    met: dict[str, int]

    def combiners(self, value: Value) -> Iterator[str]:
        """The combiners on the path from the local to a value; "?" for any other use of the local."""
        match value:
            case Local(found):
                self.met[found] = self.met.get(found, 0) + 1
                if found != self.name and self.met[found] == 1:
                    yield from self.through(found)
            case Op("select", (Op(test, (a, b)), then, otherwise)) if (
                {then, otherwise} == {a, b} and Local(self.name, value.dtype) in (a, b) and a != b
            ):
                self.met[self.name] = self.met.get(self.name, 0) + 2
                yield picked(test, first=then == a)
                other = b if a == Local(self.name, value.dtype) else a
                yield from ("?",) if self.reaches(other) else ()
            case Op("select", (condition, then, otherwise)) if not self.reaches(condition):
                yield from self.combiners(then)
                yield from self.combiners(otherwise)
            case Op("sub", (one, two)) if not self.reaches(two):
                yield "add"
                yield from self.combiners(one)
            case Op(combiner, (one, two)) if combiner in COMBINERS and self.reaches(one) != self.reaches(two):
                yield combiner
                yield from self.combiners(one if self.reaches(one) else two)
            case _:
                yield "?"

    def through(self, local: str) -> Iterator[str]:
        """The combiners of a let, or of a local that an inner loop carries."""
        for statement in self.body:
            match statement:
                case Let(given, value) if given == local:
                    yield from self.combiners(value)
                    return
                case For():
                    for carried in statement.carried:
                        if carried.name == local:
                            yield carried.combiner or "?"
                            yield from self.combiners(carried.start)
                            return
        yield "?"

    def reaches(self, value: Value) -> bool:
        """Whether a value depends on the local, also through lets and inner loops."""
        return _reaches(value, self.name, self.body)


def _reaches(value: Value, name: str, body: Sequence[Statement]) -> bool:
    """Whether a value depends on a local, also through lets and inner loops."""
    seen: set[str] = set()
    pending = list(_locals(value))
    while pending:
        local = pending.pop()
        if local == name:
            return True
        if local in seen:
            continue
        seen.add(local)
        for statement in body:
            match statement:
                case Let(given, inner) if given == local:
                    pending += _locals(inner)
                case For():
                    for carried in statement.carried:
                        if carried.name == local:
                            pending += [*_locals(carried.start), *_locals(carried.update)]
    return False


def parts(value: Value) -> Iterator[Value]:
    """A value and all values inside it."""
    yield value
    match value:
        case Op(_, operands):
            for operand in operands:
                yield from parts(operand)
        case Reduce(_, vector, start):
            yield from parts(vector)
            yield from parts(start)


def _locals(value: Value) -> list[str]:
    return [part.name for part in parts(value) if isinstance(part, Local)]


def _stored(body: Sequence[Statement]) -> Iterator[str]:
    """The arrays that statements write."""
    for statement in body:
        match statement:
            case Store(array):
                yield array
            case For(body=inner):
                yield from _stored(inner)


def _values(body: Sequence[Statement]) -> Iterator[Value]:
    """Every value in statements."""
    for statement in body:
        match statement:
            case Let(_, value):
                yield value
            case Store():
                yield from statement.values
            case For(body=inner, carried=carried):
                yield from _values(inner)
                for each in carried:
                    yield each.start
                    yield each.update


def _uses(name: str, body: Sequence[Statement], updates: Iterable[Value]) -> int:
    """How often a local is used in a body and in the updates of carried locals.

    Uses inside the loop that carries the local itself do not count.
    """
    count = 0
    for statement in body:
        own = isinstance(statement, For) and any(c.name == name for c in statement.carried)
        if own:
            assert isinstance(statement, For), "has carried locals"
            values: Iterator[Value] = (c.start for c in statement.carried)
        else:
            values = _values([statement])
        count += sum(_locals(value).count(name) for value in values)
    return count + sum(_locals(value).count(name) for value in updates)
