"""`tilejit formats`: the named formats, and one of them in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.errors import arguments_checked
from tilejit.cli.output import console, print_json, print_lines, table
from tilejit.cli.parameters import Parameters, read_dims, read_parameters
from tilejit.cli.pictures import facts, print_picture
from tilejit.support.units import counted

SHOWN = 5
"""The formats of a family that the list of families names."""
OTHERS = "Formats of other packages"
_ELEMENTS = re.compile(r"\S+\[[^\]]*\](?: in bits? \d[-\d]*)?")
_INDENTS: Any = {"initial_indent": "  ", "subsequent_indent": "    ", "break_long_words": False}

if TYPE_CHECKING:
    from tilejit.catalog.entries import Family
    from tilejit.catalog.format import Format
    from tilejit.layout.cute_shape import Spec
    from tilejit.layout.formats import FormatDescription


def formats(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A family, a format, a oneDNN tag or a pattern; without it, all families are listed.",
            autocompletion=completion.families_and_layouts,
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

    Without NAME, lists the families; with a family, its formats. Describes a format by NumPy code, XLA tiles,
    a CuTe layout and a picture; one of several planes by its planes and the bytes of each field.
    """
    from tilejit.layout.as_layout import as_layout, recipe_of

    if name is None:
        _list_families(as_json)
        return
    family = _family(name)
    if family is not None:
        _list_formats(family.formats, as_json)
        return
    with arguments_checked():
        values: dict[str, Any] = dict(read_parameters(parameters))
        if _is_of_planes(name, values):
            if dtype is not None:
                raise LayoutError(
                    f"{name[:40]} is a format of planes, which have dtypes of their own\n  omit --dtype"
                )
            _describe_planes(name, values, None if dims is None else read_dims(dims), as_json)
            return
        element, wanted = _array(name, dtype, dims)
        if wanted is None:
            _describe_alone(name, as_json)
            return
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


def _describe_alone(name: str, as_json: bool) -> None:
    """Print the description of a format without an example, such as a function of another package."""
    described = _described(name)
    assert described is not None
    if as_json:
        print_json({"format": described.name, **_as_json(described)})
        return
    out = console()
    print_lines(out, str(described))
    out.print()
    print_lines(out, "For the layout of an array, pass its dimensions, e.g. --dims 33,300.")


def _list_families(as_json: bool) -> None:
    from tilejit.catalog.families import families
    from tilejit.layout.formats.registry import formats as names

    own = list(families())
    known = {row.name for family in own for row in family.formats}
    others = [name for name in names() if name not in known]
    if as_json:
        rows = [{"name": f.name, "title": f.title, "formats": _rows(f.formats)} for f in own]
        if others:
            rows.append({"name": "", "title": OTHERS, "formats": [_other(name) for name in others]})
        print_json(rows)
        return
    out = console()
    dots = "…" if out.is_terminal else "..."
    texts = [(f.name, f"{f.title}: {_some([row.name for row in f.formats], dots)}") for f in own]
    if others:
        texts.append(("(others)", f"{OTHERS}: {', '.join(others)}"))
    for line in table(texts, out.width):
        print_lines(out, line)
    more = "tilejit formats FAMILY lists a family, and tilejit formats NAME describes a format. "
    out.print()
    for line in wrap(f"{more}Any other blocked oneDNN tag, such as aBcd16b, is a format as well.", out.width):
        print_lines(out, line)


def _other(name: str) -> dict[str, Any]:
    """A format of another package, which may be broken."""
    from tilejit.layout.formats.registry import find_format

    try:
        return _rows([find_format(name)])[0]
    except LayoutError as error:
        return {"name": name, "description": str(error).splitlines()[0], "parameters": []}


def _some(names: list[str], dots: str) -> str:
    """The first names of a family: "vnni, amx-b, blis-a, ... (7)"."""
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown}, {dots} ({len(names)})"


