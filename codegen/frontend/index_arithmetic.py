"""Arithmetic on index expressions, and on minima and maxima of several."""

from __future__ import annotations

from codegen.ir.index import (
    Affine,
    ArrayElement,
    Bitwise,
    FloorDiv,
    FromEnd,
    Index,
    Inside,
    Mod,
    Part,
    Sum,
    add_indices,
    scale_index,
)

_NODES, _ENDS = 100, 16
"""Larger index expressions, and minima or maxima of more of them, become plain values instead."""


def both(one: tuple[Index, ...], two: tuple[Index, ...]) -> tuple[Index, ...]:
    """All pairwise sums: min(a, b) + c -> a + c, b + c."""
    return tuple(dict.fromkeys(total(a, b) for a in one for b in two))


def total(a: Index, b: Index) -> Index:
    """The sum, with equal divisions and remainders merged."""
    found = add_indices(a, b)
    if not isinstance(found, Sum):
        return found
    parts: dict[Part, int] = {}
    for part, factor in found.parts:
        parts[part] = parts.get(part, 0) + factor
    left = tuple((part, factor) for part, factor in parts.items() if factor)
    return Sum(left, found.rest) if left else found.rest


def bounded(ends: tuple[Index, ...]) -> tuple[Index, ...]:
    """The same expressions; () if they are too large for a compiler."""
    return ends if len(ends) <= _ENDS and all(_nodes(end) <= _NODES for end in ends) else ()


def _nodes(index: Index) -> int:
    """The size of an expression; one with a number beyond 62 bits counts as too large."""
    match index:
        case Affine(constant, terms):
            large = any(abs(c) >= 2**62 for c in (constant, *(c for _, c in terms)))
            return _NODES + 1 if large else 1 + len(terms)
        case FloorDiv(of, by) | Mod(of, by):
            return 1 + _nodes(of) if by < 2**62 else _NODES + 1
        case Bitwise(_, left, right):
            return 1 + _nodes(left) + _nodes(right)
        case Sum(parts, rest):
            return _nodes(rest) + sum(_nodes(part) for part, _ in parts)
        case ArrayElement(_, subscripts):
            return 1 + sum(map(_nodes, subscripts))
        case FromEnd(of) | Inside(of):
            return 1 + _nodes(of)
        case _:
            return _NODES + 1


def scaled(ends: tuple[Index, ...], factor: int) -> tuple[Index, ...]:
    """Each expression times a number."""
    return tuple(scale_index(end, factor) for end in ends)
