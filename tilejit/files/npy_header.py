"""The .npy format: map and check arrays, and write headers."""

from __future__ import annotations

import io
import os
import sys
from math import prod
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import MAX_RANK
from tilejit.files.resume import Identity, identity_of
from tilejit.files.whole_file import open_ordinary
from tilejit.files.windows import FileArray, FileBytes

MAX_HEADER_BYTES = 10_000
"""NumPy's own limit, in characters."""


def read_mapped(path: str | os.PathLike[str]) -> tuple[FileArray, Identity]:
    """The array of a .npy file, mapped when it is needed, and the identity of the file.

    Raises:
        LayoutError: the file is not a .npy file, is damaged, or holds Python objects.
        OSError: the file cannot be opened.
    """
    with open_ordinary(path) as file:
        try:
            dtype, shape, by_columns, size = _checked(file, os.fstat(file.fileno()).st_size)
            start = file.tell()
            data = FileBytes.of(file.fileno(), str(path), start, size)
            return FileArray(data, dtype, shape, by_columns), identity_of(file, start)
        except (ValueError, TypeError, OverflowError, EOFError) as error:
            reason = str(error)
        except (SyntaxError, TokenError, RecursionError, MemoryError) as error:
            reason = f"its header cannot be read: {error}"
    raise LayoutError(
        f"{str(path)!r} is not a .npy file of plain elements: {(reason.splitlines() or ['?'])[0][:120]}"
    )


def _check_header_length(file: IO[bytes], width: int) -> None:
    """Raise for a long header before reading it: NumPy reads up to 4 GiB before it checks."""
    start = file.tell()
    length = int.from_bytes(file.read(width), "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header takes {length} bytes, and the limit is {MAX_HEADER_BYTES}")
    file.seek(start)


def _checked(file: IO[bytes], file_size: int) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """What the header states: dtype, shape, whether the order is by columns, and bytes of the elements."""
    if file.read(4) == b"PK\x03\x04":
        raise ValueError("it is an .npz archive of several arrays; pass a file that np.save wrote")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its format version {version} is unknown")
    _check_header_length(file, 2 if version == (1, 0) else 4)
    # Version 3 differs from 2 only in field names, and records are rejected in any case.
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"its shape {str(shape)[:60]} is not valid")
    start, size = file.tell(), prod(shape) * dtype.itemsize
    if start + size > file_size:
        raise ValueError(f"its elements take {size} bytes, but {file_size - start} follow the header")
    if len(shape) > MAX_RANK:
        raise ValueError(f"its array has {len(shape)} dimensions, and NumPy's arrays at most {MAX_RANK}")
    if dtype.itemsize * prod(n for n in shape if n) > sys.maxsize:
        raise ValueError(f"its shape {str(shape)[:60]} is too large for NumPy")
    return dtype, shape, by_columns, size


def header(dtype: np.dtype[Any], shape: tuple[int, ...], *, by_columns: bool = False) -> bytes:
    """The header that np.save writes for an array in C order, or in Fortran order."""
    # np.save writes float8_e5m2 as '<f1', which np.load rejects; other ml_dtypes types are raw bytes.
    known = dtype if dtype.isbuiltin == 1 or dtype.kind == "V" else np.dtype(f"V{dtype.itemsize}")
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(known)
    facts = {"descr": descr, "fortran_order": by_columns, "shape": shape}
    np.lib.format.write_array_header_1_0(text, facts)
    return text.getvalue()
