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
from typing import TypeAlias, TypeGuard

from codegen.analysis.bits import are_disjoint, is_empty, rows_of, with_divisions
from codegen.analysis.polyhedra import feasible, range_within
from codegen.ir.index import (
    Affine,
    Bitwise,
    FloorDiv,
    Index,
    Mod,
    Sum,
    depends_on_elements,
    index_symbol,
    map_parts,
)
from codegen.ir.integer_operators import bitwise
from codegen.ir.nodes import Call, Compare, For, Function, If, Let, Prefetch, Statement, Store
from codegen.ir.values import Load
from codegen.ir.visit import element_loads, loads
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError, KernelIndexError

Access: TypeAlias = Load | Store

MOST = (1 << 63) - 1
"""The largest number that kernels compute with."""

FARTHEST = 1 << 62
"""The farthest ends of loops: the indices of tiles and of super-vectors may go as far beyond them."""

_PART = "="
"""The prefix of the symbols of parts; no index has such a name."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The iterations that reach a statement: affine expressions that are nonnegative there."""

    constraints: tuple[Affine, ...] = ()


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
            _check_access(access, loops, domain, shapes[access.array], values)
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


def known_sizes(shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, int]) -> dict[str, int]:
    """The values of the symbols of a call: {"A": (3, 5)}, {"n": 2} -> A.shape[0] 3, A.shape[1] 5, n 2"""
    sizes = {f"{name}.shape[{k}]": n for name, shape in shapes.items() for k, n in enumerate(shape)}
    return {**sizes, **scalars}


def _check_access(
    access: Access,
    loops: tuple[For, ...],
    domain: Domain,
    shape: tuple[int, ...],
    values: Mapping[str, int],
) -> None:
    for dimension, (subscript, extent) in enumerate(zip(access.subscripts, shape, strict=True)):
        if depends_on_elements(subscript):
            continue
        low, high = extremes_in(domain, subscript, values)
        if low is not None and high is not None and (low > high or (low >= 0 and high < extent)):
            continue
        reached = [str(n) if n is not None else "anything" for n in (low, high)]
        raise KernelIndexError(
            f"{access_text(access)}{line_text(loops)} may leave the array: subscript {dimension} reaches "
            f"{reached[0]} to {reached[1]}, the extent is {extent}\n"
            "  shorten the loop or pass a larger array; subscripts below 0 do not wrap around here, and "
            "accesses under conditions also count"
        )


def extremes(
    index: Index, loops: tuple[For, ...], values: Mapping[str, int]
) -> tuple[int | None, int | None]:
    """The least and the largest value of an expression over the iterations of loops; None if unknown.

    (1, 0) if there are no iterations.
    """
    if depends_on_elements(index) or bounded_by_elements(loops):
        return None, None
    domain = domain_of(loops, values)
    return (1, 0) if domain is None else extremes_in(domain, index, values)


def extremes_in(domain: Domain, index: Index, values: Mapping[str, int]) -> tuple[int | None, int | None]:
    """The least and the largest value of an expression over some iterations; None if unknown."""
    constraints = list(domain.constraints)
    expression = _linear(_known(index, values), constraints)
    return range_within(expression, constraints)


def domain_of(loops: tuple[For, ...], values: Mapping[str, int]) -> Domain | None:
    """The constraints inside the loops; None if they have no iterations."""
    domain: Domain | None = Domain()
    for loop in loops:
        domain = None if domain is None else inside_loop(domain, loop, values)
    return domain


def inside_loop(domain: Domain, loop: For, values: Mapping[str, int]) -> Domain | None:
    """The constraints inside a loop that is in such a domain; None if it has no iterations."""
    constraints = list(domain.constraints)
    lower = [_known(bound, values) for bound in loop.lower]
    upper = [_known(bound, values) for bound in loop.upper]
    numbers = [
        [b.constant for b in ends if isinstance(b, Affine) and not b.terms and abs(b.constant) <= FARTHEST]
        for ends in (lower, upper)
    ]
    index = index_symbol(loop.index)
    if [len(lower), len(upper)] == list(map(len, numbers)):
        near, far = (max, min) if loop.step > 0 else (min, max)
        trips = range(near(numbers[0]), far(numbers[1]), loop.step)
        if not trips:
            return None
        constraints += [
            index - Affine(min(trips[0], trips[-1])),
            Affine(max(trips[0], trips[-1])) - index,
        ]
        return Domain(tuple(constraints))
    ends = [_linear(bound, constraints) for bound in (*lower, *upper)]
    for k, end in enumerate([_in_64_bits(end, constraints, FARTHEST) for end in ends]):
        beyond = (index - end) * (1 if loop.step > 0 else -1)
        constraints.append(beyond if k < len(lower) else beyond * -1 - Affine(1))
    return Domain(tuple(constraints)) if feasible((), constraints) else None


