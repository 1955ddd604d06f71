"""`tilejit explain`: every stage between two layouts and machine code."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import LayoutError
from tilejit.cli import completion
from tilejit.cli.output import print_json
from tilejit.cli.parameters import Numbers, Parameters, parameters_checked, read_parameters

if TYPE_CHECKING:
    from tilejit.layout.cute_shape import Spec


class Stage(StrEnum):
    """What to print."""

    NEST = "nest"
    SCHEDULE = "schedule"
    SOURCE = "source"
    LLVM = "llvm"
    ASM = "asm"
    ALL = "all"


ATTRIBUTES = {
    Stage.NEST: "nest",
    Stage.SCHEDULE: "schedule",
    Stage.SOURCE: "source",
    Stage.LLVM: "llvm_ir",
    Stage.ASM: "assembly",
}

ROW_MAJOR = ("C", "c", "-")

Side = Annotated[
    str,
    typer.Argument(
        help='A full shape, a layout such as "tpu" where the other side is full, or C for row-major.',
        autocompletion=completion.layouts_or_row_major,
    ),
]


def explain(
    source: Side,
    target: Side,
    parameters: Parameters = None,
    stage: Annotated[
        Stage | None, typer.Option("--stage", help="Only this stage; a report if absent.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the stages as one JSON object.")] = False,
) -> None:
    """Show how a copy between two layouts is compiled."""
    import tilejit

    values = read_parameters(parameters)
    with parameters_checked():
        dst, src = sides(target, source, values)
        explained = tilejit.explain(dst, src)
    if stage is None and not as_json:
        typer.echo(explained.report().rstrip("\n"))
        return
    stages = [s for s in ATTRIBUTES if stage in (s, Stage.ALL, None)]
    texts = {s.value: str(getattr(explained, ATTRIBUTES[s])) for s in stages}
    if as_json:
        print_json(texts)
    elif len(texts) == 1:
        typer.echo("".join(texts.values()).rstrip("\n"))
    else:
        for name, text in texts.items():
            typer.echo(f"==== {name}\n" + text.rstrip("\n") + "\n")


def sides(target: str, source: str, parameters: Numbers) -> tuple[Spec | None, Spec | None]:
    """Both sides as shapes, None for row-major; a layout alone takes the rest from the other side.

    Raises:
        LayoutError: a text cannot be read, or neither side says how large the array is.
        TypeError: there is no format or pattern that takes the parameters.
    """
    from tilejit.layout.as_layout import as_layout

    texts = target, source
    full = [as_layout(text) if "[" in text else None for text in texts]
    known = full[1] or full[0]
    if known is None:
        raise LayoutError(
            'neither side says how large the array is: write one in full, as "bf16[1000,300]{1,0:T(8,128)}"'
        )
    read = partial(as_layout, dtype=known.primitive_type, dims=known.dimensions)
    alone = [text for shape, text in zip(full, texts, strict=True) if shape is None and text not in ROW_MAJOR]
    if parameters and not alone:
        raise TypeError(
            f"neither side is a format or a pattern with a parameter {next(iter(parameters))[:40]}"
        )
    more: dict[str, Any] = dict(parameters)
    first, second = (
        shape if shape is not None or text in ROW_MAJOR else read(text, **more)
        for shape, text in zip(full, texts, strict=True)
    )
    return first, second
