"""The meaning of a picture's colors: tile, memory order, bank or row."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.tools.strategies import cute_shape, picker, shape
from tilejit.view.boards import COLORS, Tiling
from tilejit.view.coloring import SHADES, Coloring, bank_bits, order_period
from tilejit.view.page import subject


def spec_of(text: str) -> tj.Shape:
    return subject(tj.as_layout(text) if "[" in text else tj.cute.parse(text))[0]


@pytest.mark.parametrize(
    ("text", "color"),
    [
        ("f32[3,5]{1,0:T(2,2)}", "tile"),
        ("f32[2,2]{1,0:T(2,2)}", "order"),
        ("f32[3,5]", "order"),
        ("bf16[4096,4096]{1,0:T(8,128)(2,1)}", "order"),
        ("((2,4),(2,4)):((1,8),(4,32))", "tile"),
        ("Sw<3,0,3> o 0 o (8,8):(8,1)", "bank"),
        ("Sw<3,0,3> o 0 o ((2,4),(2,4)):((1,8),(4,32))", "bank"),
        ("Sw<0,0,3> o 0 o (8,8):(8,1)", "order"),
        ("f8e8m0fnu[128,8]{1,0:T(32,4)(4,1,1,4)}", "order"),
        ("f32[]", "order"),
        ("f32[5,0]", "order"),
    ],
)
def test_the_default_coloring(text: str, color: str) -> None:
    coloring = Coloring.of(spec_of(text))
    assert coloring.color == color
    assert set(coloring.choices) - {"bank", "row"} == {"tile", "order"}
    assert ("bank" in coloring.choices) == (color == "bank")


@pytest.mark.parametrize(
    ("text", "bank", "row"),
    [
        ("Sw<3,4,3> o 0 o (8,128):(128,1)", (4, 3), (7, 3)),
        ("Sw<2,0,3> o 0 o (8,8):(8,1)", (0, 2), (3, 2)),
        ("Sw<1,2,-3> o 0 o (8,8):(8,1)", (5, 1), (2, 1)),
        ("Sw<0,2,3> o 0 o (8,8):(8,1)", None, None),
        ("(8,8):(8,1)", None, None),
        ("(4,2):(2,1) o 0 o Sw<1,0,1> o 0 o 8:1", None, None),
    ],
)
def test_bits_of_banks_and_rows(text: str, bank: object, row: object) -> None:
    assert bank_bits(spec_of(text)) == (bank, row)


def test_a_swizzle_changes_the_bank_and_keeps_the_row(seed: int) -> None:
    """The bank of the result is that of its argument XOR the row. The row and all other bits stay."""
    pick = picker(np.random.default_rng(seed))
    for _ in range(50):
        bits = pick(1, 3)
        swizzle = tj.cute.Swizzle(bits, pick(0, 3), pick(bits, 4) * (1 if pick(0, 1) else -1))
        layout = tj.cute.ComposedLayout(swizzle, 0, tj.cute.Layout(1 << 10))
        spec = subject(layout)[0]
        given = np.arange(1 << 10)
        got = np.asarray(swizzle(given))
        bank, row = Coloring.of(spec, "bank"), Coloring.of(spec, "row")
        tiles = np.zeros_like(given)
        assert (bank.numbers(got, tiles) == bank.numbers(given, tiles) ^ row.numbers(given, tiles)).all()
        assert (row.numbers(got, tiles) == row.numbers(given, tiles)).all()


def test_shades_increase_within_a_period(seed: int) -> None:
    pick = picker(np.random.default_rng(seed))
    for _ in range(50):
        spec = shape(pick, most=5000) if pick(0, 1) else cute_shape(pick, most=500, swizzled=False)
        coloring = Coloring.of(spec, "order")
        slots = np.arange(min(coloring.period, spec.physical_size))
        shades = coloring.numbers(slots, np.zeros_like(slots))
        assert (np.diff(shades) >= 0).all()
        assert ((shades >= 0) & (shades < SHADES)).all()
        if len(slots) > 1 and len(slots) == coloring.period:
            assert (shades[0], shades[-1]) == (0, SHADES - 1)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("f32[3,5]{1,0:T(2,2)}", 24),
        ("bf16[4096,4096]{1,0:T(8,128)(2,1)}", 1024),
        ("bf16[64,64]{1,0:T(32,32)(16,16)}", 1024),
        ("bf16[64,32]{1,0:T(32,16)(2,1)}", 512),
        ("f32[32,32]{1,0:T(32,16)}", 512),
        ("f32[300,500]", 500),
        ("f32[3000,5000]", 1024),
        ("f32[5,0]", 1),
    ],
)
def test_the_gradient_spans_a_period_of_the_layout(text: str, period: int) -> None:
    assert order_period(spec_of(text)) == period


@pytest.mark.parametrize("text", ["bf16[20,300]{1,0:T(8,128)(2,1)}", "((2,2,2),(2,2,2)):((1,4,16),(2,8,32))"])
def test_levels_nest(text: str) -> None:
    """Elements of one inner tile belong to one outer tile, and there are more inner tiles."""
    spec = spec_of(text)
    levels = Tiling.levels(spec)
    assert len(levels) == 2
    outer, inner = (
        {index: level.number(index) for index in np.ndindex(*spec.dimensions)} for level in levels
    )
    pairs = {(inner[index], outer[index]) for index in outer}
    assert len(pairs) == len(set(inner.values())) > len(set(outer.values()))
    assert {levels[0].color(number) for number in outer.values()} <= set(range(COLORS))


@pytest.mark.parametrize(
    ("text", "color", "says"),
    [
        ("f32[3,5]{1,0:T(2,2)}", "bank", "expected a layout with an outermost swizzle to color by"),
        (
            "(4,2):(2,1) o 0 o Sw<1,0,1> o 0 o 8:1",
            "row",
            "expected a layout with an outermost swizzle to color by",
        ),
        ("f32[3,5]", "blue", "color: expected one of tile, order, bank, row"),
    ],
)
def test_wrong_colors_are_refused(text: str, color: str, says: str) -> None:
    with pytest.raises(tj.LayoutError, match=says):
        Coloring.of(spec_of(text), color)
    with pytest.raises(TypeError, match="color: expected a str or None, got int"):
        Coloring.of(spec_of(text), 3)  # type: ignore[arg-type]
