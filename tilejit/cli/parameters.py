"""Parameters of formats and patterns on the command line: mr=8 tile=16,32."""

from __future__ import annotations

from typing import Annotated

import typer

from codegen import LayoutError
from tilejit.cli import completion

Parameters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=NUMBER...",
        help="Parameters of the format, such as mr=8, or sizes of the pattern's axes.",
        show_default=False,
        autocompletion=completion.parameters,
    ),
]
Numbers = dict[str, int | tuple[int, ...]]


def read_parameters(texts: list[str] | None) -> Numbers:
    """The parameters in the arguments.

    ["mr=8"] -> {"mr": 8}    ["tile=16,32"] -> {"tile": (16, 32)}

    Raises:
        LayoutError: an argument is not written as KEY=NUMBER, or a key occurs twice or is a keyword of the
            calls.
    """
    found: Numbers = {}
    for text in texts or ():
        key, value = _parameter(text)
        if key in found:
            raise LayoutError(f"{key[:40]} is given twice\n  write it once")
        found[key] = value
    return found


def _parameter(text: str) -> tuple[str, int | tuple[int, ...]]:
    from tilejit.catalog.format import refuse_reserved

    key, _, value = text.partition("=")
    parts = value.split(",")
    if not key.isidentifier() or not all(
        part.isascii() and part.isdigit() and len(part) < 20 for part in parts
    ):
        raise LayoutError(
            f"{text[:40]!r} is not a parameter\n  write e.g. mr=8, or tile=16,32 for two numbers"
        )
    refuse_reserved(key, "a parameter")
    numbers = tuple(map(int, parts))
    return key, numbers[0] if len(numbers) == 1 else numbers


def read_dims(text: str) -> tuple[int, ...]:
    """Read --dims: "33,300" -> (33, 300).

    Raises:
        LayoutError: it is not a list of sizes.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise LayoutError(
            f"--dims: expected sizes separated by commas, got {text[:40]!r}\n  write e.g. --dims 33,300"
        )
    return tuple(map(int, parts))
