"""The loops of a kernel as a tree, and every access to an array in the order in which it takes place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen.ir.index import Affine, Index, Sum, index_symbols
from codegen.ir.nodes import Carried, For, Let, Load, Op, Reduce, Statement, Store, Value


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, its number in the order of the text, and the loops right inside."""

    number: int
    node: For
    inside: tuple[Loop, ...]

    def all(self) -> Iterator[Loop]:
        """This loop and every loop inside, as the text has them."""
        yield self
        for loop in self.inside:
            yield from loop.all()


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store. place: its turn within the kernel; loops: those around it, outermost first."""

    array: str
    subscripts: tuple[Index, ...]
    stores: bool
    place: int
    loops: tuple[Loop, ...]

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.subscripts))}]"


def loops_of(body: tuple[Statement, ...]) -> tuple[Loop, ...]:
    """The outermost loops of a body, with all that is inside, numbered from 0."""
    return _tree(body, 0)[0]


def _tree(body: tuple[Statement, ...], number: int) -> tuple[tuple[Loop, ...], int]:
    found: list[Loop] = []
    for node in body:
        if isinstance(node, For):
            inside, after = _tree(node.body, number + 1)
            found.append(Loop(number, node, inside))
            number = after
    return tuple(found), number


def around(root: Loop, number: int) -> tuple[int, ...]:
    """The numbers of the loops from the root to this one."""
    if root.number == number:
        return (number,)
    for each in root.inside:
        found = around(each, number)
        if found:
            return (root.number, *found)
    return ()


def accesses_of(body: tuple[Statement, ...], loops: tuple[Loop, ...]) -> tuple[Access, ...]:
    """Every access of a body whose outermost loops are `loops`; loads of a statement before its store."""
    found: list[Access] = []
    _collect(body, loops, (), found)
    return tuple(found)


def _collect(
    body: tuple[Statement, ...], inside: tuple[Loop, ...], around: tuple[Loop, ...], found: list[Access]
) -> None:
    loops = iter(inside)

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
                if node.accumulate:
                    found.append(Access(array, subscripts, False, len(found), around))
                found.append(Access(array, subscripts, True, len(found), around))
            case For():
                loop = next(loops)
                for carried in node.carried:
                    read(carried.start, around)
                _collect(node.body, loop.inside, (*around, loop), found)
                for carried in node.carried:
                    read(carried.update, (*around, loop))


def parts(value: Value) -> Iterator[Value]:
    """A value and all that it is made of, operands before what uses them."""
    match value:
        case Op():
            for operand in value.operands:
                yield from parts(operand)
        case Reduce():
            yield from parts(value.vector)
            yield from parts(value.start)
    yield value


def loads(value: Value) -> Iterator[Load]:
    """The loads of a value."""
    return (part for part in parts(value) if isinstance(part, Load))


def values_of(body: tuple[Statement, ...]) -> Iterator[Value]:
    """Every value that a body names, stores or carries, outermost expressions only."""
    for node in body:
        match node:
            case Let(_, value):
                yield value
            case Store():
                yield from node.values
            case For():
                yield from carried_values(node.carried)
                yield from values_of(node.body)


def carried_values(carried: tuple[Carried, ...]) -> Iterator[Value]:
    """What carried locals begin with and become."""
    for each in carried:
        yield each.start
        yield each.update


def coefficient(index: Index, symbol: str) -> int | None:
    """How far an expression goes when a symbol goes by one; None where that differs from place to place."""
    match index:
        case Affine():
            return index.coefficient(symbol)
        case Sum(pieces, rest):
            return (
                None
                if any(symbol in index_symbols(piece) for piece, _ in pieces)
                else rest.coefficient(symbol)
            )
        case _:
            return None if symbol in index_symbols(index) else 0


def constant_trips(node: For) -> int | None:
    """How many iterations a scalar loop has, where its bounds are numbers."""
    if not all(isinstance(b, Affine) and not b.terms for b in (*node.lower, *node.upper)):
        return None
    starts = [b.constant for b in node.lower if isinstance(b, Affine)]
    ends = [b.constant for b in node.upper if isinstance(b, Affine)]
    near, far = (max, min) if node.step > 0 else (min, max)
    return trips_between(near(starts), far(ends), node.step)


def most_trips(node: For) -> int | None:
    """How many iterations a loop has at most, where an end is a number away from a start.

    for j in i..i + 3 -> 3    for j in 0..min(n, 8) -> 8    for j in 0..n -> None
    """
    spans = [e - s for s in node.lower for e in node.upper if isinstance(s, Affine) and isinstance(e, Affine)]
    return min((trips_between(0, far.constant, node.step) for far in spans if not far.terms), default=None)


def trips_between(begin: int, end: int, step: int) -> int:
    """How many numbers `range(begin, end, step)` has; Python's `len` knows of none beyond 2**63 - 1.

    0, 10, 3 -> 4    0, 2**70, 1 -> 2**70    5, 0, 1 -> 0
    """
    return max(0, -((begin - end) // step))
