"""`python -m bench pack`: a table of figures, and a JSON file of them where one is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench import pack
from bench.timing import machine

SUITES = {"pack": pack.run}


def main(
    suite: Annotated[str, typer.Argument(help="pack")] = "pack",
    json_file: Annotated[Path | None, typer.Option("--json", help="also write the figures there")] = None,
    rounds: Annotated[int, typer.Option(help="rounds, medians are taken of")] = 9,
    threads: Annotated[int, typer.Option(help="threads of TileJIT")] = 1,
) -> None:
    """Measure, print, and keep the figures."""
    if suite not in SUITES:
        raise typer.BadParameter(f"there is no suite {suite}; choose {', '.join(SUITES)}")
    facts = machine()
    rows = SUITES[suite](rounds, threads)
    console = Console()
    console.print(", ".join(f"{key} {value}" for key, value in facts.items()), highlight=False)
    console.print(_table(rows))
    if json_file:
        json_file.write_text(json.dumps({"machine": facts, "threads": threads, "rows": rows}, indent=1))


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table()
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "case" else "right", no_wrap=column == "case")
    for row in rows:
        table.add_row(*(f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    return table


if __name__ == "__main__":
    typer.run(main)
