"""Common digits of two trees, and boxes: the same pairs of offsets, each once."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given

from codegen.maps.digit_names import digit_names
from codegen.maps.digit_trees import Leaf, Split, Switch, Tree, evaluate_tree
from codegen.maps.refine import (
    Box,
    PairLeaf,
    PairSwitch,
    PairTable,
    PairTree,
    coalesce_pair,
    count_boxes,
    pair_levels,
    pair_offsets,
    refine,
    tabulate,
    tree_boxes,
)
from tests.codegen.maps.trees import tree_pairs


def pairs_of_box(box: Box) -> list[tuple[int, int]]:
    """Every (source, destination) pair in a box."""
    out = []
    tables = [(t.src(np.arange(t.extent)), t.dst(np.arange(t.extent))) for t in box.tables]
    for entry in product(*(range(t.extent) for t in box.tables)):
        src = box.src_base + sum(int(t[0][k]) for t, k in zip(tables, entry, strict=True))
        dst = box.dst_base + sum(int(t[1][k]) for t, k in zip(tables, entry, strict=True))
        for digits in product(*(range(d[0]) for d in box.digits)):
            out.append(
                (
                    src + sum(k * d[1] for k, d in zip(digits, box.digits, strict=True)),
                    dst + sum(k * d[2] for k, d in zip(digits, box.digits, strict=True)),
                )
            )
    return out


def wanted(a: Tree, b: Tree) -> list[tuple[int, int]]:
    return [(int(evaluate_tree(a, m)), int(evaluate_tree(b, m))) for m in range(a.extent)]


@given(tree_pairs())
def test_refining_keeps_both_sides(pair: tuple[Tree, Tree]) -> None:
    tree = refine(*pair)
    for same in (tree, coalesce_pair(tree), tabulate(tree)):
        assert [pair_offsets(same, m) for m in range(pair[0].extent)] == wanted(*pair)


@given(tree_pairs())
def test_boxes_hold_every_index_once(pair: tuple[Tree, Tree]) -> None:
    tree = coalesce_pair(refine(*pair))
    boxes = named_boxes(tree)
    assert sorted(p for box in boxes for p in pairs_of_box(box)) == sorted(wanted(*pair))
    assert sum(box.volume for box in boxes) == pair[0].extent
    assert count_boxes(tree) == len(boxes)


def named_boxes(tree: PairTree) -> list[Box]:
    """The boxes of a tree, whose digits have names."""
    boxes = tree_boxes(tree, digit_names((0,), pair_levels(tree)))
    assert all(len({*box.names}) == len(box.digits) for box in boxes)
    return boxes


def _has_table(tree: PairTree) -> bool:
    if isinstance(tree, PairLeaf | PairTable):
        return isinstance(tree, PairTable)
    if isinstance(tree, PairSwitch):
        return any(_has_table(case) for case in tree.cases)
    return _has_table(tree.high) or _has_table(tree.low)


def test_tiles_that_divide_need_no_table() -> None:
    eight = Split(64, 8, Leaf(8, 64), Leaf(8, 1))
    two = Split(64, 2, Leaf(32, 2), Leaf(2, 100))
    assert not _has_table(refine(eight, two))


def test_a_switch_needs_no_table() -> None:
    """XOR of bit 2 with bit 0, against rows that are out of order."""
    up, down = Split(4, 2, Leaf(2, 2), Leaf(2, 1)), Split(4, 2, Leaf(2, 2), Leaf(2, -1))
    swizzled = Split(24, 8, Leaf(3, 8), Switch(8, 4, (0, 5), (up, down)))
    other = Split(24, 4, Leaf(6, 1), Leaf(4, 6))
    assert [int(evaluate_tree(swizzled, m)) for m in range(8)] == [0, 1, 2, 3, 5, 4, 7, 6]
    tree = refine(swizzled, other)
    assert not _has_table(tree)
    assert count_boxes(tree) == 2


def test_tiles_of_three_and_four_need_one_period_of_twelve() -> None:
    three = Split(48, 3, Leaf(16, 5), Leaf(3, 1))
    four = Split(48, 4, Leaf(12, 7), Leaf(4, 1))
    tree = refine(three, four)
    assert sorted(p for box in named_boxes(tree) for p in pairs_of_box(box)) == sorted(wanted(three, four))
    tables = [t for box in named_boxes(tree) for t in box.tables]
    assert [t.extent for t in tables] == [12]
