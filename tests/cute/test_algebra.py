"""Rows of the reference, examples of CuTe's documentation, and laws that the random search does not cover."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cute import brute, draw
from tests.tools.extent import few_by_default
from tests.tools.strategies import picker
from tilejit import LayoutError
from tilejit.cute import (
    ComposedLayout,
    Layout,
    NoLayoutError,
    Swizzle,
    Witness,
    _,
    blocked_product,
    coalesce,
    complement,
    composition,
    cosize,
    downcast,
    filter_,
    filter_zeros,
    flat_divide,
    flat_product,
    is_bijective,
    left_inverse,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    max_alignment,
    max_common_layout,
    max_common_vector,
    nullspace,
    offsets,
    parse,
    raked_product,
    recast_layout,
    recognize,
    right_inverse,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    upcast,
    zipped_divide,
    zipped_product,
)

FOUND = [
    (composition, ("(4,2,8):(3,12,97)", "3:3"), "3:9"),
    (right_inverse, ("(4,6):(0,1)",), "6:4"),
    (left_inverse, ("(4,8):(1,5)",), "(5,8):(1,4)"),
    (left_inverse, ("(6,3):(8,3)",), "(8,6):(2,1)"),
    (logical_product, ("4:1", 3), "(4,3):(1,4)"),
    (coalesce, ("(2,4):(4,1)", (8,)), "(2,4):(4,1)"),
    (complement, ("4:0", 8), "8:1"),
    (logical_divide, ("10:1", 4), "(4,3):(1,4)"),
    (composition, ("(6,2):(8,2)", "(4,3):(3,1)"), "((2,2),3):((24,2),8)"),
    (composition, ("20:2", "(5,4):(4,1)"), "(5,4):(8,2)"),
    (composition, ("(10,2):(16,4)", "(5,4):(1,5)"), "(5,(2,2)):(16,(80,4))"),
    (composition, ("(4,8):(1,4)", "<2:3,3:2>"), "(2,3):(3,8)"),
    (composition, ("(4,8):(1,4)", "<_,3:2>"), "(4,3):(1,8)"),
    (composition, ("(4,8,5):(1,4,32)", "<2>"), "(2,8,5):(1,4,32)"),
    (composition, ("(4,8):(0,1)", "4:6"), "(2,2):(1,3)"),
    (complement, ("4:1", 24), "6:4"),
    (complement, ("6:4", 24), "4:1"),
    (complement, ("(4,6):(1,4)", 24), "1:0"),
    (complement, ("4:2", 24), "(2,3):(1,8)"),
    (complement, ("(2,4):(1,6)", 24), "3:2"),
    (complement, ("(2,2):(1,6)", 24), "(3,2):(2,12)"),
    (complement, ("(2,2):(1,6)", (4, 6)), "(3,2):(2,12)"),
    (complement, ("4:1",), "1:0"),
    (complement, ("4:-1", 8), "3:4"),
    (complement, ("4:-1", 12), "4:4"),
    (complement, ("(2,2):(-2,-3)", 1 << 40), "274877906946:4"),
    (logical_divide, ("(4,2,3):(2,1,8)", "4:2"), "((2,2),(2,3)):((4,1),(2,8))"),
    (
        logical_divide,
        ("(9,(4,8)):(59,(13,1))", "<3:3,(2,4):(1,8)>"),
        "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))",
    ),
    (
        zipped_divide,
        ("(9,(4,8)):(59,(13,1))", "<3:3,(2,4):(1,8)>"),
        "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
    ),
    (tiled_divide, ("(8,12,5):(1,8,96)", "<4,3>"), "((4,3),2,4,5):((1,8),4,24,96)"),
    (flat_divide, ("(8,12,5):(1,8,96)", "<4,3>"), "(4,3,2,4,5):(1,8,4,24,96)"),
    (zipped_divide, ("(8,12):(1,8)", "<4,_>"), "((4,1),(2,12)):((1,0),(4,8))"),
    (logical_product, ("(2,2):(4,1)", "6:1"), "((2,2),(2,3)):((4,1),(2,8))"),
    (logical_product, ("(2,5):(5,1)", "<3:5,4:6>"), "((2,3),(5,4)):((5,10),(1,30))"),
    (blocked_product, ("(2,5):(5,1)", "(3,4):(1,3)"), "((2,3),(5,4)):((5,10),(1,30))"),
    (raked_product, ("(2,5):(5,1)", "(3,4):(1,3)"), "((3,2),(4,5)):((10,5),(30,1))"),
    (blocked_product, ("4:2", "8:1"), "((4,(2,4))):((2,(1,8)))"),
    (raked_product, ("4:2", "8:1"), "(((2,4),4)):(((1,8),2))"),
    (blocked_product, ("((2,4)):((1,4))", "4:1"), "(((2,4),(2,2))):(((1,4),(2,16)))"),
    (tile_to_shape, ("4:2", 32), "((4,(2,4))):((2,(1,8)))"),
    (zipped_product, ("(2,2):(1,2)", "<2,4>"), "((2,2),(2,(2,2))):((1,2),(2,(1,4)))"),
    (tiled_product, ("(2,2):(1,2)", "<2,4>"), "((2,2),2,(2,2)):((1,2),2,(1,4))"),
    (flat_product, ("(2,2):(1,2)", "<2,4>"), "(2,2,2,(2,2)):(1,2,2,(1,4))"),
    (tile_to_shape, ("(2,2):(1,2)", (4, 6)), "((2,2),(2,3)):((1,4),(2,8))"),
    (tile_to_shape, ("(2,2):(1,2)", (4, 6), (1, 0)), "((2,2),(2,3)):((1,12),(2,4))"),
    (right_inverse, ("(4,8):(8,1)",), "(8,4):(4,1)"),
    (right_inverse, ("(4,4):(1,2)",), "(4,2):(1,8)"),
    (right_inverse, ("(2,2,2,2,2,2,2,2,2,2,2):(1,1,1,1,1,1,1,1,1,1,1)",), "(2,2,2):(1,6,120)"),
    (right_inverse, ("(2,1000000):(1,1)",), "1000000:2"),
    (right_inverse, ("(3,10000000):(1,1)",), "(5000001,2):(3,14999999)"),
    (right_inverse, ("(16,16,16,16):(1,-1,2,3)",), "(15,6):(1,13056)"),
    (right_inverse, ("(1000000,1000000):(1,1)",), "(999999,2):(1,999998000001)"),
    (max_common_layout, ("4:1", "8:1"), "4:1"),
    (max_common_layout, ("(2,2):(1,2)", "(8,8):(1,8)"), "4:1"),
    (max_common_layout, ("8:1", "4:1"), "4:1"),
    (left_inverse, ("4:3",), "(3,4):(0,1)"),
    (left_inverse, ("(4,6):(0,1)",), "6:4"),
    (coalesce, ("(2,(1,6)):(1,(6,2))",), "12:1"),
    (coalesce, ("(2,(1,6)):(1,(6,2))", (1, 1)), "(2,6):(1,2)"),
    (filter_, ("(2,3,4):(1,0,2)",), "8:1"),
    (filter_zeros, ("(2,3):(0,1)",), "(1,3):(0,1)"),
    (nullspace, ("(4,2,6):(0,1,0)",), "(4,6):(1,8)"),
    (max_common_layout, ("(4,8):(1,4)", "(4,8):(1,5)"), "4:1"),
    (upcast, ("(4,8):(1,4)", 2), "(2,8):(1,2)"),
    (upcast, ("(4,8):(0,8)", 4), "(4,8):(0,2)"),
    (downcast, ("(2,8):(1,2)", 2), "(4,8):(1,4)"),
    (recast_layout, ("(4,8):(1,4)", 16, 32), "(2,8):(1,2)"),
    (recast_layout, ("(4,8):(1,4)", 24, 16), "(6,8):(1,6)"),
    (downcast, ("(1,8):(1,2)", 2), "(2,8):(1,4)"),
]


def read(value: Any) -> Any:
    return parse(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("operation", "arguments", "answer"), FOUND, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_answers(operation: Callable[..., Any], arguments: tuple[Any, ...], answer: str) -> None:
    assert str(operation(*map(read, arguments))) == answer


@pytest.mark.parametrize(
    ("operation", "arguments", "text"),
    [
        (composition, ("(4,6,8):(2,3,5)", "6:3"), "index 4 gives 9, not 14"),
        (composition, ("(6,2):(1,7)", "(3,2):(2,3)"), "index 5 gives 8, not 7"),
        (composition, ("(4,4):(1,100)", "(2,2):(2,3)"), "index 3 gives 101, not 5"),
        (composition, ("(4,4):(1,100)", "4:-1"), "index 1 maps to -1"),
        (composition, ("(4,4):(1,100)", "6:1"), "index 4 gives 100, not 4"),
        (composition, ("(4,8):(1,4)", "<2,2,2>"), "3 modes were requested"),
        (complement, ("(2,2):(2,3)", 12), "no complement in 12"),
        (complement, ("(4,2):(-3,-1)", 5), "repeats that reach all offsets from 0 to 2 cannot reach 3"),
        (complement, ("(2,2):(-100000,-300001)", 9), "too many complements in 9"),
        (left_inverse, ("(4,4):(1,2)",), "both give 2"),
        (left_inverse, ("(4,4):(1,-8)",), "index 4 gives -8"),
        (left_inverse, ("(3,7,5):(2,11,90)",), "correct for all smaller indices"),
        (tile_to_shape, ("(2,2):(1,2)", (5, 6)), "do not divide"),
        (upcast, ("(4,8):(3,12)", 2), "4:3"),
        (downcast, ("(4,8):(2,8)", 2), "0 modes of stride 1"),
        (downcast, ("8:2", 2), r"make_layout\(Layout\(1, 1\), layout\)"),
        (downcast, ("(2,2):(1,1)", 2), "one mode of contiguous elements"),
        (left_inverse, ("(2595,863):(1,2067)",), "indices 2067 and 2595 both give 2067"),
        (left_inverse, ("(1000,50,50):(1000,1001,1021)",), "indices 29021 and 2450000 both give 50029"),
        (coalesce, ("4:1", (1, 1)), "2 modes were requested"),
    ],
)
def test_refusals(operation: Callable[..., Any], arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(LayoutError, match=text):
        operation(*map(read, arguments))


def test_scalars() -> None:
    assert cosize(parse("(4,2):(-1,4)")) == 8
    assert max_common_vector(parse("(4,8):(1,4)"), parse("(4,8):(1,4)")) == 32
    assert [
        max_alignment(parse(t)) for t in ("(4,8):(1,4)", "(4,8):(1,16)", "(4,8):(2,8)", "(6,4):(1,8)")
    ] == [
        32,
        4,
        1,
        2,
    ]


@pytest.mark.parametrize("number", few_by_default(range(200), 50))
def test_common_layouts_and_alignments(number: int) -> None:
    """The promises of max_common_layout and max_alignment, checked by tables."""
    pick = picker(np.random.default_rng(number))
    a, b = draw.layout(pick, 16), draw.layout(pick, 16)
    common = max_common_layout(a, b)
    run = list(range(common.size))
    assert [a(common(i)) for i in run] == [b(common(i)) for i in run] == run
    assert max(common(i) for i in run) < min(a.size, b.size)
    units = max_alignment(a)
    assert {v // units for v in offsets(a)} == set(offsets(upcast(a, units)).tolist())


@pytest.mark.parametrize("number", few_by_default(range(100), 25))
def test_upcast_undoes_downcast(number: int) -> None:
    a = draw.layout(picker(np.random.default_rng(number)), 16)
    runs = [n for n, d in brute.modes_of(a) if n > 1 and d == 1]
    if len(runs) != 1:
        return
    wide = downcast(a, 4)
    assert offsets(wide).size == 4 * a.size
    assert {4 * v + k for v in offsets(a).tolist() for k in range(4)} == set(offsets(wide).tolist())
    assert offsets(upcast(wide, 4)).tolist() == offsets(a).tolist()


def test_tiles_and_threads() -> None:
    a = parse("(8,12):(12,1)")
    grid = offsets(a).reshape(8, 12, order="F")
    for i in range(2):
        for j in range(4):
            tile, begin = local_tile(a, (4, 3), (i, j))
            part = begin + offsets(tile).reshape(4, 3, order="F")
            assert (part == grid[4 * i : 4 * i + 4, 3 * j : 3 * j + 3]).all()
    assert local_tile(a, (4, 3), (1, _))[0] == parse("(4,3,4):(12,1,3)")
    assert local_tile(a, (4, 3), (1, None)) == local_tile(a, (4, 3), (1, _))
    assert local_tile(a, (4, 5, 3), (1, 2, 3), (1, None, 1)) == local_tile(a, (4, 3), (1, 3))
    threads = parse("(2,3):(3,1)")
    seen = []
    for index in range(6):
        mine, begin = local_partition(a, threads, index)
        row, column = divmod(index, 3)
        assert (begin + offsets(mine).reshape(4, 4, order="F") == grid[row::2, column::3]).all()
        seen += (begin + offsets(mine)).tolist()
    assert sorted(seen) == list(range(96))


def test_swizzles() -> None:
    assert Swizzle(0, 3, 0)(1234) == 1234
    swizzle = Swizzle(3, 4, 3)
    table = swizzle(np.arange(1 << 11))
    assert sorted(table) == list(range(1 << 11))
    assert (swizzle(table) == np.arange(1 << 11)).all()
    assert [swizzle(int(k)) for k in range(1 << 11)] == table.tolist()
    assert swizzle(128) == 144
    assert Swizzle(3, 4, -3)(16) == 144
    composed = composition(swizzle, parse("(8,64):(64,1)"))
    assert str(composed) == "Sw<3,4,3> o 0 o (8,64):(64,1)"
    assert is_bijective(composed)
    assert composed.cosize == 512
    part = composition(composed, parse("<2:3,_>"))
    assert [part(k) for k in range(part.size)] == [composed((k % 2 * 3, k // 2)) for k in range(part.size)]
    row = composed(3, _)
    assert [row(k) for k in range(64)] == [composed(3, k) for k in range(64)]
    around = composition(parse("(64,8):(1,100)"), composed)
    assert isinstance(around, ComposedLayout)
    assert around(5, 6) == parse("(64,8):(1,100)")(composed(5, 6))


@pytest.mark.parametrize(
    "text", ["((3),3):((1),3)", "(3,(3)):(3,(1))", "((2,2),()):((1,2),())", "((),4):((),1)"]
)
def test_compositions_nest_like_their_right_side(text: str) -> None:
    """Also if there are as many numbers as modes."""
    b = parse(text)
    assert composition(Layout(16, 2), b) == Layout(b.shape, doubled(b.stride))


def doubled(value: Any) -> Any:
    return tuple(map(doubled, value)) if isinstance(value, tuple) else 2 * value


def test_a_composed_layout_composes_with_any_layout() -> None:
    """If the inner layout and B do not compose to a layout, the result consists of three."""
    swizzled, b = parse("Sw<2,1,3> o 5 o (6,2):(1,7)"), parse("(3,2):(2,3)")
    found = composition(swizzled, b)
    assert str(found) == "[Sw<2,1,3> o 5 o (6,2):(1,7)] o 0 o (3,2):(2,3)"
    assert [found(k) for k in range(6)] == [swizzled(b(k)) for k in range(6)]
    with pytest.raises(NoLayoutError, match="before A's first element"):
        composition(swizzled, parse("3:-1"))


def test_the_recognizer() -> None:
    assert recognize(np.array([0, 1, 10, 11])) == Layout((2, 2), (1, 10))
    assert recognize(np.array([0, 1, 10, 12])) == Witness(3, 12, 11)
    assert recognize(np.array([3, 4])) == Witness(0, 3, 0)
    assert recognize(np.array([0, 5, 1, 6, 2, 7]), (2, 3)) == Layout((2, 3), (5, 1))
    assert recognize(np.array([0])) == Layout(1, 0)
    for number in range(200):
        a = draw.layout(picker(np.random.default_rng(number)), signed=True)
        assert recognize(offsets(a)) == coalesce(a)
        by_mode = recognize(offsets(a), a.shape)
        assert isinstance(by_mode, Layout)
        assert offsets(by_mode).tolist() == offsets(a).tolist()


def test_large_layouts_are_answered_without_tables() -> None:
    """2^40 elements and more: a table of any of these would not fit."""
    side = 1 << 20
    rows = Layout((side, side), (side, 1))
    assert str(composition(rows, Layout((1024, side), (side, 1)))) == f"(1024,{side}):(1,{side})"
    assert str(complement(Layout((side, side), (1, 2 * side)), 1 << 45)) == f"(2,16):({side},{1 << 41})"
    assert right_inverse(rows) == Layout((side, side), (side, 1))
    assert left_inverse(Layout((side, side), (1, side + 1))) == Layout((side + 1, side), (1, side))
    tiled = zipped_divide(rows, (128, 64))
    assert str(tiled) == f"((128,64),(8192,16384)):(({side},1),({128 * side},64))"
    with pytest.raises(NoLayoutError) as refusal:
        composition(rows, Layout((side, 3), (1, side - 1)))
    seen = refusal.value.witness
    assert seen is not None
    assert seen.value == rows(Layout((side, 3), (1, side - 1))(seen.index)) != seen.expected
    wide = Layout((1 << 40, 1 << 20, 8), (1, 1 << 41, 1 << 62))
    with pytest.raises(NoLayoutError, match="index"):
        composition(wide, Layout((1 << 30, 1 << 10), (1 << 35, 1 << 31)))


@pytest.mark.parametrize(
    ("text", "bound", "found"),
    [
        ("(1000,1000):(1,1001)", None, Witness(1001, 2, 1)),
        ("(1000,1000):(1,1001)", 1000, "1:0"),
        ("(1024,1024):(1023,1025)", 1 << 62, Witness(1025, 2, 1)),
        ("(1024,1024):(1023,1025)", 2, Witness(523776, 2, 1)),
        ("(6,6,6,6,6,6,6,6):(1,7,50,351,2458,17207,120450,843151)", 4, "1:0"),
        ("(2,2):(500000,750001)", 1 << 40, Witness(750001, 2, 1)),
        ("(2,2):(500000,750001)", 250001, "250001:1"),
        ("(1000000,1000000):(1,1)", 1 << 40, "549757:1999999"),
        ("(2,2,3):(1,4,5)", 2, "1:0"),
        ("(2,2,3):(1,4,5)", 12, Witness(6, 2, 1)),
    ],
)
def test_complements_without_divisibility(text: str, bound: int | None, found: str | Witness) -> None:
    """The first offset that smaller strides do not reach decides, however large the layout."""
    if isinstance(found, str):
        assert str(complement(parse(text), bound)) == found
        return
    with pytest.raises(NoLayoutError) as refusal:
        complement(parse(text), bound)
    assert refusal.value.witness == found


@pytest.mark.parametrize("side", [10, 16, 20, 24, 32])
def test_left_inverses_of_strides_without_common_factors(side: int) -> None:
    with pytest.raises(NoLayoutError) as refusal:
        left_inverse(Layout((side, side), (side - 1, side + 1)))
    seen = refusal.value.witness
    assert seen is not None
    assert seen.value != seen.expected == seen.index


@pytest.mark.full
@pytest.mark.parametrize("text", ["(83,127,26):(1,1,174)", "(30,31,32,33,34,35):(6,10,15,1,7,11)"])
def test_incomplete_right_inverses_name_the_longest_found(text: str) -> None:
    """Whether the search ends or not, the layout that it names is a right inverse."""
    layout = parse(text)
    try:
        found = right_inverse(layout)
    except LayoutError as error:
        said = re.search(r"the longest found so far is (\S+), of (\d+) elements", str(error))
        assert said
        found = parse(said[1])
        assert found.size == int(said[2])
    assert found.size > 127
    assert (layout(offsets(found)) == np.arange(found.size)).all()


def test_hard_questions_end() -> None:
    """With an answer, or an error that names the limit; they never hang."""
    with pytest.raises(LayoutError, match="mixed radices"):
        left_inverse(parse("(1048576,1048576):(3,4194305)"))
    with pytest.raises(LayoutError):
        composition(parse("(1000003,1001,7):(0,3,11)"), parse("(1000000,1000000):(2000006,3000009)"))
