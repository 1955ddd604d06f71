"""`tilejit pack`, `tilejit unpack` and `tilejit relayout`: .npy and .safetensors files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen.errors import TilejitError
from tilejit.cli.output import console, human_bytes, print_json
from tilejit.cli.parameters import Parameters, parameters_checked, read_parameters

if TYPE_CHECKING:
    from tilejit.interop.safetensors import Plan
    from tilejit.layout.cute_shape import Spec

In = Annotated[Path, typer.Argument(metavar="IN", help="A .npy or .safetensors file.")]
Out = Annotated[
    Path, typer.Argument(metavar="OUT", help="A file of the same kind; replaced only when all is written.")
]
Tensors = Annotated[
    list[str] | None,
    typer.Option(
        "--tensor", metavar="NAME", help="Only this tensor of a .safetensors file; may be given again."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads of a copy; the size decides if absent.")
]


def pack(
    source: In,
    target: Out,
    layout: Annotated[
        str,
        typer.Option("--layout", metavar="L", help='"tpu", "blis-a", "{1,0:T(8,128)(2,1)}", a full shape, …'),
    ],
    parameters: Parameters = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype", metavar="D", help="The packed dtype, e.g. bf16; also how raw '|V2' elements are read."
        ),
    ] = None,
    tensor: Tensors = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Put the array of a .npy file, or the tensors of a .safetensors file, into a tiled layout.

    Tensors that the layout does not fit, such as biases for one of matrices, stay as they are, unless
    --tensor names them.

    For .npy the full shape is printed, which `unpack --shape` takes.

    Example: tilejit pack x.npy y.npy --layout blis-a mr=4
    """
    values = read_parameters(parameters)
    if _kind(source, target) == ".npy":
        from tilejit.interop import npy

        _refuse(tensor, "--tensor is for .safetensors files; a .npy file has one array")
        with parameters_checked():
            spec = npy.pack_file(source, target, layout, dtype=dtype, threads=threads, **values)
        if as_json:
            print_json(_facts(spec))
        else:
            typer.echo(spec)
        return
    from tilejit.interop import safetensors

    with parameters_checked():
        plan = safetensors.plan_pack(
            source, layout, tensors=tensor or (), dtype=dtype, threads=threads, **values
        )
    note = (
        f"not converted to {dtype}, since they hold no fractions: {_some(plan.kept)}\n" if plan.kept else ""
    )
    _write(plan, target, "packed", as_json, note)


def unpack(
    source: In,
    target: Out,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="S", help="The full shape of a packed .npy, as `pack` printed it."),
    ] = None,
    tensor: Tensors = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Get the array of a packed .npy file, or the tensors of a packed .safetensors file, back."""
    if _kind(source, target) == ".npy":
        from tilejit.interop import npy

        _refuse(tensor, "--tensor is for .safetensors files; a .npy file has one array")
        if shape is None:
            raise TilejitError(
                'a .npy file does not hold its layout: give --shape "bf16[...]{...}", as `pack` printed it'
            )
        spec = npy.unpack_file(source, target, shape, threads=threads)
        if as_json:
            print_json(_facts(spec))
        else:
            typer.echo(spec.without_layout())
        return
    from tilejit.interop import safetensors

    _refuse(shape, "--shape is for .npy files; a packed .safetensors file holds the shapes")
    plan = safetensors.plan_unpack(source, tensors=tensor or (), threads=threads)
    _write(plan, target, "unpacked", as_json)


def relayout(
    source: In,
    target: Out,
    layout: Annotated[
        str, typer.Option("--layout", metavar="L", help='"tpu", "{1,0:T(8,128)}", "(8,8):(8,1)", …')
    ],
    parameters: Parameters = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="S", help="The full shape of a packed .npy, as `pack` printed it."),
    ] = None,
    tensor: Tensors = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Bring a packed .npy file, or the packed tensors of a .safetensors file, into another layout.

    Tensors that the layout does not fit stay as they are, unless --tensor names them.

    Example: tilejit relayout x.npy y.npy --shape "f32[100,30]{1,0:T(8,128)}" --layout blis-a mr=4
    """
    values = read_parameters(parameters)
    if _kind(source, target) == ".npy":
        from tilejit.interop import npy

        _refuse(tensor, "--tensor is for .safetensors files; a .npy file has one array")
        if shape is None:
            raise TilejitError(
                'a .npy file does not hold its layout: give --shape "bf16[...]{...}", as `pack` printed it'
            )
        with parameters_checked():
            spec = npy.relayout_file(source, target, shape, layout, threads=threads, **values)
        if as_json:
            print_json(_facts(spec))
        else:
            typer.echo(spec)
        return
    from tilejit.interop import safetensors

    _refuse(shape, "--shape is for .npy files; a packed .safetensors file holds the shapes")
    with parameters_checked():
        plan = safetensors.plan_relayout(source, layout, tensors=tensor or (), threads=threads, **values)
    _write(plan, target, "converted", as_json)


def _kind(source: Path, target: Path) -> str:
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


def _write(plan: Plan, target: Path, done: str, as_json: bool, note: str = "") -> None:
    """Write a plan, then say what was done; an error is alone on stderr."""
    if not plan.converted:
        raise TilejitError(f"there is nothing to be {done} in this file")
    if plan.left:
        note += f"not {done}, since the layout does not fit: {_some(plan.left)}\n"
        note += f"  {plan.reason.splitlines()[0]}\n"
        note += "  to give these another layout, name them with --tensor\n"
    rows = [{"tensor": c.name, **_facts(c.spec)} for c in plan.converted]
    with _progress(plan.nbytes, target.name) as advance:
        plan.write(target, advance)
    typer.echo(note, err=True, nl=False)
    if as_json:
        print_json(rows)
        return
    before = sum(c.source_bytes for c in plan.converted)
    after = sum(c.target_bytes for c in plan.converted)
    count = f"{len(plan.converted)} of {len(plan.outputs)} tensors"
    typer.echo(f"{done} {count}, {human_bytes(before)} -> {human_bytes(after)}")


def _some(names: tuple[str, ...]) -> str:
    """A few names of many, with nothing in them that moves a terminal's cursor."""
    text = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return "".join(c if c.isprintable() else "?" for c in text)


def _facts(spec: Spec) -> dict[str, Any]:
    from tilejit.layout.indexing import shape_name

    return {
        "shape": shape_name(spec),
        "size_in_bytes": spec.size_in_bytes,
        "padding_fraction": spec.padding_fraction,
    }


@contextmanager
def _progress(total: int, name: str) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while a terminal is there to show it."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TransferSpeedColumn,
    )

    stderr = console(stderr=True)
    columns: list[ProgressColumn] = [BarColumn(None), DownloadColumn(True)]
    if stderr.width >= 70:
        columns = [TextColumn("{task.description}", markup=False), *columns, TransferSpeedColumn()]
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(name if len(name) <= 24 else name[:21] + "...", total=total)
        yield lambda done: bar.advance(task, done)
