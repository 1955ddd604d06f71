"""Short forms for the index expressions and statements that passes build."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen.ir.index import (
    Affine,
    FloorDiv,
    Greatest,
    Index,
    Least,
    Mod,
    Quotient,
    add_indices,
    index_symbol,
    multiply_index,
    scale_index,
)
from codegen.ir.nodes import Compare, For, Let, Statement
from codegen.ir.values import IndexValue

Term: TypeAlias = Index | int | str
"""An index expression, a number, or the name of a symbol."""


def index_of(term: Term) -> Index:
    """The index expression of a term."""
    if isinstance(term, int):
        return Affine(term)
    return index_symbol(term) if isinstance(term, str) else term


def plus(*terms: Term) -> Index:
    """The sum of terms."""
    total: Index = Affine()
    for term in terms:
        total = add_indices(total, index_of(term))
    return total


def minus(a: Term, b: Term) -> Index:
    """The difference of two terms."""
    return plus(a, scale_index(index_of(b), -1))


def times(a: Term, factor: int | str) -> Index:
    """A term times a number or a symbol."""
    index = index_of(a)
    return scale_index(index, factor) if isinstance(factor, int) else multiply_index(index, factor)


def least(*terms: Term) -> Index:
    """The minimum of several terms."""
    return Least(tuple(map(index_of, terms)))


def greatest(*terms: Term) -> Index:
    """The maximum of several terms."""
    return Greatest(tuple(map(index_of, terms)))


def multiple(a: Term, of: int) -> Index:
    """The largest multiple of a number that is at most a term: a // of * of."""
    return scale_index(FloorDiv(index_of(a), of), of) if of > 1 else index_of(a)


def quotient(a: Term, by: int | str) -> Index:
    """A term divided by a positive number or symbol, rounded down: a // by."""
    return FloorDiv(index_of(a), by) if isinstance(by, int) else Quotient(index_of(a), by)


def rest(a: Term, of: int) -> Index:
    """The remainder of a term: a % of."""
    return Mod(index_of(a), of)


def compare(left: Term, relation: Literal["lt", "le", "gt", "ge", "eq", "ne"], right: Term) -> Compare:
    """A comparison of two terms."""
    return Compare(index_of(left), relation, index_of(right))


def let(name: str, term: Term) -> Let:
    """A name for the value of a term."""
    return Let(name, IndexValue(index_of(term)))


def loop(index: str, lower: Term, upper: Term, *body: Statement, step: int = 1) -> For:
    """for index in range(lower, upper, step): body"""
    return For(index, (index_of(lower),), (index_of(upper),), step, body)
