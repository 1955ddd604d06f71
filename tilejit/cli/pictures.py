"""`tilejit show` and `tilejit view`: pictures of a layout in memory."""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.output import console, print_json, print_lines, style_of
from tilejit.cli.streams import StandardOutput, text_or_input
from tilejit.support.units import human_bytes

if TYPE_CHECKING:
    from tilejit.layout.cute_shape import Spec

MAX_LISTED = 1 << 16
"""Larger arrays come without their indices in JSON."""
MAX_LISTED_RANK = 31
"""NumPy before 2.0 holds 32 dimensions, and one goes to the index."""


Array = Annotated[
    str,
    typer.Argument(metavar="SHAPE", help='For example "bf16[4,8]{1,0:T(2,4)(2,1)}"; - reads it from stdin.'),
]
Other = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="L",
        help='Another layout for SHAPE, such as "tpu".',
        autocompletion=completion.layouts,
    ),
]
PAGE = "tilejit-view.html"
"""Where the page goes if nothing is said."""


def show(
    shape: Array,
    layout: Other = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts and the indices as JSON.")] = False,
    as_svg: Annotated[bool, typer.Option("--svg", help="Print the picture as SVG.")] = False,
) -> None:
    """Draw where each element of an array lives in memory: every cell shows its linear index."""
    if as_json and as_svg:
        raise typer.BadParameter("--json and --svg print different things; give one of them")
    spec = _spec(text_or_input(shape), layout, "show")
    if as_json:
        print_json(facts(spec))
    elif as_svg:
        from tilejit.view.svg import svg

        typer.echo(svg(spec))
    else:
        print_picture(spec)


def view(
    shape: Annotated[
        str,
        typer.Argument(
            metavar="SHAPE|CUTE",
            help='For example "f32[3,5]{1,0:T(2,2)}" or "(4,8):(8,1)"; - reads it from stdin.',
        ),
    ],
    layout: Other = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The page; - for standard output.")
    ] = Path(PAGE),
) -> None:
    """Write one HTML page that explores a layout: array and memory, and the digits between them.

    The page needs no network. Without -o it is tilejit-view.html in this folder, replaced if it is there.
    """
    from tilejit.view.page import cute_layout, page

    shape = text_or_input(shape)
    alone = None if layout else cute_layout(shape)
    text = page(_spec(shape, layout, "view") if alone is None else alone)
    if str(output) == "-":
        if sys.stdout is not None:  # where it is closed, what is printed goes nowhere
            StandardOutput(".html").write(text.encode("ascii"))
        return
    from tilejit.files.whole_file import replacing

    with replacing(output) as file:
        file.write(text.encode("ascii"))
    typer.echo(f"wrote {str(output)!r}, {human_bytes(len(text))}; open it in a browser")


def _spec(shape: str, layout: str | None, command: str) -> Spec:
    """The array of the arguments, in the layout asked for."""
    from tilejit.layout.as_layout import ArrayUnknownError, as_layout

    try:
        spec = as_layout(shape)
    except ArrayUnknownError as error:
        raise LayoutError(f"{str(error).splitlines()[0]}\n  {_in_full(shape, command)}") from error
    return spec if layout is None else as_layout(layout, dtype=spec.primitive_type, dims=spec.dimensions)


def _in_full(text: str, command: str) -> str:
    """How to say the array of a layout alone: a CuTe layout has the sizes, others go behind --layout."""
    from tilejit.cute.int_tuple import product
    from tilejit.view.page import cute_layout

    layout = cute_layout(text)
    if layout is None:
        return f'write the array, too: tilejit {command} "f32[33,300]" --layout "{text[:80]}"'
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    dims = ",".join(str(product(mode)) for mode in shape)
    return f'write them in front, e.g. tilejit {command} "f32[{dims}] {text[:80]}"'


def print_picture(spec: Spec) -> None:
    """The sizes of a shape, its picture, and the buffer where it is small."""
    from tilejit.view.text import layout_text

    out = console()
    print_lines(out, layout_text(spec, style_of(out)))


def facts(spec: Spec) -> dict[str, Any]:
    """What `--json` prints of a shape: its sizes, and where small, the linear index of each element."""
    import numpy as np

    from tilejit.layout.indexing import linear_index

    elements = prod(spec.dimensions)
    indices = None
    if elements <= MAX_LISTED and spec.rank <= MAX_LISTED_RANK:
        index = tuple(np.indices(spec.dimensions)) if spec.rank else ()
        indices = np.asarray(linear_index(spec, index)).tolist()
    return {
        "shape": str(spec),
        "dtype": spec.primitive_type,
        "dimensions": list(spec.dimensions),
        "physical_size": spec.physical_size,
        "element_bits": spec.bits,
        "size_in_bytes": spec.size_in_bytes,
        "padding_fraction": spec.padding_fraction,
        "linear_index": indices,
    }
