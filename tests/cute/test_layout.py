from __future__ import annotations

import pickle
from subprocess import run
from sys import executable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cute import brute, draw
from tests.tools.extent import few_by_default
from tests.tools.oracle import environment
from tests.tools.strategies import picker
from tilejit import LayoutError, LayoutIndexError, cute
from tilejit.cute import Layout, _, parse


def test_import_tilejit_does_not_import_cute() -> None:
    code = "import sys, tilejit; print('tilejit.cute' in sys.modules, tilejit.cute.Layout(4, 1))"
    child = run([executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "False 4:1"


def test_every_public_name_exists() -> None:
    assert [name for name in cute.__all__ if not hasattr(cute, name)] == []
    assert tj.cute is cute


def test_values_are_frozen_and_comparable() -> None:
    a = Layout([np.int64(4), (2, np.uint8(3))], (np.int16(1), [4, 8]))
    assert a == Layout((4, (2, 3)), (1, (4, 8))) == pickle.loads(pickle.dumps(a))
    assert len({a, Layout((4, (2, 3)))}) == 1
    assert all(type(n) is int for n in brute.flat(a.shape) + brute.flat(a.stride))
    with pytest.raises(AttributeError):
        a.shape = 4  # type: ignore[misc]


@pytest.mark.parametrize("number", few_by_default(range(300), 60))
def test_calls_and_offsets_follow_the_definition(number: int) -> None:
    a = draw.layout(picker(np.random.default_rng(number)), signed=True)
    modes = brute.modes_of(a)
    table = brute.table(modes)
    assert [a(i) for i in range(a.size)] == table == cute.offsets(a).tolist()
    assert a(np.arange(a.size)).tolist() == table
    assert [a(cute.idx2crd(i, a.shape)) for i in range(a.size)] == table
    assert [cute.crd2idx(cute.idx2crd(i, a.shape), a.shape) for i in range(a.size)] == list(range(a.size))
    assert (a.size, a.cosize) == (len(table), max(table) - min(table) + 1)
    assert cute.is_injective(a) == (len(set(table)) == len(table))
    assert cute.is_bijective(a) == (sorted(table) == list(range(len(table))))


def test_modes() -> None:
    a = parse("((2,3),4):((1,2),6)")
    assert (a.rank, a.depth, len(a), a.size) == (2, 2, 2, 24)
    assert [str(mode) for mode in a] == ["(2,3):(1,2)", "4:6"]
    assert (str(a[0, 1]), str(a[-1]), str(a[1:])) == ("3:2", "4:6", "(4):(6)")
    with pytest.raises(LayoutIndexError, match="mode 2 is out of range"):
        a[2]
    assert str(cute.select(a, 1, 0)) == "(4,(2,3)):(6,(1,2))"
    assert str(cute.group(parse("(2,3,4):(1,2,6)"), 0, 2)) == "((2,3),4):((1,2),6)"
    assert str(cute.append(a, Layout(5, 24))) == "((2,3),4,5):((1,2),6,24)"
    assert str(cute.prepend(Layout(2, 1), rank=3)) == "(1,1,2):(0,0,1)"
    assert str(cute.flatten(a)) == "(2,3,4):(1,2,6)"


def test_slices_keep_the_modes_that_the_offset_leaves() -> None:
    a = parse("((3,2),(2,5,2)):((4,1),(2,13,100))")
    assert str(a(2, _)) == "((2,5,2)):((2,13,100))"
    assert str(a(_, 5)) == "((3,2)):((4,1))"
    assert str(a((_, _), 5)) == "(3,2):(4,1)"
    assert str(a((2, _), (_, 3, _))) == "(2,2,2):(1,2,100)"
    assert cute.slice_and_offset(((2, _), (_, 3, _)), a) == (parse("(2,2,2):(1,2,100)"), 47)
    assert str(cute.dice(((2, _), (_, 3, _)), a)) == "(3,5):(4,13)"
    for i in range(3):
        kept, begin = cute.slice_and_offset(((i, None), slice(None)), a)
        assert [begin + kept(k) for k in range(kept.size)] == [
            a((i, j), k) for k in range(20) for j in range(2)
        ]


@pytest.mark.parametrize(
    ("shape", "stride", "text"),
    [
        (-1, 1, "a size is -1"),
        ((2, 2), (1, (2,)), "does not nest"),
        (2**63, 1, "64 bits"),
        (2, -(2**63), "64 bits"),
    ],
)
def test_refusals(shape: object, stride: object, text: str) -> None:
    with pytest.raises(LayoutError, match=text):
        Layout(shape, stride)


def test_wrong_types_and_places() -> None:
    a = parse("(4,8):(1,4)")
    for wrong in ("x", 1.5, {}, (1, "a")):
        with pytest.raises(TypeError):
            Layout(wrong)
        with pytest.raises(TypeError):
            a(wrong)
        for operation in (
            cute.coalesce,
            cute.right_inverse,
            cute.left_inverse,
            cute.offsets,
            cute.format_layout,
        ):
            with pytest.raises(TypeError):
                operation(wrong)  # type: ignore[arg-type]
    with pytest.raises(LayoutIndexError):
        a(-1)
    with pytest.raises(LayoutIndexError):
        a(np.array([0, -1]))
    with pytest.raises(LayoutError):
        a(1, 2, 3)
    with pytest.raises(LayoutError, match="too large"):
        cute.offsets(Layout(2**40))
    deep: object = 1
    for _k in range(3000):
        deep = (deep,)
    with pytest.raises(LayoutError, match="deep"):
        Layout(deep, deep)


def test_empty_layouts() -> None:
    a = parse("(4,0):(1,4)")
    assert (a.size, a.cosize, cute.offsets(a).size) == (0, 0, 0)
    assert str(cute.composition(parse("4:1"), a)) == "(4,0):(0,0)"
    for operation in (
        cute.complement,
        cute.right_inverse,
        cute.left_inverse,
        lambda e: cute.composition(e, 2),
    ):
        with pytest.raises(LayoutError):
            operation(a)


def test_int_tuples() -> None:
    assert cute.prefix_product(((2, 3), 4)) == ((1, 2), 6)
    assert cute.suffix_product(((2, 3), 4)) == ((12, 4), 1)
    assert cute.shape_div(((2, 3), 4), 6) == ((1, 1), 4)
    assert cute.shape_div(12, (2, 3)) == 2
    assert cute.inner_product(((1, 2), 3), ((1, 10), 100)) == 321
    assert cute.elem_scale((2, 3), ((4, 5), 6)) == (40, 18)
    assert cute.crd2crd((1, 2), (2, 6), (4, 3)) == (1, 1)
    assert cute.idx2crd(5, (2, 3), (3, 1)) == (1, 2)
    assert cute.compatible(24, ((2, 3), 4))
    assert not cute.compatible((4, 6), ((2, 3), 4))
    assert cute.weakly_congruent((2, 3), ((1, 2), 3))
    assert not cute.congruent((2, 3), ((1, 2), 3))
    with pytest.raises(LayoutError, match="neither of"):
        cute.shape_div(6, 4)


def test_orders() -> None:
    assert str(cute.LayoutRight((4, (2, 3)))) == "(4,(2,3)):(6,(3,1))"
    assert str(cute.LayoutLeft((4, 8))) == str(cute.make_identity_layout((4, 8))) == "(4,8):(1,4)"
    assert str(cute.make_ordered_layout((2, 2, 2, 2), (0, 2, 3, 1))) == "(2,2,2,2):(1,4,8,2)"
    assert str(cute.make_ordered_layout(((2, 3), 4), (1, 0))) == "((2,3),4):((4,8),1)"
    assert str(cute.make_layout_like(parse("(2,2,2,2):(0,2,4,1)"))) == "(2,2,2,2):(0,2,4,1)"
    with pytest.raises(LayoutError, match="does not nest"):
        cute.make_ordered_layout((2, 2), (0, 1, 2))


@pytest.mark.parametrize("table", ["ab", b"ab", [float("nan")], [0.0, 1.0], [None], None], ids=str)
def test_tables_without_integers_are_not_recognized(table: Any) -> None:
    with pytest.raises(TypeError, match="integers"):
        cute.recognize(table)


@pytest.mark.parametrize(
    "other", [None, 3, "4:1", cute.parse("Sw<2,0,3>"), cute.parse("Sw<2,0,3> o 0 o (8,8):(8,1)")], ids=str
)
def test_other_objects_have_no_common_layout(other: Any) -> None:
    for common in (cute.max_common_layout, cute.max_common_vector):
        with pytest.raises(TypeError):
            common(other, cute.Layout((4, 8)))
