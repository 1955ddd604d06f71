"""`tilejit cache info` and `tilejit cache clear`: the store of compiled kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codegen.errors import StoreError
from tilejit.cli.errors import help_if_alone
from tilejit.cli.output import human_bytes, print_json

app = typer.Typer(
    help="The compiled kernels on disk.",
    invoke_without_command=True,
    callback=help_if_alone,
    rich_markup_mode=None,
)


@app.command("info")
def info(as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False) -> None:
    """Say where the compiled kernels are, how many, how large, and what was measured."""
    from codegen.calibrate import remembered
    from codegen.store import default_store

    store = default_store()
    entries = store.entries()
    size = sum(_size(file) for file in [*entries, *store.notes()])
    known = remembered(store)
    stream = known.stream_bytes if known else None
    tuned = sum(note.name.startswith("schedule-") for note in store.notes())
    where = None if store.directory is None else str(store.directory)
    if as_json:
        state = {"directory": where, "reason": store.reason or None}
        kept = {"kernels": len(entries), "bytes": size, "most_bytes": store.most_bytes, "tuned": tuned}
        print_json({**state, **kept, "stream_bytes": stream})
        return
    typer.echo(f"directory  {where or 'none'}")
    typer.echo(f"state      {store.reason or 'in use'}")
    typer.echo(f"kernels    {len(entries)}")
    typer.echo(f"size       {human_bytes(size)} of at most {human_bytes(store.most_bytes)}")
    typer.echo(f"tuned      {tuned}")
    typer.echo(f"streaming  {f'from {human_bytes(stream)}, measured' if stream else 'not measured yet'}")


@app.command("clear")
def clear() -> None:
    """Remove all compiled kernels; they are built again when needed."""
    from codegen.store import default_store

    store = default_store()
    if store.directory is None:
        raise StoreError(f"there is no cache to clear: {store.reason}")
    typer.echo(f"removed {store.clear()} kernels from {store.directory}")


def _size(file: Path) -> int:
    """Bytes of a file; none where another process has just removed it."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
