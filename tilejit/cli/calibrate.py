"""`tilejit calibrate`: measure this machine, and print what schedules depend on."""

from __future__ import annotations

from typing import Annotated

import typer

from tilejit.cli.output import print_json
from tilejit.support.units import human_bytes


def calibrate(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, which a file of TILEJIT_MACHINE may contain.")
    ] = False,
) -> None:
    """Measure what schedules depend on, and print it.

    What is measured is the size from which copies stream past the cache. The first large copy measures it if
    nothing is stored. Calibrate a machine again when it is quiet, or before you store kernels for a container
    image. It takes about a second. Copies that were planned by another size are compiled again.
    """
    from codegen import MACHINE_FACTS, calibrate_machine, default_store, machine

    store, found = default_store(), machine()
    given = found.stream_bytes
    stream = calibrate_machine(store) if given is None else given
    facts = {name: getattr(found, name) for name in MACHINE_FACTS} | {"stream_bytes": stream}
    if as_json:
        print_json(facts)
        return
    first, second, last = (facts[f"{name}_cache_bytes"] for name in ("first", "second", "last"))
    how = "measured" if given is None else "given by TILEJIT_MACHINE"
    kept = store.reason or "in use"
    typer.echo(f"registers  {found.registers} of {found.register_bytes} bytes ({found.level})")
    typer.echo(f"L1 cache   {human_bytes(first)}, {found.first_cache_ways} ways")
    typer.echo(f"L2 cache   {human_bytes(second)}")
    typer.echo(f"L3 cache   {human_bytes(last) if last else 'unknown'}")
    typer.echo(f"streaming  from {human_bytes(stream)}, {how}")
    typer.echo(f"store      {kept}")
