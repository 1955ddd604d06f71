"""Strided copies through blocks in cache: the same bytes as NumPy's, and when they are chosen."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from itertools import pairwise, permutations
from math import prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.strided_box import Element
from codegen.pipeline import stage_digits
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.schedule import call_limits, choose_digits, choose_grid
from codegen.schedule.candidates import STAGES_TRIED
from codegen.schedule.choose_digits import (
    MOST_DIGITS,
    block_extents,
    cached_orders,
    cached_strides,
    digit_grid,
    order_in_cache,
)
from codegen.schedule.thresholds import Thresholds
from tests.tools.guard import Guarded
from tilejit.arrays.memory import bytes_map
from tilejit.programs import compiled as programs
from tilejit.programs.copy_programs import copy_program

Array = np.ndarray[Any, Any]
BYTE = Element("u8", 8)

CASES = [
    ("u2", (15, 3, 16, 7, 2), (1, 4, 3, 2, 0)),
    ("u1", (26, 5, 42, 2), (2, 0, 3, 1)),
    ("u1", (2, 3, 49, 9, 33), (0, 3, 2, 4, 1)),
    ("u1", (40, 16, 3, 16, 3), (1, 3, 0, 2, 4)),
    ("u1", (26, 4, 63, 4, 3), (3, 2, 0, 4, 1)),
    ("u1", (327, 6, 8, 3, 2), (4, 0, 3, 1, 2)),
    ("u4", (39, 24, 8, 2, 10), (3, 1, 2, 4, 0)),
    ("u8", (5, 6, 7, 2, 3, 4), (5, 2, 0, 4, 1, 3)),
]
"""Small versions of copies that are faster in two stages."""

ORDERS = {
    rank: [x for x in permutations(range(rank)) if all(after != k + 1 for k, after in pairwise(x))]
    for rank in (4, 5)
}
"""The orders in which no two dimensions stay neighbors. Other orders have fewer digits."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use blocks for small arrays, past the cache, whether or not they are faster."""
    monkeypatch.setattr(call_limits, "STRIDED_BYTES", 0)
    monkeypatch.setattr(stage_digits, "goes_in_digits", lambda *given: True)
    monkeypatch.setattr(stage_digits, "may_be_slow", lambda boxes: True)
    monkeypatch.setattr(stage_digits, "outgrows_caches", lambda footprint: True)
    monkeypatch.setattr(choose_digits, "BLOCK_RUN_BYTES", (512, 128, 32))
    monkeypatch.setattr(programs, "machine_thresholds", lambda size: Thresholds(stream_bytes=0))
    copy_program.cache_clear()
    yield
    copy_program.cache_clear()


def elements(dtype: str, shape: tuple[int, ...]) -> Array:
    size = prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(5).bytes(size), dtype).reshape(shape)


