"""Thread-value layouts: every thread gets the elements that its layout names, for layouts and arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cute import brute
from tests.tools.strategies import one_of, picker
from tilejit import cute
from tilejit.cute import Layout, _, make_layout_tv, offsets, parse, partition_tv

MMA_C = parse("((4,8),(2,2)):((32,1),(16,8))")
"""SM80's accumulators of 16 x 8."""


def test_the_tutorial_s_layout() -> None:
    """CuTe DSL's tutorial of an elementwise kernel: rows of 32 threads with 4 x 8 values each."""
    threads, values = cute.LayoutRight((4, 32)), cute.LayoutRight((4, 8))
    assert make_layout_tv(threads, values) == ((16, 256), parse("((32,4),(8,4)):((128,4),(16,1))"))


@pytest.mark.parametrize("case", range(60))
def test_threads_and_values_cover_the_tile(case: int) -> None:
    """Element (m, n) belongs to thread (m // vm, n // vn), and is its value at the remainders."""
    pick = picker(np.random.default_rng(case))
    rank = pick(1, 3)
    make = [cute.LayoutLeft, cute.LayoutRight]
    threads = one_of(pick, make)(tuple(pick(1, 4) for _d in range(rank)))
    values = one_of(pick, make)(tuple(pick(1, 4) for _d in range(rank)))
    tiler, layout_tv = make_layout_tv(threads, values)
    sizes = tuple(brute.flat(values.shape))
    assert tiler == tuple(t * v for t, v in zip(threads.shape, sizes, strict=True))  # type: ignore[arg-type]
    assert cute.is_bijective(layout_tv)
    for index in np.ndindex(*tiler):
        thread = threads(*(m // v for m, v in zip(index, sizes, strict=True)))
        value = values(*(m % v for m, v in zip(index, sizes, strict=True)))
        assert layout_tv(thread, value) == Layout(tiler)(*index)


def cases() -> list[tuple[Any, Layout]]:
    return [
        make_layout_tv(cute.LayoutRight((2, 4)), cute.LayoutRight((2, 3))),
        make_layout_tv(Layout((4, 2)), Layout((1, 4))),
        ((16, 8), MMA_C),
        ((Layout(4, 2), 6), parse("(4,6):(1,4)")),
        ((4, 4), parse("(4,2):(5,0)")),
    ]


@pytest.mark.parametrize(("tiler", "layout_tv"), cases(), ids=str)
def test_every_thread_has_its_values_of_every_tile(tiler: Any, layout_tv: Layout) -> None:
    x = np.arange(32 * 48, dtype=np.float32).reshape(32, 48)
    t = tj.pack(x, "{1,0:T(8,128)}")
    tiles = cute.zipped_divide(x, tiler)
    own = Layout(x.shape, (48, 1))
    flat = cute.composition(own, tiler).size
    grid = tiles.reshape(flat, -1, order="F")
    for thread in range(layout_tv[0].size):
        want = grid[[layout_tv(thread, v) for v in range(layout_tv[1].size)]]
        mine = partition_tv(x, tiler, layout_tv, thread)
        assert np.shares_memory(mine, x)
        assert (mine.reshape(want.shape, order="F") == want).all()
        view = partition_tv(t, tiler, layout_tv, thread)
        assert tuple(brute.flat(view.shape)) == mine.shape
        assert (view.unpack() == mine).all()
        layout, begin = partition_tv(own, tiler, layout_tv, thread)
        assert (begin + offsets(layout) == want.reshape(-1, order="F")).all()
        assert layout.shape == view.shape
    whole = partition_tv(x, tiler, layout_tv)
    assert (whole.reshape(layout_tv.size, -1, order="F") == grid[offsets(layout_tv)]).all()


@pytest.mark.full
def test_threads_write_their_values() -> None:
    x = np.zeros((16, 8), np.int64)
    t = tj.pack(x, "((2,8),8):((1,16),2)")
    for thread in range(32):
        partition_tv(x, (16, 8), MMA_C, thread)[...] += thread + 1
        partition_tv(t, (16, 8), MMA_C, thread)[...] = thread + 1
    assert x[0].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert x[9, 3] == x[1, 3] == 4 * 1 + 1 + 1
    assert (t.unpack() == x).all()


def test_a_thread_by_its_coordinate() -> None:
    x = np.arange(128).reshape(16, 8)
    assert (partition_tv(x, (16, 8), MMA_C, (3, 5)) == partition_tv(x, (16, 8), MMA_C, 3 + 4 * 5)).all()


def test_values_beyond_the_end() -> None:
    x = np.arange(1, 15 * 20 + 1, dtype=np.float32).reshape(15, 20)
    padded = np.zeros((16, 24), np.float32)
    padded[:15, :20] = x
    for held in (x, tj.pack(x, "{1,0:T(8,128)}")):
        seen = 0
        for thread in range(32):
            view = partition_tv(held, (16, 8), MMA_C, thread, fill_value=0)
            assert (view.unpack() == partition_tv(padded, (16, 8), MMA_C, thread)).all()
            seen += view.predicate.sum()
        assert seen == x.size
        with pytest.raises(tj.LayoutError, match=r"reach index .*\n.*fill_value"):
            partition_tv(held, (16, 8), MMA_C)


def test_swizzled_layouts_keep_their_swizzle() -> None:
    swizzled = parse("Sw<2,0,3> o 0 o (16,8):(8,1)")
    mine, begin = partition_tv(swizzled, (16, 8), MMA_C, 9)
    table = offsets(swizzled)
    assert (begin + offsets(mine)).tolist() == table[[MMA_C(9, v) for v in range(4)]].tolist()


X = np.zeros((16, 8))
REFUSED: tuple[tuple[Callable[[], Any], type[Exception], str], ...] = (
    (
        lambda: make_layout_tv(Layout((2, 2), (1, 4)), Layout(2)),
        tj.LayoutError,
        "from 0 to 3, each once\n  pass",
    ),
    (lambda: make_layout_tv(Layout(2), Layout(4, 0)), tj.LayoutError, "4 values from 0 to 3"),
    (lambda: make_layout_tv((2, 2), Layout(2)), TypeError, "expected a Layout"),  # type: ignore[arg-type]
    (lambda: partition_tv(X, (16, 8), MMA_C, 32), tj.LayoutIndexError, "thread 32 does not exist"),
    (lambda: partition_tv(X, (16, 8), MMA_C, -1), tj.LayoutIndexError, "thread -1 does not exist"),
    (lambda: partition_tv(X, (16, 8), MMA_C, (4, 0)), tj.LayoutIndexError, "thread 4 does not exist"),
    (lambda: partition_tv(X, (16, 8), MMA_C, (0, 0, 0)), tj.LayoutError, "does not fit"),
    (lambda: partition_tv(X, (16, 8), MMA_C, 1.5), TypeError, "integers"),
    (lambda: partition_tv(X, (16, 8), MMA_C, (_, 0)), TypeError, "for all threads"),
    (lambda: partition_tv(X, (16, 8), Layout(128)), tj.LayoutError, "1 mode.*\n  pass a layout"),
    (lambda: partition_tv(X, (16, 8), "4:1"), TypeError, "expected a Layout"),  # type: ignore[arg-type]
    (lambda: partition_tv(X, (8, 8), MMA_C), tj.LayoutError, "reaches element .* of a tile of 64\n"),
    (lambda: partition_tv(Layout((16, 8)), (8, 8), MMA_C), tj.LayoutError, "of a tile of 64\n"),
    (lambda: partition_tv(X, (16, 8), parse("(4,6):(5,1)")), cute.NoLayoutError, "strides of .*\n  pass"),
    (lambda: partition_tv(np.zeros((0, 8)), (16, 8), MMA_C), tj.LayoutError, "no elements"),
    (lambda: partition_tv([1], (16, 8), MMA_C), TypeError, "expected a Layout"),
    (lambda: cute.show_layout_tv(MMA_C, (8, 8)), tj.LayoutError, "of a tile of 64"),
    (lambda: cute.show_layout_tv(MMA_C, (16, 4, 2)), tj.LayoutError, "3 dimensions"),
    (lambda: cute.show_layout_tv(Layout(4), 4), tj.LayoutError, "1 mode"),
    (lambda: cute.show_layout_tv(MMA_C, "16"), TypeError, "integers"),
)


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refusals(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
