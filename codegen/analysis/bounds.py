"""Prove, before a kernel runs, that every access stays inside its arrays.

Once sizes are numbers, the bounds of loops and the subscripts are linear in the loop indices, so `polyhedra`
gives the least and the largest value of a subscript. A floor division becomes a new index between two bounds.
The check is conservative: it rejects every access that may be outside, and every access or statement without
a rule.

Kernels compute with 64-bit integers, which wrap around. Sums and products that do so are harmless if the
final result fits, but the bounds of loops and the dividends of divisions must fit too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from codegen.analysis.linear import linear, loop_index
from codegen.analysis.ranges import Ends
from codegen.analysis.unknowns import Unknowns
from codegen.ir.index import Affine, Index, depends_on_elements
from codegen.ir.nodes import Call, Compare, For, Function, If, Let, Prefetch, Statement, Store
from codegen.ir.values import Load
from codegen.ir.visit import element_loads, loads
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError, KernelIndexError

Access: TypeAlias = Load | Store

FARTHEST = 1 << 62
"""The farthest ends of loops: the indices of tiles and of super-vectors may go as far beyond them."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The iterations that reach a statement.

    unknowns  the indices of the loops around it, and what is computed from them
    symbols   the meaning of indices, sizes and integer arguments, over unknowns
    """

    unknowns: Unknowns
    symbols: dict[str, Affine]

    def copy(self) -> Domain:
        """The same iterations, for which further facts may be stated."""
        return Domain(self.unknowns.copy(), dict(self.symbols))

    def symbol(self, name: str) -> Affine:
        """The meaning of a symbol."""
        return self.symbols[name] if name in self.symbols else self.unknowns.size(name)

    def linear(self, index: Index) -> Affine:
        """An expression over unknowns."""
        return linear(index, self.unknowns, self.symbol)

    def extremes(self, index: Index) -> Ends:
        """The least and the largest value of an expression in these iterations; None if unknown."""
        return self.unknowns.extremes(self.linear(index))

    def number(self, name: str, ends: Ends = (None, None)) -> Index:
        """The symbol of a further number, of which the range is known."""
        number = self.unknowns.new(name, *ends)
        self.unknowns.expect_word(number)
        ((unique, _),) = number.terms
        self.symbols[unique] = number
        return number

    def inside(self, loop: For) -> Domain | None:
        """The iterations inside a loop that these iterations reach; None if there are none."""
        domain = self.copy()
        unknowns = domain.unknowns
        lower, upper = (
            [unknowns.word(domain.linear(bound), FARTHEST) for bound in bounds]
            for bounds in (loop.lower, loop.upper)
        )
        found = loop_index(loop.index, lower, upper, loop.step, unknowns)
        if found is None:
            return None
        index, _, entered = found
        if entered and unknowns.refutes(tuple(entered)):
            return None
        for row in entered:
            unknowns.suppose(row)
        unknowns.expect_word(index)
        domain.symbols[loop.index] = index
        return domain


def every_call(values: Mapping[str, int]) -> Domain:
    """The domain of the statements outside loops, in calls with such sizes and integer arguments."""
    return Domain(Unknowns(words=set()), {name: Affine(number) for name, number in values.items()})


def nested_accesses(function: Function) -> Iterator[tuple[tuple[For, ...], Access]]:
    """Every load and store with its enclosing loops, outermost first; those of both branches of an `If`.

    Raises:
        KernelError: a statement accesses flat buffers, whose accesses are not listed.
    """
    yield from _in_body(function.body, ())
    for value in function.results:
        yield from (((), load) for load in loads(value))


def _in_body(body: tuple[Statement, ...], loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Access]]:
    for statement in body:
        match statement:
            case For():
                inside = (*loops, statement)
                bounds = (*statement.lower, *statement.upper)
                yield from ((loops, load) for load in element_loads(bounds))
                for carried in statement.carried:
                    yield from ((loops, load) for load in loads(carried.start))
                yield from _in_body(statement.body, inside)
                for carried in statement.carried:
                    yield from ((inside, load) for load in loads(carried.update))
            case Let(_, value):
                yield from ((loops, load) for load in loads(value))
            case Store():
                yield from ((loops, load) for value in statement.values for load in loads(value))
                yield from ((loops, load) for load in element_loads(statement.subscripts))
                yield loops, statement
            case If(tests, then, otherwise):
                conditions = (test for test in tests if not isinstance(test, Compare))
                yield from ((loops, load) for value in conditions for load in loads(value))
                yield from _in_body(then, loops)
                yield from _in_body(otherwise, loops)
            case Prefetch(prefetched):
                # The prefetched address may be outside the storage, but its offsets are loaded.
                yield from ((loops, load) for load in loads(prefetched) if load is not prefetched)
            case Call(_, operands) if not any(isinstance(x, str) for x in operands):
                pass  # it has no buffer to access
            case _:
                raise KernelError(f"bounds: expected accesses of arrays, got a {_name(statement)}")


def _name(statement: Statement) -> str:
    return f"Call of {statement.instruction}" if isinstance(statement, Call) else type(statement).__name__


Nested: TypeAlias = tuple[tuple[For, ...], Access]
"""An access with its enclosing loops, outermost first."""


def check_bounds(
    function: Function, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, int]
) -> tuple[Nested, ...]:
    """Raise for calls of a scalar kernel that might access elements outside an array.

    A subscript below 0 is outside: subscripts do not wrap around. Both sides of `x if c else y` are read.

    Returns:
        The accesses that have elements of arrays among their subscripts, or among the bounds of their loops.
        These are not checked here: `IndexChecks` must check them before each call.

    Raises:
        KernelIndexError: an access may be outside; the message names the subscript and the range it may
            reach.
        KernelError: the function accesses flat buffers or super-vectors, whose bounds are not known here.
    """
    if function.buffers:
        raise KernelError(f"bounds: expected a kernel over arrays, got flat buffers in {function.name}")
    values = known_sizes(shapes, scalars)
    domains: dict[tuple[int, ...], Domain | None] = {}
    indexed: list[Nested] = []
    for loops, access in nested_accesses(function):
        if access.array not in shapes or _is_vector(access):
            raise KernelError(f"bounds: expected one element of an array, got {access_text(access)}")
        if bounded_by_elements(loops):
            indexed.append((loops, access))
            continue
        key = tuple(map(id, loops))
        if key not in domains:
            domains[key] = domain_of(loops, values)
        if depends_on_elements(*access.subscripts):
            indexed.append((loops, access))
        domain = domains[key]
        if domain is not None:
            _check_access(access, loops, domain, shapes[access.array])
    return tuple(indexed)


def bounded_by_elements(loops: Iterable[For]) -> bool:
    """Whether elements of arrays are among the bounds of loops: for k in range(ptr[i], ptr[i + 1])."""
    return any(depends_on_elements(*loop.lower, *loop.upper) for loop in loops)


def _is_vector(access: Access) -> bool:
    """Whether an access has lanes, whose addresses may differ from its subscripts."""
    if isinstance(access, Store):
        return bool(access.dims or access.along) or access.offsets is not None
    return bool(access.shape or access.dims or access.along) or access.offsets is not None


def access_text(access: Access) -> str:
    """A[i, j + 1]"""
    return f"{access.array}[{', '.join(map(str, access.subscripts))}]"


def line_text(loops: Sequence[For]) -> str:
    """The line of the innermost loop, for messages; "" if it is unknown."""
    return f" in the loop of line {loops[-1].line}" if loops and loops[-1].line else ""


def known_sizes(shapes: Mapping[str, Sequence[int]], scalars: Mapping[str, int]) -> dict[str, int]:
    """The values of the symbols of a call: {"A": (3, 5)}, {"n": 2} -> A.shape[0] 3, A.shape[1] 5, n 2"""
    sizes = {f"{name}.shape[{k}]": n for name, shape in shapes.items() for k, n in enumerate(shape)}
    return {**sizes, **scalars}


def _check_access(
    access: Access,
    loops: tuple[For, ...],
    domain: Domain,
    shape: tuple[int, ...],
) -> None:
    for dimension, (subscript, extent) in enumerate(zip(access.subscripts, shape, strict=True)):
        if depends_on_elements(subscript):
            continue
        number = domain.linear(subscript)
        if domain.unknowns.is_within(number, 0, extent - 1):
            continue
        reached = [str(n) if n is not None else "anything" for n in domain.unknowns.extremes(number)]
        raise KernelIndexError(
            f"{access_text(access)}{line_text(loops)} may leave the array: subscript {dimension} reaches "
            f"{reached[0]} to {reached[1]}, the extent is {extent}\n"
            "  shorten the loop or pass a larger array; subscripts below 0 do not wrap around here, and "
            "accesses under conditions also count"
        )


def extremes(index: Index, loops: tuple[For, ...], values: Mapping[str, int]) -> Ends:
    """The least and the largest value of an expression over the iterations of loops; None if unknown.

    (1, 0) if there are no iterations.
    """
    if depends_on_elements(index) or bounded_by_elements(loops):
        return None, None
    domain = domain_of(loops, values)
    return (1, 0) if domain is None else domain.extremes(index)


def domain_of(loops: tuple[For, ...], values: Mapping[str, int]) -> Domain | None:
    """The iterations inside the loops; None if they have none."""
    domain: Domain | None = every_call(values)
    for loop in loops:
        domain = None if domain is None else domain.inside(loop)
    return domain
