"""Steps on digits of an offset, alone and in chains with swizzles: their trees, texts and inverses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen import Opaque, Switch, evaluate_tree, offset_range
from tests.tools.extent import examples
from tilejit.cute import (
    ComposedLayout,
    DigitStep,
    Layout,
    Swizzle,
    is_injective,
    left_inverse,
    offsets,
    parse,
)
from tilejit.cute.function import function_of
from tilejit.cute.swizzled import swizzled_roots

Composed = Layout | ComposedLayout


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("Dg<4:2=(0,2,1,3)>", [0, 1, 4, 5, 2, 3, 6, 7, 8, 9]),
        ("Dg<3:1+2:3>", [0, 1, 2, 4, 5, 3, 6, 7, 8, 10]),
        ("Dg<3:1-2:3>", [0, 1, 2, 5, 3, 4, 6, 7, 8, 11]),
        ("Dg<2:1^2:4>", [0, 1, 2, 3, 5, 4, 7, 6, 8, 9]),
        ("Dg<3:2+2:1>", [0, 3, 2, 5, 4, 1, 6, 9, 8, 11]),
    ],
)
def test_a_step_moves_one_digit(text: str, moved: list[int]) -> None:
    step = parse(text)
    assert str(step) == text
    assert step(np.arange(10)).tolist() == moved
    assert [step(k) for k in range(10)] == moved
    assert step.inverse(step(np.arange(100))).tolist() == list(range(100))
    assert step(10**30) // step.block == 10**30 // step.block
    with pytest.raises(tj.LayoutIndexError, match="nonnegative"):
        step(-1)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ((4, 1), "the operation of a digit is '' and its table has 0 values"),
        ((4, 1, "*", 2, 4), "the operation of a digit is '\\*'"),
        ((4, 1, "+", 2, 2), "the digits 4:1 and 2:2 overlap"),
        ((4, 1, "^", 8, 4), "4 values XORed with 8 do not stay below 4"),
        ((3, 1, "^", 2, 4), "3 values XORed with 2 do not stay below 3"),
        ((0, 1, "+", 2, 2), "size of a digit is 0"),
        ((3, 1, "", 1, 1, (0, 1)), "the table has 2 values, but the digit has 3"),
        ((3, 1, "", 1, 1, (0, 1, 1)), "the table names 1 twice"),
        ((3, 1, "", 1, 1, (0, 1, 3)), "the table names 3, which is not from 0 to 2"),
    ],
)
def test_steps_are_permutations(fields: tuple[Any, ...], cause: str) -> None:
    with pytest.raises(tj.LayoutError, match=cause):
        DigitStep(*fields)


@pytest.mark.parametrize(
    ("text", "caret"),
    [
        ("Dg<4:1> o 0 o 8:1", 6),
        ("Dg<4 1+2:4> o 0 o 8:1", 5),
        ("Dg<4:1+2> o 0 o 8:1", 8),
        ("Dg<4:1=(0,1)> o 0 o 8:1", 2),
        ("Dg<4:1=((0,1),2,3)> o 0 o 8:1", 2),
        ("8:1 o 0 o Dg<4:1+2:4>", 10),
    ],
)
def test_texts_with_mistakes(text: str, caret: int) -> None:
    with pytest.raises(tj.LayoutError) as caught:
        parse(text)
    assert str(caught.value).splitlines()[2] == " " * (2 + caret) + "^"


def drawn(rng: Random) -> Composed:
    """Nested digits in some order of dimensions, some of which count down, and steps on a few of them."""
    digits: list[tuple[int, int]] = []
    stride = 1
    for _ in range(rng.randint(2, 6)):
        digits.append((rng.choice([1, 2, 3, 4, 5, 8]), stride))
        stride *= digits[-1][0]
    steps: list[DigitStep | Swizzle] = []
    for _ in range(rng.randint(1, 3)):
        own, other, kind = rng.choice(digits), rng.choice(digits), rng.choice("+-^=s")
        if kind == "s":
            steps.append(Swizzle(1, rng.randint(0, 3), rng.randint(1, 3)))
        elif kind == "=":
            steps.append(DigitStep(*own, table=tuple(rng.sample(range(own[0]), own[0]))))
        else:
            with suppress(tj.LayoutError):
                steps.append(DigitStep(*own, kind, *other))
    moved = {s.stride for s in steps if isinstance(s, DigitStep)}
    moved |= {s.by_stride for s in steps if isinstance(s, DigitStep)}
    modes: list[list[tuple[int, int]]] = [[] for _ in range(rng.randint(1, 3))]
    start = rng.choice([0, 0, stride])
    for size, step in rng.sample(digits, len(digits)):
        down = step not in moved and rng.randint(0, 3) == 0
        start += (size - 1) * step if down else 0
        rng.choice(modes).append((size, -step if down else step))
    layout: Composed = Layout(
        tuple(tuple(n for n, _ in mode) for mode in modes), tuple(tuple(s for _, s in mode) for mode in modes)
    )
    for place, one in enumerate(steps):
        layout = ComposedLayout(one, 0 if place else start, layout)
    return layout


def test_trees_and_inverses_agree_with_the_definition() -> None:
    rng, kinds = Random(3), set()
    for _ in range(examples(150, full=2000)):
        layout = drawn(rng)
        assert parse(str(layout)) == layout
        function = function_of(layout)
        dims = tuple(rng.randint(max(1, size - 3), size) for size in function.sizes)
        index = np.indices(dims).reshape(len(dims), -1)
        want = np.broadcast_to(function(tuple(index)), index.shape[1:])
        assert np.unique(want).size == want.size
        assert is_injective(layout)
        found = swizzled_roots(function, dims)
        if found is None:
            continue
        base, roots = found
        got = np.full(want.shape, base)
        for root in roots:
            row = np.zeros(want.shape, np.int64)
            for dim in root.dims:
                row = row * dims[dim] + index[dim]
            part = evaluate_tree(root.tree, row)
            low, high = offset_range(root.tree)
            assert low <= part.min() <= part.max() <= high
            got = got + part
            kinds.add(type(root.tree))
        assert got.tolist() == want.tolist(), (str(layout), dims)
        if base == 0 and layout.size < 500 and isinstance(layout, ComposedLayout):
            with suppress(tj.LayoutError):  # strides that count down have none
                back = left_inverse(layout)
                assert [back(int(at)) for at in offsets(layout)] == list(range(layout.size))
    assert {Opaque, Switch} <= kinds


def test_chains_of_swizzles_become_switches() -> None:
    """Bits as digits in any order: the tree of each chain agrees with the swizzles one after the other."""
    rng, found = Random(4), 0
    for _ in range(examples(150, full=2000)):
        bits = rng.randint(2, 8)
        order = rng.sample(range(bits), bits)
        cut = rng.randint(0, bits)
        modes = [order[:cut], order[cut:]]
        layout: Composed = Layout(
            tuple(tuple(2 for _ in mode) for mode in modes),
            tuple(tuple(1 << b for b in mode) for mode in modes),
        )
        for place in range(rng.randint(1, 3)):
            shift = rng.randint(1, bits)
            swizzle = Swizzle(
                rng.randint(1, shift), rng.randint(0, 3), shift if rng.randint(0, 1) else -shift
            )
            layout = ComposedLayout(swizzle, 0 if place else rng.choice([0, 1 << bits]), layout)
        function = function_of(layout)
        roots = swizzled_roots(function, function.sizes)
        if roots is None:
            continue
        found += 1
        index = np.indices(function.sizes).reshape(2, -1)
        got = np.full(index.shape[1:], roots[0])
        for root in roots[1]:
            row = index[root.dims[0]] if len(root.dims) == 1 else index[0] * function.sizes[1] + index[1]
            got = got + evaluate_tree(root.tree, row)
        assert got.tolist() == np.broadcast_to(function(tuple(index)), got.shape).tolist(), str(layout)
        slots = function(tuple(index))
        assert np.array_equal(function.before_steps(slots), replace(function, steps=())(tuple(index)))
    assert found > 30


def test_a_right_inverse_is_refused() -> None:
    layout = parse("Dg<4:1+2:4> o 0 o 8:1")
    with pytest.raises(tj.LayoutError, match="use its left inverse"):
        tj.cute.right_inverse(layout)