def check_guarded(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Check the copy between guard pages, at any destination alignment, on one thread and on three."""
    values = elements(dtype, shape)
    want = values.transpose(order).tobytes()
    arenas = Guarded(values.nbytes), Guarded(len(want) + 64)
    for at_end, gap, threads in ((True, 0, 1), (False, 0, 3), (False, values.itemsize, 1)):
        x = arenas[0].place(values.nbytes, at_end=at_end).view(dtype).reshape(shape)
        x[...] = values
        to = arenas[1].place(len(want), at_end=at_end, gap=gap)
        out = to.view(dtype).reshape([shape[k] for k in order])
        plan = tj.plan_copy(out, x.transpose(order), threads=threads)
        assert isinstance(plan._program, StagedProgram)
        plan(out, x.transpose(order))
        assert out.tobytes() == want
        assert x.tobytes() == values.tobytes()
        assert arenas[1].untouched()


@pytest.mark.full
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("dtype", "shape", "order"), CASES)
def test_blocks_cover_the_array(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    check_guarded(dtype, shape, order)


@pytest.mark.full
@pytest.mark.usefixtures("small")
def test_blocks_of_random_copies_cover_the_array() -> None:
    draw = random.Random(9)
    for rank in (4, 5) * 6:
        shape = tuple(draw.choice((2, 3, 5, 8, 13, 17)) for _ in range(rank))
        check_guarded(draw.choice(("u1", "u2", "u4")), shape, draw.choice(ORDERS[rank]))


@pytest.mark.full
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("choice", STAGES_TRIED, ids=str)
def test_all_choices_move_the_same_bytes(choice: Any) -> None:
    x = elements("u1", (26, 4, 63, 4, 3))
    order = (3, 2, 0, 4, 1)
    view, out = x.transpose(order), np.empty([x.shape[k] for k in order], np.uint8)
    plan = tj.plan_copy(out, view, threads=1)
    assert isinstance(plan._program, StagedProgram)
    direct = _direct(out, view)
    staged = stage_digits.in_digits(direct, BYTE, choice)
    assert staged is not None
    staged.run(view.ctypes.data, out.ctypes.data)
    assert np.array_equal(out, view)


def _direct(out: Array, view: Array) -> CopyProgram:
    maps = (bytes_map(a.shape, a.strides, a.itemsize) for a in (view, out))
    return programs.compiled(*maps, BYTE, BYTE, threads=1)


@pytest.mark.usefixtures("small")
def test_plans_with_blocks_can_be_pickled() -> None:
    dtype, shape, order = CASES[1]
    x = elements(dtype, shape)
    view, out = x.transpose(order), np.empty([shape[k] for k in order], dtype)
    plan = pickle.loads(pickle.dumps(tj.plan_copy(out, view, threads=1)))
    plan(out, view)
    assert np.array_equal(out, view)


@pytest.mark.usefixtures("small")
def test_other_strides_are_copied_in_one_pass() -> None:
    """Reversed, broadcast and few dimensions."""
    x = elements("u1", (26, 5, 42, 2))
    views = x.transpose(2, 0, 3, 1)[:, ::-1], np.broadcast_to(x[:1], (3, 5, 42, 2)).transpose(2, 0, 3, 1)
    for view in (*views, x[0].transpose(2, 0, 1)):
        out = np.empty(view.shape, view.dtype)
        plan = tj.plan_copy(out, view, threads=1)
        assert not isinstance(plan._program, StagedProgram)
        plan(out, view)
        assert np.array_equal(out, view)


def test_orders_are_permutations_that_keep_the_common_digit_innermost() -> None:
    digits = ((6, 60, 360), (5, 4, 72), (3, 20, 24), (6, 360, 4), (4, 1, 1))
    orders = set(cached_orders(digits, 1))
    assert orders <= set(permutations(range(5)))
    assert {order[-1] for order in orders} == {4}
    assert (0, 1, 2, 3, 4) in orders
    assert (3, 0, 2, 1, 4) in orders


def test_the_order_with_the_fewest_cycles_is_chosen() -> None:
    """Each order is planned once, and the first of equals wins."""
    digits = ((6, 60, 360), (5, 4, 72), (3, 20, 24), (6, 360, 4), (4, 1, 1))
    planned = []

    def cycles(order: tuple[int, ...]) -> float:
        planned.append(order)
        return 1.5 if order[0] == 3 else 2.5

    order, fewest = order_in_cache(digits, 1, cycles)
    assert sorted(planned) == sorted(set(cached_orders(digits, 1)))
    assert order == next(x for x in planned if x[0] == 3)
    assert fewest == 1.5


@pytest.mark.full
@pytest.mark.parametrize(("dtype", "shape", "order"), CASES)
def test_elements_of_a_block_do_not_overlap(
    dtype: str, shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    """Every element of a block has its own bytes in cache."""
    width = np.dtype(dtype).itemsize
    view = elements(dtype, shape).transpose(order)
    out = np.empty(view.shape, dtype)
    digits = tuple(zip(view.shape, view.strides, out.strides, strict=True))
    extents = block_extents(digits, width)
    assert extents is not None
    assert all(1 <= e <= n for e, (n, _, _) in zip(extents, digits, strict=True))
    for each in cached_orders(digits, width):
        strides, size = cached_strides(digits, extents, each, width)
        offsets = sum(np.ix_(*(np.arange(e) * s for e, s in zip(extents, strides, strict=True))))
        assert len(np.unique(offsets)) == prod(extents)
        assert offsets.max() + width <= size


@pytest.mark.parametrize("count", [4, 12, 13, 24])
def test_copies_with_many_digits_have_no_blocks(count: int) -> None:
    """All orders of the digits are planned, which takes long for many."""
    digits = tuple((2, 1 << k, 1 << (count - 1 - k)) for k in range(count))
    assert block_extents(digits, 1) is not None
    assert (digit_grid(digits, 1) is not None) == (count <= MOST_DIGITS)


def test_copies_have_few_kinds_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of block has its own programs."""
    monkeypatch.setattr(choose_digits, "BLOCK_RUN_BYTES", (50,))
    digits = ((43, 231, 1), (7, 33, 43), (33, 1, 301))
    grid = digit_grid(digits, 1)
    assert grid is not None
    assert sum(grid.short) >= 1
    monkeypatch.setattr(choose_grid, "MOST_KINDS", 1)
    assert digit_grid(digits, 1) is None


def test_slow_copies_go_in_blocks_and_others_in_one_pass() -> None:
    """One copy has short digits on both sides, the other a long one."""
    cases = (
        ("u1", (1024, 5, 742, 2), (2, 0, 3, 1), True),
        ("u4", (12, 64, 33, 64), (0, 2, 1, 3), False),
    )
    for dtype, shape, order, staged in cases:
        view = np.empty(shape, dtype).transpose(order)
        plan = tj.plan_copy(np.empty(view.shape, dtype), view, threads=1)
        assert isinstance(plan._program, StagedProgram) is staged
