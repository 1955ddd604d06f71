"""`tilejit show FILE`: list the tensors of a file or directory, with their layouts and padding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from codegen import dataclass
from tilejit.cli.file_report import WIDE, percent, print_table, printable
from tilejit.cli.output import console, print_json
from tilejit.support.units import human_bytes

if TYPE_CHECKING:
    from tilejit.files.tensor_file import Entry, TensorFile
    from tilejit.layout.cute_shape import Spec


@dataclass(frozen=True, slots=True)
class Content:
    """One tensor of a file: `spec` is its packed shape, None if no layout is known."""

    file: str
    tensor: str
    dtype: str
    dimensions: tuple[int, ...]
    order: str
    spec: Spec | None
    nbytes: int

    @property
    def padding_bytes(self) -> int:
        """Bytes that hold no element."""
        return 0 if self.spec is None else round(self.nbytes * self.spec.padding_fraction)

    def cells(self, *, files: bool) -> tuple[str, ...]:
        """The row of a table."""
        name = printable(f"{self.file}: {self.tensor}" if files else self.tensor)
        layout = self.order if self.spec is None else str(self.spec.layout or self.order)
        shape = ",".join(map(str, self.dimensions))
        waste = percent(self.padding_bytes, self.nbytes)
        return name, shape, printable(self.dtype), layout, human_bytes(self.nbytes), waste

    def facts(self, *, files: bool) -> dict[str, Any]:
        """The row as JSON types."""
        from tilejit.layout.indexing import shape_name

        return {
            **({"file": self.file} if files else {}),
            "tensor": self.tensor,
            "dtype": self.dtype,
            "dimensions": list(self.dimensions),
            "shape": None if self.spec is None else shape_name(self.spec),
            "bytes": self.nbytes,
            "padding_bytes": self.padding_bytes,
        }


def names_files(text: str) -> bool:
    """Whether a text names a file or a directory rather than a layout.

    "x.npy" -> True    "model.SAFETENSORS" -> True    "f32[3,5]" -> False
    """
    extension = os.path.splitext(text)[1].lower()
    if extension[1:]:
        from tilejit.files.file_types import READERS

        if extension in READERS:
            return True
    return os.path.isdir(text)


def show_contents(path: Path, *, as_json: bool) -> None:
    """Print the tensors of a file or directory.

    Raises:
        LayoutError: a file is damaged, or does not match its recorded layout.
        OSError: a file cannot be read.
    """
    files = path.is_dir()
    found = list(_contents_of_directory(path) if files else _contents(path))
    size, padding = sum(c.nbytes for c in found), sum(c.padding_bytes for c in found)
    if as_json:
        total = {"bytes": size, "padding_bytes": padding}
        print_json({"tensors": [c.facts(files=files) for c in found], "total": total})
        return
    cells = [c.cells(files=files) for c in found]
    if console().width < WIDE:
        for name, shape, dtype, layout, nbytes, waste in cells:
            typer.echo(f"{name}\n  {dtype}[{shape}] {layout}\n  {nbytes}, {waste} padding")
    else:
        print_table(cells, ("size", "padding"))
    packed = sum(c.spec is not None for c in found)
    counts = f"{len(found)} tensor{'s' * (len(found) != 1)}, {packed} packed"
    typer.echo(f"{counts}, {human_bytes(size)}, {percent(padding, size)} padding")


def _contents_of_directory(path: Path) -> Iterator[Content]:
    from tilejit.files.shards import read_shards

    for name in read_shards(path).names:
        yield from _contents(path / name)


def _contents(path: Path) -> Iterator[Content]:
    from tilejit.files.file_types import open_file

    file = open_file(path)
    for entry in file.entries:
        yield _content(path.name, file, entry)


def _content(name: str, file: TensorFile, entry: Entry) -> Content:
    from codegen import LayoutError
    from tilejit.files.tensor_file import MisfitError

    if file.is_packed(entry):
        try:
            spec = file.tiled(entry).layout
        except LayoutError as error:
            raise file.named(entry, error) from error
        return Content(
            name, entry.name, spec.primitive_type, spec.dimensions, "row-major", spec, entry.nbytes
        )
    try:
        dtype = file.element_type(entry, None)
    except MisfitError:  # the dtype cannot be packed, so show its name in the file
        dtype = str(entry.dtype)
    return Content(name, entry.name, dtype, entry.shape, file.order(entry), None, entry.nbytes)
