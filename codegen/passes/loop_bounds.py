"""The bounds of loops as index expressions, and the numbers of their iterations."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import greatest, least, minus, plus, quotient, times
from codegen.ir.index import Affine, Index, index_symbol
from codegen.ir.integer_operators import number_in
from codegen.ir.names import SHAPE
from codegen.ir.nodes import Compare, For, Let
from codegen.ir.values import IndexValue
from codegen.passes.new_names import NewNames
from codegen.passes.simplify import evaluated


def ends(loop: For) -> tuple[Index, Index]:
    """The first index of a loop, and the index before which it ends."""
    near, far = (greatest, least) if loop.step > 0 else (least, greatest)
    return tuple(
        bounds[0] if len(bounds) == 1 else which(*bounds)
        for bounds, which in ((loop.lower, near), (loop.upper, far))
    )  # type: ignore[return-value]


def with_ends(loop: For, first: Index, last: Index) -> For:
    """The loop over another range."""
    return replace(loop, lower=(first,), upper=(last,))


def named_ends(loop: For, names: NewNames) -> tuple[list[Let], Index, Index]:
    """Statements that name both bounds, and the bounds as symbols or numbers: both are used repeatedly.

    Bounds that are a number of iterations apart have no names.
    """
    lets: list[Let] = []
    found: list[Index] = []
    if number_in(minus(*reversed(ends(loop)))) is not None:
        return lets, *ends(loop)
    for bound, what in zip(ends(loop), ("lower", "upper"), strict=True):
        if not is_simple(bound):
            lets.append(Let(names.name(f"{loop.index}_{what}"), IndexValue(bound)))
            bound = index_symbol(lets[-1].name)
        found.append(bound)
    return lets, found[0], found[1]


def named(wanted: str, index: Index, names: NewNames) -> tuple[tuple[Let, ...], Index]:
    """The statement that names an index expression, and its symbol; none for sums."""
    index = evaluated(index)
    if isinstance(index, Affine):
        return (), index
    let = Let(names.name(wanted), IndexValue(index))
    return (let,), index_symbol(let.name)


def is_simple(index: Index) -> bool:
    """Whether an index expression is a symbol or a nonnegative number."""
    if not isinstance(index, Affine):
        return False
    if not index.terms:
        return index.constant >= 0
    return not index.constant and [factor for _, factor in index.terms] == [1]


def iterations(first: Index, last: Index, step: int) -> Index:
    """The number of iterations from one index to another; it may be negative if there are none."""
    far = minus(last, first) if step > 0 else minus(first, last)
    return quotient(plus(far, abs(step) - 1), abs(step)) if abs(step) > 1 else far


def trips(first: Index, last: Index, step: int) -> Index:
    """The number of iterations from one index to another; that of a whole dimension is not negative."""
    count = iterations(first, last, step)
    return count if first == Affine() and step > 0 and _is_extent(last) else greatest(count, 0)


def _is_extent(index: Index) -> bool:
    """Whether an index expression is the extent of an array."""
    match index:
        case Affine(0, ((name, 1),)):
            return SHAPE.fullmatch(name) is not None
    return False


def full_blocks_end(first: Index, last: Index, step: int, block: int, *, some: bool = False) -> Index:
    """The index at which the last full block of iterations ends.

    some  whether there are iterations
    """
    count = number_in(iterations(first, last, step))
    if count is not None:
        return plus(first, max(count, 0) // block * block * step)
    left = iterations(first, last, step) if some else trips(first, last, step)
    return plus(first, times(quotient(left, block), block * step))


def before(first: Index, last: Index, step: int) -> Compare:
    """Whether a loop has iterations from one index to another."""
    return Compare(first, "lt" if step > 0 else "gt", last)
