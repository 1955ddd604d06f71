"""Pack and unpack .npy files.

The file of a packed array holds its flat buffer. NumPy has no name for the types of ml_dtypes and stores them
as raw bytes of the same width ('<V2' for bfloat16); so does this, packed and unpacked. Elements that share
bytes are stored as uint8, narrow integers that do not share one as int8 or uint8.
"""

from __future__ import annotations

import os
from math import prod
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from codegen.errors import LayoutError
from tilejit.convert import pack, unpack
from tilejit.interop.whole_file import PIECE_BYTES, open_ordinary, replacing
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy, lookup, primitive_type
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape
from tilejit.memory import Array
from tilejit.relayouts import relayout
from tilejit.tiled_array import TiledArray

MAX_HEADER_BYTES = 10_000
"""NumPy's own limit, which is one of characters."""


def pack_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    layout: Any,
    *,
    dtype: str | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> Spec:
    """Pack the array of a .npy file into another; the shape that unpacking will need.

    >>> pack_file("x.npy", "x.tpu.npy", "tpu", dtype="bf16")
    bf16[1000,300]{1,0:T(8,128)(2,1)}

    layout, parameters: whatever `as_layout` reads, and the keywords of a format or a pattern.
    dtype: what the raw bytes of a void file are; where the file says what they are, they are converted to it.

    Raises:
        LayoutError: the file is damaged or void without a dtype, or the layout does not fit.
        OSError: a file cannot be read or written.
    """
    array = read(source)
    if array.dtype.kind == "V":
        array = _as_elements(array, dtype)
    own = from_numpy(array.dtype)
    wanted = own if dtype is None else primitive_type(dtype)
    spec = as_layout(layout, dims=array.shape, dtype=wanted.name, **parameters)
    if dtype is not None and spec.primitive_type != wanted.name:
        raise LayoutError(
            f"the layout is for {spec.primitive_type}, but the dtype asked for is {wanted.name}"
        )
    as_bytes = spec.element.byte_dtype is not None and own.numpy == spec.element.byte_dtype
    if spec.primitive_type != wanted.name and not as_bytes:
        raise LayoutError(
            f"the layout is for {spec.primitive_type}, but the array is {own.name}\n"
            f"  convert with --dtype {spec.primitive_type}"
        )
    tiled = pack(array, spec, casting="no" if dtype is None else "unsafe", threads=threads)
    write(target, tiled.buffer)
    return tiled.spec


def unpack_file(
    source: str | os.PathLike[str], target: str | os.PathLike[str], shape: Any, *, threads: int | None = None
) -> Spec:
    """Unpack the flat buffer of a .npy file into the array it came from.

    >>> unpack_file("x.tpu.npy", "x.npy", "bf16[1000,300]{1,0:T(8,128)(2,1)}")

    Raises:
        LayoutError: the file is damaged, or does not hold a flat buffer of the shape's dtype and size.
        OSError: a file cannot be read or written.
    """
    spec = as_layout(shape)
    array = unpack(_read_buffer(source, spec), spec, threads=threads)
    if spec.element.byte_dtype is not None:
        array = array.astype(spec.element.byte_dtype)
    write(target, array)
    return spec


def relayout_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    shape: Any,
    /,
    layout: Any,
    *,
    threads: int | None = None,
    **parameters: Any,
) -> Spec:
    """Bring the flat buffer of a .npy file into another layout; the shape that unpacking will need.

    >>> relayout_file("x.tpu.npy", "x.tt.npy", "bf16[1000,300]{1,0:T(8,128)(2,1)}", "tenstorrent")

    Raises:
        LayoutError: the file is damaged, does not hold a flat buffer of the shape's dtype and size, or the
            layout does not fit.
        OSError: a file cannot be read or written.
    """
    old = as_layout(shape)
    packed = TiledArray.from_buffer(_read_buffer(source, old), old)
    spec = as_layout(layout, dims=old.dimensions, dtype=old.primitive_type, **parameters)
    write(target, relayout(packed, spec, threads=threads).buffer)
    return spec


