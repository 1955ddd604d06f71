"""Arguments of any width, out of range, deeply nested or of other types: exact answers or one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cute import brute, draw
from tests.tools.strategies import picker
from tilejit import LayoutError, LayoutIndexError, cute
from tilejit.cute import Layout, Swizzle, _, parse
from tilejit.cute.exact.injective import meeting

HUGE = 10**5000
"""More digits than Python prints."""

DEEP: Any = 2
for _level in range(2000):
    DEEP = (DEEP,)


@pytest.mark.parametrize(
    ("swizzle", "offsets"),
    [
        (Swizzle(3, 3, -3), np.array([32], np.uint8)),
        (Swizzle(1, 6, -1), np.array([64], np.int8)),
        (Swizzle(3, 4, 3), np.arange(8, dtype=np.uint8)),
        (Swizzle(3, 4, 3), np.array([[2**63 + 128]], np.uint64)),
        (Swizzle(1, 61, 1), np.array([2**62])),
        (Swizzle(2, 1, 2), np.array([2**70 + 8], object)),
    ],
)
def test_swizzles_do_not_wrap(swizzle: Swizzle, offsets: Any) -> None:
    assert (
        swizzle(offsets).tolist()
        == np.vectorize(lambda k: swizzle(int(k)), otypes=[object])(offsets).tolist()
    )


def test_swizzles_with_other_types_are_refused() -> None:
    for wrong in (np.array([1.0]), np.array([True]), "1"):
        with pytest.raises(TypeError):
            Swizzle(1, 0, 1)(wrong)
    with pytest.raises(LayoutIndexError):
        Swizzle(1, 0, 1)(np.array([-1]))


@pytest.mark.parametrize(
    ("layout", "coordinates"),
    [
        (Layout((100, 100), (2**61, 1)), [np.array([99])]),
        (Layout(4, 1), [np.array([2**64 - 1], np.uint64)]),
        (Layout((4, 4), (2**62, 2**62)), [np.array([1, 3]), np.array([1, 0])]),
        (Layout((4, 4), (2**62, -(2**62))), [np.array([3, 3]), 3]),
        (Layout((200, 2), (1, 300)), [np.array([199], np.uint8), np.array([1], np.int8)]),
    ],
)
def test_offsets_of_arrays_do_not_wrap(layout: Layout, coordinates: list[Any]) -> None:
    found = layout(*coordinates)
    rows = np.broadcast_arrays(*coordinates)
    wanted = [layout(*(int(c) for c in row)) for row in zip(*rows, strict=True)]
    assert found.tolist() == wanted
    composed = cute.ComposedLayout(layout, 2**62, Layout(3, 2**62))
    assert composed(np.array([2])).tolist() == [composed(2)]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: cute.local_tile(Layout((4, 8)), (2, 4), (5, 0)),
        lambda: cute.local_tile(Layout((4, 8)), (2, 4), (0, -1)),
        lambda: cute.local_tile(Layout((4, 8)), (2, 4), 4),
        lambda: cute.local_partition(Layout((8, 8)), Layout((2, 4)), 9),
        lambda: cute.local_partition(Layout((8, 8)), Layout((2, 4), (3, 7)), 5),
        lambda: cute.idx2crd(7, (2, 3), (3, 1)),
        lambda: cute.slice_((-1, 3), Layout((4, 8))),
        lambda: cute.dice((-1, _), Layout((4, 8))),
    ],
)
def test_places_that_do_not_exist_are_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(LayoutIndexError):
        ask()


def test_threads_of_any_layout() -> None:
    """Each thread that a coordinate has is found, by division or not, with the smallest such coordinate."""
    block = Layout((12, 12))
    for threads in (
        parse("(2,4):(3,7)"),
        parse("(3,3):(2,3)"),
        parse("((2,2),3):((1,6),2)"),
        parse("(2,3):(0,1)"),
    ):
        sizes = cute.product_each(threads.shape)
        for index in cute.offsets(threads).tolist():
            _mine, begin = cute.local_partition(block, threads, index)
            assert threads(begin % 12, begin // 12) == index
            assert begin % 12 < sizes[0]
    with pytest.raises(LayoutIndexError, match="thread 1 does not exist"):
        cute.local_partition(block, parse("(2,4):(3,7)"), 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: cute.product(DEEP),
        lambda: cute.crd2idx(DEEP, 2),
        lambda: cute.crd2idx(1, DEEP),
        lambda: cute.idx2crd(0, DEEP),
        lambda: cute.crd2crd(0, DEEP, 2),
        lambda: cute.composition(Layout(4), DEEP),
        lambda: cute.coalesce(Layout(4), DEEP),
        lambda: cute.filter(Layout(4), DEEP),
        lambda: cute.congruent(DEEP, DEEP),
        lambda: cute.compatible(DEEP, DEEP),
        lambda: cute.weakly_congruent(DEEP, DEEP),
        lambda: cute.inner_product(DEEP, DEEP),
        lambda: cute.shape_div(DEEP, 2),
        lambda: cute.elem_scale(DEEP, DEEP),
        lambda: cute.prefix_product(DEEP),
        lambda: cute.suffix_product(DEEP),
        lambda: cute.slice_(DEEP, Layout(4)),
        lambda: cute.domain_offset(DEEP, Layout(4)),
        lambda: cute.local_tile(Layout(4), DEEP, 0),
        lambda: cute.local_tile(Layout(4), 2, DEEP),
        lambda: cute.logical_divide(Layout(4), DEEP),
        lambda: cute.logical_product(Layout(4), DEEP),
        lambda: cute.zipped_divide(Layout(4), DEEP),
        lambda: cute.recognize([1], DEEP),
        lambda: cute.Tiler(DEEP),
        lambda: Layout(4)(DEEP),
        lambda: parse("Sw<1,0,1> o 0 o 4:1")(DEEP),
    ],
)
def test_deep_nesting_is_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(LayoutError, match="deep"):
        ask()


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: cute.crd2idx((1, 2), (2, 3), 5), "does not nest"),
        (lambda: cute.crd2idx((1, 2), (2, 3), (1, 2, 3)), "does not nest"),
        (lambda: cute.crd2idx(5, (2, 3), (1,)), "does not nest"),
        (lambda: cute.idx2crd(5, (2, 3), (3, -1)), "a stride is -1"),
        (lambda: cute.local_tile(Layout((4, 8)), (2, 4), (1, 0), proj=(1,)), "proj has 1 parts"),
        (lambda: cute.local_partition(Layout((8, 8)), Layout((2, 4)), 3, proj=(1,)), "proj has 1 parts"),
        (lambda: Layout((4, 4), (1, 4))(np.arange(4), np.arange(3)), "do not broadcast"),
        (lambda: cute.from_offsets([HUGE]), "index 0 gives a number of 16610 bits"),
        (lambda: cute.from_offsets([0, 1, HUGE]), "index 2 gives a number of 16610 bits"),
        (
            lambda: cute.upcast(Layout((4, 8), (3, 12)), HUGE),
            "a number of 16610 bits do not divide each other",
        ),
        (
            lambda: cute.recast_layout(Layout((4, 8), (3, 12)), 1, HUGE),
            "a number of 16610 bits do not divide each other",
        ),
        (lambda: cute.group(Layout((4, 8)), 0, HUGE), "modes 0 to a number of 16610 bits"),
        (lambda: cute.append(Layout((4, 8)), rank=-HUGE), "more than a number of 16610 bits"),
        (lambda: cute.slice_((HUGE, (HUGE, _)), Layout((4, 8))), "does not fit 8:4"),
        (lambda: cute.slice_((HUGE, 0), Layout(4)), "a tuple of integers with thousands of digits"),
        (lambda: cute.append(Layout(4), Layout(2), 10**9), "too large"),
        (lambda: cute.prepend(Layout(4), Layout(2), 10**9), "too large"),
        (lambda: cute.prefix_product((2, 3), (1,)), "pass one integer"),  # type: ignore[arg-type]
        (lambda: cute.suffix_product((2, 3), (1,)), "pass one integer"),  # type: ignore[arg-type]
        (
            lambda: cute.offsets(Layout((2,) * 2000, tuple(range(1, 2001)))),
            "its size is a number of 2001",
        ),
    ],
)
def test_refusals(ask: Callable[[], Any], text: str) -> None:
    with pytest.raises(LayoutError, match=text):
        ask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: cute.prefix_product((2, 3), "a"),  # type: ignore[arg-type]
        lambda: cute.product(None),
        lambda: cute.product("ab"),
        lambda: cute.coalesce(Layout((2, 4), (1, 2)), "a"),
        lambda: cute.filter(Layout((2, 4), (1, 2)), "a"),
        lambda: cute.Tiler(("a",)),
        lambda: cute.Tiler((1, (2, 1.5))),
        lambda: cute.local_partition(Layout((8, 8)), (2, 4), 3),  # type: ignore[arg-type]
        lambda: cute.local_tile(Layout((4, 8)), (2, 4), (1, 0), proj=1),
        lambda: cute.local_tile(Layout((4, 8)), (2, 4), True),
        lambda: cute.local_tile(Layout((4, 8)), (2, 4), (None, True)),
        lambda: Layout((4, 8))(True, 1),
        lambda: cute.select(Layout((4, 8, 2)), (0, 2)),  # type: ignore[arg-type]
        lambda: cute.slice_(("a", _), Layout((4, 8))),
        lambda: cute.append(Layout(4), 3),  # type: ignore[arg-type]
        lambda: cute.append(Layout(4), rank=True),
        lambda: cute.select(Layout((4, 8)), True),
        lambda: cute.group(Layout((4, 8)), False, True),
        lambda: cute.upcast(Layout((4, 8)), True),
        lambda: cute.composition(Layout((4, 8)), True),
        lambda: cute.composition("garbage", _),
        lambda: cute.composition(3, None),
        lambda: cute.Tiler((True,)),
        lambda: cute.ComposedLayout(Swizzle(1, 0, 1), True, Layout(4)),
        lambda: Layout(True),
        lambda: Layout((4, 8))[True],
        lambda: Swizzle(True, 1, 1),
        lambda: Swizzle(1, 0, 1)(True),
        lambda: cute.is_injective(4),  # type: ignore[arg-type]
    ],
)
def test_other_types(ask: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        ask()


@pytest.mark.full
@pytest.mark.parametrize("number", range(300))
def test_injectivity_agrees_with_a_table(number: int) -> None:
    a = draw.layout(picker(np.random.default_rng(number)), signed=True)
    table = brute.table(brute.modes_of(a))
    assert cute.is_injective(a) == (len(set(table)) == len(table))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(134217728,2):(2,3)", True),
        ("(134217728,3):(2,3)", False),
        ("(1099511627776,2,4):(6,9,14)", False),
        ("(1099511627776,2,3):(6,9,14)", True),
        ("(4,4,4,4,4,1099511627776):(1,7,30,51,77,3)", False),
        ("Sw<3,4,3> o 0 o (1048576,1048576):(1048576,1)", True),
        ("Sw<3,4,3> o 0 o (1048576,1048576):(1048576,0)", False),
        ("(1048576,1048576):(1,2097152) o 0 o (1048576,1048576):(1048576,1)", True),
    ],
)
def test_injectivity_without_a_table(text: str, answer: bool) -> None:
    assert cute.is_injective(parse(text)) == answer


@pytest.mark.full
@pytest.mark.parametrize("number", range(300))
def test_colliding_indices_share_an_offset(number: int) -> None:
    """Two indices with one offset are found whenever a table has any."""
    pick = picker(np.random.default_rng(number))
    sizes = tuple(pick(1, 5) for _ in range(pick(1, 4)))
    layout = Layout(sizes, tuple(pick(1, 14) for _ in sizes))
    table, found = cute.offsets(layout), meeting(layout)
    if found is None:
        assert len(set(table.tolist())) == table.size
    else:
        assert found[0] < found[1]
        assert table[found[0]] == table[found[1]]


def test_cosize_of_composed_layouts() -> None:
    swizzled = parse("Sw<3,4,3> o 0 o (8,64):(64,1)")
    assert cute.cosize(swizzled) == swizzled.cosize == cute.coshape(swizzled) == 512
    assert cute.cosize(parse("Sw<1,0,1> o 0 o 3:1")) == 4
    large = parse("Sw<3,4,3> o 0 o (1048576,1048576):(1048576,1)")
    assert large.cosize == 1 << 40
    assert cute.is_bijective(large)
