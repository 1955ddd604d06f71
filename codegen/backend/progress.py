"""The message on a terminal while kernels compile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import perf_counter

from codegen.backend.store import KernelStore, default_store

TOLD_AFTER_SECONDS = 1.0
"""The compile time of a process after which it prints the message, once."""

_spent = 0.0
_told = False


@contextmanager
def compiling() -> Iterator[None]:
    """Context of a compilation: print one line to standard error if it takes long and a person may wait.

    The caller holds the compiler's lock.
    """
    global _spent
    if _told or not _is_terminal():
        yield
        return
    start = perf_counter()
    timer = Timer(max(0.0, TOLD_AFTER_SECONDS - _spent), _tell)
    timer.daemon = True
    with suppress(RuntimeError):  # no more threads, or the interpreter is shutting down
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _spent += perf_counter() - start


def message(store: KernelStore) -> str:
    """The line: where the kernels are stored, or why they are not."""
    if store.is_writable:
        return f"tilejit: compiling once; later runs load the kernels from {store.directory}"
    return f"tilejit: compiling; later runs compile again, because kernels are not stored: {store.reason}"


def _tell() -> None:
    global _told
    _told = True
    try:
        print(message(default_store()), file=sys.stderr, flush=True)
    except (AttributeError, OSError, ValueError):  # the terminal is gone
        return


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, ValueError):  # an object that only writes; a closed stream
        return False
