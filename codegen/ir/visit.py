"""The loops of a kernel as a tree, and all array accesses in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from codegen.ir.index import (
    Affine,
    Index,
    Sum,
    Times,
    elements_in,
    evaluate_index,
    index_symbol,
    index_symbols,
)
from codegen.ir.nodes import Alloc, Call, Carried, Compare, For, If, Let, Prefetch, Statement, Store, View
from codegen.ir.values import IndexValue, Load, Op, Reduce, Value
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, its number in source order, and the loops directly inside it."""

    number: int
    node: For
    inside: tuple[Loop, ...]

    def all(self) -> Iterator[Loop]:
        """This loop and all loops inside it, in source order."""
        yield self
        for loop in self.inside:
            yield from loop.all()


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store. place: its position in execution order; loops: those around it, outermost first."""

    array: str
    subscripts: tuple[Index, ...]
    stores: bool
    place: int
    loops: tuple[Loop, ...]

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.subscripts))}]"


def loops_of(body: tuple[Statement, ...]) -> tuple[Loop, ...]:
    """The outermost loops of a body, with the loops inside them, numbered from 0."""
    return _tree(body, 0)[0]


def _tree(body: tuple[Statement, ...], number: int) -> tuple[tuple[Loop, ...], int]:
    found: list[Loop] = []
    for node in body:
        match node:
            case For():
                inside, after = _tree(node.body, number + 1)
                found.append(Loop(number, node, inside))
                number = after
            case If():
                inside, number = _tree((*node.body, *node.otherwise), number)
                found += inside
    return tuple(found), number


def around(root: Loop, number: int) -> tuple[int, ...]:
    """The numbers of the loops from the root to the loop with this number; empty if the root lacks it."""
    if root.number == number:
        return (number,)
    for each in root.inside:
        found = around(each, number)
        if found:
            return (root.number, *found)
    return ()


def accesses_of(body: tuple[Statement, ...], loops: tuple[Loop, ...]) -> tuple[Access, ...]:
    """All accesses of a body whose outermost loops are `loops`; a statement's loads precede its store.

    Instructions that access memory themselves are rejected, because their addresses are unknown.
    """
    found: list[Access] = []
    _collect(body, iter(loops), (), found)
    return tuple(found)


def _collect(
    body: tuple[Statement, ...], loops: Iterator[Loop], around: tuple[Loop, ...], found: list[Access]
) -> None:

    def read(value: Value, around: tuple[Loop, ...]) -> None:
        for load in loads(value):
            found.append(Access(load.array, load.subscripts, False, len(found), around))

    for node in body:
        match node:
            case Let(_, value):
                read(value, around)
            case Store(array, subscripts):
                for value in node.values:
                    read(value, around)
                for load in element_loads(subscripts):
                    found.append(Access(load.array, load.subscripts, False, len(found), around))
                if node.accumulate:
                    found.append(Access(array, subscripts, False, len(found), around))
                found.append(Access(array, subscripts, True, len(found), around))
            case For():
                loop = expect(loops, f"another loop for {node.index}", "a function")
                for carried in node.carried:
                    read(carried.start, around)
                _collect(node.body, iter(loop.inside), (*around, loop), found)
                for carried in node.carried:
                    read(carried.update, (*around, loop))
            case If(_, then, otherwise):
                for value in tested_values(node):
                    read(value, around)
                _collect(then, loops, around, found)
                _collect(otherwise, loops, around, found)
            case View() | Alloc() | Prefetch():
                pass
            case _:
                raise AssertionError(f"accesses_of: no rule for {type(node).__name__}")


def parts(value: Value) -> Iterator[Value]:
    """A value and all its subexpressions, operands before their users."""
    match value:
        case Op():
            for operand in value.operands:
                yield from parts(operand)
        case Reduce():
            yield from parts(value.vector)
            yield from parts(value.start)
        case Load(offsets=offsets) if offsets is not None:
            yield from parts(offsets)
    yield value


def loads(value: Value) -> Iterator[Load]:
    """The loads of a value, those of the elements that subscripts depend on before their users."""
    for part in parts(value):
        match part:
            case Load(_, subscripts):
                yield from element_loads(subscripts)
                yield part
            case IndexValue(index):
                yield from element_loads((index,))


def element_loads(subscripts: Iterable[Index]) -> Iterator[Load]:
    """The loads of the elements that subscripts depend on."""
    for subscript in subscripts:
        for element in elements_in(subscript):
            yield Load(element.array, element.subscripts, element.dtype)


def values_of(body: tuple[Statement, ...]) -> Iterator[Value]:
    """All values that a body names, stores, carries or tests; outermost expressions only."""
    for node in body:
        match node:
            case Let(_, value):
                yield value
            case Store():
                yield from node.values
            case For():
                yield from carried_values(node.carried)
                yield from values_of(node.body)
            case If(_, then, otherwise):
                yield from tested_values(node)
                yield from values_of(then)
                yield from values_of(otherwise)
            case View() | Alloc() | Prefetch() | Call():
                pass
            case _:
                raise AssertionError(f"values_of: no rule for {type(node).__name__}")


def tested_values(node: If) -> Iterator[Value]:
    """The values among the tests of an `If`; the others compare index expressions."""
    return (test for test in node.tests if not isinstance(test, Compare))


def carried_values(carried: tuple[Carried, ...]) -> Iterator[Value]:
    """The start and update values of carried locals."""
    for each in carried:
        yield each.start
        yield each.update


def coefficient(index: Index, symbol: str) -> int | None:
    """The change of an expression when a symbol grows by one; None if that change is not constant."""
    match index:
        case Affine():
            return index.coefficient(symbol)
        case Sum(terms, rest):
            return (
                None if any(symbol in index_symbols(term) for term, _ in terms) else rest.coefficient(symbol)
            )
        case _:
            return None if symbol in index_symbols(index) else 0


def distance(index: Index, symbol: str) -> int | str:
    """The change of an expression when a symbol grows by one, which may be a stride with a name.

    2*column + row_src * row: column -> 2, row -> row_src
    """
    for part, factor in index.parts if isinstance(index, Sum) else ((index, 1),):
        if isinstance(part, Times) and (part.of, factor) == (index_symbol(symbol), 1):
            return part.by
    change = coefficient(index, symbol)
    assert change is not None, f"expected strides, got {index}"
    return change


def constant_trips(node: For) -> int | None:
    """The number of iterations of a scalar loop; None if its bounds are not constants."""
    if not all(isinstance(b, Affine) and not b.terms for b in (*node.lower, *node.upper)):
        return None
    return trips_with(node, {})


def trips_with(node: For, values: Mapping[str, int]) -> int:
    """The number of iterations of a loop, given the values of the symbols in its bounds.

    Raises:
        KeyError: the value of a symbol is missing.
    """
    near, far = (max, min) if node.step > 0 else (min, max)
    first = near(evaluate_index(bound, values) for bound in node.lower)
    last = far(evaluate_index(bound, values) for bound in node.upper)
    return trips_between(first, last, node.step)


def most_trips(node: For) -> int | None:
    """The most iterations a loop can have, from ends at a constant distance from a start; None if unknown.

    for j in i..i + 3 -> 3    for j in 0..min(n, 8) -> 8    for j in 0..n -> None
    """
    spans = [e - s for s in node.lower for e in node.upper if isinstance(s, Affine) and isinstance(e, Affine)]
    return min((trips_between(0, far.constant, node.step) for far in spans if not far.terms), default=None)


def trips_between(begin: int, end: int, step: int) -> int:
    """The length of `range(begin, end, step)`; Python's `len` is limited to 2**63 - 1.

    0, 10, 3 -> 4    0, 2**70, 1 -> 2**70    5, 0, 1 -> 0
    """
    return max(0, -((begin - end) // step))
