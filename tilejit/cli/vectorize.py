"""`tilejit vectorize`: the loops of a file in super-vectors, printed as MLIR prints them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from codegen import KernelError
from tilejit.cli.errors import misused, say
from tilejit.cli.parameters import numbers, vector_sizes
from tilejit.cli.streams import DASH, input_text
from tilejit.kernels.pass_options import PassOptions, read_pass_options


class Masks(StrEnum):
    """The stores that have masks."""

    NEEDED = "needed"
    NONE = "none"


def vectorize(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="MLIR (.mlir), Python functions (.py), or - for stdin, which is MLIR unless --python.",
            readable=False,  # `open` reports it
        ),
    ],
    sizes: Annotated[
        str | None,
        typer.Option(
            "--virtual-vector-size",
            metavar="N[,N…]",
            help="One to eight sizes, outermost first, such as 32,256 or 2*hw. [default: 256]",
        ),
    ] = None,
    fastest: Annotated[
        str | None,
        typer.Option(
            "--fastest-varying",
            metavar="D[,D…]",
            help="For each size, the dimension that it traverses, counted from the innermost.",
        ),
    ] = None,
    reductions: Annotated[
        bool, typer.Option("--reductions", help="Also vectorize reductions; changes rounding of floats.")
    ] = False,
    scans: Annotated[
        bool,
        typer.Option(
            "--scans", help="Also vectorize running sums and other scans; changes rounding of floats."
        ),
    ] = False,
    options: Annotated[
        str | None,
        typer.Option(
            "--options",
            metavar="TEXT",
            help="Sizes, dimensions and reductions in one string, in the syntax of mlir-opt.",
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype", metavar="T", help="Dtype of arrays and numbers without an annotation in a .py file."
        ),
    ] = "f32",
    masks: Annotated[
        Masks,
        typer.Option(
            "--masks",
            help="Masks of stores; none prints the same text as MLIR's pass if no store needs a mask.",
        ),
    ] = Masks.NEEDED,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="OTHER",
            help="Run FILE and its super-vector form OTHER on random arrays, and compare.",
        ),
    ] = None,
    python: Annotated[
        bool,
        typer.Option("--python", help="Read Python functions from standard input; the code is executed."),
    ] = False,
) -> None:
    """Vectorize the loops of a file, and print them.

    Comments say which loops vectorized, and why others did not.
    """
    if options is not None:
        if sizes is not None or fastest is not None or reductions:
            raise misused("--options already sets sizes, dimensions and reductions; pass one or the other")
        read = _pass_options(options)
        shape, dims = read.virtual_vector_size, read.fastest_varying
        reductions = read.vectorize_reductions
    else:
        shape = vector_sizes("256" if sizes is None else sizes)
        dims = None if fastest is None else numbers("--fastest-varying", fastest)
    if python and file != DASH:
        raise misused("--python is for standard input; omit it and pass a .py file")
    of_mlir = not python and (file == DASH or file.suffix == ".mlir")
    if not of_mlir and (masks != Masks.NEEDED or check is not None):
        raise misused("--masks and --check are for MLIR; pass a .mlir file")
    if check is not None:
        typer.echo(_checked(file, check))
    elif of_mlir:
        typer.echo(_of_mlir(file, shape, dims, reductions, masks, scans))
    elif python or file.suffix == ".py":
        from tilejit.cli.python_functions import from_text, load, vectorized_functions

        module = from_text(input_text()) if python else load(file)
        typer.echo("\n".join(vectorized_functions(module, shape, dims, reductions, dtype, scans)))
    else:
        raise misused(f"{file} is neither .mlir nor .py\nrename it to match its contents")


def _pass_options(text: str) -> PassOptions:
    """The options of MLIR's pass.

    Raises:
        UsageError: the text does not consist of options of the pass.
    """
    try:
        return read_pass_options(text)
    except KernelError as error:
        raise misused(str(error)) from error


def _of_mlir(
    file: Path,
    shape: tuple[int | str, ...],
    dims: tuple[int, ...] | None,
    reductions: bool,
    masks: Masks,
    scans: bool,
) -> str:
    name, text = "standard input" if file == DASH else str(file), _text(file)
    mlir = _mlir()
    try:
        made = mlir.super_vectorize(
            text,
            virtual_vector_size=shape,
            fastest_varying=dims,
            vectorize_reductions=reductions,
            report=True,
            masks=masks.value,
            vectorize_scans=scans,
        )
    except KernelError as error:
        raise KernelError(f"{name}: {error}") from None
    for function, cause in mlir.parse(text).refused.items():
        say(f"{name}: @{function} cannot be read: {cause}")
    return str(made.rstrip("\n"))


def _checked(file: Path, other: Path) -> str:
    """The result of `tilejit.mlir.check` for two files; the first may be standard input."""
    mlir = _mlir()
    modules = []
    for path in (file, other):
        text = _text(path)
        try:
            modules.append(mlir.parse(text))
        except KernelError as error:
            raise KernelError(f"{path}: {error}") from None
    return str(mlir.check(*modules))


def _text(file: Path) -> str:
    return input_text() if file == DASH else file.read_text(errors="replace")


def _mlir() -> ModuleType:
    try:
        from tilejit import mlir
    except ImportError as error:
        raise KernelError(str(error)) from None
    return mlir
