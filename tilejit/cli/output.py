"""What the commands print with: the terminal's width and colours, JSON, numbers for readers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from tilejit.view.text import Style


def console(*, stderr: bool = False) -> Console:
    """Standard output, or error, as wide as the terminal; 80 columns where its width is unknown or 0."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False, safe_box=True, stderr=stderr)
    if out.width < 1:
        out.width = 80
    return out


def style_of(out: Console) -> Style:
    """Colours on a terminal that has them; plain ASCII elsewhere, or where NO_COLOR is set."""
    from tilejit.view.text import Style

    colour = out.is_terminal and out.color_system is not None and not os.environ.get("NO_COLOR")
    return Style(out.width, colour and out.encoding.lower().startswith("utf"))


def print_lines(out: Console, text: Any) -> None:
    """Print lines cut at the terminal's edge, never wrapped; a file gets them whole."""
    out.print(text, no_wrap=True, overflow="ellipsis" if out.is_terminal else "ignore", crop=out.is_terminal)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2))


def human_bytes(count: int) -> str:
    """A size as people read it.

    96 -> "96 bytes"    67108864 -> "64.0 MiB"
    """
    if count < 1024:
        return f"{count} byte{'s' if count != 1 else ''}"
    size, unit = float(count), 0
    while size >= 1024 and unit < 5:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {('KiB', 'MiB', 'GiB', 'TiB', 'PiB')[unit - 1]}"
