"""The safetensors format: named tensors; the metadata holds the layouts of packed tensors.

A packed tensor keeps its name, and its buffer is stored as a flat tensor (U8 if elements share bytes or have
no safetensors dtype). The metadata entry `tilejit.<name>` holds its packings as JSON.

TileJIT has its own reader and writer, because the safetensors library needs all tensors in memory. It cannot
stream bytes as they are created, or continue an interrupted file. The tests compare the two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar

from codegen import LayoutError, TilejitError, dataclass
from tilejit.files.json_text import parsed, shortened
from tilejit.files.packings import Packings, packings_from_json, packings_to_json
from tilejit.files.resume import identity_of
from tilejit.files.safetensors_header import DTYPE_BITS, read_header, write_header
from tilejit.files.stream import Made, Mapped, Output
from tilejit.files.tensor_file import Entry, MisfitError, TensorFile, row_major
from tilejit.files.whole_file import open_ordinary
from tilejit.files.windows import FileArray, FileBytes, FileTiles
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Shape
from tilejit.tiled.buffers import check_packable

METADATA_PREFIX = "tilejit."
DTYPE_OF = {
    "pred": "BOOL",
    "u8": "U8",
    "s8": "I8",
    "f8e5m2": "F8_E5M2",
    "f8e4m3fn": "F8_E4M3",
    "f8e8m0fnu": "F8_E8M0",
    "f8e4m3fnuz": "F8_E4M3FNUZ",
    "f8e5m2fnuz": "F8_E5M2FNUZ",
    **{name: name.upper() for name in ("u16", "f16", "bf16", "u32", "f32", "u64", "f64", "c64")},
    "s16": "I16",
    "s32": "I32",
    "s64": "I64",
}
"""The safetensors dtype of each XLA type with whole bytes that has one."""
PRIMITIVE_OF = {dtype: name for name, dtype in DTYPE_OF.items()} | {"F4": "f4e2m1fn"}
WIDENED = {f"{sign}{bits}": wide for sign, wide in (("s", "I8"), ("u", "U8")) for bits in (1, 2, 4)}
"""Narrow integers, which have no safetensors dtype; unpacked, they become bytes."""


@dataclass(frozen=True, slots=True)
class SafetensorsFile(TensorFile):
    """A safetensors file; `data` are the bytes after its header."""

    one_array: ClassVar[bool] = False

    metadata: Mapping[str, str]

    def bytes_of(self, entry: Entry) -> FileBytes:
        """A tensor's bytes in the file."""
        return self.data.part(entry.begin, entry.end)

    def named(self, entry: Entry, error: Exception) -> LayoutError:
        """An error that names the tensor."""
        name = entry.name if len(entry.name) <= 120 else entry.name[:117] + "..."
        return LayoutError(f"tensor {name!r}: {error}")

    def element_type(self, entry: Entry, dtype: str | None) -> str:
        """XLA's name of a tensor's element type.

        Raises:
            MisfitError: XLA has no such type.
        """
        own = PRIMITIVE_OF.get(entry.dtype)
        if own is None:
            raise MisfitError(f"its dtype {entry.dtype} cannot be packed\n  select others with --tensor")
        return own

    def elements(self, entry: Entry, element_type: str) -> FileArray | FileTiles:
        """A tensor as an array in the file, or as a tiled array if elements share bytes."""
        spec = _row_major(entry.dtype, entry.shape)
        if spec.packed:
            return FileTiles(self.bytes_of(entry), spec)
        check_packable(spec)  # NumPy has arrays of these dimensions
        return FileArray(self.bytes_of(entry), spec.dtype, entry.shape)

    def order(self, entry: Entry) -> str:
        """Row-major, the only order of the format."""
        return "row-major"

    def is_packed(self, entry: Entry) -> bool:
        """Whether the metadata has a tensor's layout."""
        return METADATA_PREFIX + entry.name in self.metadata

    def packings(self, entry: Entry) -> Packings:
        """What the metadata says about a tensor.

        Raises:
            LayoutError: the entry is damaged; the message names the field.
        """
        key = METADATA_PREFIX + entry.name
        text = self.metadata.get(key)
        if text is None:
            return ()
        where = f"the record {shortened(key)} in the metadata of {self.path!r}"
        fix = "the file was damaged or changed: restore it, or pack its source again"
        try:
            data = parsed(text, "it")
        except LayoutError as error:
            raise LayoutError(f"{where}: {error}\n  {fix}") from error
        return packings_from_json(data, where, fix)

    def tiled(self, entry: Entry) -> FileTiles:
        """A packed tensor in the layout from the metadata, checked against the stored bytes."""
        packings = self.packings(entry)
        if not packings:
            raise LayoutError("it is not packed: the metadata has no layout for it")
        spec = packings[-1].spec
        if (entry.dtype, entry.shape) != self.packed_as(spec):
            stored, (length,) = self.packed_as(spec)
            raise LayoutError(
                f"expected {stored}[{length}] for its layout, got {entry.dtype}{list(entry.shape)}\n"
                "  the metadata belongs to another tensor, or the file was changed"
            )
        return FileTiles(self.bytes_of(entry), spec)

    def missing(self) -> tuple[str, ...]:
        """The packed tensors that the metadata describes and the file does not hold."""
        known = {METADATA_PREFIX + entry.name for entry in self.entries}
        lost = (key for key in self.metadata if key.startswith(METADATA_PREFIX) and key not in known)
        return tuple(key.removeprefix(METADATA_PREFIX) for key in lost)

    def stored(self, entry: Entry) -> Made:
        """The unchanged bytes of a tensor."""
        return Mapped(self.bytes_of(entry))

    def packed_as(self, spec: Spec) -> tuple[str, tuple[int, ...]]:
        """The dtype and shape with which a packed buffer is stored."""
        dtype = None if spec.packed else DTYPE_OF.get(spec.primitive_type)
        if dtype is None:
            return "U8", (spec.size_in_bytes,)
        return dtype, (spec.size_in_bytes // spec.dtype.itemsize,)

    def unpacked_as(self, spec: Spec) -> tuple[str, Shape]:
        """The dtype with which an unpacked tensor is stored, and its layout.

        Raises:
            LayoutError: the format does not support such elements.
        """
        name, dims = spec.primitive_type, spec.dimensions
        dtype = DTYPE_OF.get(name) or WIDENED.get(name)
        if name == "f4e2m1fn" and prod(dims) % 2 == 0:
            dtype = "F4"
        if dtype is None:
            raise LayoutError(f"safetensors cannot hold its {prod(dims)} elements of {name}")
        return dtype, _row_major(dtype, dims)

    def header_of(
        self, outputs: Iterable[Output], records: Mapping[str, Packings]
    ) -> tuple[bytes, Sequence[Output]]:
        """The header, and the tensors ordered by decreasing element size, so that each one is aligned.

        Raises:
            LayoutError: the header exceeds the readers' limit.
        """
        metadata = dict(self.metadata)
        for name, packings in records.items():
            if packings:
                text = json.dumps(packings_to_json(packings), separators=(",", ":"))
                metadata[METADATA_PREFIX + name] = text
            else:
                metadata.pop(METADATA_PREFIX + name, None)
        ordered = sorted(outputs, key=lambda output: -DTYPE_BITS[output.dtype])
        return write_header(ordered, metadata), ordered


def read(path: str | os.PathLike[str], shape: Any = None, name: str = "") -> SafetensorsFile:
    """Open a safetensors file; the data is mapped when it is needed.

    Args:
        path: the path of the file.
        shape: must be None, because the file holds the layouts of packed tensors.
        name: not used, because tensors have names of their own.

    Returns:
        The open file.

    Raises:
        LayoutError: the file violates the format; the message says where.
        TilejitError: a shape is given.
        OSError: the file cannot be opened.
    """
    if shape is not None:
        raise TilejitError(
            "--shape is for .npy files\n  omit it: a packed .safetensors file holds the shapes"
        )
    with open_ordinary(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            entries, metadata, start = read_header(file, size)
        except LayoutError as error:
            raise LayoutError(f"{str(path)!r} is not a safetensors file: {error}") from error
        data = FileBytes.of(file.fileno(), str(path), start, size - start)
        return SafetensorsFile(str(path), entries, data, identity_of(file, start), metadata)


def _row_major(dtype: str, dims: tuple[int, ...]) -> Shape:
    """The layout of a tensor in safetensors: row-major, F4 two to a byte."""
    return row_major(PRIMITIVE_OF[dtype], dims, 4 if dtype == "F4" else 0)
