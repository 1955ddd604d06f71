"""The tensors of a file or directory: `tilejit show FILE` lists them, and pictures draw the layout of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from codegen import LayoutError, TilejitError, dataclass
from tilejit.cli.errors import say_notes
from tilejit.cli.file_report import WIDE, percent, print_table, printable, some
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
    """Whether a text names a file with tensors or a record, or a directory, rather than a layout.

    "x.npy" -> True    "model.SAFETENSORS" -> True    "f32[3,5]" -> False
    """
    extension = os.path.splitext(text)[1].lower()
    if extension[1:]:
        from tilejit.files.file_types import READERS

        if extension in READERS:
            return True
    if os.path.isfile(text):
        from tilejit.files.sidecar import SUFFIX

        return os.path.isfile(text + SUFFIX)
    return os.path.isdir(text)


def show_contents(path: Path, *, as_json: bool) -> None:
    """Print the tensors of a file or directory.

    Raises:
        LayoutError: a file is damaged, or does not match its recorded layout.
        OSError: a file cannot be read.
    """
    files = path.is_dir()
    opened = list(_files(path))
    found = [_content(Path(file.path).name, file, entry) for file in opened for entry in file.entries]
    say_notes(_faults(path, opened))
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


def _faults(path: Path, opened: list[TensorFile]) -> str:
    """The lines about tensors that are missing, and about arrays whose layouts may be lost."""
    from tilejit.files.recorded import LAYOUTS_NAME, missing_files
    from tilejit.files.shards import INDEX_NAME

    notes = [
        f"{Path(file.path).name} lacks packed tensors: {some(lost)}"
        for file in opened
        if (lost := file.missing())
    ]
    if path.is_dir() and not (path / INDEX_NAME).exists():
        lost_files = missing_files(path)
        unexplained = [Path(file.path).name for file in opened if file.unexplained(packed=False)]
        notes += [f"{LAYOUTS_NAME} lists files that are missing: {some(lost_files)}"] if lost_files else []
        notes += [f"{LAYOUTS_NAME} does not list {some(unexplained)}"] if unexplained else []
    return "\n".join(notes)


def tensor_names(path: Path) -> list[str]:
    """The names of all tensors in a file or directory.

    Raises:
        LayoutError, OSError: as `show_contents`.
    """
    return [entry.name for _, entry in _entries(path)]


def check_not_read(path: Path, output: Path) -> None:
    """Raise if writing a page would replace the file, one of the directory's files, or a record of layouts.

    Raises:
        TilejitError: it would.
        LayoutError, OSError: as `show_contents`.
    """
    from tilejit.files.recorded import LAYOUTS_NAME
    from tilejit.files.shards import INDEX_NAME
    from tilejit.files.sidecar import sidecar_of
    from tilejit.files.whole_file import would_replace

    directory = path if path.is_dir() else path.parent
    files = [Path(file.path) for file in _files(path)]
    records = [directory / INDEX_NAME, directory / LAYOUTS_NAME, *map(sidecar_of, files)]
    if any(would_replace(output, name) for name in (*files, *records)):
        raise TilejitError(
            f"{printable(str(output))!r} holds tensors or their layouts\n  give another name for the page"
        )


def tensor_layout(path: Path, name: str | None) -> Spec:
    """The layout of one tensor in a file or directory; the name None takes the only tensor.

    Raises:
        LayoutError: the name is missing, unknown or ambiguous; or the tensor's dtype cannot be packed; or a
            file is damaged.
        OSError: a file cannot be read.
    """
    found = list(_entries(path))
    named = [(file, entry) for file, entry in found if name in (entry.name, None)]
    if len(named) == 1:
        return _layout(*named[0])
    known = some(sorted({entry.name for _, entry in found})) or "none"
    if name is None:
        cause = f"{str(path)!r} has {len(found)} tensors\n  name one of them: {known}"
    elif named:
        files = some(Path(file.path).name for file, _ in named)
        cause = f"{str(path)!r} has several tensors named {name!r}\n  pass one of the files: {files}"
    else:
        cause = f"tensor {name!r} does not exist\n  {str(path)!r} has {known}"
    raise LayoutError(cause)


def _entries(path: Path) -> Iterator[tuple[TensorFile, Entry]]:
    for file in _files(path):
        for entry in file.entries:
            yield file, entry


def _files(path: Path) -> Iterator[TensorFile]:
    from tilejit.files.file_types import open_recorded
    from tilejit.files.shards import read_shards

    paths = [path / name for name in read_shards(path).names] if path.is_dir() else [path]
    return map(open_recorded, paths)


def _layout(file: TensorFile, entry: Entry) -> Spec:
    """The layout of a tensor's bytes: as packed, or in its order."""
    from tilejit.files.tensor_file import MisfitError, row_major
    from tilejit.files.windows import FileTiles
    from tilejit.layout.shape import Layout, Shape

    try:
        if file.is_packed(entry):
            return file.tiled(entry).layout
        dtype = file.element_type(entry, None)
        array = file.elements(entry, dtype)
    except MisfitError as error:
        dims = ",".join(map(str, entry.shape))
        cause = f"{str(error).splitlines()[0]}\n  pass a shape instead, such as bf16[{dims}]"
        raise file.named(entry, LayoutError(cause)) from error
    except LayoutError as error:
        raise file.named(entry, error) from error
    if isinstance(array, FileTiles):  # elements that share bytes
        return array.layout
    if file.order(entry) == "column-major":
        return Shape(dtype, entry.shape, Layout(tuple(range(len(entry.shape)))))
    return row_major(dtype, entry.shape)


def _content(name: str, file: TensorFile, entry: Entry) -> Content:
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
