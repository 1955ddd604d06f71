"""The commands, as typer knows them; imported by `main` when signals are minded already."""

from __future__ import annotations

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
app.command("view")(pictures.view)
app.command("explain")(explain.explain)
app.command("formats")(formats.formats)
app.command("vectorise")(vectorise.vectorise)
app.add_typer(cache.app, name="cache")
