"""Ranges of combined bits against all pairs of numbers, and expressions that are equal to them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.analysis.bits import (
    are_disjoint,
    bits_within,
    bitwise_range,
    rows_of,
    with_divisions,
    zeros_below,
)
from codegen.analysis.linear import linear
from codegen.analysis.ranges import Range
from codegen.analysis.unknowns import Unknowns
from codegen.ir.index import (
    BIT_OPERATORS,
    Affine,
    Bitwise,
    FloorDiv,
    Index,
    Sum,
    evaluate_index,
    index_symbol,
)
from codegen.ir.integer_operators import bitwise
from tests.tools.extent import examples

X, Y, R = index_symbol("x"), index_symbol("y"), index_symbol("r")
ranges = st.tuples(st.integers(-40, 40), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair)))


@given(st.sampled_from(list(BIT_OPERATORS)), ranges, ranges)
@settings(max_examples=examples(100, full=1000), deadline=None)
def test_ranges_are_exact(name: str, left: Range, right: Range) -> None:
    numbers = product(range(left[0], left[1] + 1), range(right[0], right[1] + 1))
    found = [BIT_OPERATORS[name](a, b) for a, b in numbers]
    assert bitwise_range(name, left, right) == (min(found), max(found))


def test_ranges_of_64_bits() -> None:
    """Each result is reached by the ends, or by numbers between them that the bits allow."""
    least, most = -(1 << 63), (1 << 63) - 1
    assert bitwise_range("xor", (least, most), (least, most)) == (least, most)
    assert bitwise_range("and", (least, most), (0, 7)) == (0, 7)
    assert bitwise_range("or", (0, most - 8), (0, 7)) == (0, most - 8)
    assert bitwise_range("and", (most - 1, most), (least, least + 1)) == (0, 1)


@given(
    st.sampled_from(list(BIT_OPERATORS)),
    st.tuples(ranges, ranges),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
@settings(max_examples=examples(100, full=500), deadline=None)
def test_facts_hold(name: str, sides: tuple[Range, Range], known: list[bool]) -> None:
    """Every fact holds for every pair of numbers, also if some ends are unknown."""
    ends = [[end if known[2 * k + n] else None for n, end in enumerate(side)] for k, side in enumerate(sides)]
    (low, high), (least, most) = ends
    rows = rows_of(name, R, (X, Y), ((low, high), (least, most)))
    first, last = bits_within(name, (low, high), (least, most))
    for x, y in product(*(range(side[0], side[1] + 1) for side in sides)):
        values = {"x": x, "y": y, "r": BIT_OPERATORS[name](x, y)}
        assert all(evaluate_index(row, values) >= 0 for row in rows)
        assert first is None or first <= values["r"]
        assert last is None or values["r"] <= last


@pytest.mark.parametrize("name", BIT_OPERATORS)
def test_numbers_become_divisions(name: str) -> None:
    """Masks of few runs of ones: 12, -4, 1, 0b101; the same holds for simplified expressions."""
    for mask in range(-70, 70):
        divided = with_divisions(Bitwise(name, X, Affine(mask)))
        simple = bitwise(name, X, Affine(mask))
        for x in range(-140, 140):
            expected = BIT_OPERATORS[name](x, mask)
            assert evaluate_index(simple, {"x": x}) == expected
            assert divided is None or evaluate_index(divided, {"x": x}) == expected
    assert with_divisions(Bitwise(name, X, Affine(0b10101))) is not None
    assert with_divisions(Bitwise(name, X, Affine(0b1010101))) is None
    assert with_divisions(Bitwise(name, X, Y)) is None


@pytest.mark.parametrize(
    ("index", "zeros"),
    [
        (X, 0),
        (X * 4, 2),
        (X * 12 + Affine(8), 2),
        (Affine(), 64),
        (Affine(-16), 4),
        (Sum(((FloorDiv(X, 3), 8),), Y * 16), 3),
        (Bitwise("and", X, Y * 8), 3),
        (Bitwise("or", X * 4, Y * 8), 2),
        (FloorDiv(X * 8, 3), 0),
    ],
    ids=str,
)
def test_zeros_below(index: Index, zeros: int) -> None:
    unknowns = Unknowns()
    assert zeros_below(linear(index, unknowns, unknowns.size)) == zeros


@pytest.mark.parametrize(
    ("right", "expected"),
    [((0, 3), True), ((0, 4), False), ((-1, 3), False), ((None, 3), False), ((0, None), False)],
)
def test_disjoint_bits(right: tuple[int | None, int | None], expected: bool) -> None:
    assert are_disjoint((X * 4, Y), [(None, None), right]) is expected
    assert are_disjoint((Y, X * 4), [right, (None, None)]) is expected
