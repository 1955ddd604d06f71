"""Affine maps of xdsl as index expressions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from codegen.loops.index import Affine, FloorDiv, Index, Mod, add, scale
from tilejit.mlir.places import Unsupported


def results(affine_map: AffineMap, operands: Sequence[Index]) -> tuple[Index, ...]:
    """Every result of a map, its dimensions and then its symbols replaced by the operands.

    (d0)[s0] -> (d0 * 2 + s0, 7) of i, n -> 2*i + n, 7

    Raises:
        Unsupported: a product or a divisor is no number.
    """
    return tuple(_index(e, operands, affine_map.num_dims) for e in affine_map.results)


def floor_div(of: Index, by: Index) -> Index:
    """Rounded down; numbers are divided at once."""
    number = _divisor(by)
    if isinstance(of, Affine) and not of.terms:
        return Affine(of.constant // number)
    return of if number == 1 else FloorDiv(of, number)


def ceil_div(of: Index, by: Index) -> Index:
    """Rounded up: what rounding the negative down gives, negated."""
    return scale(floor_div(scale(of, -1), by), -1)


def remainder(of: Index, by: Index) -> Index:
    """Of a division rounded down; numbers are divided at once."""
    number = _divisor(by)
    if isinstance(of, Affine) and not of.terms:
        return Affine(of.constant % number)
    return Affine() if number == 1 else Mod(of, number)


def product(a: Index, b: Index) -> Index:
    """A product of which one factor is a number."""
    for factor, other in ((a, b), (b, a)):
        if isinstance(factor, Affine) and not factor.terms:
            return scale(other, factor.constant)
    raise Unsupported(
        f"({a}) * ({b}) is a product of two values, which is not affine",
        "write the factor as a number, or give the array a dimension for it",
    )


def _divisor(by: Index) -> int:
    if isinstance(by, Affine) and not by.terms and by.constant > 0:
        return by.constant
    raise Unsupported(
        f"({by}) divides an index, but only positive numbers may",
        "write a positive number there",
    )


def _index(e: AffineExpr, operands: Sequence[Index], dims: int) -> Index:
    match e:
        case AffineConstantExpr():
            return Affine(e.value)
        case AffineDimExpr():
            return operands[int(e.position)]
        # xdsl's parser makes every value of a pretty subscript a symbol; nothing hangs on which it is.
        case AffineSymExpr():
            return operands[dims + int(e.position)]
        case AffineBinaryOpExpr():
            return _binary(e.kind, _index(e.lhs, operands, dims), _index(e.rhs, operands, dims))
        case _:
            raise AssertionError(f"maps: no rule for {type(e).__name__}")


def _binary(kind: AffineBinaryOpKind, a: Index, b: Index) -> Index:
    match kind:
        case AffineBinaryOpKind.Add:
            return add(a, b)
        case AffineBinaryOpKind.Mul:
            return product(a, b)
        case AffineBinaryOpKind.FloorDiv:
            return floor_div(a, b)
        case AffineBinaryOpKind.CeilDiv:
            return ceil_div(a, b)
        case AffineBinaryOpKind.Mod:
            return remainder(a, b)
        case _:
            raise AssertionError(f"maps: no rule for {kind}")
