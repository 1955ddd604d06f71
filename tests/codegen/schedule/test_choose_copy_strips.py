"""Strips of copies: the loops over which a super-vector of the requested size is divided."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.schedule.choose import choose, outer_loops
from codegen.schedule.choose_copy_strips import NO_ROOM, choose_copy_strips
from codegen.schedule.schedule import LOOPS_END, ROWS, GivenSize
from tests.tools.boxes import box_of

RUNS = box_of([(70, 1000, 804), (200, 4, 4)], 4)
TILES = box_of([(90, 512, 4096), (8, 46080, 512), (128, 4, 4)], 4)
SIX = box_of([(2, 10**k * 600, 10**k * 640) for k in range(6, 0, -1)] + [(128, 4, 4)], 4)


@pytest.mark.parametrize(
    ("box", "size", "strip", "row", "became", "limit"),
    [
        (RUNS, 48, 48, ("", 1), 48, ""),
        (RUNS, 200, None, ("", 1), 200, ""),
        (RUNS, (8, 48), 48, ("d0", 8), (8, 48), ""),
        (RUNS, 500, None, ("d0", 3), (3, 200), ""),
        (RUNS, (8, 500), None, ("d0", 8), (8, 200), LOOPS_END),
        (RUNS, 10**5, None, ("d0", 500), (70, 200), LOOPS_END),
        (TILES, 256, None, ("d1", 2), (2, 128), ""),
        (TILES, 1024, None, ("d1", 8), (8, 128), ""),
        (TILES, 2048, None, ("d0", 2), (16, 128), ""),
        (TILES, (32, 256), None, ("d0", 4), (32, 128), LOOPS_END),
        (TILES, (32, 64), 64, ("d0", 4), (32, 64), ""),
        (SIX, 256, None, ("d5", 2), (2, 128), ""),
        (SIX, 384, None, ("d4", 2), (4, 128), ""),
        (SIX, 10**6, None, ("d0", 245), (64, 128), LOOPS_END),
    ],
)
def test_a_size_counts_elements_in_the_order_of_the_loops(
    box: Any, size: Any, strip: int | None, row: tuple[str, int], became: Any, limit: str
) -> None:
    found = choose_copy_strips(
        box, ("run", (box.axes[-1].name,), ""), outer_loops(box, (box.axes[-1].name,)), size
    )
    assert found.strip == strip
    assert (found.row.name if found.row else "", found.rows) == row
    assert found.sized == GivenSize(size, became, limit=limit)


def test_strips_need_an_additional_loop() -> None:
    """A loop of three around five others cannot be split: the super-vector has one transfer and says why."""
    box = box_of([(3, 10**k * 600, 10**k * 640) for k in range(6, 0, -1)] + [(128, 4, 4)], 4)
    found = choose_copy_strips(box, ("run", ("d6",), ""), outer_loops(box, ("d6",)), 256)
    assert found.row is None
    assert found.sized == GivenSize(256, 128, limit=NO_ROOM)


def test_the_loops_of_a_super_vector_are_innermost() -> None:
    for size, outer in (
        (256, ("d0", ROWS, "d1")),
        (2048, (ROWS, "d0", "d1")),
        ((16, 64), (ROWS, "column_strip", "d0", "d1")),
        (1024, ("d0", "d1")),
    ):
        assert choose(TILES, virtual_vector_size=size).outer == outer


def test_the_text_reports_the_resulting_size() -> None:
    assert str(GivenSize(64, 64)) == "virtual_vector_size 64"
    assert str(GivenSize(256, (2, 32), merged=4)) == "virtual_vector_size 256 became 2x128"
    assert str(GivenSize((8, 256), (8, 128), limit=LOOPS_END)) == (
        "virtual_vector_size 8x256 became 8x128 (its loops have no more)"
    )
    assert str(GivenSize(None, (96, 96))) == ""
