"""Index expressions as linear expressions over unknowns, and the indices of loops as such unknowns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from codegen.analysis.bits import are_disjoint, bits_within, rows_of, with_divisions, zeros_below
from codegen.analysis.cases import Facts
from codegen.analysis.ranges import is_empty
from codegen.analysis.unknowns import Exclusive, Unknowns
from codegen.ir.index import (
    Affine,
    ArrayElement,
    Bitwise,
    FloorDiv,
    FromEnd,
    Greatest,
    Index,
    Inside,
    Least,
    Mod,
    Quotient,
    Sum,
    Times,
    affine,
    index_symbol,
)
from codegen.ir.integer_operators import bitwise
from codegen.support.errors import KernelError

Symbol: TypeAlias = Callable[[str], Affine]
"""The meaning of a symbol, over unknowns."""


def linear(index: Index, unknowns: Unknowns, symbol: Symbol, facts: Facts = ()) -> Affine:
    """An index expression over unknowns; quotients, remainders, minima and bits are unknowns with facts.

    i // 4 + 2*n, n = 5 -> q + 10, where i - 4*q is from 0 to 3

    Each element of an array is an unknown number, even if the same element occurs elsewhere.

    facts: what holds where a minimum or a quotient is computed.
    """

    def over_unknowns(part: Index) -> Affine:
        return linear(part, unknowns, symbol, facts)

    match index:
        case Affine(_, ()):
            return index
        case Affine(constant, terms):
            found: list[tuple[str, int]] = []
            for name, c in terms:
                known = symbol(name)
                constant += known.constant * c
                found += [(unknown, factor * c) for unknown, factor in known.terms]
            return affine(constant, found)
        case FloorDiv(of, by) | Mod(of, by):
            exact = over_unknowns(of)
            number = unknowns.word(exact)
            if number != exact and by.bit_count() > 1:
                # Numbers that wrap around keep only remainders by powers of two.
                return unknowns.new(str(index))
            return (unknowns.floor if isinstance(index, FloorDiv) else unknowns.remainder)(number, by)
        case Bitwise(_, left, right):
            return _combined(index, over_unknowns(left), over_unknowns(right), unknowns)
        case Times(of, name):
            return _product(over_unknowns(of), symbol(name), unknowns)
        case Quotient(of, name):
            return _quotient(unknowns.word(over_unknowns(of)), symbol(name), unknowns, facts)
        case Least(several):
            return unknowns.least(list(map(over_unknowns, several)), facts)
        case Greatest(several):
            return unknowns.greatest(list(map(over_unknowns, several)), facts)
        case ArrayElement() | FromEnd() | Inside():
            return unknowns.new(str(index))
        case Sum(parts, rest):
            total = over_unknowns(rest)
            for part, factor in parts:
                total = total + over_unknowns(part) * factor
            return total


def _combined(index: Bitwise, left: Affine, right: Affine, unknowns: Unknowns) -> Affine:
    """The combined bits of two expressions, as a sum or division of them or as an unknown."""
    found = bitwise(index.operator, left, right)
    if not isinstance(found, Bitwise):
        return linear(found, unknowns, index_symbol)
    key = "bits", found
    if key in unknowns.made:
        return unknowns.made[key]
    exact = left, right
    sides = unknowns.word(left), unknowns.word(right)
    ranges = [unknowns.extremes(side) for side in sides]
    if any(map(is_empty, ranges)):
        return Affine()  # Nothing is computed where the facts cannot hold.
    if are_disjoint(exact, ranges):
        return Affine() if index.operator == "and" else left + right
    low, high = bits_within(index.operator, *ranges)
    zeros = (max if index.operator == "and" else min)(map(zeros_below, exact))
    least, most = None if low is None else -(-low >> zeros), None if high is None else high >> zeros
    result = unknowns.made[key] = unknowns.new(str(found), least, most) * (1 << zeros)
    rows = rows_of(index.operator, result, sides, ranges)
    divided = with_divisions(found)
    if divided is not None and sides == exact:
        unknowns.define(result, rows, zero=(result - linear(divided, unknowns, index_symbol),))
        return result
    if index.operator == "xor":
        unknowns.exclusive.append(Exclusive((index.left, index.right), sides, result))
    for side, (low, high) in zip(sides, reversed(ranges), strict=True):
        if index.operator != "and" and low is not None and high is not None and low >= 0:
            size = 1 << high.bit_length()
            above = unknowns.floor(side, size) * size  # the other side does not change these bits
            rows += [result - above, above + Affine(size - 1) - result]
    unknowns.define(result, rows)
    return result


def _product(one: Affine, two: Affine, unknowns: Unknowns) -> Affine:
    """A product; unless one factor is a number, only the range of the product is known."""
    for a, b in ((one, two), (two, one)):
        if not b.terms:
            return a * b.constant
    (low, high), (least, most) = unknowns.range(one), unknowns.range(two)
    if low is None or high is None or least is None or most is None:
        return unknowns.new(f"({one}) * ({two})")
    ends = low * least, low * most, high * least, high * most
    return unknowns.new(f"({one}) * ({two})", min(ends), max(ends))


def _quotient(of: Affine, by: Affine, unknowns: Unknowns, facts: Facts) -> Affine:
    """A quotient, rounded down; unless the divisor is a number, only its range is known."""
    if not by.terms and by.constant > 0:
        return unknowns.floor(of, by.constant)
    _, high = unknowns.range(of)
    if not all(unknowns.proves(row, facts) for row in (of, by - Affine(1))):
        raise KernelError(f"bounds: expected a positive quotient, got ({of}) // ({by})")
    if of == by:
        return Affine(1)
    # The quotient is below each factor of the divisor that exceeds the dividend: 128*j // n if j < n.
    shared = {c // d for n, c in of.terms for m, d in by.terms if n == m and c % d == 0}
    for factor in shared | {c for _, c in of.terms}:
        if factor > 0 and unknowns.proves(by * factor - of - Affine(1), facts):
            high = factor - 1 if high is None else min(high, factor - 1)
    return unknowns.new(f"({of}) // ({by})", 0, high)


def loop_index(
    name: str, lower: Sequence[Affine], upper: Sequence[Affine], step: int, unknowns: Unknowns
) -> tuple[Affine, Affine, list[Affine]] | None:
    """The index of a loop, the iterations before, and expressions that are not negative if it has iterations.

    for i in range(3, n, 4) -> 3 + 4*count, count, n - 4, where n - 4 - 4*count is not negative

    None if it certainly has no iterations.
    """
    sign = 1 if step > 0 else -1
    start = lower[0]
    if len(lower) > 1:
        start = (unknowns.greatest if step > 0 else unknowns.least)(lower, ())
    left = [(end - start) * sign - Affine(1) for end in upper]
    left += [larger for row in left for larger in unknowns.above_minima(row)]
    most = min((high for _, high in map(unknowns.range, left) if high is not None), default=None)
    if most is not None and most < 0:
        return None
    entered = [row for row in left if row.terms]
    if most is not None and most < abs(step):
        return start, Affine(), entered
    count = unknowns.new(name, 0, None if most is None else most // abs(step))
    rows = [row - count * abs(step) for row in entered]
    unknowns.define(count, rows)
    return start + count * step, count, entered
