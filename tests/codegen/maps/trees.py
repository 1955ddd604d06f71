"""Random digit trees for the tests of the compiler."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from codegen.maps.digit_trees import Leaf, Split, Switch, Tree, Window, ceil_div
from tests.tools.strategies import Pick, chance, one_of

STRIDES = (0, 1, 1, 2, 3, 4, 7, 8, 16, 60, -1, -4)


def tree(pick: Pick, extent: int, depth: int = 3, *, windows: bool = False) -> Tree:
    """A tree over [0, extent). Now and then, the storage of a tile step is larger than necessary."""
    if windows and depth and chance(pick, 6):
        step = one_of(pick, (1, 1, 2, 3, -1, -2))
        first = pick(0, 4) - min(0, step * (extent - 1))
        inner = tree(pick, first + max(0, step * (extent - 1)) + 1 + pick(0, 3), depth - 1)
        return Window(extent, inner, first, step)
    if depth == 0 or extent == 1 or chance(pick, 4):
        return Leaf(extent, one_of(pick, STRIDES))
    tile = one_of(pick, (1, 2, 2, 3, 4, 4, 6, 8, 12))
    if chance(pick, 5):
        cases = [tree(pick, tile, depth - 1, windows=windows) for _ in range(ceil_div(extent, tile))]
        cases = cases[:1] * len(cases) if chance(pick, 4) else cases
        starts = (0, *(one_of(pick, STRIDES) * k for k in range(1, len(cases))))
        return Switch(extent, tile, starts, tuple(cases))
    high = ceil_div(extent, tile) + (1 if chance(pick, 6) else 0)
    return Split(
        extent,
        tile,
        tree(pick, high, depth - 1, windows=windows),
        tree(pick, tile, depth - 1, windows=windows),
    )


@st.composite
def trees(draw: Any, *, windows: bool = False) -> Tree:
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    return tree(pick, pick(1, 40), windows=windows)


@st.composite
def tree_pairs(draw: Any, *, injective: bool = False) -> tuple[Tree, Tree]:
    """Two trees over the same extent."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    extent = pick(1, 40)
    return tree(pick, extent), tree(pick, extent)
