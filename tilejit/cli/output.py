"""Printing for all commands: the terminal's width and colors, JSON, tables."""

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
"""Columns of a terminal of unknown width."""
UNCUT = 1 << 16
"""Columns of a file or a pipe: lines stay whole, for `| grep`."""
NARROWEST = 30
"""Columns that a description needs beside the name; with fewer it goes below."""


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; Python represents a closed stream by None, which is not one."""
    try:
        return bool(stream and stream.isatty())
    except ValueError:  # closed by the calling process
        return False


def columns_of(stream: Any) -> int:
    """Columns of a terminal, by COLUMNS or the terminal itself; unlimited for a file or a pipe."""
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
    """Standard output, or error, as wide as the terminal; 80 columns if its width is unknown or 0."""
    from rich.console import Console

    # With NO_COLOR alone, rich keeps dim and bold text.
    system: Literal["auto"] | None = "auto" if colored(sys.stderr if stderr else sys.stdout) else None
    out = Console(
        highlight=False, markup=False, emoji=False, safe_box=True, stderr=stderr, color_system=system
    )
    if out.width < 1:
        out.width = USUAL
    return out


def style_of(out: Console) -> Style:
    """Colors if the console takes them, otherwise plain ASCII."""
    from tilejit.view.text import Style

    color = out.color_system is not None and colored(out.file)
    return Style(out.width, color and out.encoding.lower().startswith("utf"))


def print_lines(out: Console, text: Any) -> None:
    """Print lines cut at the terminal's edge, not wrapped; files get complete lines."""
    cut = is_terminal(out.file)
    out.print(text, no_wrap=True, overflow="ellipsis" if cut else "ignore", crop=cut)


def print_json(value: Any, *, err: bool = False) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2), err=err)


def table(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Names and descriptions in two columns, or below each other if the second would be narrow.

    [("tpu", "what TPUs use")], 80 -> ["tpu  what TPUs use"]    10 -> ["tpu", "  what", "  TPUs use"]
    """
    column = max(len(name) for name, _ in rows) + 2
    narrow = width - column < NARROWEST
    indent = 2 if narrow else column
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(1, width - indent), break_on_hyphens=False) or [""]
        if narrow:
            lines.append(name)
            lines += [" " * indent + line for line in wrapped if line]
        else:
            lines += [f"{name if k == 0 else '':{column}}{line}" for k, line in enumerate(wrapped)]
    return lines