def _list_formats(rows: Sequence[Format], as_json: bool) -> None:
    if as_json:
        print_json(_rows(rows))
        return
    out = console()
    texts = [
        (r.name, r.description + (f" ({', '.join(r.parameters)})" if r.parameters else "")) for r in rows
    ]
    for line in table(texts, out.width):
        print_lines(out, line)


def _rows(rows: Sequence[Format]) -> list[dict[str, Any]]:
    return [
        {"name": row.name, "description": row.description, "parameters": list(row.parameters or ())}
        for row in rows
    ]


def _family(name: str) -> Family | None:
    from tilejit.catalog.families import families

    return next((family for family in families() if family.name == name), None)


def _is_of_planes(name: str, parameters: dict[str, Any]) -> bool:
    from tilejit.layout.as_layout import is_name
    from tilejit.layout.formats.packings import names_planes

    return is_name(name) and names_planes(name, parameters)


def _describe_planes(
    name: str, parameters: dict[str, Any], dims: tuple[int, ...] | None, as_json: bool
) -> None:
    """Print the description of a format of planes, and what the bytes of a record or a small array hold."""
    from tilejit.layout.formats import describe_format
    from tilejit.layout.formats.registry import called
    from tilejit.view.bit_owners import owners
    from tilejit.view.byte_map import ROUNDED, lines_of, shortened

    own, given = called(name, parameters)
    described = describe_format(own.name, **given)
    found = owners(own.name, dims, **given)
    lines = {key: lines_of(found, key) for key in found.buffers}
    if as_json:
        rows = {key: [[x.first, x.last, x.text] for x in some] for key, some in lines.items()}
        print_json(
            {
                "format": described.name,
                **_as_json(described),
                "dimensions": list(found.dims),
                "bytes": rows,
            }
        )
        return
    out = console()
    print_lines(out, str(described))
    for key, some in lines.items():
        out.print()
        print_lines(out, f"{key} of {list(found.dims)}, {counted(len(found.buffers[key]), 'byte')}")
        for line in shortened(some):
            for text in wrap(_ELEMENTS.sub(_joined, str(line)), out.width, **_INDENTS):
                print_lines(out, text.replace("\0", " "))
    if found.rounds:
        out.print()
        for text in wrap(ROUNDED, out.width):
            print_lines(out, text)


def _joined(elements: re.Match[str]) -> str:
    """Elements and their bits as one word, so that lines break between them."""
    return elements[0].replace(" ", "\0")


def _array(name: str, dtype: str | None, dims: str | None) -> tuple[str, tuple[int, ...] | None]:
    """The array to show a format on: the requested one, else that of the example; None if there is none.

    Raises:
        LayoutError: the name is not a format's, or a pattern lacks --dims.
    """
    from tilejit.layout.as_layout import is_name
    from tilejit.layout.formats.registry import called
    from tilejit.layout.text.pattern_text import is_pattern, parse_pattern

    given = None if dims is None else read_dims(dims)
    example = None
    if is_pattern(name):
        parse_pattern(name)
    elif is_name(name):
        example = called(name, {})[0].example
    else:
        raise LayoutError(
            f"{name[:80]!r} is a layout, not the name of a format or a pattern\n  tilejit show draws layouts"
        )
    small, element = example or (None, "f32")
    wanted = small if given is None else given
    if wanted is None and is_pattern(name):
        raise LayoutError(
            "a pattern does not specify the array's dimensions\n  pass them, e.g. --dims 33,300"
        )
    return element if dtype is None else dtype, wanted


def _described(name: str) -> FormatDescription | None:
    """The description of a format; None for a pattern, which describes itself."""
    from tilejit.layout.formats import describe_format
    from tilejit.layout.formats.calls import read_call
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
        "planes": list(described.planes),
        "buffers": list(described.buffers),
        "multiples": described.constraints,
        "padding": described.padding,
        "verified": described.verified,
        "same_as": list(described.same_as),
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
