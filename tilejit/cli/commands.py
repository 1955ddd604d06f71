"""The commands of the typer application; imported by `main` after it has installed its signal handlers."""

from __future__ import annotations

from typing import Annotated

import typer

from tilejit.cli import cache, calibrate, check, demo, explain, files, formats, identify, pictures, vectorize
from tilejit.cli.errors import Commands, help_if_alone
from tilejit.cli.help import Command


def tilejit(
    context: typer.Context,
    version: Annotated[bool, typer.Option("-V", "--version", help="Print the version and exit.")] = False,
) -> None:
    """Options before a command: print the version, or the help if no command follows."""
    if version:
        from tilejit import __version__

        typer.echo(f"tilejit {__version__}")
        raise typer.Exit
    help_if_alone(context)


app = typer.Typer(
    name="tilejit",
    cls=Commands,
    help="NumPy arrays to and from tiled, blocked and swizzled memory layouts.",
    invoke_without_command=True,
    callback=tilejit,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in (
    *(demo.demo, files.pack, files.unpack, files.relayout, check.check, pictures.show, pictures.view),
    *(explain.explain, formats.formats, identify.identify, vectorize.vectorize, calibrate.calibrate),
):
    app.command(function.__name__, cls=Command)(function)
app.add_typer(cache.app, name="cache")
