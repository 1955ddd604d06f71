"""Whether a system of linear equations and inequalities may have integers that solve it."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from codegen.loops.index import Affine, affine

MOST_ROWS = 400
"""Elimination stops here and says "perhaps": what would be proven is worth less than the time."""


def feasible(zero: Iterable[Affine], not_negative: Iterable[Affine]) -> bool:
    """False only if no integers make each of `zero` 0 and none of `not_negative` negative.

    2*i - 2*j + 1 == 0                  -> False    (greatest common divisor)
    i - j == 0, i >= j + 1              -> False
    0 <= i < 10, j == i + 10, j < 10    -> False

    Equations are solved one by one, with the test of their greatest common divisor; then Fourier's and
    Motzkin's elimination, each row tightened to integers. True may be wrong, False may not.
    """
    equations, rows = list(zero), list(not_negative)
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
    return _eliminate(rows)


def _solved(row: Affine, equation: Affine, name: str, c: int) -> Affine:
    """A row without a name that an equation has c times; multiplied by positive numbers only."""
    k = row.coefficient(name)
    return row if not k else row * abs(c) + equation * (-k if c > 0 else k)


def _eliminate(rows: Iterable[Affine]) -> bool:
    table: dict[tuple[tuple[str, int], ...], int] = {}
    if not _enter(table, rows):
        return False
    while table:
        above: dict[str, int] = {}
        below: dict[str, int] = {}
        for terms in table:
            for name, c in terms:
                side = above if c > 0 else below
                side[name] = side.get(name, 0) + 1
        name = min({*above, *below}, key=lambda n: (above.get(n, 0) * below.get(n, 0), n))
        with_name = [(Affine(constant, terms), dict(terms)[name]) for terms, constant in table.items()
                     if any(n == name for n, _ in terms)]  # fmt: skip
        for row, _ in with_name:
            del table[row.terms]
        up = [(row, c) for row, c in with_name if c > 0]
        down = [(row, c) for row, c in with_name if c < 0]
        if not _enter(table, (a * -d + b * c for a, c in up for b, d in down)):
            return False
        if len(table) > MOST_ROWS:
            return True
    return True


def _enter(table: dict[tuple[tuple[str, int], ...], int], rows: Iterable[Affine]) -> bool:
    """Add rows, the tightest of each direction; False where one can't hold."""
    for row in rows:
        if not row.terms:
            if row.constant < 0:
                return False
            continue
        divisor = gcd(*(c for _, c in row.terms))
        tight = affine(row.constant // divisor, [(n, c // divisor) for n, c in row.terms])
        table[tight.terms] = min(tight.constant, table.get(tight.terms, tight.constant))
    return True
