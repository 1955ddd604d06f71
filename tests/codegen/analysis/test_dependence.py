"""Feasibility against enumeration; the vectorizer's decisions against the interpreter, on random nests."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from codegen.analysis.dependence import first_dependence
from codegen.analysis.polyhedra import feasible
from codegen.ir.index import (
    Affine,
    Index,
    add_indices,
    affine,
    evaluate_index,
    index_symbol,
    scale_index,
)
from codegen.ir.integer_operators import bitwise, floor_div, modulo
from codegen.ir.nodes import Function, Statement
from codegen.ir.visit import accesses_of, loops_of
from codegen.pipeline.loops import vectorize_function
from tests.codegen.ir.nests import add, function, i, j, k, load, loop, n, number, plus, store
from tests.codegen.passes.meaning import same_meaning
from tests.tools.extent import examples

NAMES = ("x", "y", "z")
rows = st.builds(
    lambda constant, factors: affine(constant, list(zip(NAMES, factors, strict=True))),
    st.integers(-6, 6),
    st.tuples(*[st.integers(-3, 3)] * 3),
)


@settings(max_examples=examples(33, full=300), deadline=None)
@given(st.lists(rows, max_size=2), st.lists(rows, max_size=4))
def test_infeasible_is_a_proof(zero: list[Affine], not_negative: list[Affine]) -> None:
    box = [index_symbol(name) + Affine(4) for name in NAMES] + [
        Affine(4) - index_symbol(name) for name in NAMES
    ]
    points = (dict(zip(NAMES, point, strict=True)) for point in product(range(-4, 5), repeat=3))
    found = any(
        all(evaluate_index(e, p) == 0 for e in zero) and all(evaluate_index(r, p) >= 0 for r in not_negative)
        for p in points
    )
    if not feasible(zero, [*not_negative, *box]):
        assert not found


@pytest.mark.parametrize(
    ("zero", "not_negative"),
    [
        ([i * 2 - j * 2 + Affine(1)], []),
        ([i - j], [i - j - Affine(1)]),
        ([i + Affine(10) - j], [i, Affine(9) - j]),
        ([], [i * 2 - Affine(1), Affine(1) - i * 2]),
        ([i - n, j - n - Affine(1)], [i - j]),
        ([Affine(1)], []),
        ([], [Affine(-1)]),
    ],
)
def test_systems_known_to_be_infeasible(zero: list[Affine], not_negative: list[Affine]) -> None:
    assert not feasible(zero, not_negative)


SIZES = ((4,), (2,), (2, 4), (3, 2))
BASE = 60
"""Added to each subscript, so that none is negative."""


@st.composite
def nests(draw: st.DrawFn) -> Function:
    """Two loops, up to three statements on two arrays, and bounds that may use the outer index."""
    small = st.integers(-2, 2)

    def subscript(names: tuple[str, ...]) -> Affine:
        terms = [(name, draw(st.sampled_from([0, 1, 1, 1, 2, -1, 4]))) for name in names]
        return affine(BASE + draw(small), terms)

    def statement(names: tuple[str, ...]) -> Statement:
        value = add(load(draw(st.sampled_from("AB")), subscript(names)), load("A", subscript(names)))
        combine = draw(st.sampled_from(["", "", "add"]))
        return store(draw(st.sampled_from("ABC")), (subscript(names),), value, combine)

    def bounds(names: tuple[str, ...]) -> tuple[Affine, Affine, int]:
        step = draw(st.sampled_from([1, 1, 1, 2, -1]))
        low, high = draw(st.integers(0, 3)), draw(st.integers(4, 11))
        outer = draw(st.sampled_from([None, None, *names]))
        last = index_symbol(outer) if outer else Affine(high)
        return (last, Affine(low - 1), step) if step < 0 else (Affine(low), last, step)

    before = [statement(("i",)) for _ in range(draw(st.integers(0, 1)))]
    inside = [statement(("i", "j")) for _ in range(draw(st.integers(1, 2)))]
    after = [statement(("i",)) for _ in range(draw(st.integers(0, 1)))]
    low, high, step = bounds(("i",))
    inner = loop("j", low, high, *inside, step=step)
    low, high, step = bounds(())
    return function(loop("i", low, high, *before, inner, *after, step=step))


@pytest.mark.full
@settings(max_examples=examples(27, full=250), suppress_health_check=list(HealthCheck))
@given(nests(), st.sampled_from(SIZES), st.booleans())
def test_random_nests_keep_their_meaning(kernel: Function, sizes: tuple[int, ...], reductions: bool) -> None:
    """Lanes load before they store, and store in any order. What is allowed leaves the same bits."""
    made = vectorize_function(kernel, sizes, reductions=reductions)
    same_meaning(kernel, made.function, {})


@settings(max_examples=examples(16, full=150), deadline=None)
@given(
    st.integers(-12, 12),
    st.sampled_from([1, 2, 3, -1]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([2, 4, 8]),
)
def test_one_loop_is_refused_exactly_if_lanes_would_differ(
    shift: int, step: int, factor: int, size: int
) -> None:
    """A[factor * i + shift] = A[factor * i] + 1 over 0..30, checked exactly by running lanes on numbers."""
    low, high = (0, 30) if step > 0 else (30, 0)
    target, source = plus(i * factor, shift + 20), plus(i * factor, 20)
    kernel = function(
        loop("i", low, high, store("A", (target,), add(load("A", source), number(1))), step=step)
    )
    (report,) = vectorize_function(kernel, (size,)).loops
    steps = list(range(low, high, step))
    scalar, lanes = np.arange(200) * 1000, np.arange(200) * 1000
    for at in steps:
        scalar[evaluate_index(target, {"i": at})] = scalar[evaluate_index(source, {"i": at})] + 1
    for begin in range(0, len(steps), size):
        together = steps[begin : begin + size]
        loaded = [lanes[evaluate_index(source, {"i": at})] for at in together]
        for at, value in zip(together, loaded, strict=True):
            lanes[evaluate_index(target, {"i": at})] = value + 1
    assert report.vectorized == np.array_equal(scalar, lanes), str(report)


@st.composite
def combined_bits(draw: st.DrawFn) -> Index:
    """Swizzles and the like of two indices: j ^ (i & 3), 8*i + (j ^ 1) // 2, (4*i) | j, from 0 to 255."""
    names = st.sampled_from([i, j, i * 4, j * 2, i + j, Affine(draw(st.integers(0, 15)))])
    name = draw(st.sampled_from(("and", "or", "xor", "xor")))
    part = bitwise(name, draw(names), draw(names | names.map(lambda index: modulo(index, 4))))
    kinds = (
        part,
        floor_div(part, 2),
        modulo(part, 8),
        bitwise("xor", part, modulo(draw(names), 4)),
        add_indices(part, i * 16),
        add_indices(scale_index(part, 2), modulo(j, 2)),
    )
    return draw(st.sampled_from(kinds))


