"""Schedules of transposes: what the choice writes is what it reads again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest

from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.passes.make_nest import make_nest
from codegen.schedule.check_nest import check_nest
from codegen.schedule.choose import choose
from codegen.schedule.choose_transpose import transpose_schedule
from codegen.schedule.conditions import Conditions
from codegen.schedule.machine import NEVER_STREAM, described
from codegen.schedule.schedule import VectorSize
from codegen.schedule.transpose_loops import scheduled
from tests.tools.goldens import MACHINE

SIZES: tuple[VectorSize | None, ...] = None, 48, (32, 256), (1 << 12, 40)
EXTENTS = 2, 3, 5, 12, 17, 40, 64, 300, 1024, 4096


def permuted_box(seed: int) -> StridedBox:
    """A permuted array: the source is contiguous along the first axis, the destination along the last."""
    rng = np.random.default_rng(seed)
    bits = int(rng.choice([8, 16, 32, 64, 128]))
    extents = [int(n) for n in rng.choice(EXTENTS, size=rng.integers(2, 5))]
    while prod(extents) > 1 << 20:
        extents[extents.index(max(extents))] //= 3
    order = [0, *(1 + rng.permutation(len(extents) - 1)).tolist()]
    axes = []
    for k, extent in enumerate(extents):
        dst, src = prod(extents[k + 1 :]), prod(extents[x] for x in order[: order.index(k)])
        axes.append(Axis("ijkl"[k], extent, src * bits // 8, dst * bits // 8))
    element = Element(f"u{bits}", bits)
    return StridedBox(tuple(axes), 0, 0, element, element)


@pytest.mark.parametrize("seed", range(40))
def test_schedules_are_scheduled_as_themselves(seed: int) -> None:
    """The search changes a directive of a schedule, and schedules the result."""
    box = permuted_box(seed)
    for tile, threads, stream in product((None, (64, 200)), (1, 4), (False, True)):
        when = Conditions(threads, tile=tile)
        if found := transpose_schedule(box, when, stream=stream):
            assert str(scheduled(box, found, when)) == str(found), (box, when)
            assert found.changed(*found.directives) == found


@pytest.mark.parametrize("seed", range(40, 80))
def test_passes_can_obey_all_schedules(seed: int) -> None:
    box = permuted_box(seed)
    several = [Conditions(threads, given=size) for size in SIZES for threads in (1, 4)]
    for when, stream in product([*several, Conditions(tile=(64, 200))], (False, True)):
        if found := transpose_schedule(box, when, stream=stream):
            check_nest(make_nest(box, found))


def transposed(rows: int, columns: int, width: int) -> StridedBox:
    """A transpose in C order, of elements of so many bytes."""
    element = Element(f"u{8 * width}", 8 * width)
    axes = Axis("i", columns, width, rows * width), Axis("j", rows, columns * width, width)
    return StridedBox(axes, 0, 0, element, element)


@pytest.mark.parametrize(
    ("rows", "columns", "width", "ways", "staged"),
    [
        (1025, 1025, 4, 8, True),
        (2049, 1025, 4, 8, True),
        (2049, 2049, 1, 8, True),
        (150, 2049, 2, 8, True),
        (300, 4097, 1, 8, True),
        (513, 513, 4, 8, False),
        (1025, 1025, 1, 8, False),
        (513, 513, 8, 8, False),
        (257, 1025, 4, 8, False),
        (1000, 1000, 4, 8, False),
        (1032, 1032, 4, 8, False),
        (257, 257, 8, 8, False),
        (1025, 323, 4, 8, False),
        (1025, 1025, 4, 32, False),
        (129, 129, 4, 8, False),
    ],
)
def test_transposes_in_cache_are_staged_if_rows_share_sets(
    rows: int, columns: int, width: int, ways: int, staged: bool
) -> None:
    box = transposed(rows, columns, width)
    when = Conditions(footprint=2 * box.size_bytes)
    with described(replace(MACHINE, first_cache_ways=ways)):
        assert choose(box, when).staged == staged
        if when.footprint < 4 << 20:
            assert not choose(box, replace(when, stream_bytes=NEVER_STREAM)).staged
