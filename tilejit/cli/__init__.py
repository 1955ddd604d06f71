"""The command line: `tilejit demo | pack | unpack | relayout | show | explain | formats | vectorise | cache`.

Errors are one line on stderr and exit code 2. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

import typer

from tilejit.cli import cache, demo, explain, files, formats, pictures, vectorise
from tilejit.cli.errors import OneLineErrors, help_if_alone

app = typer.Typer(
    name="tilejit",
    cls=OneLineErrors,
    help="NumPy arrays to and from tiled, blocked and swizzled memory layouts.",
    invoke_without_command=True,
    callback=help_if_alone,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("pack")(files.pack)
app.command("unpack")(files.unpack)
app.command("relayout")(files.relayout)
app.command("show")(pictures.show)
app.command("explain")(explain.explain)
app.command("formats")(formats.formats)
app.command("vectorise")(vectorise.vectorise)
app.add_typer(cache.app, name="cache")


def main() -> None:
    """Run the command line; what the `tilejit` script calls."""
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _leave)
    app(prog_name="tilejit")


def _leave(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that unfinished files are removed."""
    raise SystemExit(128 + number)


__all__ = ["app", "main"]
