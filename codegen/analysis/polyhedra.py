"""Systems of linear equations and inequalities: whether they may have integer solutions, and their ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import gcd
from typing import TypeAlias

from codegen.ir.index import Affine, index_symbol

Terms: TypeAlias = tuple[tuple[str, int], ...]

MOST_ROWS = 300
"""Elimination drops further rows to save time: more integers satisfy the rest, so no proof becomes wrong."""

_GOAL = "="
"""The symbol of the wanted value; no other symbol has this name."""


def feasible(zero: Iterable[Affine], not_negative: Iterable[Affine]) -> bool:
    """False only if no integers make all of `zero` 0 and all of `not_negative` nonnegative.

    2*i - 2*j + 1 == 0                  -> False    (greatest common divisor)
    i - j == 0, i >= j + 1              -> False
    0 <= i < 10, j == i + 10, j < 10    -> False

    Equations are solved one by one, with the GCD test. Fourier-Motzkin elimination follows, each row
    tightened to integers. True may be wrong, False is certain.
    """
    equations, rows = list(zero), list(not_negative)
    zeros = {e.terms[0][0] for e in equations if len(e.terms) == 1 and not e.constant}
    if zeros:
        equations, rows = [_dropped(e, zeros) for e in equations], [_dropped(row, zeros) for row in rows]
    while equations:
        equation = equations.pop()
        if not equation.terms:
            if equation.constant:
                return False
            continue
        divisor = gcd(*(c for _, c in equation.terms))
        if equation.constant % divisor:
            return False
        equation = Affine(equation.constant // divisor, tuple((n, c // divisor) for n, c in equation.terms))
        name, _ = min(equation.terms, key=lambda term: abs(term[1]))
        c = equation.coefficient(name)
        equations = [_solved(other, equation, name, c) for other in equations]
        rows = [_solved(row, equation, name, c) for row in rows]
    return _eliminated(rows) is not None


def range_within(expression: Affine, not_negative: Iterable[Affine]) -> tuple[int | None, int | None]:
    """The least and the largest value of an expression where all rows are nonnegative; None if unknown.

    2*i + 1, 0 <= i < 10 -> (1, 19)

    (1, 0) if some row is negative everywhere.
    """
    if not expression.terms:
        return expression.constant, expression.constant
    rows, ends = list(not_negative), list[int | None]()
    for wanted in (expression * -1, expression):
        table = _eliminated([*rows, wanted - index_symbol(_GOAL)], _GOAL)
        if table is None:
            return 1, 0
        ends.append(table.get(((_GOAL, -1),)))
    low, high = ends
    return (None if low is None else -low), high


def projected(
    zero: Iterable[Affine], not_negative: Iterable[Affine], names: Collection[str]
) -> tuple[list[Affine], list[Affine]] | None:
    """The system without most symbols other than `names`; None if it cannot hold.

        d - i + j == 0, 0 <= i < 10, 0 <= j < 10, names {d} -> -9 <= d <= 9

    For systems that are queried repeatedly, each time with other rows over `names`. Equations are solved for
    symbols with a coefficient of 1 or -1. Inequalities are combined if that does not increase their number.
    """
    equations, rows = list(zero), list(not_negative)
    while True:
        found = next(
            ((e, n, c) for e in equations for n, c in e.terms if abs(c) == 1 and n not in names), None
        )
        if found is None:
            break
        equation, name, c = found
        equations.remove(equation)
        equations = [_solved(other, equation, name, c) for other in equations]
        rows = [_solved(row, equation, name, c) for row in rows]
    table: dict[Terms, int] = {}
    if not _enter(table, rows):
        return None
    kept = {*names, *(name for equation in equations for name, _ in equation.terms)}
    while True:
        counts = [(up * down - up - down, n) for n, (up, down) in _sides(table).items() if n not in kept]
        least, name = min(counts, default=(1, ""))
        if least > 0:
            return equations, [Affine(constant, terms) for terms, constant in table.items()]
        if not _enter(table, _without(table, name)):
            return None


def _dropped(row: Affine, names: Collection[str]) -> Affine:
    """A row with these symbols set to 0."""
    return Affine(row.constant, tuple(term for term in row.terms if term[0] not in names))


def _solved(row: Affine, equation: Affine, name: str, c: int) -> Affine:
    """Eliminate a symbol, with coefficient c in an equation, from a row; the row is only scaled by |c|."""
    k = row.coefficient(name)
    return row if not k else row * abs(c) + equation * (-k if c > 0 else k)


def _eliminated(rows: Iterable[Affine], kept: str = "") -> dict[Terms, int] | None:
    """The rows without any symbol but `kept`; None if one cannot hold."""
    table: dict[Terms, int] = {}
    if not _enter(table, rows):
        return None
    while sides := _sides(table):
        sides.pop(kept, None)
        if not sides:
            break
        name = min((up * down, n) for n, (up, down) in sides.items())[1]
        if not _enter(table, _without(table, name)):
            return None
        if len(table) > MOST_ROWS:
            shortest = sorted(table, key=lambda terms: (len(terms), terms))
            table = {terms: table[terms] for terms in shortest[:MOST_ROWS]}
    return table


def _sides(table: Mapping[Terms, int]) -> dict[str, tuple[int, int]]:
    """The number of rows that have each symbol with a positive coefficient, and with a negative one."""
    sides: dict[str, tuple[int, int]] = {}
    for terms in table:
        for name, c in terms:
            up, down = sides.get(name, (0, 0))
            sides[name] = (up + 1, down) if c > 0 else (up, down + 1)
    return sides


def _without(table: dict[Terms, int], name: str) -> list[Affine]:
    """Combine the rows with a symbol so that it cancels; those rows leave the table."""
    up: list[tuple[Affine, int]] = []
    down: list[tuple[Affine, int]] = []
    for terms in [terms for terms in table if any(n == name for n, _ in terms)]:
        row = Affine(table.pop(terms), terms)
        c = row.coefficient(name)
        (up if c > 0 else down).append((row, c))
    return [a * -d + b * c for a, c in up for b, d in down]


def _enter(table: dict[Terms, int], rows: Iterable[Affine]) -> bool:
    """Add rows, keeping the tightest of each direction; False if one cannot hold."""
    for row in rows:
        if not row.terms:
            if row.constant < 0:
                return False
            continue
        terms, constant = row.terms, row.constant
        divisor = gcd(*(c for _, c in terms))
        if divisor > 1:
            terms, constant = tuple((n, c // divisor) for n, c in terms), constant // divisor
        table[terms] = min(constant, table.get(terms, constant))
    return True
