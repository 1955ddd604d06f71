"""`tilejit pack`, `unpack` and `relayout`: .npy and .safetensors files, and directories of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import TilejitError
from tilejit.cli import completion
from tilejit.cli.file_jobs import Options, Planner, array_job, run_directory, run_file, tensors_job, write
from tilejit.cli.file_report import facts, print_sizes
from tilejit.cli.output import print_json
from tilejit.cli.parameters import Numbers, Parameters, parameters_checked, read_parameters
from tilejit.cli.streams import Source, StandardOutput, Target, ends

if TYPE_CHECKING:
    from tilejit.files.npy import Plan as ArrayPlan
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

OF_NPY = "--shape is for .npy files; a packed .safetensors file holds the shapes"
OF_SAFETENSORS = "--tensor is for .safetensors files; a .npy file has one array"


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
    wishes = _wishes(layout, read_parameters(parameters), rules, dtype)
    options = Options("packed", dry_run, resume, as_json, dtype, quiet)
    own = wishes if rules else None
    came, goes = ends(source, target, dry_run=dry_run, resume=resume)
    if source.is_dir():
        from tilejit.files import safetensors

        planner = Planner(
            lambda file, names: safetensors.draft_pack(file, wishes, names, threads),
            lambda path, name: _array_plan(path, name, wishes, threads),
            tensor or (),
        )
        with parameters_checked():
            run_directory(source, target, planner, options, own)
        return
    if _kind(came, goes) == ".npy":
        _refuse(tensor, OF_SAFETENSORS)
        with parameters_checked():
            plan = _array_plan(came, came.stem, wishes, threads)
        if plan is None:
            raise TilejitError(f"no rule packs {came.stem!r}")
        _run_array(came, goes, plan, options)
        return
    from tilejit.files import container, safetensors

    with parameters_checked():
        drafted = safetensors.draft_pack(container.read(came), wishes, tensor or None, threads)
    run_file(tensors_job(came, goes, drafted), options, strictly=bool(tensor), rules=own)


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
    options = Options("unpacked", dry_run, resume, as_json, quiet=quiet)
    came, goes = ends(source, target, dry_run=dry_run, resume=resume)
    if source.is_dir():
        from tilejit.files import safetensors

        _refuse(shape, OF_NPY)
        planner = Planner(
            lambda file, names: safetensors.draft_unpack(file, names, threads), named=tensor or ()
        )
        run_directory(source, target, planner, options)
        return
    if _kind(came, goes) == ".npy":
        from tilejit.files import npy

        _refuse(tensor, OF_SAFETENSORS)
        plan = npy.plan_unpack(came, _given(shape), threads)
        _run_array(came, goes, plan, options, bare=True)
        return
    from tilejit.files import safetensors

    _refuse(shape, OF_NPY)
    drafted = safetensors.plan_unpack(came, tensors=tensor or (), threads=threads)
    run_file(tensors_job(came, goes, drafted), options, strictly=bool(tensor))


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
    values = read_parameters(parameters)
    wishes = _wishes(layout, values, rules, None)
    options = Options("converted", dry_run, resume, as_json, quiet=quiet)
    own = wishes if rules else None
    came, goes = ends(source, target, dry_run=dry_run, resume=resume)
    if source.is_dir():
        from tilejit.files import safetensors

        _refuse(shape, OF_NPY)
        planner = Planner(
            lambda file, names: safetensors.draft_relayout(file, wishes, names, threads),
            named=tensor or (),
        )
        with parameters_checked():
            run_directory(source, target, planner, options, own)
        return
    if _kind(came, goes) == ".npy":
        from tilejit.files import npy

        _refuse(tensor, OF_SAFETENSORS)
        wish = wishes.wish(came.stem)
        if wish is None:
            raise TilejitError(f"no rule converts {came.stem!r}")
        with parameters_checked():
            plan = npy.plan_relayout(came, _given(shape), wish.layout, wish.parameters, threads)
        _run_array(came, goes, plan, options)
        return
    from tilejit.files import container, safetensors

    _refuse(shape, OF_NPY)
    with parameters_checked():
        drafted = safetensors.draft_relayout(container.read(came), wishes, tensor or None, threads)
    run_file(tensors_job(came, goes, drafted), options, strictly=bool(tensor), rules=own)


def _wishes(layout: str | None, parameters: Numbers, rules: Path | None, dtype: str | None) -> Rules:
    """What each tensor shall become, by --layout and --rules."""
    from tilejit.files.rules import Wish, read_rules, rules_of

    if layout is None and rules is None:
        raise typer.BadParameter("give --layout, or --rules FILE")
    if layout is None and parameters:
        raise typer.BadParameter(f"{next(iter(parameters))[:40]} is a parameter of --layout, which is absent")
    if rules is None:
        return rules_of(layout, dtype, parameters)
    default = None if layout is None else Wish(layout, parameters, dtype)
    return read_rules(rules, default, dtype)


def _array_plan(path: Source, name: str, wishes: Rules, threads: int | None) -> ArrayPlan | None:
    from tilejit.files import npy

    wish = wishes.wish(name)
    if wish is None:
        return None
    return npy.plan_pack(path, wish.layout, wish.dtype, wish.parameters, threads)


def _run_array(
    source: Source, target: Target, plan: ArrayPlan, options: Options, *, bare: bool = False
) -> None:
    """Write a .npy file and print its shape, without its layout where it has none any more."""
    assert plan.spec is not None
    job = array_job(source, target, plan)
    if options.dry_run:
        print_sizes(list(job.rows), as_json=options.as_json, files=False)
        return
    write(job, options)
    err = isinstance(target, StandardOutput)
    if options.as_json:
        print_json(facts(plan.spec), err=err)
    elif not options.quiet:
        typer.echo(plan.spec.without_layout() if bare else plan.spec, err=err)


def _given(shape: str | None) -> str:
    if shape is None:
        raise TilejitError(
            'a .npy file does not hold its layout: give --shape "bf16[...]{...}", as `pack` printed it'
        )
    return shape


def _kind(source: Source, target: Target) -> str:
    """The extension of both files."""
    kinds = source.suffix.lower(), target.suffix.lower()
    for path, kind in zip((source, target), kinds, strict=True):
        if kind not in (".npy", ".safetensors"):
            raise TilejitError(f"{str(path)!r} ends neither in .npy nor in .safetensors")
    if kinds[0] != kinds[1]:
        raise TilejitError(f"IN is {kinds[0]} and OUT is {kinds[1]}: give two files of one kind")
    return kinds[0]


def _refuse(value: Any, why: str) -> None:
    if value:
        raise TilejitError(why)
