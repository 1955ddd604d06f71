"""Plans of random copies for random machines; `tests/tools/plans.py` says what is checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.schedule.choose import choose, simplest
from tests.tools.plans import PlanError, Seen, check_axes, check_plans, main

CASES, ALL_CASES = 100, 2000
WORD = Element("u32", 32)
BOX = StridedBox((Axis("i", 9, 1200, 512), Axis("j", 128, 4, 4)), 0, 0, WORD, WORD)


def test_plans(seed: int) -> None:
    assert not list(check_plans(seed, 0, CASES, Seen()))


@pytest.mark.full
def test_more_plans(seed: int) -> None:
    assert not list(check_plans(seed, CASES, ALL_CASES - CASES, Seen()))


def test_candidates_with_other_blocks_fill_lines() -> None:
    """With SSE2, `tune=True` tried blocks of 4 rows of u32 for a transpose that streams lines of 16."""
    assert not list(check_plans(3, 284, 1, Seen()))


@pytest.mark.parametrize("outer", [(), ("i", "i"), ("i", "strip")])
def test_a_schedule_takes_every_axis_once(outer: tuple[str, ...]) -> None:
    schedule = choose(BOX)
    check_axes(BOX, schedule)
    check_axes(BOX, simplest(BOX))
    with pytest.raises(PlanError, match="expected the axes"):
        check_axes(BOX, replace(schedule, outer=outer))


def test_the_command_line_counts_what_it_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", "3", "--seed", "7"]) == 0
    assert "3 plans of seed 7: 0 failed" in capsys.readouterr().out
