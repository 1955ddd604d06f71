"""What the commands print with: the terminal's width and colors, JSON, tables."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from tilejit.view.text import Style

USUAL = 80
"""Columns of a terminal that does not say how many it has."""
UNCUT = 1 << 16
"""Columns of what is no terminal: lines are whole there, for `| grep`."""
NARROWEST = 30
"""Columns that a description needs beside the name; in fewer it stands below."""


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; None, as Python has for a closed one, is none."""
    try:
        return bool(stream and stream.isatty())
    except ValueError:  # closed by whoever called us
        return False


def columns_of(stream: Any) -> int:
    """Columns of a terminal, as COLUMNS or the terminal says; no limit for a file or a pipe."""
    if not is_terminal(stream):
        return UNCUT
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL
    except OSError:
        return USUAL


def colored(stream: Any) -> bool:
    """Whether a stream takes colors: a terminal, or FORCE_COLOR; never with NO_COLOR or TERM=dumb."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    # Windows' older consoles print the codes themselves.
    return is_terminal(stream) and (sys.platform != "win32" or "WT_SESSION" in os.environ)


def console(*, stderr: bool = False) -> Console:
    """Standard output, or error, as wide as the terminal; 80 columns where its width is unknown or 0."""
    from rich.console import Console

    # With NO_COLOR alone rich keeps what is dim or bold.
    system: Literal["auto"] | None = "auto" if colored(sys.stderr if stderr else sys.stdout) else None
    out = Console(
        highlight=False, markup=False, emoji=False, safe_box=True, stderr=stderr, color_system=system
    )
    if out.width < 1:
        out.width = USUAL
    return out


def style_of(out: Console) -> Style:
    """Colors where the console takes them; plain ASCII elsewhere."""
    from tilejit.view.text import Style

    color = out.color_system is not None and colored(out.file)
    return Style(out.width, color and out.encoding.lower().startswith("utf"))


def print_lines(out: Console, text: Any) -> None:
    """Print lines cut at the terminal's edge, never wrapped; a file gets them whole."""
    cut = is_terminal(out.file)
    out.print(text, no_wrap=True, overflow="ellipsis" if cut else "ignore", crop=cut)


def print_json(value: Any, *, err: bool = False) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2), err=err)


def table(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Names and descriptions in two columns, or below each other where the second would be narrow.

    [("tpu", "what TPUs use")], 80 -> ["tpu  what TPUs use"]    10 -> ["tpu", "  what", "  TPUs use"]
    """
    column = max(len(name) for name, _ in rows) + 2
    narrow = width - column < NARROWEST
    indent = 2 if narrow else column
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(1, width - indent)) or [""]
        if narrow:
            lines.append(name)
            lines += [" " * indent + line for line in wrapped if line]
        else:
            lines += [f"{name if k == 0 else '':{column}}{line}" for k, line in enumerate(wrapped)]
    return lines
