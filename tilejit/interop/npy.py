"""Pack and unpack .npy files.

The file of a packed array holds its flat buffer. NumPy has no name for the types of ml_dtypes and stores them
as raw bytes of the same width ('<V2' for bfloat16); so does this, packed and unpacked. Elements that share
bytes are stored as uint8, narrow integers that do not share one as int8 or uint8.
"""

from __future__ import annotations

import os
from tokenize import TokenError
from typing import Any

import numpy as np

from codegen.errors import LayoutError, TilejitError
from tilejit.convert import narrow_integer, pack, unpack
from tilejit.interop.whole_file import replacing
from tilejit.layout.as_layout import as_layout
from tilejit.layout.dtypes import lookup, primitive_type
from tilejit.layout.shape import Shape
from tilejit.memory import Array


def pack_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    layout: Any,
    *,
    dtype: str | None = None,
    threads: int | None = None,
) -> Shape:
    """Pack the array of a .npy file into another; the shape that unpacking will need.

    >>> pack_file("x.npy", "x.tpu.npy", "tpu", dtype="bf16")
    bf16[1000,300]{1,0:T(8,128)(2,1)}

    dtype: what the raw bytes of a void file are; where the file says what they are, they are converted to it.

    Raises:
        LayoutError: the file is damaged or void without a dtype, or the layout does not fit.
        OSError: a file cannot be read or written.
    """
    array = read(source)
    if array.dtype.kind == "V":
        array = _as_elements(array, dtype)
    wanted = primitive_type(array.dtype if dtype is None else dtype)
    spec = as_layout(layout, dims=array.shape, dtype=wanted.name)
    if dtype is not None and spec.primitive_type != wanted.name:
        raise LayoutError(
            f"the layout is for {spec.primitive_type}, but the dtype asked for is {wanted.name}"
        )
    tiled = pack(array, spec, casting="no" if dtype is None else "unsafe", threads=threads)
    write(target, tiled.buffer)
    return tiled.spec


def unpack_file(
    source: str | os.PathLike[str], target: str | os.PathLike[str], shape: Any, *, threads: int | None = None
) -> Shape:
    """Unpack the flat buffer of a .npy file into the array it came from.

    >>> unpack_file("x.tpu.npy", "x.npy", "bf16[1000,300]{1,0:T(8,128)(2,1)}")

    Raises:
        LayoutError: the file is damaged, or has not the shape's size.
        OSError: a file cannot be read or written.
    """
    spec = as_layout(shape)
    array = unpack(read(source), spec, threads=threads)
    if narrow_integer(spec.primitive_type):
        array = array.astype(np.int8 if spec.primitive_type[0] == "s" else np.uint8)
    write(target, array)
    return spec


def read(path: str | os.PathLike[str]) -> Array:
    """The array of a .npy file, mapped rather than read.

    Raises:
        LayoutError: it is no .npy file, or holds Python objects.
        OSError: it cannot be opened.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, TypeError, OverflowError, EOFError, SyntaxError, TokenError, RecursionError) as error:
        reason = str(error).splitlines() or [type(error).__name__]
        raise LayoutError(f"{str(path)!r} is no .npy file of plain elements: {reason[0][:120]}") from error
    except MemoryError as error:
        raise TilejitError(f"no memory to open {str(path)!r}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise LayoutError(f"{str(path)!r} holds several arrays\n  give a file with one, as np.save writes it")
    return array


def write(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array as np.save does, types that NumPy does not know as raw bytes; whole or not at all.

    Raises:
        OSError: the disk refuses.
    """
    # np.save calls float8_e5m2 '<f1', which np.load refuses; the others of ml_dtypes are raw bytes to it.
    if array.dtype.isbuiltin != 1 and array.dtype.kind != "V":
        array = array.view(np.dtype(f"V{array.itemsize}"))
    with replacing(path) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


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
