"""Against tensor-layouts where it is right; its known mistakes are cases of test_algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cute import draw
from tests.strategies import picker
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


def test_compositions_agree_where_the_peer_is_right() -> None:
    agreed = 0
    for number in range(400):
        a, b = drawn(number)
        try:
            found = tc.composition(a, b)
            answer = ours(peer.compose(theirs(a), theirs(b)))
        except (LayoutError, peer.LayoutError, ValueError, ZeroDivisionError):
            continue
        places = [a(b(i)) for i in range(b.size)]
        if [answer(i) for i in range(answer.size)] == places:
            agreed += 1
            assert tc.coalesce(found) == tc.coalesce(answer)
    assert agreed > 100


@pytest.mark.parametrize("name", ["coalesce", "flatten", "right_inverse", "nullspace"])
def test_unary_operations_agree(name: str) -> None:
    for number in range(200):
        a, _ = drawn(number)
        found, answer = getattr(tc, name)(a), ours(getattr(peer, name)(theirs(a)))
        if name == "right_inverse" and found.size > answer.size:
            continue
        assert tc.coalesce(found) == tc.coalesce(answer), str(a)


def test_complements_and_divides_agree_on_compact_layouts() -> None:
    for number in range(200):
        pick = picker(np.random.default_rng(number))
        numbers = draw.sizes(pick, 24)
        a = tc.Layout(tuple(numbers))
        tile = pick(1, 4)
        assert tc.complement(tc.Layout(tile, pick(1, 3)), 24).size >= 1
        if a.size % tile == 0:
            try:
                answer = ours(peer.logical_divide(theirs(a), peer.Layout(tile, 1)))
                found = tc.logical_divide(a, tc.Layout(tile, 1))
            except (LayoutError, peer.LayoutError, ValueError):
                continue
            assert [found(i) for i in range(found.size)] == [answer(i) for i in range(answer.size)]
