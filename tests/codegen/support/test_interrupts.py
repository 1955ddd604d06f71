"""Signal handlers wait until Numba and LLVM have finished; the caller's handlers stay installed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from codegen.support.interrupts import uninterrupted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGALRM exists on POSIX only")


class Timeout(Exception):
    pass


def time_out(*_: object) -> None:
    raise Timeout


@pytest.fixture
def install() -> Iterator[Callable[[int, Any], None]]:
    """Install a handler until the end of the test, when it must still be installed."""
    before, wanted = {}, {}

    def install(number: int, handler: Any) -> None:
        before.setdefault(number, signal.signal(number, handler))
        wanted[number] = handler

    yield install
    found = {number: signal.getsignal(number) for number in wanted}
    for number, handler in before.items():
        signal.signal(number, handler)
    assert found == wanted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_handlers_wait(number: int, install: Callable[[int, Any], None]) -> None:
    install(number, time_out)
    steps = []

    def compile_two() -> None:
        with uninterrupted():
            signal.raise_signal(number)
            with uninterrupted():
                signal.raise_signal(number)
            steps.append("inner")
        steps.append("outer")

    with pytest.raises(Timeout):
        compile_two()
    assert steps == ["inner"]
    with pytest.raises(Timeout):
        signal.raise_signal(number)


def test_handlers_run_in_order_until_one_raises(install: Callable[[int, Any], None]) -> None:
    seen = []
    install(signal.SIGINT, lambda number, frame: seen.append((number, frame is not None)))
    install(signal.SIGALRM, time_out)

    @uninterrupted()
    def receive_four() -> None:
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGALRM, signal.SIGINT):
            signal.raise_signal(number)
        assert seen == []

    with pytest.raises(Timeout):
        receive_four()
    assert seen == [(signal.SIGINT, True)] * 2


def test_an_interrupt_wins_over_the_error_of_a_compilation(install: Callable[[int, Any], None]) -> None:
    install(signal.SIGINT, signal.default_int_handler)

    @uninterrupted()
    def fail() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ValueError("rejected")

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ValueError)


def test_ignored_signals_stay_ignored(install: Callable[[int, Any], None]) -> None:
    install(signal.SIGINT, signal.SIG_IGN)
    install(signal.SIGHUP, signal.SIG_DFL)
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_a_handler_installed_meanwhile_stays(install: Callable[[int, Any], None]) -> None:
    install(signal.SIGINT, signal.default_int_handler)
    with uninterrupted():
        install(signal.SIGINT, time_out)


def test_other_threads_leave_the_handlers_alone(install: Callable[[int, Any], None]) -> None:
    install(signal.SIGINT, time_out)
    entered, leave = threading.Event(), threading.Event()

    def compile_slowly() -> None:
        with uninterrupted():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    assert entered.wait(60)
    with pytest.raises(Timeout):
        signal.raise_signal(signal.SIGINT)
    leave.set()
    thread.join()
