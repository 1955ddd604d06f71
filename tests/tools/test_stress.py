"""Runs of different turns together test what one run with `--stress` tests."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess, run
from sys import executable

import pytest

from codegen.support.cpu import host_levels
from tests.tools.oracle import environment
from tests.tools.stress import STRESS, TURN, in_turn, lower_levels, own_level, share


@pytest.mark.parametrize("part", [1, 3, 4, 50])
def test_turns_together_cover_everything(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_every_case_runs_at_every_lower_level(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even parts of cases that depend on the level."""
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


def collected(*options: str, **changes: str) -> CompletedProcess[str]:
    """What pytest collects from a file with tests marked `stress`."""
    command = [executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *options]
    command.append("tests/tools/test_mutants.py")
    root = Path(__file__).parents[2]
    return run(command, cwd=root, env=environment(**changes), capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("options", "runs"), [([], False), (["-m", "stress"], True), (["-m", "not stress"], False)]
)
def test_marked_tests_run_when_selected(options: list[str], runs: bool) -> None:
    done = collected(*options, TILEJIT_TEST_STRESS="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("test_hanging_tests_are_ended" in done.stdout) == runs


def test_a_wrong_turn_is_an_error_of_usage() -> None:
    done = collected(TILEJIT_TEST_TURN="abc")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.splitlines()[0] == "ERROR: TILEJIT_TEST_TURN: expected an integer, got 'abc'"
