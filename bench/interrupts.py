"""Remember Ctrl-C, because Python discards exceptions in finalizers and garbage-collection callbacks."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt at Ctrl-C; the function returned raises it again, in case it was discarded.

    SIGINT stays ignored if it was, as in background jobs of a shell.
    """
    pressed = False

    def handler(*_: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield check
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
