"""Convert xdsl's affine maps to index expressions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

from codegen import (
    Affine,
    ArrayElement,
    Bitwise,
    Const,
    FloorDiv,
    FromEnd,
    Index,
    IndexValue,
    Mod,
    Op,
    Sum,
    Value,
    add_indices,
    scale_index,
    shown,
)
from tilejit.mlir.dtypes import number_of
from tilejit.mlir.places import Unsupported

INDEX_BITS = 64
"""The bits of numbers in indices, as in MLIR."""

MOST_DIVISIONS = 128
"""The most divisions, remainders and bit operations in one index, including nested ones."""


def results(affine_map: AffineMap, operands: Sequence[Index]) -> tuple[Index, ...]:
    """The results of a map, with its dimensions and symbols replaced by the operands.

    (d0)[s0] -> (d0 * 2 + s0, 7) of i, n -> 2*i + n, 7

    Raises:
        Unsupported: two values are multiplied, a divisor is not a positive number, or a result is too large.
    """
    return tuple(_index(e, operands, affine_map.num_dims) for e in affine_map.results)


def condition(affine_set: AffineSet, operands: Sequence[Index]) -> Value:
    """Whether all constraints of a set hold for the operands.

    (d0)[s0] : (d0 - 1 >= 0, d0 - s0 == 0) of i, n -> i - 1 >= 0 and i - n == 0

    Raises:
        Unsupported: as `results`.
    """
    held: Value | None = None
    for constraint in affine_set.constraints:
        sides = (_index(e, operands, affine_set.num_dims) for e in (constraint.lhs, constraint.rhs))
        test = Op(constraint.kind.name, tuple(IndexValue(side) for side in sides), "i1")
        held = test if held is None else Op("and", (held, test), "i1")
    return Const(True, "i1") if held is None else held


def bounded(index: Index) -> Index:
    """Return an expression unless it is too large.

    A few lines of text could exhaust memory if they square a number repeatedly, or apply `i mod 7 + i` to its
    own result.

    Raises:
        Unsupported: it is too large.
    """
    count, todo = 0, [index]
    while todo:
        part = todo.pop()
        numbers: list[int] = []
        match part:
            case FloorDiv(of, by) | Mod(of, by):
                count += 1
                numbers.append(by)
                todo.append(of)
            case Bitwise(_, left, right):
                count += 1
                todo += left, right
            case FromEnd(of, size):
                count += 1
                todo += of, size
            case ArrayElement(_, subscripts):
                count += 1
                todo += subscripts
            case Sum(parts, rest):
                numbers += [scaled for _, scaled in parts]
                todo += [*(p for p, _ in parts), rest]
            case Affine(constant, terms):
                numbers += [constant, *(coefficient for _, coefficient in terms)]
        if any(number.bit_length() > INDEX_BITS for number in numbers):
            number = max(numbers, key=int.bit_length)
            raise Unsupported(
                f"{shown(number)} is too large for an index", f"write numbers of at most {INDEX_BITS} bits"
            )
        if count > MOST_DIVISIONS:
            raise Unsupported(
                f"an index has more than {MOST_DIVISIONS} divisions, bit operations and elements",
                "write it with fewer of them",
            )
    return index


def floor_div(of: Index, by: Index) -> Index:
    """Floor division; numbers are divided immediately."""
    divisor, number = _divisor(by), number_of(of)
    if number is not None:
        return Affine(number // divisor)
    return of if divisor == 1 else FloorDiv(of, divisor)


def ceil_div(of: Index, by: Index) -> Index:
    """Ceiling division: the negated floor division of the negated dividend."""
    return scale_index(floor_div(scale_index(of, -1), by), -1)


def remainder(of: Index, by: Index) -> Index:
    """The remainder of floor division; numbers are divided immediately."""
    divisor, number = _divisor(by), number_of(of)
    if number is not None:
        return Affine(number % divisor)
    return Affine() if divisor == 1 else Mod(of, divisor)


def product(a: Index, b: Index) -> Index:
    """A product with a number as one factor."""
    for factor, other in ((a, b), (b, a)):
        number = number_of(factor)
        if number is not None:
            return scale_index(other, number)
    raise Unsupported(
        f"({a}) * ({b}) is a product of two values, which is not affine",
        "write the factor as a number, or give the array a dimension for it",
    )


def shift_left(of: Index, by: Index) -> Index:
    """A product with a power of two."""
    return scale_index(of, 1 << _shift(by))


def shift_right(of: Index, by: Index) -> Index:
    """A floor division by a power of two."""
    return floor_div(of, Affine(1 << _shift(by)))


def _shift(by: Index) -> int:
    number = number_of(by)
    if number is not None and 0 <= number < INDEX_BITS - 1:
        return number
    raise Unsupported(
        f"expected a number from 0 to {INDEX_BITS - 2} as the shift of an index, got ({by})",
        "write such a number",
    )


def _divisor(by: Index) -> int:
    number = number_of(by)
    if number is not None and number > 0:
        return number
    raise Unsupported(
        f"expected a positive number as the divisor of an index, got ({by})",
        "write a positive number",
    )


def _index(e: AffineExpr, operands: Sequence[Index], dims: int) -> Index:
    match e:
        case AffineConstantExpr():
            return bounded(Affine(e.value))
        case AffineDimExpr():
            return operands[int(e.position)]
        # xdsl's parser makes every value of a pretty subscript a symbol; the difference does not matter here.
        case AffineSymExpr():
            return operands[dims + int(e.position)]
        case AffineBinaryOpExpr():
            return bounded(_binary(e.kind, _index(e.lhs, operands, dims), _index(e.rhs, operands, dims)))
        case _:
            raise AssertionError(f"maps: no rule for {type(e).__name__}")


def _binary(kind: AffineBinaryOpKind, a: Index, b: Index) -> Index:
    match kind:
        case AffineBinaryOpKind.Add:
            return add_indices(a, b)
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
