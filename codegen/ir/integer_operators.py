"""Python's //, %, &, | and ^ of index expressions, simplified."""

from __future__ import annotations

from typing import Literal

from codegen.ir.index import (
    BIT_OPERATORS,
    Affine,
    Bitwise,
    FloorDiv,
    Index,
    Mod,
    add_indices,
    scale_index,
)


def floor_div(index: Index, by: int) -> Index:
    """index // by, for by >= 1; multiples of `by` move out of the division.

    (4*i + j + 9) // 4 -> i + 2 + (j + 1) // 4
    """
    if by == 1:
        return index
    if not isinstance(index, Affine):
        return FloorDiv(index, by)
    out = Affine(index.constant // by, tuple((n, c // by) for n, c in index.terms if c % by == 0))
    rest = Affine(index.constant % by, tuple((n, c) for n, c in index.terms if c % by))
    if not rest.terms:
        return out
    return add_indices(out, FloorDiv(rest, by)) if out != Affine() else FloorDiv(rest, by)


def modulo(index: Index, by: int) -> Index:
    """index % by, for by >= 1, without multiples of `by`."""
    if by == 1:
        return Affine()
    if not isinstance(index, Affine):
        return Mod(index, by)
    rest = Affine(index.constant % by, tuple((n, c) for n, c in index.terms if c % by))
    return Mod(rest, by) if rest.terms else rest


def bitwise(name: Literal["and", "or", "xor"], a: Index, b: Index) -> Index:
    """a & b, a | b or a ^ b; masks of the lowest bits are remainders.

    i & 7 -> i % 8    i & -8 -> 8 * (i // 8)    i | 0 -> i    i ^ -1 -> -i - 1    6 ^ 3 -> 5
    """
    one, two = number_in(a), number_in(b)
    if one is not None and two is not None:
        return Affine(BIT_OPERATORS[name](one, two))
    if one is not None:
        return bitwise(name, b, a)
    if two is None:
        return Bitwise(name, a, b)
    match name, two:
        case ("and", 0) | ("or", -1):
            return b
        case ("and", -1) | (("or" | "xor"), 0):
            return a
        case "xor", -1:
            return inverted(a)
        case "and", mask if mask & (mask + 1) == 0:
            return modulo(a, mask + 1)
        case "and", mask if -mask & (-mask - 1) == 0:
            return scale_index(floor_div(a, -mask), -mask)
    return Bitwise(name, a, b)


def inverted(index: Index) -> Index:
    """~i, which is -i - 1."""
    return add_indices(scale_index(index, -1), Affine(-1))


def number_in(index: Index) -> int | None:
    """The number that an expression is; None if it has symbols."""
    return index.constant if isinstance(index, Affine) and not index.terms else None
