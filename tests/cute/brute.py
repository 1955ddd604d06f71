"""Oracles of the algebra that share no code with it: written-out definitions, and exhaustive searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, prod
from typing import Any

Modes = Sequence[tuple[int, int]]


def flat(value: Any) -> list[int]:
    if not isinstance(value, tuple):
        return [value]
    return [number for part in value for number in flat(part)]


def modes_of(layout: Any) -> list[tuple[int, int]]:
    return list(zip(flat(layout.shape), flat(layout.stride), strict=True))


def at(modes: Modes, index: int) -> int:
    """The offset of an integer coordinate; the last mode is unbounded."""
    total = 0
    for place, (size, step) in enumerate(modes):
        if place == len(modes) - 1:
            return total + index * step
        total += index % size * step
        index //= size
    return 0


def table(modes: Modes) -> list[int]:
    return [at(modes, index) for index in range(prod(size for size, _ in modes))]


def factorisations(number: int) -> Iterator[list[int]]:
    """Every factorization of a number into an ordered product of numbers from 2 up."""
    if number == 1:
        yield []
    for first in range(2, number + 1):
        if number % first == 0:
            for rest in factorisations(number // first):
                yield [first, *rest]


def is_layout(values: Sequence[int]) -> bool:
    """Whether any layout with one mode, split in any way, has these offsets."""
    for sizes in factorisations(len(values)):
        weight, modes = 1, []
        for size in sizes:
            modes.append((size, values[weight]))
            weight *= size
        if (table(modes) if modes else [0]) == list(values):
            return True
    return False


def composition_exists(a: Modes, b: Modes) -> bool:
    """Whether a layout compatible with B has the offsets A(B(c))."""
    if 0 in [size for size, _ in b]:
        return True
    if 0 in [size for size, _ in a] or min(table(b)) < 0:
        return False
    values = [at(a, place) for place in table(b)]
    weight, sums = 1, [0]
    for size, _ in b:
        part = [values[weight * c] for c in range(size)]
        if not is_layout(part):
            return False
        sums = [low + high for high in part for low in sums]
        weight *= size
    return sums == values


def complement_exists(a: Modes, bound: int) -> bool:
    """Whether any ascending layout repeats A's offsets without duplicates and covers the bound."""
    tile = set(table(a) or [0])
    last = bound - min(tile)

    def cover(repeats: list[int]) -> bool | None:
        sums = [r + t for r in repeats for t in tile]
        if len(set(sums)) < len(sums):
            return None
        return set(range(bound)) <= set(sums)

    def extend(repeats: list[int]) -> bool:
        done = cover(repeats)
        if done is not False:
            return bool(done)
        for step in range(repeats[-1] + 1, last + 1):
            for size in range(2, last // step + 3):
                wider = [c * step + r for c in range(size) for r in repeats]
                if cover(wider) is None:
                    break
                if extend(wider):
                    return True
        return False

    return extend([0])


def longest_right_inverse(a: Modes) -> int:
    """The most elements of a layout R with A(R(i)) = i."""
    values = table(a)

    def extend(places: list[int]) -> int:
        best = reach = len(places)
        for step in range(len(values)):
            for size in range(2, len(values) // reach + 1):
                wider = [c * step + p for c in range(size) for p in places]
                if max(wider) >= len(values) or any(values[p] != i for i, p in enumerate(wider)):
                    break
                best = max(best, extend(wider))
        return best

    return extend([0])


def left_inverse_exists(a: Modes) -> bool:
    """Whether any layout L has L(A(i)) = i, ignoring coordinates of stride 0. Every mixed radix is tried.

    Equations M u = r have an integer solution exactly if M and M|r have the same rank, and the same gcd of
    the minors of that order.
    """
    core, wanted, weight = [], [], 1
    for size, step in a:
        if step:
            core.append((size, step))
            wanted.append((size, weight))
        weight *= size
    goal: dict[int, int] = {}
    for offset, index in zip(table(core) or [0], table(wanted) or [0], strict=True):
        if offset < 0 or goal.setdefault(offset, index) != index:
            return False
    top = max(goal)
    points = sorted(goal.items())
    return any(
        _solvable([_digits(x, radices) for x, _ in points], [i for _, i in points])
        for radices in _radices(top)
    )


def _radices(top: int) -> Iterator[list[int]]:
    """Every mixed radix whose last digit, which is unbounded, is not always 0."""
    yield []
    for first in range(2, top + 1):
        for rest in _radices(top // first):
            yield [first, *rest]


def _digits(number: int, radices: Sequence[int]) -> list[int]:
    out = []
    for radix in radices:
        out.append(number % radix)
        number //= radix
    return [*out, number]


def _solvable(matrix: list[list[int]], right: list[int]) -> bool:
    wide = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    order = _rank(matrix)
    return order == _rank(wide) and _minors(matrix, order) == _minors(wide, order)


def _rank(matrix: list[list[int]]) -> int:
    rows = [[Fraction(x) for x in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((k for k in range(rank, len(rows)) if rows[k][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for k in range(rank + 1, len(rows)):
            times = rows[k][column] / rows[rank][column]
            rows[k] = [x - times * y for x, y in zip(rows[k], rows[rank], strict=True)]
        rank += 1
    return rank


def _minors(matrix: list[list[int]], order: int) -> int:
    """The gcd of all minors of that order."""
    out = 0
    for rows in combinations({tuple(row) for row in matrix}, order):
        for columns in combinations(range(len(matrix[0])), order):
            out = gcd(out, _determinant([[row[c] for c in columns] for row in rows]))
            if out == 1:
                return 1
    return out


def _determinant(matrix: list[list[int]]) -> int:
    if not matrix:
        return 1
    return sum(
        (-1) ** k * value * _determinant([[*row[:k], *row[k + 1 :]] for row in matrix[1:]])
        for k, value in enumerate(matrix[0])
        if value
    )