def read(path: str | os.PathLike[str]) -> Array:
    """The array of a .npy file, mapped rather than read.

    Raises:
        LayoutError: it is no .npy file, is damaged, or holds Python objects.
        OSError: it cannot be opened.
    """
    with open_ordinary(path) as file:
        try:
            return _mapped(file, os.fstat(file.fileno()).st_size)
        except (ValueError, TypeError, OverflowError, EOFError) as error:
            reason = str(error)
        except (SyntaxError, TokenError, RecursionError, MemoryError) as error:
            reason = f"its header cannot be read: {error}"
    raise LayoutError(
        f"{str(path)!r} is no .npy file of plain elements: {(reason.splitlines() or ['?'])[0][:120]}"
    )


def _read_buffer(path: str | os.PathLike[str], spec: Spec) -> Array:
    """The flat buffer of a .npy file: elements as `pack_file` writes them, or bytes.

    An array of a row-major shape's own dimensions is its buffer, too.

    Raises:
        LayoutError, OSError: as `read`; an array of other dimensions or of another dtype.
    """
    array = read(path)
    if isinstance(spec, Shape) and spec.descending and spec.untiled and array.shape == spec.dimensions:
        array = array.reshape(-1)
    raw = array.dtype.kind == "V" and array.dtype.names is None and array.itemsize == spec.dtype.itemsize
    if array.ndim != 1 or not (raw or array.dtype in (spec.dtype, np.uint8)):
        raise LayoutError(
            f"{str(path)!r} holds {array.dtype}{list(array.shape)}, "
            f"not the flat buffer of {shape_name(spec)}\n"
            "  pack the array first, or give the shape that it was packed with"
        )
    return array


def _check_header_length(file: IO[bytes], width: int) -> None:
    """Refuse a long header before it is read: NumPy reads all of up to 4 GiB, and only then counts."""
    start = file.tell()
    length = int.from_bytes(file.read(width), "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header takes {length} bytes; at most {MAX_HEADER_BYTES} are read")
    file.seek(start)


def _mapped(file: IO[bytes], file_size: int) -> Array:
    """The array of an open file, everything checked that the header claims."""
    if file.read(4) == b"PK\x03\x04":
        raise ValueError("it is an archive of several arrays; give a file of one, as np.save writes it")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its version {version} is unknown")
    _check_header_length(file, 2 if version == (1, 0) else 4)
    # Version 3 differs from 2 in the names of fields only, and records are refused in any case.
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"its shape is {str(shape)[:60]}")
    start, size = file.tell(), prod(shape) * dtype.itemsize
    if start + size > file_size:
        raise ValueError(f"its elements take {size} bytes, but {file_size - start} follow the header")
    order: Any = "F" if by_columns else "C"
    if not size:
        return np.empty(shape, dtype, order)
    return np.memmap(file, dtype, "r", start, shape, order)


def write(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array as np.save does, types that NumPy does not know as raw bytes; whole or not at all.

    Raises:
        OSError: the disk refuses.
    """
    # np.save calls float8_e5m2 '<f1', which np.load refuses; the others of ml_dtypes are raw bytes to it.
    if array.dtype.isbuiltin != 1 and array.dtype.kind != "V":
        array = array.view(np.dtype(f"V{array.itemsize}"))
    facts = np.lib.format.header_data_from_array_1_0(array)
    rows = array.T if facts["fortran_order"] else array
    data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    with replacing(path) as file:
        # write_array does not say why the disk refuses, and hears no Ctrl-C before all is written.
        np.lib.format.write_array_header_1_0(file, facts)
        for at in range(0, data.nbytes, PIECE_BYTES):
            file.write(data[at : at + PIECE_BYTES].data)


def _as_elements(array: Array, dtype: str | None) -> Array:
    """Raw bytes as what they are said to be."""
    if array.dtype.names is not None:
        raise LayoutError("the file holds records\n  save one field of them on its own")
    if dtype is None:
        hint = {1: "f8e4m3fn", 2: "bf16"}.get(array.itemsize, "f32")
        raise LayoutError(
            f"the file holds raw elements of {array.itemsize} bytes and does not say what they are\n"
            f"  say it, e.g. with --dtype {hint}"
        )
    meant = lookup(primitive_type(dtype).name).numpy
    if meant is None or meant.itemsize != array.itemsize:
        raise LayoutError(
            f"the file holds raw elements of {array.itemsize} bytes; {dtype} does not take that many"
        )
    return array.view(meant)
