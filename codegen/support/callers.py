"""Find the caller outside TileJIT, so that warnings name a line of user code."""

from __future__ import annotations

import inspect


def caller_stacklevel() -> int:
    """The `stacklevel` of the first frame outside TileJIT, counted from the caller of this function."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "tilejit",
        "codegen",
    ):
        frame, level = frame.f_back, level + 1
    return level