def lanes_differ(target: Index, source: Index, rows: int, columns: int, size: int) -> bool:
    """Whether A[target] = A[source] + 1 in lanes of j gives other numbers than the loops do."""
    scalar, lanes = np.arange(300) * 1000, np.arange(300) * 1000
    for row, begin in product(range(rows), range(0, columns, size)):
        values = [{"i": row, "j": column} for column in range(begin, min(begin + size, columns))]
        loaded = [lanes[evaluate_index(source, at)] for at in values]
        for at, value in zip(values, loaded, strict=True):
            scalar[evaluate_index(target, at)] = scalar[evaluate_index(source, at)] + 1
            lanes[evaluate_index(target, at)] = value + 1
    return not np.array_equal(scalar, lanes)


def dependence_of(target: Index, source: Index, rows: int, columns: int, size: int) -> object:
    body = store("A", (target,), add(load("A", source), number(1)))
    loops = loops_of((loop("i", 0, rows, loop("j", 0, columns, body)),))
    return first_dependence(accesses_of((loops[0].node,), loops), {1: size})


@settings(max_examples=examples(50, full=600), deadline=None)
@given(combined_bits(), combined_bits(), st.booleans(), st.sampled_from([2, 4, 8]), st.integers(1, 3))
def test_bits_without_a_dependence_may_run_as_lanes(
    target: Index, source: Index, alike: bool, size: int, rows: int
) -> None:
    source = target if alike else source
    if dependence_of(target, source, rows, 16, size) is None:
        assert not lanes_differ(target, source, rows, 16, size)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (bitwise("xor", j, modulo(i, 4)), bitwise("xor", j, modulo(i, 4))),
        (bitwise("xor", modulo(i, 4), j), bitwise("xor", j, modulo(i, 4))),
        (
            bitwise("xor", bitwise("xor", j, i), modulo(i, 4)),
            bitwise("xor", bitwise("xor", i, j), modulo(i, 4)),
        ),
        (bitwise("xor", j, Affine(1)), bitwise("xor", j, Affine(1))),
        (
            bitwise("xor", bitwise("or", j, Affine(0)), bitwise("and", i * 5, i)),
            bitwise("xor", bitwise("and", i * 5, i), j),
        ),
    ],
    ids=str,
)
def test_swizzles_are_permutations(target: Index, source: Index) -> None:
    rows = i * 16
    assert dependence_of(add_indices(rows, target), add_indices(rows, source), 4, 16, 8) is None
    assert not lanes_differ(add_indices(rows, target), add_indices(rows, source), 4, 16, 8)


def test_bits_that_repeat_are_dependences() -> None:
    for name in ("and", "or"):
        repeated = bitwise(name, j, i + Affine(5))
        assert dependence_of(repeated, repeated, 4, 16, 8) is not None
    assert dependence_of(bitwise("xor", j, Affine(1)), j, 4, 16, 8) is not None
    assert dependence_of(bitwise("xor", j, j * 2), bitwise("xor", j, j * 2), 4, 16, 8) is not None


def test_sides_of_different_loops_are_not_equal() -> None:
    """Both loops over k have the same name, but their indices differ."""
    swizzled = bitwise("xor", j, k)
    first = loop("k", 0, 4, store("A", (swizzled,), number(1)))
    second = loop("k", 0, 4, store("B", (j,), load("A", swizzled)))
    loops = loops_of((loop("j", 0, 16, first, second),))
    assert first_dependence(accesses_of((loops[0].node,), loops), {0: 8}) is not None
