"""Runs of different turns together test what one run with `--stress` does."""

from __future__ import annotations

import pytest

from codegen.support.cpu import host_levels
from tests.tools.stress import STRESS, TURN, in_turn, lower_levels, own_level, share


@pytest.mark.parametrize("part", [1, 3, 4, 50])
def test_turns_leave_nothing_out(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(range(31))
    monkeypatch.setenv(STRESS, "")
    met: list[int] = []
    for turn in range(100, 100 + min(part, len(every))):
        monkeypatch.setenv(TURN, str(turn))
        met += in_turn(every, part)
    assert sorted(met) == every
    assert len(in_turn([1], part)) == 1
    monkeypatch.setenv(STRESS, "1")
    assert in_turn(every, part) == every


@pytest.mark.parametrize("part", [5, 21])
def test_every_case_meets_every_lower_level(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of cases that depend on the level too."""
    every = list(range(2 * part + 3))
    monkeypatch.setenv(STRESS, "")
    met = set()
    for turn in range(2 * part):
        monkeypatch.setenv(TURN, str(turn))
        met |= {(level, case) for level in in_turn(["avx2", "sse2"], 2) for case in in_turn(every, part)}
    assert len(met) == 2 * len(every)


def test_shares_are_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRESS, "")
    assert [share(count) for count in (1, 9, 10, 11, 1000)] == [1, 1, 1, 2, 100]
    assert share(10, 3) == 4
    monkeypatch.setenv(STRESS, "1")
    assert share(1000) == 1000


def test_every_lower_level_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRESS, "1")
    every = lower_levels()
    assert set(every) == set(host_levels()) - {own_level(), "avx512", "neon"}
    monkeypatch.setenv(STRESS, "")
    met = set()
    for turn in range(2):
        monkeypatch.setenv(TURN, str(turn))
        chosen = lower_levels()
        assert len(chosen) == min(1, len(every))
        met.update(chosen)
    assert met == set(every)
