"""`tilejit cache info|clear|warm|verify`: the store of compiled kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codegen import StoreError
from tilejit.cli import completion
from tilejit.cli.errors import Group, arguments_checked, help_if_alone
from tilejit.cli.help import Command
from tilejit.cli.output import print_json
from tilejit.cli.progress import steps
from tilejit.support.units import human_bytes

app = typer.Typer(
    cls=Group,
    help="Manage the compiled kernels on disk.",
    invoke_without_command=True,
    callback=help_if_alone,
    rich_markup_mode=None,
)


@app.command("info", cls=Command)
def info(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the location and number of compiled kernels.

    The compilations include those of kernels that were removed since. Their seconds include the import of
    Numba.
    """
    from codegen import compilations, default_store, remembered_stream_bytes

    store = default_store()
    entries = store.entries()
    size = sum(_size(file) for file in [*entries, *store.notes()])
    compiled = compilations(store)
    stream = remembered_stream_bytes(store)
    tuned = sum(note.name.startswith("schedule-") for note in store.notes())
    where = None if store.directory is None else str(store.directory)
    if as_json:
        state = {"directory": where, "reason": store.reason or None}
        kept = {"kernels": len(entries), "bytes": size, "most_bytes": store.most_bytes, "tuned": tuned}
        work = {"compiled": compiled.kernels, "compile_seconds": compiled.seconds}
        print_json({**state, **kept, **work, "stream_bytes": stream})
        return
    typer.echo(f"directory  {where or 'none'}")
    typer.echo(f"state      {store.reason or 'in use'}")
    typer.echo(f"kernels    {len(entries)}")
    typer.echo(f"size       {human_bytes(size)} of at most {human_bytes(store.most_bytes)}")
    typer.echo(f"compiled   {compiled.kernels} kernels in {compiled.seconds:.1f} s")
    typer.echo(f"tuned      {tuned}")
    typer.echo(f"streaming  {f'from {human_bytes(stream)}, measured' if stream else 'not measured yet'}")


@app.command("clear", cls=Command)
def clear() -> None:
    """Remove all compiled kernels.

    TileJIT compiles them again when it needs them.
    """
    from codegen import default_store

    store = default_store()
    if store.directory is None:
        raise StoreError(f"the cache cannot be cleared: {store.reason}")
    typer.echo(f"removed {store.clear()} kernels from {store.directory}")


@app.command("warm", cls=Command)
def warm(
    formats: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FORMAT...",
            help='Formats by name, with parameters as in "blis-a, mr=8"; by default NumPy\'s transposes.',
            show_default=False,
            autocompletion=completion.layouts,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print only errors, and JSON if --json is given.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compile kernels ahead of time.

    Compiles the kernels that pack and unpack the formats, or NumPy's transposes if no format is named.
    """
    from codegen import default_store
    from tilejit.copies.warming import check_format, warm_format, warm_transposes

    store = default_store()
    if not store.is_writable:
        raise StoreError(f"the cache cannot be filled: {store.reason}")
    with arguments_checked():
        for name in formats or ():
            check_format(name)
    out = {}
    for name in formats or ("transposes",):
        with steps(name, quiet=quiet) as on_step:
            done = warm_format(name, on_step) if formats else warm_transposes(on_step)
        out[name] = {"copies": done.copies, "compiled": done.compiled, "stored": done.stored}
        if not as_json and not quiet:
            typer.echo(f"{name}: {done.compiled} kernels compiled, {done.stored} already stored")
    if as_json:
        print_json(out)


@app.command("verify", cls=Command)
def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Remove damaged entries.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check all entries of the kernel store.

    Damaged entries are harmless: TileJIT compiles or measures them again when it needs them. The exit code is
    1 if damaged entries remain.
    """
    from codegen import default_store, remove_entries, verify_store

    store = default_store()
    if store.directory is None:
        raise StoreError(f"the cache cannot be verified: {store.reason}")
    found = verify_store(store)
    left = remove_entries(found) if repair else list(found.damaged)
    if as_json:
        damaged = {path.name: fault for path, fault in found.damaged}
        counts = {"kernels": found.kernels, "notes": found.notes}
        print_json({**counts, "damaged": damaged, "removed": len(found.damaged) - len(left)})
    else:
        typer.echo(f"intact     {found.kernels} kernels, {found.notes} notes")
        typer.echo(f"damaged    {len(found.damaged)}")
        for path, fault in found.damaged:
            typer.echo(f"  {path.name}: {fault}")
        if repair:
            typer.echo(f"removed    {len(found.damaged) - len(left)}")
    if left:
        raise typer.Exit(1)


def _size(file: Path) -> int:
    """Bytes of a file; 0 if another process has just removed it."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
