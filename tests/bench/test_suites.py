"""Which cases `python -m bench` measures, how often, and how it combines several runs."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from bench import suites
from bench.jobs import Case, Job
from bench.measure import Method, PeerFigure, Row, middle
from bench.suites import Choice, Figures, run_cases
from bench.timing import Timing

FOREVER = float("inf")
METHOD = Method(rounds=1, threads=1, peers=(), peer_seconds=0.0)


def row(share: float, ratio: float | None = None, problem: str = "") -> Row:
    peers = {} if ratio is None else {"numpy": PeerFigure(Timing(1.0, 1.0), share / ratio, ratio)}
    return Row("t", "g", "c", 8, 0.1, Timing(1.0, 1.0), Timing(share, share), peers, problem)


def test_the_median_of_runs_takes_the_median_share_and_the_median_ratios() -> None:
    kept = middle([row(0.5, 3.0), row(0.25, 2.0), row(1.0, 0.5)])
    assert (kept.share, kept.peers["numpy"].ratio) == (0.5, 2.0)
    assert middle([row(0.5), row(0.25)]).share == 0.25


def test_a_failed_run_takes_precedence() -> None:
    assert middle([row(0.5), row(0.25, problem="wrong"), row(1.0)]).problem == "wrong"
    failed = row(0.5, 1.0)
    failed.peers["numpy"] = PeerFigure(problem="no memory")
    assert middle([row(0.25, 1.0), failed, row(1.0, 1.0)]).peers["numpy"].problem == "no memory"


def copied(calls: list[str], name: str) -> Case:
    """A case whose answer is right, and which records that its arrays were made."""

    def make(threads: int) -> Job:
        calls.append(name)
        x, out = np.arange(8, dtype=np.uint8), np.zeros(8, np.uint8)
        return Job(16, out, x, lambda: lambda: np.copyto(out, x), {})

    return Case("made up", "all", name, make)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the cases that were measured, from a suite of three."""
    found: list[str] = []
    cases = [copied(found, name) for name in "abc"]
    monkeypatch.setitem(suites.SUITES, "made up", lambda quick: cases)
    return found


def run(choice: Choice) -> Figures:
    figures = Figures()
    run_cases(choice, METHOD, figures, Console(file=io.StringIO()))
    return figures


def test_runs_follow_each_other_and_give_one_row_per_case(calls: list[str]) -> None:
    figures = run(Choice(("made up",), "", False, 2, 3, FOREVER))
    assert calls == [*"ababab"]
    assert [found.case for found in figures.rows] == ["a", "b"]
    assert figures.note == ""


def test_a_time_limit_keeps_the_figures_so_far(calls: list[str]) -> None:
    figures = run(Choice(("made up",), "", False, None, 2, 0.0))
    assert (calls, len(figures.rows)) == (["a"], 1)
    assert figures.note == "Stopped after 0 s: 1 of 6 cases."


def test_a_brief_run_has_one_case_of_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites take turns, so that a run that ends early has cases from all of them."""
    names = tuple(name for name in suites.SUITES if name not in suites.LONG)
    choice = Choice(names, "", True, None, 1, FOREVER, brief=True)
    groups = {name: {(c.table, c.group) for c in suites.SUITES[name](True)} for name in names}
    found = [(case.table, case.group) for case in choice.cases()]
    assert len(found) == sum(map(len, groups.values()))
    assert set(found) == set().union(*groups.values())
    for name, first in zip(names, found[: len(names)], strict=True):
        assert first in groups[name]
    assert choice.command("all") == "python -m bench --quick"


def test_the_command_names_every_option_that_changes_figures() -> None:
    choice = Choice(("cliffs",), "4 MiB", True, 5, 3, 60.0)
    assert choice.command("cliffs") == "python -m bench cliffs --only '4 MiB' --cases 5 --runs 3 --quick"
    assert Choice(("pack",), "", False, None, 1, FOREVER).command("pack") == "python -m bench pack"
