"""The message while kernels are compiled: one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from codegen.backend import progress
from codegen.backend.store import KernelStore


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_spent", 0.0)
    monkeypatch.setattr(progress, "_told", False)
    monkeypatch.setattr(progress, "TOLD_AFTER_SECONDS", 0.05)


def slow() -> None:
    """A compilation that ends once the line is written, or after a while."""
    with progress.compiling():
        end = time.perf_counter() + 5
        while not progress._told and time.perf_counter() < end:
            time.sleep(0.01)


def test_a_terminal_gets_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    slow()
    with progress.compiling():
        pass
    assert progress.sys.stderr.getvalue().count("compiling") == 1


def test_fast_compilations_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TOLD_AFTER_SECONDS", 60.0)
    monkeypatch.setattr("sys.stderr", Terminal())
    with progress.compiling():
        pass
    assert progress.sys.stderr.getvalue() == ""
    assert progress._spent > 0


@pytest.mark.parametrize("closed", [False, True])
def test_files_get_no_message(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    if closed:
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.compiling():
        pass
    assert not progress._told
    assert closed or stream.getvalue() == ""


class OnlyWrites:
    """A replacement of standard error, as loggers and graphical programs install."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return


def test_objects_that_can_only_write_get_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", OnlyWrites())
    with progress.compiling():
        pass
    assert not progress._told


def test_compiling_goes_on_if_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(timer: progress.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(progress.Timer, "start", start)
    with progress.compiling():
        pass
    assert progress._spent > 0


def test_compiling_works_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with progress.compiling():
        pass


def test_the_message_names_the_directory_or_the_reason(tmp_path: Path) -> None:
    assert str(tmp_path) in progress.message(KernelStore(tmp_path))
    assert "TILEJIT_NO_CACHE is set" in progress.message(KernelStore(None, "TILEJIT_NO_CACHE is set"))
