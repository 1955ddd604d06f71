"""Pack and unpack .npy files.

The file of a packed array holds its flat buffer. NumPy has no name for the types of ml_dtypes and stores them
as raw bytes of the same width ('<V2' for bfloat16); so does this, packed and unpacked. Elements that share
bytes are stored as uint8, narrow integers that do not share one as int8 or uint8.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.files import made
from tilejit.files.npy_file import ArrayFile, header, open_array, read
from tilejit.files.resume import Origin
from tilejit.files.stream import (
    Advance,
    Made,
    Mapped,
    Part,
    Say,
    Target,
    drop_pages,
    origin_of,
    write_parts,
)
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import from_numpy, lookup, primitive_type
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.tiled_array import TiledArray

__all__ = [
    "Plan",
    "pack_file",
    "plan_copy",
    "plan_pack",
    "plan_relayout",
    "plan_unpack",
    "read",
    "relayout_file",
    "unpack_file",
]


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be written: an array of that dtype and shape, whose bytes `make` gives.

    spec    the layout that elements are packed in, or were; None where the array is written as it is
    """

    source: ArrayFile = field(repr=False)
    spec: Spec | None
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    make: Callable[[], Made] = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements to write."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def source_bytes(self) -> int:
        """Bytes of all elements that are read."""
        return int(self.source.array.nbytes)

    def write(
        self,
        path: Target,
        advance: Advance | None = None,
        *,
        resume: bool = False,
        say: Say | None = None,
    ) -> None:
        """Write the file as np.save does, types that NumPy does not know as raw bytes; whole or not at all.

        path: a file, or a sink such as standard output, which gets the bytes as they come.
        resume, say: as of a plan of safetensors.

        Raises:
            LayoutError: a value does not fit the packed dtype.
            OSError: the disk refuses.
        """
        head = header(self.dtype, self.shape)
        origin = self.origin() if resume else None
        write_parts(path, head, [Part(self.nbytes, self.make)], advance, origin=origin, say=say)

    def origin(self) -> Origin:
        """What tells the file that will be written from all others."""
        file, how = self.source, (repr(self.spec), self.shape)
        return origin_of(file.size, file.mtime_ns, file.header, header(self.dtype, self.shape), how)


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
    plan = plan_pack(source, layout, dtype, parameters, threads)
    plan.write(target)
    assert plan.spec is not None
    return plan.spec


def plan_pack(
    source: str | os.PathLike[str],
    layout: Any,
    dtype: str | None,
    parameters: Mapping[str, Any],
    threads: int | None = None,
) -> Plan:
    """What `pack_file` will write.

    Raises:
        LayoutError, OSError: as `pack_file`.
    """
    file = open_array(source)
    array = file.array
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
    check_packable(spec)
    refuse_overlaps(spec)
    casting = "no" if dtype is None else "unsafe"
    make = partial(made.packed, array, spec, casting, threads, partial(drop_pages, array))
    return Plan(file, spec, *_stored(spec), make)


def unpack_file(
    source: str | os.PathLike[str], target: str | os.PathLike[str], shape: Any, *, threads: int | None = None
) -> Spec:
    """Unpack the flat buffer of a .npy file into the array it came from.

    >>> unpack_file("x.tpu.npy", "x.npy", "bf16[1000,300]{1,0:T(8,128)(2,1)}")

    Raises:
        LayoutError: the file is damaged, or does not hold a flat buffer of the shape's dtype and size.
        OSError: a file cannot be read or written.
    """
    plan = plan_unpack(source, shape, threads)
    plan.write(target)
    assert plan.spec is not None
    return plan.spec


def plan_unpack(source: str | os.PathLike[str], shape: Any, threads: int | None = None) -> Plan:
    """What `unpack_file` will write.

    Raises:
        LayoutError, OSError: as `unpack_file`.
    """
    spec = as_layout(shape)
    file = open_array(source)
    tiled = TiledArray.from_buffer(_flat(file.array, spec, source), spec)
    dtype = spec.element.byte_dtype or spec.dtype
    plain = made.row_major(from_numpy(dtype).name, spec.dimensions)
    make = partial(made.unpacked, tiled, plain, dtype, threads, partial(drop_pages, tiled.buffer))
    return Plan(file, spec, dtype, spec.dimensions, make)


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
    plan = plan_relayout(source, shape, layout, parameters, threads)
    plan.write(target)
    assert plan.spec is not None
    return plan.spec


def plan_relayout(
    source: str | os.PathLike[str],
    shape: Any,
    layout: Any,
    parameters: Mapping[str, Any],
    threads: int | None = None,
) -> Plan:
    """What `relayout_file` will write.

    Raises:
        LayoutError, OSError: as `relayout_file`.
    """
    old = as_layout(shape)
    file = open_array(source)
    tiled = TiledArray.from_buffer(_flat(file.array, old, source), old)
    spec = as_layout(layout, dims=old.dimensions, dtype=old.primitive_type, **parameters)
    if spec.primitive_type != old.primitive_type:
        raise LayoutError(f"the layout is for {spec.primitive_type}, the array is {old.primitive_type}")
    check_packable(spec)
    refuse_overlaps(spec)
    make = partial(made.relaid, tiled, spec, threads, partial(drop_pages, tiled.buffer))
    return Plan(file, spec, *_stored(spec), make)


def plan_copy(source: str | os.PathLike[str]) -> Plan:
    """What writing the array as it is will write, in C order.

    Raises:
        LayoutError, OSError: as `read`.
    """
    file = open_array(source)
    array = file.array
    if array.flags.c_contiguous:
        raw = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
        return Plan(file, None, array.dtype, array.shape, lambda: Mapped(raw))
    return Plan(file, None, array.dtype, array.shape, lambda: np.ascontiguousarray(array))


def _stored(spec: Spec) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and the shape of a packed buffer."""
    dtype = np.dtype(np.uint8) if spec.packed else spec.dtype
    return dtype, (spec.size_in_bytes // dtype.itemsize,)


def _flat(array: Array, spec: Spec, path: str | os.PathLike[str]) -> Array:
    """The array of a .npy file as a flat buffer: elements as `pack_file` writes them, or bytes.

    An array of a row-major shape's own dimensions is its buffer, too.

    Raises:
        LayoutError: it is of other dimensions, or of another dtype.
    """
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
