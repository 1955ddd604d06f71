"""Values on the command line: mr=8 tile=16,32 nested=true, and lists of sizes."""

from __future__ import annotations

from typing import Annotated

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.errors import misused

Parameters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE...",
        help="Parameters of the format, such as mr=8, or sizes of the pattern's axes.",
        show_default=False,
        autocompletion=completion.parameters,
    ),
]
Values = dict[str, int | tuple[int, ...] | bool]


def read_parameters(texts: list[str] | None) -> Values:
    """The parameters in the arguments.

    ["mr=8"] -> {"mr": 8}    ["tile=16,32"] -> {"tile": (16, 32)}    ["nested=true"] -> {"nested": True}

    Raises:
        LayoutError: an argument is not written as KEY=VALUE, or a key occurs twice or is a keyword of the
            calls.
    """
    from tilejit.catalog.format import refuse_reserved
    from tilejit.layout.formats.calls import read_value

    found: Values = {}
    for text in texts or ():
        key, _, value_text = text.partition("=")
        value = read_value(value_text)
        if not key.isidentifier() or value is None:
            raise LayoutError(
                f"{text[:40]!r} is not a parameter\n  write e.g. mr=8, or tile=16,32 for two numbers"
            )
        refuse_reserved(key, "a parameter")
        if key in found:
            raise LayoutError(f"{key[:40]} is given twice\n  write it once")
        found[key] = value
    return found


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


def vector_sizes(text: str) -> tuple[int | str, ...]:
    """The sizes of super-vectors.

    "32,256" -> (32, 256)    "2*hw" -> ("2*hw",)

    Raises:
        UsageError: the text is not a list of sizes.
    """
    from tilejit.kernels.pass_options import read_size_list

    found = read_size_list(text.replace(" ", ""))
    return numbers("--virtual-vector-size", text) if found is None else found


def numbers(option: str, text: str) -> tuple[int, ...]:
    """The numbers of an option.

    "32,256" -> (32, 256)

    Raises:
        UsageError: the text is not a list of numbers.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise misused(f"{option} {text[:40]!r} is not a list of numbers such as 32,256") from None
