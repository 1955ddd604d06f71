"""Shell completions for arguments: formats, dtypes, parameters, tensors. The shell itself completes files.

This module never imports a compiler. Only completing formats and dtypes imports NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer


def layouts(incomplete: str) -> Iterator[tuple[str, str]]:
    """Formats by name, each with its description."""
    from tilejit.layout.formats.registry import formats as names

    return ((name, _description(name)) for name in names() if name.startswith(incomplete))


def _description(name: str) -> str:
    """The line of a format, or why the package that defines it cannot be loaded."""
    from codegen import LayoutError
    from tilejit.layout.formats.registry import find_format

    try:
        return find_format(name).description
    except LayoutError as error:
        return str(error).splitlines()[0]


def families_and_layouts(incomplete: str) -> Iterator[tuple[str, str]]:
    """Families, each with its title, and formats."""
    from tilejit.catalog.families import families

    yield from ((row.name, row.title) for row in families() if row.name.startswith(incomplete))
    yield from layouts(incomplete)


def layouts_or_row_major(incomplete: str) -> Iterator[tuple[str, str]]:
    """Formats, and C for row-major."""
    if "C".startswith(incomplete):
        yield "C", "row-major"
    yield from layouts(incomplete)


def dtypes(incomplete: str) -> Iterator[str]:
    """Names of the dtypes that arrays can have."""
    from tilejit.layout.dtypes import PRIMITIVE_TYPES, unambiguous_name

    names = (unambiguous_name(row) for row in PRIMITIVE_TYPES.values() if row.is_array_element)
    return (name for name in names if name.startswith(incomplete))


def castings(incomplete: str) -> Iterator[str]:
    """NumPy's rules for conversions."""
    from tilejit.programs.tuning import CASTINGS

    return (name for name in CASTINGS if name.startswith(incomplete))


def parameters(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """The parameters of the format given by --layout or NAME, such as "mr="."""
    from tilejit.layout.formats.registry import find_format
    from tilejit.layout.formats.registry import formats as names

    given = ctx.params.get("layout") or ctx.params.get("name")
    if given in names():
        yield from (f"{key}=" for key in find_format(given).parameters or () if key.startswith(incomplete))


def tensors(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """The tensors of the .safetensors file or the directory given as IN."""
    # After an option without its value, arguments cannot be identified yet.
    given = [str(word) for word in (ctx.params.get("source"), *ctx.args) if word]
    yield from _names_in(given, incomplete)


def tensors_and_parameters(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """The tensors of the file given as SHAPE|FILE, and the parameters of --layout."""
    given = ctx.params.get("shape")
    if given and not ctx.params.get("words"):
        yield from _names_in([given], incomplete)
    yield from parameters(ctx, incomplete)


def _names_in(words: list[str], incomplete: str) -> Iterator[str]:
    """The tensors of the first word that names a file or a directory of them."""
    from codegen import TilejitError
    from tilejit.cli.contents import names_files, tensor_names

    source = next(filter(names_files, words), None)
    if source is None:
        return
    try:
        names = tensor_names(Path(source))
    except (TilejitError, OSError):
        return  # the command itself will report it
    yield from (name for name in names if name.startswith(incomplete))
