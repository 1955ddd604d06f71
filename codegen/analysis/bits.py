"""Bits of index expressions: the ranges of &, | and ^, and equal expressions that are sums or divisions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from codegen.analysis.ranges import Ends, Range
from codegen.ir.index import BIT_OPERATORS, Affine, Bitwise, Index, add_indices, scale_index
from codegen.ir.integer_operators import floor_div, modulo, number_in

MOST_RUNS = 3
"""Masks of more runs of ones are not taken apart: each run is a division and a remainder."""


@lru_cache(4096)
def bitwise_range(name: str, left: Range, right: Range) -> Range:
    """The least and the largest result for any two numbers of two ranges; each is reached.

    xor, 0..7, 0..7 -> 0..7    and, -1..5, 2..3 -> 0..3    or, 0..4, 8..8 -> 8..12
    """
    bits = max(end.bit_length() for end in (*left, *right))
    found = [
        _shifted(_unsigned_range(name, one, two, bits), -BIT_OPERATORS[name](negative, below) << bits)
        for negative, one in _by_sign(left, bits)
        for below, two in _by_sign(right, bits)
    ]
    return min(low for low, _ in found), max(high for _, high in found)


def bits_within(name: str, left: Ends, right: Ends) -> Ends:
    """The same where ends may be unknown, as far as it is certain then."""
    (low, high), (least, most) = left, right
    if low is not None and high is not None and least is not None and most is not None:
        return bitwise_range(name, (low, high), (least, most))
    highest = [end[1] for end in (left, right) if end[0] is not None and end[0] >= 0]
    if name == "and" and highest:
        return 0, min((end for end in highest if end is not None), default=None)
    return (0, None) if len(highest) == 2 else (None, None)


def _by_sign(numbers: Range, bits: int) -> list[tuple[int, Range]]:
    """The negative numbers of a range, as their bits below the sign, and the others; each after its sign."""
    low, high = numbers
    parts = [(1, (low, min(high, -1))), (0, (max(low, 0), high))]
    return [(sign, _shifted(part, sign << bits)) for sign, part in parts if part[0] <= part[1]]


def _shifted(numbers: Range, by: int) -> Range:
    return numbers[0] + by, numbers[1] + by


@lru_cache(4096)
def _unsigned_range(name: str, left: Range, right: Range, bits: int) -> Range:
    """The range for numbers of this many bits that are not negative."""
    full = 0, (1 << bits) - 1
    if not bits or left == right == full:
        return full
    half = 1 << (bits - 1)
    found = [
        _shifted(_unsigned_range(name, one, two, bits - 1), BIT_OPERATORS[name](first, second) * half)
        for first, one in _halves(left, half)
        for second, two in _halves(right, half)
    ]
    return min(low for low, _ in found), max(high for _, high in found)


def _halves(numbers: Range, half: int) -> list[tuple[int, Range]]:
    """The parts of a range without and with the highest bit, each after the bit."""
    low, high = numbers
    parts = [(0, (low, min(high, half - 1))), (1, (max(low, half), high))]
    return [(bit, _shifted(part, -bit * half)) for bit, part in parts if part[0] <= part[1]]


def with_divisions(index: Bitwise) -> Index | None:
    """An equal expression of divisions and remainders, if one side is a number with few runs of ones.

    x & 12 -> 4 * (x // 4 % 4)    x ^ 1 -> x + 1 - 2 * (x % 2)    x | 8 -> x + 8 - 8 * (x // 8 % 2)
    """
    mask = number_in(index.right)
    if mask is None:
        return None
    runs = _runs(mask)
    if len(runs) > MOST_RUNS:
        return None
    common: Index = Affine()
    for low, high in runs:
        part = floor_div(index.left, 1 << low)
        part = part if high is None else modulo(part, 1 << (high - low))
        common = add_indices(common, scale_index(part, 1 << low))
    if index.operator == "and":
        return common
    less = scale_index(common, -1 if index.operator == "or" else -2)
    return add_indices(add_indices(index.left, index.right), less)


def _runs(mask: int) -> list[tuple[int, int | None]]:
    """The runs of ones of a number, each from a bit to below another; None for no end, as -1 has."""
    runs: list[tuple[int, int | None]] = []
    at = 0
    while mask:
        zeros = (mask & -mask).bit_length() - 1
        mask, at = mask >> zeros, at + zeros
        if mask == -1:
            return [*runs, (at, None)]
        ones = (~mask & (mask + 1)).bit_length() - 1
        runs.append((at, at + ones))
        mask, at = mask >> ones, at + ones
    return runs


def zeros_below(expression: Affine) -> int:
    """How many lowest bits of an expression are certainly 0; 64 if it is 0.

    4*i -> 2    8*i + 24*j + 16 -> 3    i -> 0
    """
    common = gcd(expression.constant, *(c for _, c in expression.terms))
    return (common & -common).bit_length() - 1 if common else 64


def are_disjoint(sides: Sequence[Affine], ranges: Sequence[Ends]) -> bool:
    """Whether certainly no bit is set on both sides, so that | and ^ are sums, and & is 0.

    4*i | k, k from 0 to 3 -> True    4*i | k, k from 0 to 4 -> False

    ranges: those of both sides.
    """
    multiples = map(zeros_below, reversed(sides))
    return any(
        low is not None and high is not None and low >= 0 and high < 1 << zeros
        for (low, high), zeros in zip(ranges, multiples, strict=True)
    )


def rows_of(name: str, result: Affine, sides: Sequence[Affine], ranges: Sequence[Ends]) -> list[Affine]:
    """Expressions that are not negative, given the ranges of both sides.

    r = a & 7 -> r, 7 - r, a - r if a is not negative
    """
    (low, high), (least, most) = ranges
    first, last = bits_within(name, *ranges)
    rows = [] if first is None else [result - Affine(first)]
    rows += [] if last is None else [Affine(last) - result]
    a, b = sides
    positive = [end is not None and end >= 0 for end in (low, least)]
    negative = [end is not None and end < 0 for end in (high, most)]
    match name:
        case "and":
            rows += [a - result] if positive[0] or negative[1] else []
            rows += [b - result] if positive[1] or negative[0] else []
        case "or":
            rows += [result - a] if positive[1] or negative[0] else []
            rows += [result - b] if positive[0] or negative[1] else []
            rows += [a + b - result] if all(positive) else []
        case "xor" if all(positive):
            rows += [a + b - result, result - a + b, result + a - b]
    return rows
