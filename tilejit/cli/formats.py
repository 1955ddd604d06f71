"""`tilejit formats`: the named formats, and one of them in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.errors import arguments_checked
from tilejit.cli.output import console, print_json, print_lines, table
from tilejit.cli.parameters import Parameters, read_parameters
from tilejit.cli.pictures import facts, print_picture

if TYPE_CHECKING:
    from tilejit.layout.cute_shape import Spec
    from tilejit.layout.formats import FormatDescription


def formats(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A format, a oneDNN tag or a pattern; without it, all formats are listed.",
            autocompletion=completion.layouts,
        ),
    ] = None,
    parameters: Parameters = None,
    dims: Annotated[
        str | None, typer.Option("--dims", metavar="D,D,...", help="The array's dimensions, e.g. 33,300.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", metavar="T", help="Its dtype, e.g. bf16.", autocompletion=completion.dtypes),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the named formats, or describe one.

    Describes a format by NumPy code, XLA tiles, a CuTe layout and a picture.
    """
    if name is None:
        _list(as_json)
        return
    from tilejit.layout.as_layout import as_layout, recipe_of

    with arguments_checked():
        values: dict[str, Any] = dict(read_parameters(parameters))
        element, wanted = _array(name, dtype, dims)
        spec = as_layout(name, dtype=element, dims=wanted, **values)
        recipe = recipe_of(name, spec.element, spec.dimensions, **values)
    cute, why_not = _cute_text(spec)
    described = _described(name)
    if as_json:
        about = {} if described is None else _as_json(described)
        own = {"format": name, "parameters": values, "recipe": recipe, "cute": cute}
        print_json({**facts(spec), **about, **own})
        return
    out = console()
    print_lines(out, name if described is None else str(described))
    out.print()
    print_lines(out, recipe.rstrip("\n"))
    out.print()
    print_lines(out, f"CuTe      {cute or why_not}")
    print_picture(spec)


def _list(as_json: bool) -> None:
    from tilejit.layout.formats.registry import find_format
    from tilejit.layout.formats.registry import formats as names

    found = [find_format(name) for name in names()]
    rows = [(row.name, row.description, row.parameters or ()) for row in found]
    if as_json:
        print_json([{"name": n, "description": d, "parameters": list(p)} for n, d, p in rows])
        return
    out = console()
    texts = [(n, d + (f" ({', '.join(p)})" if p else "")) for n, d, p in rows]
    texts.append(("aBcd16b, …" if out.is_terminal else "aBcd16b, ...", "any other blocked oneDNN tag"))
    for line in table(texts, out.width):
        print_lines(out, line)


def _array(name: str, dtype: str | None, dims: str | None) -> tuple[str, tuple[int, ...]]:
    """The array to show a format on: the requested one, else a small default of the format.

    Raises:
        LayoutError: the name is not a format's, or neither it nor --dims defines the dimensions.
    """
    from tilejit.layout.as_layout import is_name
    from tilejit.layout.formats.registry import find_format, read_call
    from tilejit.layout.text.pattern_text import is_pattern, parse_pattern

    given = None if dims is None else _dims(dims)
    example = None
    if is_pattern(name):
        parse_pattern(name)
    elif is_name(name):
        example = find_format(read_call(name)[0]).example
    else:
        raise LayoutError(
            f"{name[:80]!r} is a layout, not the name of a format or a pattern\n  tilejit show draws layouts"
        )
    small, element = example or (None, "f32")
    wanted = small if given is None else given
    if wanted is None:
        raise LayoutError(
            "a pattern does not specify the array's dimensions\n  pass them, e.g. --dims 33,300"
        )
    return element if dtype is None else dtype, wanted


def _dims(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise LayoutError(
            f"--dims: expected sizes separated by commas, got {text[:40]!r}\n  write e.g. --dims 33,300"
        )
    return tuple(map(int, parts))


def _described(name: str) -> FormatDescription | None:
    """The description of a format; None for a pattern, which describes itself."""
    from tilejit.layout.formats import describe_format
    from tilejit.layout.formats.registry import read_call
    from tilejit.layout.text.pattern_text import is_pattern

    return None if is_pattern(name) else describe_format(read_call(name)[0])


def _as_json(described: FormatDescription) -> dict[str, Any]:
    """The `--json` output for a format, which does not depend on the array."""
    return {
        "description": described.description,
        "formula": described.formula,
        "takes": described.parameters,
        "dtypes": described.dtypes,
        "ranks": described.ranks,
        "source": described.source,
    }


def _cute_text(spec: Spec) -> tuple[str | None, str]:
    """The CuTe layout of a shape; None and the reason if it has none."""
    from tilejit.cute import from_xla
    from tilejit.layout.shape import Shape

    if not isinstance(spec, Shape):
        return str(spec.layout), ""
    try:
        return str(from_xla(spec)), ""
    except LayoutError as error:
        return None, f"none: {str(error).splitlines()[0]}"
