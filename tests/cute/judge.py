"""One random case of an operation, checked against its pointwise definition and by exhaustive search."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest

from tests.cute import brute, draw
from tests.tools.strategies import Pick, chance, one_of
from tilejit import LayoutError, cute

Count = Counter[str]


def composition(pick: Pick) -> str:
    a = draw.layout(pick, signed=True)
    b = draw.tiler(pick, a)
    modes_a, modes_b = brute.modes_of(a), brute.modes_of(b)
    places = brute.table(modes_b)
    exists = brute.composition_exists(modes_a, modes_b)
    if not exists:
        with pytest.raises(cute.NoLayoutError) as refusal:
            cute.composition(a, b)
        seen = refusal.value.witness
        assert seen is not None
        assert f"index {seen.index} " in str(refusal.value)
        place = places[seen.index]
        value = place if place < 0 else brute.at(modes_a, place)
        assert value == seen.value != seen.expected, f"{a} o {b}: {seen}"
        return "none"
    found = cute.composition(a, b)
    assert cute.compatible(b.shape, found.shape), f"{a} o {b} -> {found}: another structure"
    assert brute.table(brute.modes_of(found)) == [brute.at(modes_a, p) for p in places], (
        f"{a} o {b} -> {found}"
    )
    return "found"


def complement(pick: Pick) -> str:
    a = draw.layout(pick, 12)
    bound = pick(1, 18)
    if chance(pick, 3):  # mostly without a complement
        a, bound = cute.Layout((pick(2, 3), pick(2, 3)), (pick(1, 5), pick(2, 7))), pick(8, 18)
    if chance(pick, 4):
        a, bound = cute.Layout((pick(2, 3), pick(2, 3)), (-pick(1, 4), pick(-6, 6))), pick(1, 9)
    modes = [(n, d) for n, d in brute.modes_of(a) if d]
    exists = brute.complement_exists(modes, bound)
    try:
        found = cute.complement(a, bound)
    except cute.NoLayoutError as refusal:
        assert not exists, f"refused: complement({a}, {bound})"
        seen = refusal.witness
        assert seen is not None
        if seen.value == 0 < a.size:
            assert brute.complement_exists(modes, seen.index)
            assert not brute.complement_exists(modes, seen.index + 1)
        return "none"
    assert exists, f"complement({a}, {bound}) -> {found}, which is wrong"
    repeats = brute.table(brute.modes_of(found))
    sums = [r + t for r in repeats for t in set(brute.table(modes) or [0])]
    assert sorted(set(repeats)) == repeats, f"complement({a}, {bound}) -> {found} does not ascend"
    assert len(set(sums)) == len(sums), f"complement({a}, {bound}) -> {found} meets offsets twice"
    assert set(range(bound)) <= set(sums), f"complement({a}, {bound}) -> {found} leaves gaps"
    return "found"


def right_inverse(pick: Pick) -> str:
    a = draw.layout(pick, 16, signed=True)
    modes = brute.modes_of(a)
    found = cute.right_inverse(a)
    places = brute.table(brute.modes_of(found))
    assert max(places) < prod(n for n, _ in modes)
    assert [brute.at(modes, p) for p in places] == list(range(len(places))), f"right_inverse({a}) -> {found}"
    longest = brute.longest_right_inverse(modes)
    assert len(places) == longest, f"right_inverse({a}) -> {found}; there is one of {longest}"
    return "found" if longest > 1 else "none"


def left_inverse(pick: Pick) -> str:
    a = draw.layout(pick, 10, signed=True)
    modes = brute.modes_of(a)
    if max(brute.table(modes)) > 20:
        return "skipped"
    exists = brute.left_inverse_exists(modes)
    try:
        found = cute.left_inverse(a)
    except cute.NoLayoutError:
        assert not exists, f"refused: left_inverse({a})"
        return "none"
    assert exists, f"left_inverse({a}) -> {found}, which is wrong"
    indices = [
        sum(c * w for c, w in zip(_coordinates(i, modes), _weights(modes), strict=True))
        for i in range(a.size)
    ]
    back = [brute.at(brute.modes_of(found), offset) for offset in brute.table(modes)]
    assert back == indices, f"left_inverse({a}) -> {found} gives {back}"
    return "found"


def _coordinates(index: int, modes: brute.Modes) -> list[int]:
    out = []
    for size, step in modes:
        out.append(index % size if step else 0)
        index //= size
    return out


def _weights(modes: brute.Modes) -> list[int]:
    return [prod(n for n, _ in modes[:k]) for k in range(len(modes))]


def coalesce(pick: Pick) -> str:
    a = draw.layout(pick, signed=True)
    found = cute.coalesce(a)
    modes = brute.modes_of(found)
    assert brute.table(modes) == brute.table(brute.modes_of(a)), f"coalesce({a}) -> {found}"
    fewest = min(len(f) for f in brute.factorisations(a.size) if _fits(a, f))
    assert len([n for n, _ in modes if n > 1]) == fewest, f"coalesce({a}) -> {found}"
    return "found"


def _fits(a: cute.Layout, factors: list[int]) -> bool:
    values = brute.table(brute.modes_of(a))
    weight, modes = 1, []
    for size in factors:
        modes.append((size, values[weight]))
        weight *= size
    return (brute.table(modes) if modes else [0]) == values


def logical_divide(pick: Pick) -> str:
    """(A o B, A o B*), where B* is B's complement in A's size; refused if either does not exist."""
    a = draw.layout(pick, 24)
    b = draw.tiler(pick, a, 8)
    rest = _complement_of(b, a.size)
    whole = None if rest is None else cute.make_layout(b, rest)
    exists = whole is not None and brute.composition_exists(brute.modes_of(a), brute.modes_of(whole))
    try:
        found = cute.logical_divide(a, b)
    except LayoutError:
        assert not exists, f"refused: {a} / {b}"
        return "none"
    assert exists, f"{a} / {b} -> {found}, which is wrong"
    assert whole is not None
    places = brute.table(brute.modes_of(whole))
    assert set(range(a.size)) <= set(places)
    assert cute.compatible(whole.shape, found.shape), f"{a} / {b} -> {found}: another structure"
    values = brute.table(brute.modes_of(found))
    assert values == [brute.at(brute.modes_of(a), p) for p in places], f"{a} / {b} -> {found}"
    return "found"


def logical_product(pick: Pick) -> str:
    """(A, A* o B): copies of A at distinct places, in the order of B."""
    a = draw.layout(pick, 8)
    b = draw.layout(pick, 8)
    modes_a, modes_b = brute.modes_of(a), brute.modes_of(b)
    rest = _complement_of(a, a.size * b.cosize)
    exists = rest is not None and brute.composition_exists(brute.modes_of(rest), modes_b)
    try:
        found = cute.logical_product(a, b)
    except LayoutError:
        assert not exists, f"refused: {a} x {b}"
        return "none"
    assert exists, f"{a} x {b} -> {found}, which is wrong"
    assert rest is not None
    assert found[0] == a
    assert cute.compatible(b.shape, found[1].shape)
    copies = [brute.at(brute.modes_of(rest), place) for place in brute.table(modes_b)]
    expected = [copy + offset for copy in copies for offset in brute.table(modes_a)]
    assert brute.table(brute.modes_of(found)) == expected, f"{a} x {b} -> {found}"
    return "found"


def _complement_of(a: cute.Layout, bound: int) -> cute.Layout | None:
    """A valid complement, or None if trying everything finds none; up to bounds of 18."""
    modes = [(n, d) for n, d in brute.modes_of(a) if d]
    try:
        found = cute.complement(a, bound)
    except LayoutError:
        large = bound - min(brute.table(modes), default=0) > 18
        assert large or not brute.complement_exists(modes, bound), f"refused: complement({a}, {bound})"
        return None
    sums = [r + t for r in brute.table(brute.modes_of(found)) for t in set(brute.table(modes) or [0])]
    assert len(set(sums)) == len(sums), f"complement({a}, {bound}) -> {found} meets offsets twice"
    assert set(range(bound)) <= set(sums), f"complement({a}, {bound}) -> {found} leaves gaps"
    return found


OPERATIONS = {
    run.__name__: run
    for run in (
        composition,
        complement,
        right_inverse,
        left_inverse,
        coalesce,
        logical_divide,
        logical_product,
    )
}


def judged(operation: str, pick: Pick) -> str:
    """Run one case; "found", "none" or "skipped"."""
    return OPERATIONS[operation](pick)


def any_operation(pick: Pick) -> str:
    """Composition half of the time, otherwise one of the others."""
    return one_of(pick, ["composition"] * 6 + list(OPERATIONS))
