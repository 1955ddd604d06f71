"""The command line: `tilejit demo`, pack, unpack, relayout, check, show, view, explain, formats, and others.

An error prints a message on stderr; the exit code is 2 for misuse and 1 for failures. Heavy modules are
imported only when a command needs them, and commands only after `main` has installed its signal handlers.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilejit.cli.commands import app as app

_ENDING = ("SIGTERM", "SIGHUP")


def main() -> None:
    """Run the command line: the entry point of the `tilejit` script."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:  # Python allows handlers only there
        _on(_ENDING, _leave)
    try:
        from tilejit.cli.commands import app

        app(prog_name="tilejit")
    except KeyboardInterrupt:  # while modules were imported
        print("tilejit: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        if in_main_thread:  # Python's own shutdown prints a traceback if it is interrupted
            _on((*_ENDING, "SIGINT"), signal.SIG_IGN)


def _on(names: tuple[str, ...], handler: Any) -> None:
    for name in names:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), handler)


def _leave(number: int, frame: FrameType | None) -> None:
    """Exit through an exception, so that unfinished files are removed."""
    raise SystemExit(128 + number)


def __getattr__(name: str) -> Any:
    if name == "app":
        from tilejit.cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["app", "main"]
