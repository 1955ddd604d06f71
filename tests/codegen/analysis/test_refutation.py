"""Refuted statements cannot hold, and bounds of unknowns are true, against all values one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from codegen.analysis.cases import Case, Entry, Facts
from codegen.analysis.refutation import refutes
from codegen.analysis.unknowns import Unknowns
from codegen.ir.index import Affine, affine, evaluate_index, index_symbol

ENDS = (-2, 5)
NAMES = ("a", "b")


def expressions() -> st.SearchStrategy[Affine]:
    small = st.integers(-4, 4)
    return st.builds(lambda c, a, b: affine(c, [("a", a), ("b", b)]), st.integers(-12, 12), small, small)


def cases() -> st.SearchStrategy[Case]:
    few = st.lists(expressions(), max_size=1).map(tuple)
    return st.builds(Case, few, few)


def holds(case: Case, values: dict[str, int]) -> bool:
    found = [evaluate_index(row, values) for row in case.zero]
    return not any(found) and all(evaluate_index(row, values) >= 0 for row in case.not_negative)


def known() -> Unknowns:
    unknowns = Unknowns()
    for name in NAMES:
        unknowns.new(name, *ENDS)
    return unknowns


@given(cases(), st.lists(st.lists(cases(), min_size=1, max_size=3).map(tuple), max_size=3))
def test_a_refuted_goal_never_holds(goal: Case, facts: list[tuple[Case, ...]]) -> None:
    unknowns = known()
    if refutes(unknowns.known, unknowns.ranges, goal, tuple(facts)):
        for numbers in product(range(ENDS[0], ENDS[1] + 1), repeat=len(NAMES)):
            values = dict(zip(NAMES, numbers, strict=True))
            assert not (holds(goal, values) and all(any(holds(c, values) for c in each) for each in facts))


@given(st.data())
def test_bounds_of_derived_unknowns_are_true(data: st.DataObject) -> None:
    """Quotients, remainders, minima and table entries in one expression."""
    unknowns, by = known(), data.draw(st.sampled_from((2, 3, 8)))
    of, one, two = (data.draw(expressions()) for _ in range(3))
    table = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=8, max_size=8)), np.int64)
    read = unknowns.new("entry", -9, 9, entry=Entry(table, index_symbol("a") + Affine(2)))
    facts: Facts = ((Case((), (data.draw(expressions()),)),),)
    parts = unknowns.floor(of, by), unknowns.remainder(of, by), unknowns.least([one, two], facts), read
    factors = [data.draw(st.integers(-2, 2)) for _ in parts]
    total = data.draw(expressions())
    for part, factor in zip(parts, factors, strict=True):
        total = total + part * factor
    if not unknowns.proves(total, facts):
        return
    for numbers in product(range(ENDS[0], ENDS[1] + 1), repeat=len(NAMES)):
        values = dict(zip(NAMES, numbers, strict=True))
        if not all(holds(case, values) for (case,) in facts):
            continue
        n, first, second = (evaluate_index(x, values) for x in (of, one, two))
        true = n // by, n % by, min(first, second), int(table[values["a"] + 2])
        rest = total
        for part, factor in zip(parts, factors, strict=True):
            rest = rest - part * factor
        assert evaluate_index(rest, values) + sum(f * x for f, x in zip(factors, true, strict=True)) >= 0


def test_blocks_end_before_a_number_that_no_block_begins_at() -> None:
    """In tiles of 384, the last block of 64 that begins below 1536 reads table entries up to 1535."""
    values = np.zeros(4800, np.int64)
    values[1536:] = 7
    unknowns = Unknowns()
    tile, block = unknowns.new("tile", 0, 12), unknowns.new("block", 0, 5)
    index = tile * 384 + block * 64
    below: Facts = ((Case((), (Affine(1535) - index,)),),)
    assert unknowns.proves(Affine(1472) - index, below)
    least = unknowns.least([index, unknowns.new("rows", 0, 9000)], ())
    for at in (index, least):
        entry = unknowns.new("entry", 0, 7, entry=Entry(values, at, 64))
        assert unknowns.proves(entry * -1, below)
        assert not unknowns.proves(entry * -1, ((Case((), (Affine(1536) - index,)),),))


def test_blocks_begin_above_a_number_that_each_tile_may_be_below() -> None:
    """Blocks that begin at 64 or above read no entry below 64, though tiles and blocks may both be 0."""
    values = np.zeros(4800, np.int64)
    values[:64] = 7
    unknowns = Unknowns()
    tile, block = unknowns.new("tile", 0, 12), unknowns.new("block", 0, 5)
    index = tile * 384 + block * 64
    from_64: Facts = ((Case((), (index - Affine(64),)),),)
    least = unknowns.least([index, unknowns.new("rows", 4736, 9000) - Affine(64)], ())
    for at in (index, least):
        entry = unknowns.new("entry", 0, 7, entry=Entry(values, at, 64))
        assert unknowns.proves(entry * -1, from_64)
        assert not unknowns.proves(entry * -1, ((Case((), (index,)),),))
        earlier = unknowns.new("entry", 0, 7, entry=Entry(values, at - Affine(1), 64))
        assert not unknowns.proves(earlier * -1, from_64)


@given(st.data())
def test_bounds_of_entries_from_comparisons_of_their_index_are_true(data: st.DataObject) -> None:
    unknowns, count = known(), data.draw(st.sampled_from((1, 2, 5)))
    factors = [data.draw(st.sampled_from((-8, -3, -1, 0, 1, 2, 8))) for _ in NAMES]
    lowest = sum(min(f * end for end in ENDS) for f in factors)
    index = affine(data.draw(st.integers(0, 3)) - lowest, list(zip(NAMES, factors, strict=True)))
    table = np.array(data.draw(st.lists(st.integers(0, 3), min_size=130, max_size=130)), np.int64)
    entry = unknowns.new("entry", 0, 3, entry=Entry(table, index, count))
    middle = data.draw(st.integers(0, 60))
    facts: Facts = (
        (Case((), (index - Affine(middle),)),),
        (Case((), (Affine(middle + data.draw(st.integers(0, 12))) - index,)),),
    )
    bound = data.draw(st.integers(0, 3))
    above, below = (
        unknowns.proves(entry - Affine(bound), facts),
        unknowns.proves(Affine(bound) - entry, facts),
    )
    for numbers in product(range(ENDS[0], ENDS[1] + 1), repeat=len(NAMES)):
        values = dict(zip(NAMES, numbers, strict=True))
        at = evaluate_index(index, values)
        if all(holds(case, values) for (case,) in facts):
            read = table[at : at + count]
            assert not above or read.min() >= bound
            assert not below or read.max() <= bound
