"""Digit trees: every rewrite of a tree must keep its offsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.maps.access import AccessMap, Root, logical_roots, map_offset, map_range, strided_map
from codegen.maps.digit_trees import (
    Leaf,
    Opaque,
    Split,
    Tree,
    Window,
    coalesce_tree,
    evaluate_tree,
    offset_range,
    split_tree,
    tree_cuts,
    truncate_tree,
)
from codegen.maps.windows import window_map
from tests.codegen.maps.trees import trees
from tests.tools.strategies import shapes
from tilejit.layout.indexing import access_map
from tilejit.layout.shape import Shape


def offsets(tree: Tree, extent: int | None = None) -> list[int]:
    return [int(evaluate_tree(tree, m)) for m in range(tree.extent if extent is None else extent)]


@given(trees(windows=True), st.integers(1, 40))
def test_truncate_and_coalesce_keep_offsets(tree: Tree, bound: int) -> None:
    bound = min(bound, tree.extent)
    want = offsets(tree, bound)
    assert offsets(truncate_tree(tree, bound)) == want
    assert offsets(coalesce_tree(truncate_tree(tree, bound))) == want


@given(trees(windows=True))
def test_evaluate_takes_arrays(tree: Tree) -> None:
    index = np.arange(tree.extent)
    assert list(np.broadcast_to(evaluate_tree(tree, index), index.shape)) == offsets(tree)


@given(trees(windows=True), st.integers(2, 24))
def test_split_gives_two_digits(tree: Tree, tile: int) -> None:
    tree = coalesce_tree(tree)
    pair = split_tree(tree, tile) if 1 < tile < tree.extent else None
    if pair:
        assert offsets(Split(tree.extent, tile, *pair)) == offsets(tree)


@given(trees())
def test_every_cut_can_be_made(tree: Tree) -> None:
    tree = coalesce_tree(tree)
    for tile in tree_cuts(tree):
        if 1 < tile < tree.extent:
            pair = split_tree(tree, tile)
            assert pair is not None
            assert offsets(Split(tree.extent, tile, *pair)) == offsets(tree)


@given(trees(), st.integers(1, 40))
def test_offset_range_is_exact(tree: Tree, bound: int) -> None:
    bound = min(bound, tree.extent)
    assert offset_range(tree, bound) == (min(offsets(tree, bound)), max(offsets(tree, bound)))


@given(trees(windows=True))
def test_offset_range_holds_windows(tree: Tree) -> None:
    low, high = offset_range(tree)
    assert low <= min(offsets(tree))
    assert max(offsets(tree)) <= high


@given(trees(), st.integers(0, 40), st.integers(1, 40))
def test_offset_range_of_a_slice_is_exact(tree: Tree, start: int, extent: int) -> None:
    """A slice that begins within a tile takes no more of a file than its own bytes."""
    start = min(start, tree.extent - 1)
    window = Window(min(extent, tree.extent - start), tree, start, 1)
    assert offset_range(window) == (min(offsets(window)), max(offsets(window)))


def test_partial_inner_tile_is_three_loops() -> None:
    """[12,4]T(6,4)(4,1) has no CuTe layout, but three digits with an inner bound."""
    access = access_map(Shape.parse("f32[12,4]{1,0:T(6,4)(4,1)}"))
    rows = logical_roots(access)[0].tree
    assert rows == Split(12, 6, Leaf(2, 32), Split(6, 4, Leaf(2, 16), Leaf(4, 1)))


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("f32[3,5]{1,0:T(3,5)(4,1)}", [Leaf(3, 1), Leaf(5, 4)]),
        ("f32[24,128]{1,0:T(8,128)}", [Leaf(24, 128), Leaf(128, 1)]),
        ("f32[7]{0:T(*,8)}", [Leaf(7, 1)]),
    ],
)
def test_digits_of_one_leave_plain_strides(text: str, leaves: list[Leaf]) -> None:
    assert [root.tree for root in logical_roots(access_map(Shape.parse(text)))] == leaves


@given(shapes(), st.data())
def test_window_map_is_a_slice(shape: Shape, data: st.DataObject) -> None:
    access = access_map(shape)
    starts, steps, sizes = [], [], []
    for n in shape.dimensions:
        part = slice(
            data.draw(st.integers(0, n)),
            data.draw(st.integers(0, n)),
            data.draw(st.sampled_from((1, 2, 3, -1, -2))),
        )
        start, stop, step = part.indices(n)
        count = len(range(start, stop, step))
        starts.append(start if count else 0)
        steps.append(step)
        sizes.append(count)
    window = window_map(access, tuple(starts), tuple(steps), tuple(sizes))
    for index in list(np.ndindex(*sizes))[:200]:
        outer = tuple(a + s * k for a, s, k in zip(starts, steps, index, strict=True))
        assert int(map_offset(window, index)) == int(map_offset(access, outer))
    if 0 not in sizes:
        low, high = map_range(window)
        assert access.bounds[0] <= low <= high < access.bounds[1]


def test_a_strided_map_ignores_strides_of_extent_one() -> None:
    access = strided_map((1, 4), (12345, -4), (-12, 4), element_bits=32)
    assert access.roots == (Root((0,), Leaf(1, 0)), Root((1,), Leaf(4, -4)))
    assert access.elements == 4
    assert map_range(access) == (-12, 0)


def test_units() -> None:
    access = AccessMap(
        (4,), (Root((0,), Window(4, Opaque(8, lambda m: m * 3, 0, 21), 2, 1)),), 5, 4, 4, (0, 30), 30
    )
    bits = access.in_units(1)
    assert bits.in_units(1) is bits
    assert bits.bounds == (0, 120)
    assert [int(map_offset(bits, (k,))) for k in range(4)] == [20, 32, 44, 56]
    assert bits.width == 4
    assert access.is_opaque is False
