"""Shuffles: exactly one part has each byte of a period, and only slow boxes are shuffled."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.ir.instructions import SHUFFLED_BYTES
from codegen.ir.lines import LANE_BYTES
from codegen.ir.strided_box import Axis, StridedBox
from codegen.pipeline.passes import STRIP, run_passes
from codegen.schedule import choose_shuffle
from codegen.schedule.choose import choose
from codegen.schedule.choose_cuts import choose_cuts
from codegen.schedule.schedule import STRIP as STRIP_AXIS
from codegen.schedule.schedule import Schedule
from codegen.schedule.shuffles import NOT_COPIED, register_parts
from codegen.schedule.thresholds import Thresholds
from codegen.schedule.transpose_box import MOST_JOINED
from codegen.support.cpu import cpu_level
from tests.codegen.passes.test_passes_of_copies import normal, widened
from tests.tools.boxes import box_of

pytestmark = pytest.mark.skipif(cpu_level().name == "sse2", reason="the level shuffles no bytes")

NEVER = Thresholds(stream_bytes=1 << 62)
REGISTERS = st.sampled_from(SHUFFLED_BYTES)
OFFSETS = st.lists(st.integers(-200, 200), min_size=max(SHUFFLED_BYTES), max_size=160).filter(
    lambda x: max(x) - min(x) >= LANE_BYTES - 1
)


def chosen(
    digits: list[tuple[int, int, int]], width: int = 1, threads: int = 1
) -> tuple[StridedBox, Schedule]:
    box = widened(normal(box_of(digits, width)))
    return box, choose(box, threads=threads, thresholds=NEVER)


@given(OFFSETS, REGISTERS)
def test_parts_contain_every_byte_once(listed: list[int], size: int) -> None:
    """Parts stay in the bytes that are read."""
    offsets = np.array(listed)
    begins, orders = register_parts(offsets, size)
    assert begins.min() >= offsets.min()
    assert begins.max() + LANE_BYTES - 1 <= offsets.max()
    for register, (starts, given_orders) in enumerate(zip(begins, orders, strict=True)):
        first = min(size * register, len(offsets) - size)
        for k, offset in enumerate(offsets[first : first + size]):
            found = [s + o[k] for s, o in zip(starts, given_orders, strict=True) if o[k] != NOT_COPIED]
            assert found == [offset]


@pytest.mark.parametrize(
    ("digits", "width"),
    [
        ([(9000, 2, 1)], 1),  # every other byte
        ([(5000, -6, 2)], 2),  # every third element, backwards
        ([(32768, 49, 49), (7, 1, 7), (7, 7, 1)], 1),  # small transposes, side by side
        ([(130, 10, 25420), (2542, 1300, 10), (10, 1, 1)], 1),  # short runs
        ([(1024, 144, 144), (3, 1, 48), (48, 3, 1)], 1),  # deinterleaved rows shorter than a block
        ([(1024, 144, 144), (48, 1, 3), (3, 48, 1)], 1),  # interleaved ones
        ([(2, 1, 720000), (5000, 288, 144), (3, 2, 48), (48, 6, 1)], 1),  # every other byte, in two halves
    ],
)
def test_slow_boxes_are_shuffled(digits: list[tuple[int, int, int]], width: int) -> None:
    for threads in (1, 2):
        box, schedule = chosen(digits, width, threads)
        assert schedule.mode == "shuffle", schedule
        parts = run_passes(STRIP, box, schedule)
        assert sum(prod(x.extents.values()) for x in parts) == prod(box.extents.values())


@pytest.mark.parametrize(
    ("digits", "width"),
    [
        ([(9000, 4, 1)], 1),  # a quarter of the bytes
        ([(100, 100, 40)], 1),  # small
        ([(300, 1, 300), (300, 300, 1)], 1),  # a transpose that fills registers
        ([(900, 16, 8)], 8),  # wide elements
    ],
)
def test_the_number_of_parts_decides_about_shuffles(digits: list[tuple[int, int, int]], width: int) -> None:
    _, schedule = chosen(digits, width)
    few = schedule.shuffle is None or schedule.shuffle.parts <= 4
    assert few
    assert (schedule.mode == "shuffle") == (digits[0][:2] == (9000, 4))


@pytest.mark.parametrize(("width", "mode"), [(2, "shuffle"), (4, "interleave")])
def test_interleaves_of_short_rows_are_shuffled_if_elements_are_narrow(width: int, mode: str) -> None:
    digits = [(5000, 30 * width, 30 * width), (3, 10 * width, width), (10, width, 3 * width)]
    assert chosen(digits, width)[1].mode == mode


@pytest.mark.parametrize(
    ("width", "step", "mode"),
    [(2, 4, "shuffle"), (4, 2, "shuffle"), (4, 4, "elements"), (8, 2, "elements"), (8, 3, "elements")],
)
def test_long_loops_over_wide_elements_are_not_shuffled(width: int, step: int, mode: str) -> None:
    assert chosen([(9000, step * width, width)], width)[1].mode == mode


def test_short_loops_over_wide_elements_are_shuffled() -> None:
    assert chosen([(5000, 16, 32), (4, 800000, 8)], 8)[1].mode == "shuffle"


def test_super_vectors_of_a_requested_size_are_not_shuffled() -> None:
    box = widened(normal(box_of([(9000, 2, 1)], 1)))
    assert choose(box, virtual_vector_size=64, thresholds=NEVER).mode == "elements"


def test_lines_that_are_read_again_stay_in_cache() -> None:
    """10 bytes per line: strips of rows, inside which all runs of a line are read."""
    box, schedule = chosen([(130, 10, 25420), (2542, 1300, 10), (10, 1, 1)])
    assert schedule.strip
    assert schedule.outer.index(STRIP_AXIS) < schedule.outer.index(box.axes[0].name)
    assert schedule.strip <= choose_shuffle.STRIP_LINES


def test_long_digits_are_split_to_be_joined() -> None:
    """The digit after 3 bytes is too long to be joined to them, but blocks of it are not."""
    box = widened(normal(box_of([(20, 90000, 1), (30000, 3, 20), (3, 1, 600000)], 1)))
    (cut,) = choose_cuts(box, 1, 0, NEVER)
    assert 3 * cut.block <= MOST_JOINED
    assert cut.block % LANE_BYTES == 0
    whole = widened(normal(box_of([(20, 1800, 1), (600, 3, 20), (3, 1, 12000)], 1)))
    assert choose_cuts(whole, 1, 0, NEVER) == ()


def test_loops_that_run_once_are_not_in_a_period() -> None:
    """A digit that is split in two has a loop over a single block."""
    axes = Axis("one", 1, 5, 18000), Axis("d0", 3000, 1000, 6), Axis("d1", 6, 1, 1)
    box = replace(widened(normal(box_of([(3000, 1000, 6), (6, 1, 1)], 1))), axes=axes)
    assert choose(box, thresholds=NEVER).mode == "shuffle"
