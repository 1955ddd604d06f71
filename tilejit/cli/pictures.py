"""`tilejit show` and `tilejit view`: pictures of a layout in memory, lists of tensors."""

from __future__ import annotations

import sys
from enum import StrEnum
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilejit.cli import completion
from tilejit.cli.contents import check_not_read, names_files, show_contents
from tilejit.cli.errors import arguments_checked, misused
from tilejit.cli.layouts import Layout, read_subject
from tilejit.cli.output import console, print_json, print_lines, style_of
from tilejit.cli.streams import StandardOutput
from tilejit.support.units import human_bytes

if TYPE_CHECKING:
    from tilejit.layout.cute_shape import Spec
    from tilejit.view.page import CuteLayout

MAX_LISTED = 1 << 16
"""For larger arrays, the JSON omits the indices."""
MAX_LISTED_RANK = 31
"""NumPy before 2.0 supports 32 dimensions, of which the index takes one."""


class Color(StrEnum):
    """The meaning of the colors of a picture."""

    tile = "tile"
    order = "order"
    bank = "bank"
    row = "row"


PAGE = "tilejit-view.html"
"""The default path of the page."""


Subject = Annotated[
    str,
    typer.Argument(
        metavar="SHAPE|FILE",
        help='For example "bf16[4,8]{1,0:T(2,4)(2,1)}" or "(4,8):(8,1)"; - reads it from stdin; '
        "or a .npy or .safetensors file, or a directory of them.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TENSOR|KEY=VALUE...",
        help="A tensor of the file; then parameters of --layout, such as mr=8.",
        show_default=False,
        autocompletion=completion.tensors_and_parameters,
    ),
]


def show(
    shape: Subject,
    layout: Layout = None,
    words: Words = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print sizes and slots as JSON.")] = False,
    as_svg: Annotated[bool, typer.Option("--svg", help="Print the picture as SVG.")] = False,
    color: Annotated[
        Color | None,
        typer.Option("--color", help="The meaning of the SVG's colors; bank and row are for swizzles."),
    ] = None,
) -> None:
    """Draw a layout, or list the tensors of a file.

    Each cell of the picture shows the element's slot in memory. For a file, lists layouts and padding, or
    draws the layout of TENSOR. That of a packed .npy file comes from tilejit-layouts.json beside it.
    """
    if as_json and as_svg:
        raise misused("--json and --svg print different things\npass one of them")
    if color and not as_svg:
        raise misused("--color is for pictures as SVG\nadd --svg")
    if names_files(shape) and not words and layout is None and not as_svg:
        show_contents(Path(shape), as_json=as_json)
        return
    subject = read_subject(shape, layout, words, "show")
    with arguments_checked():
        if as_json:
            print_json(facts(subject))
        elif as_svg:
            from tilejit.view.svg import svg

            typer.echo(svg(subject, color=color and color.value))
        else:
            print_picture(subject)


def view(
    shape: Subject,
    layout: Layout = None,
    words: Words = None,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The page; - for standard output.", readable=False
        ),
    ] = Path(PAGE),
    no_clobber: Annotated[bool, typer.Option("-n", "--no-clobber", help="Fail if FILE exists.")] = False,
) -> None:
    """Write an HTML page to explore a layout.

    The page shows the array, its memory, and the digits of an index. It works offline. Without -o, it is
    written to tilejit-view.html in the current directory. A file with several tensors needs TENSOR.
    """
    from tilejit.view.page import page

    subject = read_subject(shape, layout, words, "view")
    with arguments_checked():
        text = page(subject)
    if str(output) == "-":
        if sys.stdout is not None:  # text printed to a closed stream is lost
            StandardOutput(".html").write(text.encode("ascii"))
        return
    if names_files(shape):
        check_not_read(Path(shape), output)
    from tilejit.files.whole_file import replacing

    with replacing(output, clobber=not no_clobber) as file:
        file.write(text.encode("ascii"))
    typer.echo(f"wrote {str(output)!r}, {human_bytes(len(text))}; open it in a browser")


def print_picture(layout: Spec | CuteLayout) -> None:
    """Print the sizes of a layout, its picture, and the buffer if it is small."""
    from tilejit.view.text import layout_text

    out = console()
    print_lines(out, layout_text(layout, style_of(out)))


def facts(layout: Spec | CuteLayout) -> dict[str, Any]:
    """The `--json` output for a layout: its sizes, and if it is small, the linear index of each element.

    A CuTe layout alone has no dtype, so no sizes in bits and bytes.
    """
    import numpy as np

    from tilejit.layout.indexing import linear_index
    from tilejit.view.page import subject

    spec, title = subject(layout)
    typed = spec is layout
    elements = prod(spec.dimensions)
    indices = None
    if elements <= MAX_LISTED and spec.rank <= MAX_LISTED_RANK:
        index = tuple(np.indices(spec.dimensions)) if spec.rank else ()
        indices = np.asarray(linear_index(spec, index)).tolist()
    return {
        "shape": title,
        "dtype": spec.primitive_type if typed else None,
        "dimensions": list(spec.dimensions),
        "physical_size": spec.physical_size,
        "element_bits": spec.bits if typed else None,
        "size_in_bytes": spec.size_in_bytes if typed else None,
        "padding_fraction": spec.padding_fraction,
        "linear_index": indices,
    }
