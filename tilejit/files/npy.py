"""The .npy format: one array. A packed array is stored as its flat buffer, and its record beside the file.

NumPy has no names for the types of ml_dtypes, so np.save writes their elements as raw bytes of the same width
('<V2' for bfloat16). TileJIT does the same for packed and unpacked arrays. Elements that share bytes are
stored as uint8. Narrow integers that take a byte each are stored as int8 or uint8.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.files.npy_header import header, read_mapped
from tilejit.files.packings import Packings, packing_of
from tilejit.files.provenance import Known, known_of, suspected
from tilejit.files.recorded import LAYOUTS_NAME
from tilejit.files.resume import identity_of
from tilejit.files.stream import Made, Mapped, Output
from tilejit.files.tensor_file import Entry, MisfitError, TensorFile, row_major
from tilejit.files.whole_file import open_ordinary
from tilejit.files.windows import FileArray, FileBytes, FileTiles
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy, lookup, primitive_type
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Layout, Shape
from tilejit.tiled.buffers import check_packable, check_size

MAGIC = b"\x93NUMPY"
"""The first bytes of a .npy file."""
_HEADS = {
    MAGIC: "a .npy file",
    b"PK\x03\x04": "a zip archive, which torch.save and np.savez write",
    b"GGUF": "a .gguf file",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
}
"""The first bytes of common file types, for hints that a file does not hold raw bytes."""


@dataclass(frozen=True, slots=True)
class NpyFile(TensorFile):
    """A .npy file, and what is known about the layout of its array."""

    one_array: ClassVar[bool] = True

    array: FileArray
    known: Known = Known()
    """What a record beside the file says, or the caller: then `known.record` is empty."""

    def named(self, entry: Entry, error: Exception) -> LayoutError:
        """An error that names the file."""
        return LayoutError(f"{self.path!r}: {error}")

    def element_type(self, entry: Entry, dtype: str | None) -> str:
        """XLA's name for the element type. For raw bytes, this is `dtype`, which must have the same width.

        Raises:
            MisfitError: XLA has no such type, or `dtype` does not have the width of the raw bytes.
        """
        own = self.array.dtype
        if self.spec is not None and own.kind == "V" and own.itemsize == self.spec.dtype.itemsize:
            return self.spec.primitive_type
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

    def elements(self, entry: Entry, element_type: str) -> FileArray:
        """The array; raw bytes are viewed as the given dtype."""
        array = replace(self.array, shape=entry.shape)
        if array.dtype.kind != "V":
            return array
        meant = lookup(element_type).numpy
        assert meant is not None
        return array.view(meant)

    def order(self, entry: Entry) -> str:
        """The order of the elements, according to the header."""
        return "column-major" if self.array.by_columns else "row-major"

    @property
    def spec(self) -> Spec | None:
        """The layout of the array as it is stored; None if it is not known."""
        return self.known.packings[-1].spec if self.known.packings else None

    def is_packed(self, entry: Entry) -> bool:
        """Whether the layout of the array is known."""
        return bool(self.known.packings)

    def packings(self, entry: Entry) -> Packings:
        """What the record or the caller says about the array."""
        return self.known.packings

    def suspected(self, entry: Entry) -> str:
        """Why a flat array without a record may be packed, and what to do; "" if nothing suggests it."""
        if self.spec is not None or self.known.listed or len(self.array.shape) != 1:
            return ""
        if self.known.listed is None:
            return suspected(self.path, entry.nbytes)
        return (
            f"it may be packed, because {LAYOUTS_NAME} beside it does not list it\n"
            '  unpack it with --shape first, or list a plain array there, as "x.npy": null'
        )

    def unexplained(self, *, packed: bool) -> tuple[str, ...]:
        """The array's name if it is flat, its layout is unknown, and no record lists it as not packed."""
        listed = self.known.listed
        lacks = listed is False or (packed and listed is None)
        flat = len(self.array.shape) == 1
        return tuple(entry.name for entry in self.entries if lacks and flat and self.spec is None)

    def tiled(self, entry: Entry) -> FileTiles:
        """The array, read as the flat buffer of its layout.

        Raises:
            LayoutError: the layout is unknown, or does not match the array's dtype or size.
        """
        if self.spec is None:
            raise LayoutError(
                self.suspected(entry)
                or "the file does not contain a layout, and no record beside it does\n"
                '  pass the layout with --shape "bf16[...]{...}", as `pack` printed it'
            )
        check_packable(self.spec)
        self._check_flat(self.spec)
        spec: Spec = self.spec
        if self.array.by_columns and len(self.array.shape) > 1:
            spec = Shape(spec.primitive_type, spec.dimensions, Layout(tuple(range(spec.rank))))
        return FileTiles(self.data, spec)

    def stored(self, entry: Entry) -> Made:
        """The unchanged bytes of the array."""
        return Mapped(self.data)

    def packed_as(self, spec: Spec) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype and the shape of a packed buffer."""
        dtype = np.dtype(np.uint8) if spec.packed else spec.dtype
        return dtype, (spec.size_in_bytes // dtype.itemsize,)

    def unpacked_as(self, spec: Spec) -> tuple[np.dtype[Any], Shape]:
        """The dtype of unpacked elements, and the shape of their array."""
        dtype = spec.element.byte_dtype or spec.dtype
        return dtype, row_major(from_numpy(dtype).name, spec.dimensions)

    def header_of(
        self, outputs: Iterable[Output], records: Mapping[str, Packings]
    ) -> tuple[bytes, Sequence[Output]]:
        """The header that np.save would write; it cannot hold a layout."""
        (output,) = outputs
        unpacked = records.get(output.name) == ()
        # An unchanged copy keeps the order of the elements.
        by_columns = self.array.by_columns and len(output.shape) > 1 and not unpacked
        return header(output.dtype, output.shape, by_columns=by_columns), (output,)

    def _check_flat(self, spec: Spec) -> None:
        """Raise unless the array is the flat buffer of a layout.

        If the layout is row-major, the array may also have the logical dimensions.

        Raises:
            LayoutError: the array's dimensions, dtype or size do not match the layout.
        """
        array = self.array
        plain = isinstance(spec, Shape) and spec.descending and spec.untiled and not spec.packed
        flat = len(array.shape) == 1 or (plain and array.shape == spec.dimensions)
        raw = array.dtype.kind == "V" and array.dtype.names is None
        raw = raw and array.dtype.itemsize == spec.dtype.itemsize
        if not flat or not (raw or array.dtype in (spec.dtype, np.uint8)):
            raise LayoutError(
                f"it holds {array.dtype}{list(array.shape)}, not the flat buffer of {shape_name(spec)}\n"
                + (
                    f"  it has changed since {self.known.record!r} recorded the layout: restore it, or "
                    "remove the record"
                    if self.known.record
                    else "  pack the array first, or pass the shape that it was packed with"
                )
            )
        check_size(self.data, spec, "the buffer")


def read(path: str | os.PathLike[str], shape: Any = None, name: str = "") -> NpyFile:
    """Open a .npy file. The array is not mapped into memory until it is needed.

    Args:
        path: the path of the file.
        shape: the full shape of a packed array, including its layout.
        name: the name of the array; "" stands for the file's name without its extension.

    Returns:
        The open file.

    Raises:
        LayoutError: the file is not a .npy file, is damaged, or holds Python objects; or the shape is
            invalid.
        OSError: the file cannot be opened.
    """
    known = known_of(path) if shape is None else given(path, shape)
    array, identity = read_mapped(path)
    entry = Entry(name or Path(path).stem, array.dtype, array.shape, 0, array.data.nbytes)
    file = NpyFile(str(path), (entry,), array.data, identity, array, known)
    if file.known.record and file.known.packings:
        try:
            file.tiled(entry)
        except LayoutError as error:
            raise file.named(entry, error) from error
    return file


def read_raw(path: str | os.PathLike[str], known: Known, name: str = "", offset: int = 0) -> NpyFile:
    """Open a packed buffer without a header. Its bytes are not mapped into memory until they are needed.

    Args:
        path: the path of the file.
        known: the packings of the array, from a record or from `given`.
        name: the name of the array; "" stands for the file's name without its extension.
        offset: the number of bytes before the buffer.

    Returns:
        The open file, as if the buffer were stored in a .npy file.

    Raises:
        LayoutError: the shape of the last packing does not match the size of the file.
        OSError: the file cannot be opened.
    """
    spec = known.packings[-1].spec
    size = check_packable(spec)
    if offset < 0:
        raise LayoutError(f"offset: expected a number of bytes from 0 on, got {offset}")
    with open_ordinary(path) as file:
        there = os.fstat(file.fileno()).st_size - offset
        if there != size:
            raise LayoutError(_wrong_size(path, known, there, offset) + looks_like(file.read(8)))
        data = FileBytes.of(file.fileno(), str(path), offset, size)
        dtype = np.dtype(np.uint8) if spec.packed else spec.dtype
        array = FileArray(data, dtype, (size // dtype.itemsize,))
        entry = Entry(name or Path(path).stem, array.dtype, array.shape, 0, size)
        return NpyFile(str(path), (entry,), data, identity_of(file, 0), array, known)


def given(path: str | os.PathLike[str], shape: Any) -> Known:
    """A shape that the caller gives, with the earlier packings from a record that has the same shape.

    Raises:
        LayoutError: the shape cannot be read.
    """
    spec = as_layout(shape)
    with suppress(LayoutError, OSError):  # the shape replaces a damaged record
        known = known_of(path)
        if known.packings and known.packings[-1].spec == spec:
            return replace(known, record="")
    return Known((packing_of("", {}, spec),))


def looks_like(head: bytes) -> str:
    """A line for error messages if raw bytes begin like a file of a known type; "" otherwise."""
    kind = next((kind for magic, kind in _HEADS.items() if head.startswith(magic)), None)
    return "" if kind is None else f"\n  it begins like {kind}"


def _wrong_size(path: str | os.PathLike[str], known: Known, there: int, offset: int) -> str:
    """The error message for raw bytes whose size does not match the shape."""
    spec = known.packings[-1].spec
    size = spec.size_in_bytes
    after = f" after byte {offset}" if offset else ""
    got = f"the file ends before byte {offset}" if there < 0 else f"got {there}{after}"
    fix = "pass the shape that these bytes have"
    if known.record:
        fix = f"it has changed since {known.record!r} recorded the layout: restore it, or remove the record"
    elif there > size and not offset:
        fix += f", or --offset {there - size} if they follow a header of that size"
    return f"{str(path)!r}: expected {size} bytes for {shape_name(spec)}, {got}\n  {fix}"
