"""The tables and JSON that `pack`, `unpack`, `relayout` and `show` print about files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from codegen import dataclass
from tilejit.cli.output import UNCUT, console, is_terminal, print_json
from tilejit.support.units import human_bytes, listed

if TYPE_CHECKING:
    from tilejit.files.casts import Cast
    from tilejit.files.plan import Plan
    from tilejit.layout.cute_shape import Spec

WIDE = 80
"""The minimum width, in columns, for one line per tensor in a dry run."""


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor of a file.

    Attributes:
        file: the file.
        tensor: the tensor's name.
        spec: its packed shape; None if it stays unchanged.
        before: its size in bytes in the file to read.
        after: its size in bytes in the file to write.
        cast: the conversion of its elements, if any.
        written_earlier: whether an earlier run wrote it; None without --resume.
    """

    file: str
    tensor: str
    spec: Spec | None
    before: int
    after: int
    cast: Cast | None = None
    written_earlier: bool | None = None

    def facts(self, *, files: bool) -> dict[str, Any]:
        """The row as a JSON object."""
        named = {"file": self.file} if files else {}
        assert self.spec is not None
        return {**named, "tensor": self.tensor, **facts(self.spec, self.cast, self.written_earlier)}


def rows_of(file: str, plan: Plan, earlier: Collection[tuple[str, str]] | None) -> Iterator[Row]:
    """The rows of a file, one for each tensor.

    Args:
        file: the name of the file in the rows.
        plan: the plan of the file.
        earlier: the files and names of the tensors that an earlier run wrote; None without --resume.
    """
    changed = {c.name: c for c in plan.converted}
    for output in plan.outputs:
        own = changed.get(output.name)
        before = own.source_bytes if own else output.nbytes
        spec, cast = (own.spec, own.cast) if own else (None, None)
        written_earlier = None if earlier is None else (file, output.name) in earlier
        yield Row(file, output.name, spec, before, output.nbytes, cast, written_earlier)


def facts(spec: Spec, cast: Cast | None, written_earlier: bool | None) -> dict[str, Any]:
    """A tensor's shape, the losses of its cast, and whether an earlier run wrote it, as a JSON object."""
    from dataclasses import asdict

    from tilejit.layout.indexing import shape_name

    return {
        "shape": shape_name(spec),
        "size_in_bytes": spec.size_in_bytes,
        "padding_fraction": spec.padding_fraction,
        **(
            {}
            if cast is None
            else {"cast": {"from": cast.have, "to": cast.want, "lost": asdict(cast.losses)}}
        ),
        **({} if written_earlier is None else {"written_earlier": written_earlier}),
    }


def print_sizes(rows: list[Row], *, as_json: bool, files: bool) -> None:
    """Print the results of a dry run: one line per tensor, or three on narrow terminals, and the totals."""
    from tilejit.layout.indexing import shape_name

    before, after = sum(row.before for row in rows), sum(row.after for row in rows)
    padding = sum(_padding_bytes(row) for row in rows)
    if as_json:
        tensors = [
            {
                **({"file": row.file} if files else {}),
                "tensor": row.tensor,
                "shape": None if row.spec is None else shape_name(row.spec),
                "bytes_before": row.before,
                "bytes_after": row.after,
                "padding_bytes": _padding_bytes(row),
            }
            for row in rows
        ]
        total = {"bytes_before": before, "bytes_after": after, "padding_bytes": padding}
        print_json({"tensors": tensors, "total": total})
        return
    out = console()
    cells = [_cells(row, files=files) for row in rows]
    if out.width < WIDE:
        for name, shape, dtype, layout, old, new, waste in cells:
            what = f"{dtype}[{shape}] {layout}" if dtype else layout
            text = f"{name}\n  {what}\n  {old} -> {new}, {waste} padding"
            typer.echo(text)
    else:
        print_table(cells, ("before", "after", "padding"))
    sizes = f"{human_bytes(before)} -> {human_bytes(after)}"
    typer.echo(f"total {sizes}, {percent(padding, after)} padding; nothing was written")


def _cells(row: Row, *, files: bool) -> tuple[str, ...]:
    name = printable(f"{row.file}: {row.tensor}" if files else row.tensor)
    sizes = human_bytes(row.before), human_bytes(row.after)
    if row.spec is None:
        return name, "", "", "unchanged", *sizes, "0.0%"
    layout = "row-major" if row.spec.layout is None else str(row.spec.layout)
    shape = ",".join(map(str, row.spec.dimensions))
    return name, shape, row.spec.primitive_type, layout, *sizes, percent(_padding_bytes(row), row.after)


def percent(part: int, whole: int) -> str:
    """Format a fraction as a percentage.

    (1, 8) -> "12.5%"    (0, 0) -> "0.0%"
    """
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"


def print_table(cells: list[tuple[str, ...]], numbers: tuple[str, ...]) -> None:
    """Print a table of tensors with their shapes, dtypes, layouts and columns of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("tensor", overflow="fold", ratio=3)
    table.add_column("shape", overflow="fold")
    table.add_column("dtype", no_wrap=True)
    table.add_column("layout", overflow="fold", ratio=2)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    out = console()
    if not is_terminal(out.file):
        out.width = UNCUT
    out.print(table)


def _padding_bytes(row: Row) -> int:
    """The padding of a packed tensor, in bytes; 0 for a tensor that is not packed."""
    if row.spec is None or row.after != row.spec.size_in_bytes:
        return 0
    return round(row.after * row.spec.padding_fraction)


def some(names: Iterable[str]) -> str:
    """The first three names and the number of others, without control characters."""
    return printable(listed(names))


def printable(text: str) -> str:
    """Replace control characters, which could move the terminal's cursor, with question marks."""
    return "".join(c if c.isprintable() else "?" for c in text)
