"""Signals wait while Numba or LLVM is imported or compiles, because neither survives an exception there.

An interrupted import leaves `numba` without its submodules for the rest of the process, and an interrupted
compilation leaves Numba's registries half read. Python runs signal handlers between any two instructions of
the main thread, so their exceptions could end up in either. Other threads receive no signals.

Exceptions that another thread injects (`PyThreadState_SetAsyncExc`) cannot be postponed.
"""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import sleep
from types import FrameType
from typing import Any

from codegen.support.locks import compiler_lock

TOLD_AFTER_SECONDS = 1.0
"""How long Ctrl-C waits before a message explains why."""

MESSAGE = "tilejit: finishing a compilation before the interrupt"

_POSTPONED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGBREAK", "SIGTERM", "SIGHUP", "SIGALRM")
    if hasattr(signal, name)
)
"""Signals whose handlers often raise: they end a process, or a call that takes too long."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold the compiler's lock, and run signal handlers only at the end; reentrant.

    A thread that waits for the lock can be interrupted. Handlers run in order until one raises.
    """
    with compiler_lock:
        postponed = _Postponed()
        try:
            postponed.begin()
            yield
        finally:
            postponed.end()


def llvm_binding() -> Any:
    """The module `llvmlite.binding`; it takes long to import, and few processes need it."""
    with uninterrupted():
        from llvmlite import binding
    return binding


class _Postponed:
    """A signal handler that takes the place of others, and calls them at the end.

    Handlers that Python cannot restore, those of C code, stay in place; so do SIG_DFL and SIG_IGN, which
    raise nothing. After the end, an instance only passes signals on. It is still installed if an exception
    came while the old handlers were restored.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._received: list[int] = []
        self._is_active = True

    def begin(self) -> None:
        for number in _POSTPONED:
            handler = signal.getsignal(number)
            if not callable(handler) or (isinstance(handler, _Postponed) and handler._is_active):
                continue
            self._handlers[number] = handler
            try:
                signal.signal(number, self)
            except ValueError as error:
                if "main thread" not in str(error):  # raised by the handler of a pending signal
                    raise
                return

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self._is_active:
            self._handlers[number](number, frame)
            return
        if number == signal.SIGINT and number not in self._received:
            with suppress(RuntimeError):  # no more threads
                _thread.start_new_thread(self._tell, ())  # Thread.start takes locks that may be held here
        self._received.append(number)

    def _tell(self) -> None:
        sleep(TOLD_AFTER_SECONDS)
        if self._is_active:
            with suppress(AttributeError, OSError, ValueError):  # the terminal is gone
                print(MESSAGE, file=sys.stderr, flush=True)

    def end(self) -> None:
        try:
            for number, handler in self._handlers.items():
                if signal.getsignal(number) is self:
                    signal.signal(number, handler)
        finally:
            self._is_active = False
        for number in self._received:
            self._handlers[number](number, sys._getframe())
