"""`tilejit pack`, `unpack` and `relayout`: .npy and .safetensors files, and directories of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilejit.cli import completion
from tilejit.cli.file_jobs import Options, convert
from tilejit.cli.parameters import Numbers, Parameters, read_parameters

if TYPE_CHECKING:
    from tilejit.files.rules import Rules

In = Annotated[
    Path,
    typer.Argument(metavar="IN", help="A .npy or .safetensors file, a directory of them, or - for stdin."),
]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        help="A file of the same kind, replaced only when all is written; a directory; or - for stdout.",
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="L",
        help='"tpu", "blis-a", "{1,0:T(8,128)(2,1)}", "(8,8):(8,1)", a full shape, …',
        autocompletion=completion.layouts,
    ),
]
PackedShape = Annotated[
    str | None,
    typer.Option("--shape", metavar="S", help="The full shape of a packed .npy, as `pack` printed it."),
]
Tensors = Annotated[
    list[str] | None,
    typer.Option(
        "--tensor",
        metavar="NAME",
        help="Only this tensor of a .safetensors file; may be given again.",
        autocompletion=completion.tensors,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads of a copy; the size decides if absent."),
]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print nothing but errors, and what --json asks for.")
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        help="A TOML file of layouts by names of tensors; --layout is for the others.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print sizes and padding; write nothing, read no elements.")
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Leave what is written in OUT.partial if the run ends early; go on from there the next time.",
    ),
]


def pack(
    source: In,
    target: Out,
    layout: Layout = None,
    parameters: Parameters = None,
    rules: RulesFile = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="D",
            help="The packed dtype, e.g. bf16; also how raw '|V2' elements are read.",
            autocompletion=completion.dtypes,
        ),
    ] = None,
    tensor: Tensors = None,
    threads: Threads = None,
    dry_run: DryRun = False,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Put the array of a .npy file, or the tensors of a .safetensors file, into a tiled layout.

    Tensors that the layout does not fit, such as biases for one of matrices, stay as they are, unless
    --tensor names them. Of a directory every file is packed, or every shard that its
    model.safetensors.index.json names; other files stay behind.

    For .npy the full shape is printed, which `unpack --shape` takes.
    """
    from tilejit.files.draft import draft_pack

    wishes = _wishes(layout, read_parameters(parameters), rules, dtype)
    options = Options("packed", tensor or (), None, dtype, dry_run, resume, quiet, as_json)
    draft = partial(draft_pack, rules=wishes, threads=threads)
    convert(source, target, draft, options, wishes if rules else None)


def unpack(
    source: In,
    target: Out,
    shape: PackedShape = None,
    tensor: Tensors = None,
    threads: Threads = None,
    dry_run: DryRun = False,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Get the array of a packed .npy file, or the tensors of a packed .safetensors file, back."""
    from tilejit.files.draft import draft_unpack

    options = Options("unpacked", tensor or (), shape, None, dry_run, resume, quiet, as_json)
    convert(source, target, partial(draft_unpack, threads=threads), options)


def relayout(
    source: In,
    target: Out,
    layout: Layout = None,
    parameters: Parameters = None,
    rules: RulesFile = None,
    shape: PackedShape = None,
    tensor: Tensors = None,
    threads: Threads = None,
    dry_run: DryRun = False,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Bring a packed .npy file, or the packed tensors of a .safetensors file, into another layout.

    Tensors that the layout does not fit stay as they are, unless --tensor names them.
    """
    from tilejit.files.draft import draft_relayout

    wishes = _wishes(layout, read_parameters(parameters), rules, None)
    options = Options("converted", tensor or (), shape, None, dry_run, resume, quiet, as_json)
    draft = partial(draft_relayout, rules=wishes, threads=threads)
    convert(source, target, draft, options, wishes if rules else None)


def _wishes(layout: str | None, parameters: Numbers, rules: Path | None, dtype: str | None) -> Rules:
    """What each tensor becomes, by --layout and --rules."""
    from tilejit.files.rules import Wish, read_rules, rules_of

    if layout is None and rules is None:
        raise typer.BadParameter("give --layout, or --rules FILE")
    if layout is None and parameters:
        raise typer.BadParameter(f"{next(iter(parameters))[:40]} is a parameter of --layout, which is absent")
    if rules is None:
        return rules_of(layout, dtype, parameters)
    default = None if layout is None else Wish(layout, parameters, dtype)
    return read_rules(rules, default, dtype)
