"""The .npy format: one array, packed as its flat buffer, whose layout callers provide.

NumPy has no names for the types of ml_dtypes and stores them as raw bytes of the same width ('<V2' for
bfloat16). TileJIT does the same, packed and unpacked. Elements that share bytes are stored as uint8. Narrow
integers with one byte each are stored as int8 or uint8.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.files.npy_header import header, read_mapped
from tilejit.files.recorded import LAYOUTS_NAME, recorded_layout
from tilejit.files.resume import identity_of
from tilejit.files.stream import Made, Mapped, Output
from tilejit.files.tensor_file import Entry, MisfitError, TensorFile, row_major
from tilejit.files.whole_file import open_ordinary
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy, primitive_type
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.tiled_array import TiledArray

MAGIC = b"\x93NUMPY"
"""The first bytes of a .npy file."""
_HEADS = {
    MAGIC: "a .npy file",
    b"PK\x03\x04": "a zip archive, which torch.save and np.savez write",
    b"GGUF": "a .gguf file",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
}
"""The first bytes of files that are not raw bytes."""


@dataclass(frozen=True, slots=True)
class NpyFile(TensorFile):
    """A .npy file; `data` is its array, and `spec` its packed layout, if known."""

    one_array: ClassVar[bool] = True

    spec: Spec | None = None
    recorded: bool = False
    """Whether `spec` comes from the record beside the file, not from the caller."""

    def named(self, entry: Entry, error: Exception) -> LayoutError:
        """An error that names the file."""
        return LayoutError(f"{self.path!r}: {error}")

    def element_type(self, entry: Entry, dtype: str | None) -> str:
        """XLA's name of the element type; for raw bytes it is `dtype`, which must have the same width.

        Raises:
            MisfitError: XLA has no such type, or `dtype` does not fit raw bytes.
        """
        own = self.data.dtype
        if own.names is not None:
            raise MisfitError("the file holds structured elements\n  save a single field as its own file")
        if own.kind != "V":
            try:
                return from_numpy(own).name
            except LayoutError as error:
                raise MisfitError(str(error)) from error
        if dtype is None:
            hint = {1: "f8e4m3fn", 2: "bf16"}.get(own.itemsize, "f32")
            raise MisfitError(
                f"the file holds raw elements of {own.itemsize} bytes without a dtype\n"
                f"  pass their dtype, e.g. --dtype {hint}"
            )
        meant = primitive_type(dtype)
        if meant.numpy is None or meant.numpy.itemsize != own.itemsize:
            raise MisfitError(
                f"the file holds raw elements of {own.itemsize} bytes, which {dtype} does not fit\n"
                "  pass a dtype of that size"
            )
        return meant.name

    def elements(self, entry: Entry, element_type: str) -> Array | TiledArray:
        """The array, with raw bytes in the given dtype."""
        if self.data.dtype.kind != "V":
            return self.data
        meant = primitive_type(element_type).numpy
        assert meant is not None
        return self.data.view(meant)

    def order(self, entry: Entry) -> str:
        """The order that the header states."""
        return "row-major" if self.data.flags.c_contiguous else "column-major"

    def is_packed(self, entry: Entry) -> bool:
        """Whether the layout of the array is known."""
        return self.spec is not None

    def tiled(self, entry: Entry) -> TiledArray:
        """The array as the flat buffer of its layout.

        Raises:
            LayoutError: the layout is not known, or the array's dtype or size does not match it.
        """
        if self.spec is None:
            raise LayoutError(
                "the file does not contain a layout, and no record beside it does\n"
                '  pass the layout with --shape "bf16[...]{...}", as `pack` printed it'
            )
        return TiledArray.from_buffer(self._flat(self.spec), self.spec)

    def stored(self, entry: Entry) -> Made:
        """The bytes of the array in C order."""
        if not self.data.flags.c_contiguous:
            return np.ascontiguousarray(self.data)
        return Mapped(self.data.reshape(-1).view(np.uint8) if self.data.size else np.empty(0, np.uint8))

    def packed_as(self, spec: Spec) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype and the shape of a packed buffer."""
        dtype = np.dtype(np.uint8) if spec.packed else spec.dtype
        return dtype, (spec.size_in_bytes // dtype.itemsize,)

    def unpacked_as(self, spec: Spec) -> tuple[np.dtype[Any], Shape]:
        """The dtype of unpacked elements, and the shape of their array."""
        dtype = spec.element.byte_dtype or spec.dtype
        return dtype, row_major(from_numpy(dtype).name, spec.dimensions)

    def header_of(
        self, outputs: Iterable[Output], layouts: Mapping[str, Spec | None]
    ) -> tuple[bytes, Sequence[Output]]:
        """The header that np.save writes, which cannot hold a layout."""
        (output,) = outputs
        return header(output.dtype, output.shape), (output,)

    def _flat(self, spec: Spec) -> Array:
        """The array as a flat buffer of elements or bytes.

        With a row-major layout, an array of the logical dimensions is also its own buffer.

        Raises:
            LayoutError: the array has other dimensions or another dtype.
        """
        array = self.data
        if isinstance(spec, Shape) and spec.descending and spec.untiled and array.shape == spec.dimensions:
            array = array.reshape(-1)
        raw = array.dtype.kind == "V" and array.dtype.names is None and array.itemsize == spec.dtype.itemsize
        if array.ndim != 1 or not (raw or array.dtype in (spec.dtype, np.uint8)):
            raise LayoutError(
                f"it holds {array.dtype}{list(array.shape)}, not the flat buffer of {shape_name(spec)}\n"
                + (
                    f"  it has changed since {LAYOUTS_NAME} recorded the layout: remove its entry there"
                    if self.recorded
                    else "  pack the array first, or pass the shape that it was packed with"
                )
            )
        return array


def read(path: str | os.PathLike[str], shape: Any = None, name: str = "") -> NpyFile:
    """Open a .npy file; its array is mapped, not read.

    Args:
        path: the path of the file.
        shape: the full shape of a packed array, including its layout.
        name: the name of the array; "" takes the file's name.

    Returns:
        The open file.

    Raises:
        LayoutError: the file is not a .npy file, is damaged, or holds Python objects; or the shape cannot be
            read.
        OSError: the file cannot be opened.
    """
    spec = recorded_layout(path) if shape is None else as_layout(shape)
    array, identity = read_mapped(path)
    entry = Entry(name or Path(path).stem, array.dtype, array.shape, 0, array.nbytes)
    file = NpyFile(str(path), (entry,), array, identity, spec, recorded=shape is None and spec is not None)
    if file.recorded:
        try:
            file.tiled(entry)
        except LayoutError as error:
            raise file.named(entry, error) from error
    return file


def read_raw(path: str | os.PathLike[str], shape: Any, name: str = "", offset: int = 0) -> NpyFile:
    """Open the packed buffer of an array that has no header; its bytes are mapped, not read.

    Args:
        path: the path of the file.
        shape: the full shape of the array, including its layout.
        name: the name of the array; "" takes the file's name.
        offset: the bytes before the buffer.

    Returns:
        The open file, as if it were a .npy file of the buffer.

    Raises:
        LayoutError: the shape cannot be read, or the file does not have its size.
        OSError: the file cannot be opened.
    """
    spec = as_layout(shape)
    size = check_packable(spec)
    if offset < 0:
        raise LayoutError(f"offset: expected a number of bytes from 0 on, got {offset}")
    with open_ordinary(path) as file:
        there = os.fstat(file.fileno()).st_size - offset
        if there != size:
            raise LayoutError(_wrong_size(path, spec, size, there, offset) + looks_like(file.read(8)))
        data = np.memmap(file, np.uint8, "r", offset, (size,)) if size else np.empty(0, np.uint8)
        entry = Entry(name or Path(path).stem, data.dtype, data.shape, 0, size)
        return NpyFile(str(path), (entry,), data, identity_of(file, 0), spec)


def looks_like(head: bytes) -> str:
    """A line for messages about raw bytes that begin like a file of another type; "" if they don't."""
    kind = next((kind for magic, kind in _HEADS.items() if head.startswith(magic)), None)
    return "" if kind is None else f"\n  it begins like {kind}"


def _wrong_size(path: str | os.PathLike[str], spec: Spec, size: int, there: int, offset: int) -> str:
    """The message for raw bytes of another size than the shape's."""
    after = f" after byte {offset}" if offset else ""
    got = f"the file ends before byte {offset}" if there < 0 else f"got {there}{after}"
    fix = "pass the shape that these bytes have"
    if there > size and not offset:
        fix += f", or --offset {there - size} if they follow a header of that size"
    return f"{str(path)!r}: expected {size} bytes for {shape_name(spec)}, {got}\n  {fix}"
