"""Subscripts that are elements of arrays: they count from the end where negative, and may be masked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codegen.frontend.scope import LOOP_MARK, Scope
from codegen.ir.index import (
    Affine,
    ArrayElement,
    FromEnd,
    Index,
    Inside,
    Sum,
    depends_on_elements,
    inside_parts,
)
from codegen.ir.values import Const, IndexValue, Op, Value


def permuted(node: ast.expr, scope: Scope) -> ast.expr | None:
    """The array in `tilejit.permutation(array)`; None for another expression."""
    match node:
        case ast.Call(function, [array], []) if (
            getattr(scope.object(function), LOOP_MARK, "") == "permutation"
        ):
            return array
    return None


def counted(index: Index, size: Index, *, masked: bool) -> Index:
    """A subscript as NumPy counts it, if elements of arrays are part of it; masked: 0 if it is outside."""
    if not depends_on_elements(index):
        return index
    if not _is_unsigned(index):
        index = FromEnd(index, size)
    return Inside(index, size) if masked else index


def _is_unsigned(index: Index) -> bool:
    """Whether an expression cannot be negative, as it is made of unsigned elements."""
    match index:
        case ArrayElement(_, _, dtype):
            return dtype[0] == "u"
        case Sum(parts, Affine(constant, ())):
            return constant >= 0 and all(k > 0 and _is_unsigned(part) for part, k in parts)
    return False


def inside_arrays(subscripts: tuple[Index, ...]) -> Value | None:
    """Whether all masked subscripts, also those of elements, are inside their arrays; None without any."""
    test: Value | None = None
    for part in dict.fromkeys(part for each in subscripts for part in inside_parts(each)):
        for one in _tests(part):
            test = one if test is None else Op("and", (test, one), "i1")
    return test


def _tests(part: Inside) -> Iterator[Value]:
    at = IndexValue(part.of)
    if isinstance(part.of, FromEnd) or not _is_unsigned(part.of):
        yield Op("ge", (at, Const(0, "i64")), "i1")
    yield Op("lt", (at, IndexValue(part.size)), "i1")
