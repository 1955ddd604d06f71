"""`tilejit explain`: every stage between two layouts and machine code."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.errors import arguments_checked, misused
from tilejit.cli.layouts import read_layout
from tilejit.cli.output import print_json
from tilejit.cli.parameters import Parameters, Values, read_parameters, vector_sizes
from tilejit.cli.streams import text_or_input

if TYPE_CHECKING:
    from tilejit.layout.cute_shape import Spec


class Stage(StrEnum):
    """The stage to print."""

    NEST = "nest"
    SCHEDULE = "schedule"
    DIRECTIVES = "directives"
    SOURCE = "source"
    LLVM = "llvm"
    ASM = "asm"
    ALL = "all"


SIDE = 'A complete shape; or, if the other one is complete, a layout such as "tpu", or C for row-major.'


def explain(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help=SIDE, autocompletion=completion.layouts_or_row_major),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="The layout of the result, in the same notation.",
            autocompletion=completion.layouts_or_row_major,
        ),
    ],
    parameters: Parameters = None,
    stage: Annotated[
        Stage | None, typer.Option("--stage", help="Print only this stage instead of a report.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--virtual-vector-size",
            metavar="N[,N]",
            help="Elements that move at a time, such as 256, 32,256 or 2*hw; by default chosen for the copy.",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="TEXT",
            help="Directives for the largest part of the copy, as --stage directives prints them.",
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", metavar="N", min=1, help="Threads that the copy is planned for.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the stages as one JSON object.")] = False,
) -> None:
    """Show how a copy between layouts is compiled."""
    import tilejit

    if (source, target) == ("-", "-"):
        raise misused("only one side can come from standard input\npass the other as an argument")
    with arguments_checked():
        values = read_parameters(parameters)
        dst, src = sides(text_or_input(target), text_or_input(source), values)
        size = "auto" if sizes is None else _size(vector_sizes(sizes))
        explained = tilejit.explain(dst, src, threads=threads, virtual_vector_size=size, schedule=schedule)
    if stage is None and not as_json:
        typer.echo(explained.report().rstrip("\n"))
        return
    stages = [s for s in Stage if s != Stage.ALL and stage in (s, Stage.ALL, None)]
    texts = {s.value: str(getattr(explained, s.value)) for s in stages}
    if as_json:
        print_json(texts)
    elif len(texts) == 1:
        typer.echo("".join(texts.values()).rstrip("\n"))
    else:
        for name, text in texts.items():
            typer.echo(f"==== {name}\n" + text.rstrip("\n") + "\n")


def _size(sizes: tuple[int | str, ...]) -> Any:
    """One size as a number, two as a pair; `explain` refuses others."""
    return sizes[0] if len(sizes) == 1 else sizes


def sides(target: str, source: str, parameters: Values) -> tuple[Spec | None, Spec | None]:
    """Both sides as shapes, None for row-major; a layout without an array uses the other side's.

    Raises:
        LayoutError: a text cannot be read, or neither side defines the array.
        TypeError: no format or pattern takes the parameters.
    """
    from tilejit.layout.as_layout import as_layout
    from tilejit.layout.text.pattern_text import ROW_MAJOR

    texts = target, source
    full = [as_layout(text) if "[" in text else None for text in texts]
    known = full[1] or full[0]
    if known is None:
        raise LayoutError(
            "neither side gives the size of the array\n"
            '  write one in full, e.g. "bf16[1000,300]{1,0:T(8,128)}"'
        )
    alone = [text for shape, text in zip(full, texts, strict=True) if shape is None]
    if parameters and all(text in ROW_MAJOR for text in alone):
        raise TypeError(
            f"neither side is a format or a pattern with a parameter {next(iter(parameters))[:40]}"
        )

    def read(text: str) -> Spec | None:
        """The shape of a layout alone; None for C, which takes the other side's array."""
        if text in ROW_MAJOR:
            return None
        return read_layout(text, known.element, known.dimensions, parameters)

    first, second = (read(text) if shape is None else shape for shape, text in zip(full, texts, strict=True))
    return first, second
