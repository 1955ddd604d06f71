"""Ctrl-C ends `python -m bench` after the current case, even if Python discards the exception."""

from __future__ import annotations

import gc
import io
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from rich.console import Console

from bench import suites
from bench.interrupts import remembered_interrupts
from bench.jobs import Case, Job
from bench.measure import Method
from bench.suites import Choice, Figures, run_cases


@pytest.fixture
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press_ctrl_c(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("default_handler")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_counts_although_garbage_collection_discards_the_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def collected(*_: object) -> None:
        gc.callbacks.remove(collected)
        press_ctrl_c()

    def make(threads: int) -> Job:
        made.append(threads)
        x, out = np.arange(8, dtype=np.uint8), np.zeros(8, np.uint8)
        gc.callbacks.append(collected)
        gc.collect()
        return Job(16, out, x, lambda: lambda: np.copyto(out, x), {})

    made: list[int] = []
    cases = [Case("made up", "all", name, make) for name in "ab"]
    monkeypatch.setitem(suites.SUITES, "made up", lambda quick: cases)
    figures = Figures()
    choice = Choice(("made up",), "", False, None, 1, float("inf"))
    with pytest.raises(KeyboardInterrupt):
        run_cases(choice, Method(1, 1, (), 0.0), figures, Console(file=io.StringIO()))
    assert made == [1]
    assert [row.case for row in figures.rows] == ["a"]


@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_raises_at_once() -> None:
    with remembered_interrupts() as check:
        check()
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            check()


@pytest.mark.usefixtures("default_handler")
def test_background_jobs_ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with remembered_interrupts() as check:
        press_ctrl_c()
        check()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)
