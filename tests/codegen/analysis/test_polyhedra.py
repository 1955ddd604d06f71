"""Systems of inequalities against all integers of a small box."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from codegen.analysis.polyhedra import feasible, projected
from codegen.ir.index import Affine, affine, evaluate_index, index_symbol

NAMES = ("a", "b", "c", "d")
BOX = range(-3, 4)


def rows(most: int) -> st.SearchStrategy[list[Affine]]:
    terms = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-2, 2)), max_size=3)
    return st.lists(st.builds(affine, st.integers(-4, 4), terms), max_size=most)


@given(rows(2), rows(4), rows(1), rows(2))
def test_a_system_with_a_solution_is_feasible(
    zero: list[Affine], not_negative: list[Affine], more_zero: list[Affine], more: list[Affine]
) -> None:
    """It is asked at once, and after it was projected to the names that later inequalities use."""
    box = [index_symbol(name) * sign + Affine(3) for name in NAMES for sign in (1, -1)]
    kept = {name for row in (*more_zero, *more) for name, _ in row.terms}
    found = projected(zero, [*not_negative, *box], kept)
    for point in product(BOX, repeat=len(NAMES)):
        values = dict(zip(NAMES, point, strict=True))
        if any(evaluate_index(row, values) for row in (*zero, *more_zero)):
            continue
        if all(evaluate_index(row, values) >= 0 for row in (*not_negative, *more)):
            assert feasible([*zero, *more_zero], [*not_negative, *box, *more])
            assert found is not None
            assert feasible([*found[0], *more_zero], [*found[1], *more])
            return


def test_a_system_as_text() -> None:
    i, j, d = map(index_symbol, "ijd")
    inside = [i, Affine(9) - i, j, Affine(9) - j]
    found = projected([d - i + j], inside, {"d"})
    assert found is not None
    zero, not_negative = found
    assert not zero
    assert {name for row in not_negative for name, _ in row.terms} == {"d"}
    assert feasible([], [*not_negative, d - Affine(9)])
    assert not feasible([], [*not_negative, d - Affine(10)])
    assert projected([i - j], [i - j - Affine(1)], {"d"}) is None
