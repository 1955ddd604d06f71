"""Against tensor-layouts, where it is right. Its known mistakes are cases of test_algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cute import brute, draw
from tests.tools.strategies import picker
from tilejit import LayoutError
from tilejit import cute as tc

peer = pytest.importorskip("tensor_layouts")


def theirs(layout: tc.Layout) -> Any:
    return peer.Layout(layout.shape, layout.stride)


def ours(layout: Any) -> tc.Layout:
    return tc.Layout(layout.shape, layout.stride)


def drawn(number: int) -> tuple[tc.Layout, tc.Layout]:
    pick = picker(np.random.default_rng(number))
    a = draw.layout(pick)
    return a, draw.tiler(pick, a, 12)


def pointwise(layout: tc.Layout) -> list[int]:
    return brute.table(brute.modes_of(layout))


def answer_of(ask: Callable[[], Any]) -> tc.Layout | None:
    """The peer's answer; None if it has none."""
    try:
        return ours(ask())
    except (LayoutError, peer.LayoutError, ValueError, ZeroDivisionError):
        return None


def test_compositions_agree_where_the_peer_is_right() -> None:
    """If the peer's answer is the requested function, ours is too; refusing it would be a mistake."""
    agreed = 0
    for number in range(400):
        a, b = drawn(number)
        answer = answer_of(lambda a=a, b=b: peer.compose(theirs(a), theirs(b)))  # type: ignore[misc]
        places = brute.table(brute.modes_of(b))
        if answer is None or min(places, default=0) < 0:
            continue
        values = [brute.at(brute.modes_of(a), place) for place in places]
        if pointwise(answer) == values:
            agreed += 1
            assert pointwise(tc.composition(a, b)) == values, f"{a} o {b}"
    assert agreed > 100


@pytest.mark.parametrize("name", ["coalesce", "flatten", "right_inverse", "nullspace"])
def test_unary_operations_agree(name: str) -> None:
    for number in range(200):
        a, _ = drawn(number)
        found, answer = getattr(tc, name)(a), ours(getattr(peer, name)(theirs(a)))
        if name == "right_inverse" and found.size > answer.size:
            continue
        assert tc.coalesce(found) == tc.coalesce(answer), str(a)


def test_complements_agree_where_the_peer_is_right() -> None:
    agreed = 0
    for number in range(400):
        pick = picker(np.random.default_rng(number))
        a, bound = draw.layout(pick, 12), pick(1, 40)
        answer = answer_of(lambda a=a, bound=bound: peer.complement(theirs(a), bound))  # type: ignore[misc]
        if answer is not None and covers(a, answer, bound):
            agreed += 1
            assert covers(a, tc.complement(a, bound), bound), f"complement({a}, {bound})"
    assert agreed > 100


def covers(a: tc.Layout, repeats: tc.Layout, bound: int) -> bool:
    """Whether ascending repeats of a's offsets are distinct and cover everything below the bound."""
    tile, places = set(pointwise(a)), pointwise(repeats)
    sums = [place + offset for place in places for offset in tile]
    ascend = sorted(set(places)) == places
    return ascend and len(set(sums)) == len(sums) and set(range(bound)) <= set(sums)


def test_divides_agree_where_the_peer_is_right() -> None:
    agreed = 0
    for number in range(200):
        pick = picker(np.random.default_rng(number))
        a = tc.Layout(tuple(draw.sizes(pick, 24)))
        tile = pick(1, 4)
        answer = answer_of(lambda a=a, tile=tile: peer.logical_divide(theirs(a), peer.Layout(tile, 1)))  # type: ignore[misc]
        # The offsets of the tile and its repeats are in order: the layout is compact.
        if answer is not None and pointwise(answer)[: a.size] == list(range(a.size)):
            agreed += 1
            found = pointwise(tc.logical_divide(a, tc.Layout(tile, 1)))
            assert found[: a.size] == list(range(a.size)), f"{a} / {tile}"
    assert agreed > 100
