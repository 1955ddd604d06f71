"""Inverses of layouts composed with swizzles and layouts, against the definitions at every offset."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.cute import brute, draw
from tests.tools.strategies import Pick, chance, picker
from tilejit import LayoutError, cute
from tilejit.cute import ComposedLayout, Layout, Swizzle, left_inverse, parse, right_inverse
from tilejit.cute.composed_inverses import first_from

SWIZZLES = [
    Swizzle(bits, base, sign * shift)
    for bits, base, shift, sign in product(range(4), range(3), range(1, 5), (1, -1))
    if shift >= bits
]


@pytest.mark.parametrize("swizzle", SWIZZLES, ids=str)
def test_the_first_offset_that_leaves_a_range(swizzle: Swizzle) -> None:
    """For all bounds up to the end of a block and half of the next."""
    size = swizzle.block * 3 // 2 + 1
    table = swizzle(np.arange(2 * size + swizzle.block))
    for bound in range(size):
        assert first_from(swizzle, bound) == int((table >= bound).argmax())


def test_the_first_offset_of_large_swizzles() -> None:
    """It leaves the range, and no smaller offset that differs in one bit does."""
    random = np.random.default_rng(0)
    for swizzle in (Swizzle(20, 10, 30), Swizzle(20, 10, -30), Swizzle(7, 4, 9), Swizzle(3, 50, -9)):
        for _ in range(200):
            bound = int(random.integers(0, 1 << int(random.integers(1, 62))))
            found = first_from(swizzle, bound)
            assert swizzle(found) >= bound
            smaller = [found - 1, *(found ^ 1 << bit for bit in range(62) if found >> bit & 1)]
            smaller += random.integers(0, max(found, 1), 50).tolist()
            assert all(swizzle(i) < bound for i in smaller if 0 <= i < found)


def composed(pick: Pick) -> ComposedLayout:
    """A swizzle after a layout; two swizzles, one after the other; or a layout between them."""
    inner: Layout | ComposedLayout = draw.layout(pick, 12)
    for _ in range(pick(1, 2)):
        inner = ComposedLayout(
            SWIZZLES[pick(0, len(SWIZZLES) - 1)], pick(1, 3) if chance(pick, 3) else 0, inner
        )
    if chance(pick, 4):
        inner = ComposedLayout(Layout((8, 4, 64), (4, 1, 32)), 0, inner)
    return inner  # type: ignore[return-value]


def parts_of(layout: ComposedLayout) -> list[ComposedLayout]:
    inner = layout.inner
    return [layout, *parts_of(inner)] if isinstance(inner, ComposedLayout) else [layout]


def layout_inside(layout: ComposedLayout) -> Layout:
    inner = layout.inner
    return layout_inside(inner) if isinstance(inner, ComposedLayout) else inner


def test_left_inverses_give_back_every_index(seed: int) -> None:
    """They exist if the layout inside has one, because everything after it is invertible."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(400):
        layout = composed(picker(random))
        inside = layout_inside(layout)
        try:
            expected = left_inverse(inside)
        except cute.NoLayoutError:
            with pytest.raises(cute.NoLayoutError):
                left_inverse(layout)
            continue
        inverse = left_inverse(layout)
        back = [inverse(layout(i)) for i in range(layout.size)]
        assert back == [expected(inside(i)) for i in range(layout.size)], f"{layout} -> {inverse}"
        if 0 not in brute.flat(inside.stride):
            assert back == list(range(layout.size)), f"{layout} -> {inverse}"
        assert inverse.size > max(layout(i) for i in range(layout.size))
        found += 1
    assert found > 100


def test_right_inverses_are_right_and_longest(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = []
    for _ in range(400):
        layout = composed(picker(random))
        if layout.size == 0:
            continue
        if any(part.offset for part in parts_of(layout)):
            with pytest.raises(LayoutError) as refusal:
                right_inverse(layout)
            if refusal.type is cute.NoLayoutError:
                assert 0 not in [layout(i) for i in range(layout.size)]
            continue
        inverse = right_inverse(layout)
        places = [inverse(i) for i in range(inverse.size)]
        assert max(places) < layout.size
        assert [layout(p) for p in places] == list(range(len(places))), f"{layout} -> {inverse}"
        inside = right_inverse(layout_inside(layout)).size
        reached = {layout(p) for p in cute.offsets(right_inverse(layout_inside(layout))).tolist()}
        longest = next(n for n in range(inside + 1) if n not in reached)
        if len(parts_of(layout)) == 1:
            assert inverse.size == longest, f"{layout} -> {inverse}; there is one of {longest}"
        lengths.append(longest)
    assert sum(n > 1 for n in lengths) > 50


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        (
            "Sw<3,4,3> o 0 o (8,64):(64,1)",
            "(64,8):(8,1) o 0 o Sw<3,4,3> o 0 o 1024:1",
            "(64,8):(8,1) o 0 o Sw<3,4,3> o 0 o 512:1",
        ),
        (
            "Sw<2,0,3> o 0 o (4,8):(8,1)",
            "(8,4):(4,1) o 0 o Sw<2,0,3> o 0 o 32:1",
            "(8,4):(4,1) o 0 o Sw<2,0,3> o 0 o 32:1",
        ),
        ("Sw<0,4,3> o 0 o (4,8):(8,1)", "(8,4):(4,1)", "(8,4):(4,1)"),
    ],
)
def test_inverses_as_text(text: str, left: str, right: str) -> None:
    assert str(left_inverse(parse(text))) == left
    assert str(right_inverse(parse(text))) == right


def test_large_swizzled_layouts_need_no_table() -> None:
    layout = parse("Sw<3,4,3> o 0 o (1048576,1048576):(1048576,1)")
    left, right = left_inverse(layout), right_inverse(layout)
    assert right.size == layout.size
    for place in np.random.default_rng(0).integers(0, layout.size, 50).tolist():
        assert left(layout(place)) == place
        assert layout(right(place)) == place


@pytest.mark.parametrize(
    ("invert", "text", "message"),
    [
        (
            right_inverse,
            "Sw<1,0,2> o 3 o (4,2):(2,1)",
            "no coordinate has offset 0, and index 0 gives 3, not 0",
        ),
        (right_inverse, "Sw<1,0,2> o 3 o 4:-1", "cannot find .*, because it adds the offset 3"),
        (left_inverse, "Sw<1,0,2> o 3 o 4:-1", "cannot find .*, because its strides are negative"),
        (left_inverse, "Sw<1,0,2> o 0 o (4,4):(1,2)", "both give 2"),
        (left_inverse, "(4,4):(1,2) o 1 o 3:1", "cannot find .*, because"),
        (left_inverse, "Sw<1,0,2> o 0 o (0,4):(1,2)", "no elements"),
        (right_inverse, "Sw<1,0,2> o 0 o (0,4):(1,2)", "no elements"),
    ],
)
def test_refusals(invert: object, text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        invert(parse(text))  # type: ignore[operator]
