"""What users see of compilations: a message on a terminal, and their number and time, kept in the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import perf_counter
from typing import NamedTuple

from codegen.backend.store import KernelStore, default_store

TOLD_AFTER_SECONDS = 1.0
"""The compile time of a process after which it prints the message, once."""

_NOTE = "compilations"

_spent = 0.0
_told = False


class Compilations(NamedTuple):
    """How many kernels were compiled, and the seconds that this took, imports of the compiler included."""

    kernels: int
    seconds: float


@contextmanager
def compiling() -> Iterator[None]:
    """Context of a compilation, which is counted in the store.

    Print one line to standard error if the process compiles for long and a person may wait. The caller holds
    the compiler's lock.
    """
    global _spent
    start = perf_counter()
    timer = Timer(max(0.0, TOLD_AFTER_SECONDS - _spent), _tell) if not _told and _is_terminal() else None
    if timer:
        timer.daemon = True
        with suppress(RuntimeError):  # no more threads, or the interpreter is shutting down
            timer.start()
    try:
        yield
    finally:
        if timer:
            timer.cancel()
        _spent += perf_counter() - start
    _count(default_store(), perf_counter() - start)


def compilations(store: KernelStore) -> Compilations:
    """All compilations of kernels for this store; some are missing if processes compiled at the same time."""
    facts = store.get_note(_NOTE) or {}
    kernels, seconds = facts.get("kernels"), facts.get("seconds")
    if type(kernels) is int and type(seconds) is float and kernels > 0 and 0 < seconds < float("inf"):
        return Compilations(kernels, seconds)
    return Compilations(0, 0.0)


def _count(store: KernelStore, seconds: float) -> None:
    before = compilations(store)
    store.put_note(_NOTE, {"kernels": before.kernels + 1, "seconds": before.seconds + seconds})


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
