"""Index expressions, and the elements that they depend on, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from codegen.ir.elements import MOST
from codegen.ir.index import (
    Affine,
    ArrayElement,
    Bitwise,
    FloorDiv,
    FromEnd,
    Index,
    Inside,
    Loaded,
    Mod,
    Sum,
    Times,
    depends_on_elements,
    index_symbol,
    index_symbols,
)
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Value, VectorShape

Lanes: TypeAlias = tuple[tuple[str, int], ...]
"""(index, step from lane to lane) of each loop over super-vectors around a value, outermost first."""


def index_value(index: Index, lanes: Lanes, held: Callable[[Loaded], Value], shape: VectorShape) -> Value:
    """An index expression as a number, or as a super-vector of the lanes of these loops.

    4 * idx[i] + j [16] -> index * 4 + broadcast(j)

    held: the values of parts that depend on elements.
    """

    def known(index: Index) -> Value | None:
        if not depends_on_elements(index):
            along = tuple(name if name in index_symbols(index) else "" for name, _ in lanes)
            return IndexValue(index, "i64", shape, along)
        return held(index) if isinstance(index, ArrayElement | FromEnd | Inside) else None

    return computed_index(index, known, lambda number: Const(number, "i64", shape), shape)


def computed_index(
    index: Index,
    known: Callable[[Index], Value | None],
    constant: Callable[[int], Value],
    shape: VectorShape,
) -> Value:
    """Compute an index expression from the values of its parts, with shifts for divisions by powers of two.

    known     returns the value of a part, or None if it is computed from its own parts
    constant  returns a number in all lanes
    """

    def value(index: Index) -> Value:
        found = known(index)
        if found is not None:
            return found
        match index:
            case FloorDiv(of, by) | Mod(of, by):
                divides = isinstance(index, FloorDiv)
                if by.bit_count() > 1:
                    return operation("floordiv" if divides else "mod", value(of), constant(by))
                bits = by.bit_length() - 1 if divides else by - 1
                return operation("shr" if divides else "and", value(of), constant(bits))
            case Bitwise(name, left, right):
                return operation(name, value(left), value(right))
            case Times(of, by):
                return operation("mul", value(of), value(index_symbol(by)))
            case Sum(parts, rest):
                terms = [
                    value(part) if k == 1 else operation("mul", value(part), constant(k)) for part, k in parts
                ]
                return summed([*terms, value(rest)] if rest != Affine() else terms)
        raise AssertionError(f"computed_index: no rule for {type(index).__name__}")

    def operation(name: str, a: Value, b: Value) -> Value:
        return Op(name, (a, b), "i64", shape)

    return value(index)


def summed(terms: Sequence[Value]) -> Value:
    """The sum of integers, or of registers of them."""
    return reduce(lambda a, b: Op("add", (a, b), "i64", a.shape), terms)


def element_value(
    part: Loaded,
    shape: VectorShape,
    number: Callable[[Index], Value],
    load: Callable[[Load], Value],
    named: Callable[[Value], Local],
) -> Value:
    """The value of a part that depends on elements.

    idx[i], i32 -> cast(idx[i]) : i64
    idx[i] from the end -> select(index < 0, index + size, index)
    idx[i] inside -> select(0 <= index < size, index, 0)
    """
    zero = Const(0, "i64", shape)
    match part:
        case ArrayElement(array, subscripts, dtype):
            found = load(Load(array, subscripts, dtype, shape))
            if dtype == "u64":
                found = Op("min", (found, Const(MOST, dtype, shape)), dtype, shape)
            return found if dtype == "i64" else Op("cast", (found,), "i64", shape)
        case FromEnd(of, size):
            at = named(number(of))
            negative = Op("lt", (at, zero), "i1", shape)
            return Op("select", (negative, Op("add", (at, number(size)), "i64", shape), at), "i64", shape)
        case Inside(of, size):
            at = named(number(of))
            above, below = (
                Op(name, (at, x), "i1", shape) for name, x in (("ge", zero), ("lt", number(size)))
            )
            inside = Op("and", (above, below), "i1", shape)
            return Op("select", (inside, at, zero), "i64", shape)