def _known(index: Index, values: Mapping[str, int]) -> Index:
    """An expression with known symbols replaced by their values."""
    match index:
        case Affine(constant, terms):
            number = constant + sum(c * values[name] for name, c in terms if name in values)
            return Affine(number, tuple((name, c) for name, c in terms if name not in values))
        case FloorDiv(of, by):
            inner = _known(of, values)
            return Affine(inner.constant // by) if _is_number(inner) else FloorDiv(inner, by)
        case Mod(of, by):
            inner = _known(of, values)
            return Affine(inner.constant % by) if _is_number(inner) else Mod(inner, by)
        case Bitwise(name, left, right):
            return bitwise(name, _known(left, values), _known(right, values))
        case Sum():
            return map_parts(index, lambda part: _known(part, values))
        case _:
            raise AssertionError(f"bounds: no rule for {type(index).__name__}")


def _is_number(index: Index) -> TypeGuard[Affine]:
    """Whether an expression is a number of 64 bits."""
    return isinstance(index, Affine) and not index.terms and _fits(index.constant, index.constant)


def _linear(index: Index, constraints: list[Affine]) -> Affine:
    """The expression with new symbols for quotients and combined bits, bounded by new constraints."""
    match index:
        case Affine():
            return index
        case FloorDiv(of, by) | Mod(of, by):
            exact = _linear(of, constraints)
            inner = _in_64_bits(exact, constraints)
            if inner != exact and by.bit_count() > 1:
                return inner  # Numbers that wrap around keep only remainders by powers of two.
            quotient = index_symbol(f"{_PART}{of} // {by}")
            rest = inner - quotient * by
            # Elimination over rationals does not know that the quotient is an integer.
            low, high = range_within(inner, constraints)
            constraints += [] if low is None else [quotient - Affine(low // by)]
            constraints += [] if high is None else [Affine(high // by) - quotient]
            constraints += [rest, Affine(by - 1) - rest]
            return quotient if isinstance(index, FloorDiv) else rest
        case Bitwise():
            return _combined(index, constraints)
        case Sum(parts, total):
            for part, factor in parts:
                total = total + _linear(part, constraints) * factor
            return total
        case _:
            raise AssertionError(f"bounds: no rule for {type(index).__name__}")


def _combined(index: Bitwise, constraints: list[Affine]) -> Affine:
    """The combined bits of two expressions, as a sum of them or as a new symbol."""
    exact = [_linear(side, constraints) for side in (index.left, index.right)]
    sides = [_in_64_bits(side, constraints) for side in exact]
    ranges = [range_within(side, constraints) for side in sides]
    if any(map(is_empty, ranges)):
        return Affine()  # Nothing is computed where the constraints cannot hold.
    if are_disjoint(index, ranges):
        return Affine() if index.operator == "and" else exact[0] + exact[1]
    result = index_symbol(f"{_PART}{index}")
    constraints += rows_of(index, result, sides, ranges)
    divided = with_divisions(index)
    if divided is not None and sides[0] == exact[0]:
        equal = result - _linear(divided, constraints)
        constraints += [equal, equal * -1]
    return result


def _in_64_bits(expression: Affine, constraints: list[Affine], most: int = MOST) -> Affine:
    """The expression as kernels compute it: a symbol without bounds if it may be beyond `most`."""
    is_symbol = not expression.constant and [c for _, c in expression.terms] == [1]
    is_number = is_symbol and not expression.terms[0][0].startswith(_PART)
    if is_number or _fits(*_rough_range(expression, constraints), most):
        return expression
    if _fits(*range_within(expression, constraints), most):
        return expression
    return index_symbol(f"{_PART}{expression} in 64 bits")


def _rough_range(expression: Affine, constraints: Iterable[Affine]) -> tuple[int | None, int | None]:
    """A range that may be too wide, from one constraint after another: without elimination, which is slow."""
    ends: dict[str, tuple[int | None, int | None]] = {}

    def largest(row: Affine, without: str = "") -> int | None:
        total = row.constant
        for name, c in row.terms:
            end = 0 if name == without else ends.get(name, (None, None))[c > 0]
            if end is None:
                return None
            total += c * end
        return total

    for row in constraints:
        for name, c in row.terms:
            rest, (low, high) = largest(row, name), ends.get(name, (None, None))
            if rest is None:
                continue
            end = -(rest // c) if c > 0 else rest // -c
            if c > 0:
                ends[name] = end if low is None else max(low, end), high
            else:
                ends[name] = low, end if high is None else min(high, end)
    negated = largest(expression * -1)
    return None if negated is None else -negated, largest(expression)


def _fits(low: int | None, high: int | None, most: int = MOST) -> bool:
    """Whether all numbers of a range are at most `most`, and those below zero at least as near."""
    return low is not None and high is not None and (low > high or (low >= -most - 1 and high <= most))
