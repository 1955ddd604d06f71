"""Single tensors of a safetensors file: their shapes packed and unpacked, and how their bytes are made.

A packed tensor stands under its own name as a flat tensor of its buffer's elements (U8 where elements share
bytes or have no safetensors dtype); the metadata entry `tilejit.<name>` holds its shape and layout as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.files import made
from tilejit.files.container import Container, Entry, Output
from tilejit.files.made import row_major
from tilejit.files.pieces import Pieces
from tilejit.files.stream import Made, Mapped, Named, drop_pages
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec, spec_from_json
from tilejit.layout.dtypes import primitive_type
from tilejit.layout.shape import Shape
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.tiled_array import TiledArray

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
"""The safetensors dtype of each of XLA's that has one with an element to itself."""
PRIMITIVE_OF = {dtype: name for name, dtype in DTYPE_OF.items()} | {"F4": "f4e2m1fn"}
WIDENED = {f"{sign}{bits}": wide for sign, wide in (("s", "I8"), ("u", "U8")) for bits in (1, 2, 4)}
"""Narrow integers have no dtype there; unpacked they are bytes."""


class MisfitError(LayoutError):
    """The layout is none of this tensor's; it may be one of another's."""


def spec_of(layout: Any, dims: tuple[int, ...], dtype: str, parameters: dict[str, Any]) -> Spec:
    """The tensor's shape in the layout.

    Raises:
        MisfitError: the layout is of other ranks, dtypes or sizes, or cannot be read at all.
        TypeError: a parameter is not the layout's, whatever the tensor.
    """
    try:
        spec = as_layout(layout, dims=dims, dtype=dtype, **parameters)
        check_packable(spec)
        refuse_overlaps(spec)
    except LayoutError as error:
        raise MisfitError(str(error)) from error
    return spec


def packed_spec(
    file: Container, entry: Entry, layout: Any, dtype: str | None, parameters: dict[str, Any]
) -> Spec:
    """The tensor's shape in the layout, with the dtype it will have there."""
    if METADATA_PREFIX + entry.name in file.metadata:
        raise LayoutError("it is packed already\n  unpack it first, or name others with --tensor")
    own = PRIMITIVE_OF.get(entry.dtype)
    if own is None:
        raise MisfitError(f"its dtype {entry.dtype} cannot be packed\n  name others with --tensor")
    wanted = own if dtype is None else primitive_type(dtype).name
    spec = spec_of(layout, entry.shape, wanted, parameters)
    restored_as(spec)
    narrowed = dtype is None and WIDENED.get(spec.primitive_type) == entry.dtype
    if spec.primitive_type != wanted and not narrowed:
        fate = (
            f"is {own}\n  convert with --dtype {spec.primitive_type}"
            if dtype is None
            else f"becomes {wanted}"
        )
        raise MisfitError(f"the layout is for {spec.primitive_type}, the tensor {fate}")
    return spec


def stored_as(spec: Spec) -> tuple[str, tuple[int, ...]]:
    """The dtype and the shape under which the packed buffer is stored."""
    dtype = None if spec.packed else DTYPE_OF.get(spec.primitive_type)
    if dtype is None:
        return "U8", (spec.size_in_bytes,)
    return dtype, (spec.size_in_bytes // spec.dtype.itemsize,)


def restored_as(spec: Spec) -> str:
    """The dtype under which the tensor is stored when it is not packed."""
    name = spec.primitive_type
    if name == "f4e2m1fn" and prod(spec.dimensions) % 2 == 0:
        return "F4"
    dtype = DTYPE_OF.get(name) or WIDENED.get(name)
    if dtype is None:
        raise LayoutError(f"safetensors cannot hold its {prod(spec.dimensions)} elements of {name}")
    return dtype


def kept_spec(file: Container, entry: Entry) -> Spec:
    """The shape that the metadata keeps for a packed tensor, checked against what is stored."""
    text = file.metadata.get(METADATA_PREFIX + entry.name)
    if text is None:
        raise LayoutError("it is not packed: the metadata has no layout for it")
    try:
        spec = spec_from_json(json.loads(text))
    except RecursionError as error:
        raise LayoutError("the layout in the metadata is nested too deeply") from error
    except (ValueError, TypeError) as error:
        raise LayoutError(f"the layout in the metadata cannot be read: {error}") from error
    check_packable(spec)
    if (entry.dtype, entry.shape) != stored_as(spec):
        stored, (length,) = stored_as(spec)
        raise LayoutError(
            f"{entry.dtype}{list(entry.shape)} is stored, but its layout takes {stored}[{length}]\n"
            "  the metadata belongs to another tensor, or the file was changed"
        )
    return spec


def keeps_its_dtype(entry: Entry, dtype: str) -> bool:
    """Whether a tensor of indices or flags would become floating-point numbers."""
    name = PRIMITIVE_OF.get(entry.dtype)
    integers = ("pred", "signed", "unsigned")
    return (
        name is not None and primitive_type(name).kind in integers and primitive_type(dtype).kind == "float"
    )


def named(entry: Entry, error: Exception) -> LayoutError:
    """An error that says of which tensor it is."""
    name = entry.name if len(entry.name) <= 120 else entry.name[:117] + "..."
    return LayoutError(f"tensor {name!r}: {error}")


def copied(file: Container, entry: Entry) -> Output:
    """A tensor written as it is."""
    return Output(entry.name, entry.dtype, entry.shape, entry.nbytes, lambda: Mapped(file.bytes_of(entry)))


def packed(file: Container, entry: Entry, spec: Spec, casting: str, threads: int | None) -> Made:
    """The bytes of a tensor in a layout."""
    return _named_pieces(
        entry, lambda: made.packed(_source(file, entry), spec, casting, threads, _dropping(file))
    )


def relaid(file: Container, entry: Entry, old: Spec, spec: Spec, threads: int | None) -> Made:
    """The bytes of a packed tensor in another layout."""
    tiled = TiledArray.from_buffer(file.bytes_of(entry), old)
    return _named_pieces(entry, lambda: made.relaid(tiled, spec, threads, _dropping(file)))


def unpacked(file: Container, entry: Entry, spec: Spec, restored: str, threads: int | None) -> Made:
    """The bytes of a packed tensor in row-major order."""
    tiled = TiledArray.from_buffer(file.bytes_of(entry), spec)
    target = _row_major(restored, spec.dimensions)
    return _named_pieces(entry, lambda: made.unpacked(tiled, target, target.dtype, threads, _dropping(file)))


def _named_pieces(entry: Entry, make: Callable[[], Array | Pieces]) -> Made:
    try:
        result = make()
    except (LayoutError, TypeError) as error:
        raise named(entry, error) from error
    return Named(result, partial(named, entry)) if isinstance(result, Pieces) else result


def _dropping(file: Container) -> Callable[[], None]:
    return partial(drop_pages, file.data)


def _source(file: Container, entry: Entry) -> Array | TiledArray:
    """The tensor as an array straight from the file, or as a tiled one where elements share bytes."""
    data = file.bytes_of(entry)
    spec = _row_major(entry.dtype, entry.shape)
    if spec.packed:
        return TiledArray.from_buffer(data, spec)
    try:
        return data.view(spec.dtype).reshape(entry.shape)
    except ValueError as error:
        raise LayoutError(f"NumPy holds no array of {len(entry.shape)} dimensions: {error}") from error


def _row_major(dtype: str, dims: tuple[int, ...]) -> Shape:
    """How safetensors itself lays out a tensor: row-major, F4 two to a byte."""
    return row_major(PRIMITIVE_OF[dtype], dims, 4 if dtype == "F4" else 0)
