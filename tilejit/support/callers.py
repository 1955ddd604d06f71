"""Who called: warnings name a line of theirs, not of ours."""

from __future__ import annotations

import inspect


def caller_stacklevel() -> int:
    """How far up the stack of who asks for it the first frame is that is none of ours: `stacklevel`."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "tilejit",
        "codegen",
    ):
        frame, level = frame.f_back, level + 1
    return level
