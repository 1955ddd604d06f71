"""Remove what literal sizes decide: tests, loops that run once or never, and arithmetic of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from math import gcd
from typing import TypeAlias

from codegen.ir.building import minus
from codegen.ir.index import (
    Affine,
    Bitwise,
    FloorDiv,
    Greatest,
    Index,
    Least,
    Mod,
    index_symbol,
    index_symbols,
    map_parts,
    rename_index,
    substitute_index,
)
from codegen.ir.instructions import instruction
from codegen.ir.integer_operators import bitwise, floor_div, modulo, number_in
from codegen.ir.names import names_of
from codegen.ir.nodes import Call, Compare, For, Function, If, Let, Statement, View
from codegen.ir.rewriting import (
    Body,
    map_indices,
    map_value,
    map_values,
    on_buffers,
    rewrite_body,
    substituted,
)
from codegen.ir.values import IndexValue, Local, Value
from codegen.ir.visit import most_trips, parts
from codegen.support.dataclasses import dataclass

RELATIONS = {"lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1), "eq": (0,), "ne": (-1, 1)}
"""The signs of left - right for which each relation holds."""


def simplify(function: Function, _: object = None) -> Function:
    """Evaluate numbers, take branches whose tests are decided, and unroll loops of at most one iteration.

    Calls for no element, unused addresses, and limits that the index of a loop never exceeds are removed as
    well.

    before:  if dst % 64 == 0 and 512 % 64 == 0: …
             elif 512 >= 256: for x in 0..336 // 64 * 64 step 512: dst[x] = src[x] [64]
             else: …
    after:   if dst % 64 == 0: …
             else: dst[0] = src[0] [64]
    """
    taken = set(chain.from_iterable(map(_assigned, function.body)))
    body = _Simplify(taken).body(function.body, {})
    results = (part.name for value in function.results for part in parts(value) if isinstance(part, Local))
    used = {*names_of(body), *results}
    return replace(function, body=rewrite_body(body, lambda node: _where_used(node, used)))


Tests: TypeAlias = frozenset[Compare]
"""Comparisons that hold."""


@dataclass(frozen=True, slots=True)
class _Simplify:
    """The pass over a function; `taken` are the names that it assigns."""

    taken: set[str]

    def body(
        self,
        body: Body,
        known: Mapping[str, Affine],
        outer: frozenset[str] = frozenset(),
        holding: Tests = frozenset(),
    ) -> Body:
        """A body, given the numbers and symbols that names stand for.

        outer    the names that are assigned around it
        holding  the tests around it, which hold
        """
        made, numbers, visible = list[Statement](), dict(known), set(outer)
        for k, node in enumerate(body):
            assigned = set(_assigned(node))
            changed = assigned | ({node.index} if isinstance(node, For) else set())
            numbers = {name: x for name, x in numbers.items() if not changed & {name, *index_symbols(x)}}
            holding = frozenset(test for test in holding if not changed & _symbols(test))
            node, later = _evaluated(node, numbers), body[k + 1 :]
            simple = self.decided(node, numbers, frozenset(visible), holding)
            own, others = _own(simple), visible.union(*map(_assigned, later))
            if isinstance(node, If):  # a branch may assign a name again for what follows
                again = others.intersection(own) & (outer | {*names_of(later)})
                simple = (node,) if again or len(own) > len(set(own)) else self.apart(simple, others)
            elif isinstance(node, For) and not node.carried:
                simple = self.apart(simple, others)
            made += simple
            visible.update(_own(simple))
            for each in simple:
                match each:
                    case Let(name, IndexValue(Affine(_, terms) as index, shape=())):
                        if not terms or index == index_symbol(terms[0][0]):
                            numbers[name] = index
        return tuple(made)

    def apart(self, body: Body, others: set[str]) -> Body:
        """Statements of a branch or a loop, with new names for those that statements beside them assign."""
        names: dict[str, str] = {}
        for name in _own(body):
            if name in others:
                free = (f"{name}_{k}" for k in count(2) if f"{name}_{k}" not in self.taken)
                names[name] = next(free)
                self.taken.add(names[name])
        return tuple(_renamed(node, names) for node in body) if names else body

    def decided(
        self, node: Statement, numbers: Mapping[str, Affine], outer: frozenset[str], holding: Tests
    ) -> Body:
        """A statement without what numbers decide."""
        match node:
            case If():
                return self.branch(node, numbers, outer, holding)
            case For():
                return self.iterated(node, numbers, outer, holding)
            case Call(name, operands) if (counts := instruction(name).active) is not None:
                number = operands[counts.operand]
                return () if isinstance(number, Affine) and number_in(number) == 0 else (node,)
        return (node,)

    def branch(self, node: If, numbers: Mapping[str, Affine], outer: frozenset[str], holding: Tests) -> Body:
        """A branch without decided tests, or the statements that run."""
        results = [
            (test in holding or _holds(test)) if isinstance(test, Compare) else None for test in node.tests
        ]
        here = holding.union(test for test in node.tests if isinstance(test, Compare))
        then = self.body(node.body, numbers, outer, here)
        otherwise = self.body(node.otherwise, numbers, outer, holding)
        if False in results:
            return otherwise
        unknown = tuple(test for test, holds in zip(node.tests, results, strict=True) if holds is None)
        if not unknown or then == otherwise:
            return then
        return (If(unknown, then, otherwise),)

    def iterated(
        self, loop: For, numbers: Mapping[str, Affine], outer: frozenset[str], holding: Tests
    ) -> Body:
        """A loop; its body if it runs once, under a test if at most once, and what it carries if never."""
        trips = most_trips(loop)
        if trips == 0:
            carried = (c for c in loop.carried if c.start != Local(c.name, c.start.dtype, c.start.shape))
            return tuple(Let(c.name, c.start) for c in carried)
        if trips == 1 and len(loop.lower) == 1 and not loop.carried and not loop.live and loop.size == 1:
            (first,) = loop.lower
            once = tuple(substituted(each, loop.index, first) for each in loop.body)
            tests = tuple(Compare(first, "lt" if loop.step > 0 else "gt", upper) for upper in loop.upper)
            return self.branch(If(tests, once), numbers, outer, holding)
        body = loop.body
        if (top := _largest(loop, trips)) is not None:
            body = tuple(map_indices(node, lambda index: _below(index, loop.index, top)) for node in body)
            body = rewrite_body(body, lambda node: (_bounded(node, loop.index, top),))
        return (replace(loop, body=self.body(body, numbers, outer, holding)),)


def _largest(loop: For, trips: int | None) -> int | None:
    """The largest index of a loop whose bounds are numbers; None for others."""
    first, end = (number_in(x[0]) if len(x) == 1 else None for x in (loop.lower, loop.upper))
    if first is None or end is None or not trips:
        return None
    return max(first, first + (trips - 1) * loop.step)


def _bounded(node: Statement, name: str, top: int) -> Statement:
    """A loop without ends that an index of at most `top` never reaches; other statements as they are."""
    if not isinstance(node, For) or node.step < 0:
        return node
    return replace(node, upper=_nearest(node.upper, name, top))


def _below(index: Index, name: str, top: int) -> Index:
    """An expression without limits that an index never exceeds: min(j, 12) -> j for j of at most 12."""
    index = map_parts(index, lambda part: _below(part, name, top))
    if not isinstance(index, Least):
        return index
    kept = _nearest(index.of, name, top)
    return kept[0] if len(kept) == 1 else Least(kept)


def _nearest(limits: tuple[Index, ...], name: str, top: int) -> tuple[Index, ...]:
    """Limits without numbers that another one never exceeds: (j + 4, 16) -> (j + 4,) for j of at most 12."""
    sums = (x.constant for x in limits if isinstance(x, Affine) and x.terms == ((name, 1),))
    most = min((top + constant for constant in sums), default=None)
    return tuple(x for x in limits if most is None or (n := number_in(x)) is None or n < most)


def _symbols(test: Compare) -> set[str]:
    return index_symbols(test.left) | index_symbols(test.right)


def _own(body: Body) -> list[str]:
    """The names that the statements of a body assign, without those inside them."""
    return [node.name for node in body if isinstance(node, Let | View)]


def _renamed(node: Statement, names: Mapping[str, str]) -> Statement:
    """A statement with other names for locals and addresses."""

    def value(part: Value) -> Value:
        return replace(part, name=names.get(part.name, part.name)) if isinstance(part, Local) else part

    node = map_indices(node, lambda index: rename_index(index, names))
    node = map_values(node, lambda found: map_value(found, value))
    (node,) = rewrite_body((node,), lambda inner: (on_buffers(inner, names),))
    return replace(node, name=names.get(node.name, node.name)) if isinstance(node, Let | View) else node


def _assigned(node: Statement) -> Iterator[str]:
    """The names that a statement assigns, and those inside it."""
    match node:
        case Let(name) | View(name):
            yield name
        case For(body=body, carried=carried):
            yield from (each.name for each in carried)
            yield from chain.from_iterable(map(_assigned, body))
        case If(_, then, otherwise):
            yield from chain.from_iterable(map(_assigned, (*then, *otherwise)))


def _evaluated(node: Statement, numbers: Mapping[str, Affine]) -> Statement:
    """A statement with the numbers and symbols of known names, in which arithmetic of numbers is a number."""

    def change(index: Index) -> Index:
        for name in index_symbols(index) & numbers.keys():
            index = substitute_index(index, name, numbers[name])
        return evaluated(index)

    return map_indices(node, change)


def evaluated(index: Index) -> Index:
    """An expression in which arithmetic of numbers is a number."""
    index = map_parts(index, evaluated)
    match index:
        case FloorDiv(of, by) if number_in(of) is not None:
            return floor_div(of, by)
        case FloorDiv(Affine(constant, terms), by):
            common = gcd(by, constant, *(factor for _, factor in terms))
            fewer = Affine(constant // common, tuple((name, factor // common) for name, factor in terms))
            return FloorDiv(fewer, by // common) if common < by else fewer
        case Mod(of, by) if number_in(of) is not None:
            return modulo(of, by)
        case Bitwise(name, left, right) if number_in(left) is not None and number_in(right) is not None:
            return bitwise(name, left, right)
        case Least(several):
            return _extreme(several, Least, min)
        case Greatest(several):
            return _extreme(several, Greatest, max)
    return index


def _extreme(
    several: tuple[Index, ...], kind: type[Least | Greatest], chosen: Callable[[int, int], int]
) -> Index:
    """The minimum or maximum of expressions, without those that another one always exceeds or undercuts."""
    found: list[Index] = []
    for each in several:
        others = [(k, minus(each, known)) for k, known in enumerate(found)]
        k, apart = next(((k, n) for k, d in others if (n := number_in(d)) is not None), (None, 0))
        if k is None:
            found.append(each)
        elif chosen(apart, 0) == apart:
            found[k] = each
    return found[0] if len(found) == 1 else kind(tuple(found))


def _where_used(node: Statement, used: set[str]) -> Body:
    """A statement; nothing if it is a name for an address or a number that none uses."""
    match node:
        case View(name) | Let(name, IndexValue()) if name not in used:
            return ()
    return (node,)


def _holds(test: Compare) -> bool | None:
    """Whether a comparison holds; None if that depends on symbols."""
    apart = number_in(minus(test.left, test.right))
    if apart is None:
        return None
    return (apart > 0) - (apart < 0) in RELATIONS[test.relation]
