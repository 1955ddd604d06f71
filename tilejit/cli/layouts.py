"""How every command reads arrays and layouts.

An array is a complete shape, "bf16[4,8]{1,0:T(2,4)(2,1)}" or "f32[3,5] (4,8):(8,1)", or - for one on standard
input. Pictures also take a file and the name of a tensor. A layout is a named format with its parameters, a
pattern, XLA's tiles, a CuTe layout, a complete shape, or C for row-major.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.contents import names_files, tensor_layout, tensor_names
from tilejit.cli.errors import arguments_checked
from tilejit.cli.parameters import Values, read_parameters
from tilejit.cli.streams import text_or_input

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tilejit.layout.cute_shape import Spec
    from tilejit.layout.dtypes import ElementLike
    from tilejit.view.page import CuteLayout

Layout = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="L",
        help='"tpu", "blis-a", "{1,0:T(8,128)(2,1)}", "(8,8):(8,1)", a pattern, C for row-major, ...',
        autocompletion=completion.layouts_or_row_major,
    ),
]


def read_layout(text: str, dtype: ElementLike, dims: Iterable[int], parameters: Values) -> Spec:
    """The shape of an array in a layout.

    Raises:
        LayoutError: the text cannot be read, or the layout does not fit the array.
        TypeError: the layout does not take the parameters.
    """
    from tilejit.layout.as_layout import as_layout
    from tilejit.layout.text.pattern_text import spelled_out

    values: dict[str, Any] = dict(parameters)
    return as_layout(spelled_out(text), dtype=dtype, dims=dims, **values)


def read_subject(text: str, layout: str | None, words: list[str] | None, command: str) -> Spec | CuteLayout:
    """The subject of a picture: an array in its own layout or in another one, or only a CuTe layout.

    Args:
        text: a shape or a layout, - for standard input, or the path of a file or a directory.
        layout: the layout to draw instead of the array's own.
        words: the layout's parameters; for a file, preceded by the name of a tensor.
        command: the name of the command, for errors.

    Raises:
        UsageError: a text cannot be read, or the size of the array is not defined, or the layout does not
            take the parameters.
        LayoutError: the file is damaged, or has no such tensor.
        OSError: the file cannot be read.
    """
    if not names_files(text):
        with arguments_checked():
            return _subject(text, layout, read_parameters(words), command)
    name, rest = _tensor_and_parameters(Path(text), words or [])
    with arguments_checked():
        parameters = read_parameters(rest)
        _check_has_layout(layout, parameters)
    spec = tensor_layout(Path(text), name)
    if layout is None:
        return spec
    with arguments_checked():
        return read_layout(layout, spec.element, spec.dimensions, parameters)


def _tensor_and_parameters(path: Path, words: list[str]) -> tuple[str | None, list[str]]:
    """The name of a tensor, None if there is none, and the words that follow it.

    ["w", "mr=8"] -> ("w", ["mr=8"])    ["mr=8"] -> (None, ["mr=8"])
    """
    if words and ("=" not in words[0] or words[0] in tensor_names(path)):
        return words[0], words[1:]
    return None, words


def _check_has_layout(layout: str | None, parameters: Values) -> None:
    if parameters and layout is None:
        raise TypeError(f"{next(iter(parameters))[:40]} is a parameter of --layout, which is missing")


def _subject(text: str, layout: str | None, parameters: Values, command: str) -> Spec | CuteLayout:
    """The subject that a text describes.

    Raises:
        LayoutError: a text cannot be read, or the size of the array is not defined.
        TypeError: the layout does not take the parameters.
    """
    from tilejit.layout.as_layout import ArrayUnknownError, as_layout
    from tilejit.view.page import cute_layout

    given, text = text, text_or_input(text)
    alone = cute_layout(text)
    if alone is not None and layout is None and not parameters:
        return alone
    _check_has_layout(layout, parameters)
    try:
        spec = as_layout(text)
    except ArrayUnknownError as error:
        said = str(error).splitlines()[0]
        example = f'tilejit {command} "f32[33,300]" --layout "{text[:80]}"'
        raise LayoutError(f"{said}\n  write the array first, e.g. {example}") from error
    except LayoutError as error:
        if not os.path.exists(given):
            raise
        kinds = "pass a .npy or .safetensors file, a directory of them, or a shape such as f32[3,5]{1,0}"
        raise LayoutError(f"{given[:200]!r} is a file of another kind\n  {kinds}") from error
    return spec if layout is None else read_layout(layout, spec.element, spec.dimensions, parameters)
