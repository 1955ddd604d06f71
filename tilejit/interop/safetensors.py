"""Pack and unpack the tensors of a safetensors file, one in memory at a time.

A packed tensor stands under its own name as a flat tensor of its buffer's elements (U8 where elements share
bytes or have no safetensors dtype); the metadata entry `tilejit.<name>` holds its shape and layout as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from codegen.errors import LayoutError
from tilejit.buffers import check_packable
from tilejit.convert import pack, unpack
from tilejit.interop import container
from tilejit.interop.container import Container, Entry, Output
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_index import refuse_overlaps
from tilejit.layout.cute_shape import Spec, spec_from_json
from tilejit.layout.dtypes import primitive_type
from tilejit.layout.layout import Layout
from tilejit.layout.shape import Shape
from tilejit.memory import Array
from tilejit.relayouts import relayout
from tilejit.tiled_array import TiledArray

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

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Converted:
    """One tensor that was packed or unpacked, and its bytes before and after."""

    name: str
    spec: Spec
    source_bytes: int
    target_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be written: checked as far as that goes without the data, nothing made yet."""

    outputs: tuple[Output, ...]
    metadata: dict[str, str]
    converted: tuple[Converted, ...]
    kept: tuple[str, ...] = ()
    """Tensors of integers that a conversion of all tensors to a floating-point type left alone."""
    left: tuple[str, ...] = ()
    """Tensors that stay as they are, since the layout does not fit them."""
    reason: str = ""
    """Why the first of those stays."""

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors to write."""
        return sum(output.nbytes for output in self.outputs)

    def write(self, path: str | os.PathLike[str], advance: Advance | None = None) -> None:
        """Make and write tensor by tensor; `path` changes only when all is done.

        Raises:
            LayoutError: a value does not fit the packed dtype, named with its tensor.
            OSError: the disk refuses.
        """
        container.write(path, self.outputs, self.metadata, advance)


def plan_pack(
    source: str | os.PathLike[str],
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    dtype: str | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> Plan:
    """What packing a safetensors file will write.

    >>> plan_pack("model.safetensors", "tpu").write("model.tpu.safetensors")

    layout, parameters: whatever `as_layout` reads for every tensor that is packed, and the keywords of a
    format or a pattern. tensors: their names; none means all that the layout fits: others, such as biases
    where it is one of matrices, are `left` as they are. dtype: convert to it on the way, as a C cast does;
    without `tensors`, a floating-point dtype is for floating-point tensors, and integers and booleans keep
    their own, since a model's indices do not survive in bf16.

    Raises:
        LayoutError: the file is damaged, a tensor asked for cannot be packed so, or none can; the message
            names it.
        OSError: the file cannot be read.
    """
    file = container.read(source)
    chosen = _chosen(file, tensors)
    metadata = dict(file.metadata)
    outputs: list[Output] = []
    converted: list[Converted] = []
    kept: list[str] = []
    misfits: list[tuple[str, LayoutError]] = []
    for entry in file.entries:
        if entry.name not in chosen:
            outputs.append(_copied(file, entry))
            continue
        try:
            own = dtype
            if dtype is not None and not tensors and _keeps_its_dtype(entry, dtype):
                kept.append(entry.name)
                own = None
            spec = _packed_spec(file, entry, layout, own, parameters)
            stored = _stored(spec)
        except _Misfit as error:
            misfits.append((entry.name, _named(entry, error)))
            outputs.append(_copied(file, entry))
            continue
        except (LayoutError, TypeError) as error:
            raise _named(entry, error) from error
        make = partial(_packed, file, entry, spec, "no" if own is None else "unsafe", threads)
        outputs.append(Output(entry.name, *stored, spec.size_in_bytes, make))
        converted.append(Converted(entry.name, spec, entry.nbytes, spec.size_in_bytes))
        metadata[METADATA_PREFIX + entry.name] = json.dumps(spec.to_json(), separators=(",", ":"))
    # Where none of the tensors to convert fits, it is dtype that does not.
    alike = {c.name for c in converted} - set(kept) or not {name for name, _ in misfits} - set(kept)
    left, reason = _left(misfits, raises=bool(tensors) or not converted or not alike)
    own_dtype = tuple(name for name in kept if name not in left)
    return Plan(tuple(outputs), metadata, tuple(converted), own_dtype, left, reason)


def plan_unpack(
    source: str | os.PathLike[str], *, tensors: Collection[str] = (), threads: int | None = None
) -> Plan:
    """What unpacking a safetensors file will write: every packed tensor as it was, its metadata entry gone.

    >>> plan_unpack("model.tpu.safetensors").write("model.safetensors")

    Narrow integers come back as I8 or U8, since safetensors has no narrower ones.

    Raises:
        LayoutError: the file is damaged, or a tensor asked for is not packed.
        OSError: the file cannot be read.
    """
    file = container.read(source)
    packed = [entry.name for entry in file.entries if METADATA_PREFIX + entry.name in file.metadata]
    chosen = _chosen(file, tensors) if tensors else set(packed)
    gone = {METADATA_PREFIX + name for name in chosen}
    metadata = {key: text for key, text in file.metadata.items() if key not in gone}
    outputs: list[Output] = []
    converted: list[Converted] = []
    for entry in file.entries:
        if entry.name not in chosen:
            outputs.append(_copied(file, entry))
            continue
        try:
            spec = _kept_spec(file, entry)
            restored = _restored(spec)
        except (LayoutError, TypeError) as error:
            raise _named(entry, error) from error
        size = prod(spec.dimensions) * container.DTYPE_BITS[restored] // 8
        make = partial(_unpacked, file, entry, spec, restored, threads)
        outputs.append(Output(entry.name, restored, spec.dimensions, size, make))
        converted.append(Converted(entry.name, spec, entry.nbytes, size))
    return Plan(tuple(outputs), metadata, tuple(converted))


def plan_relayout(
    source: str | os.PathLike[str],
    /,
    layout: Any,
    *,
    tensors: Collection[str] = (),
    threads: int | None = None,
    **parameters: Any,
) -> Plan:
    """What bringing the packed tensors of a safetensors file into another layout will write.

    >>> plan_relayout("model.tpu.safetensors", "tenstorrent").write("model.tt.safetensors")

    layout, parameters: whatever `as_layout` reads for every tensor, and the keywords of a format or a
    pattern. tensors: their names; none means all that are packed and that the layout fits: others are `left`
    packed as they are.

    Raises:
        LayoutError: the file is damaged, a tensor asked for is not packed, or the layout does not fit it, or
            fits none.
        OSError: the file cannot be read.
    """
    file = container.read(source)
    packed = [entry.name for entry in file.entries if METADATA_PREFIX + entry.name in file.metadata]
    chosen = _chosen(file, tensors) if tensors else set(packed)
    metadata = dict(file.metadata)
    outputs: list[Output] = []
    converted: list[Converted] = []
    misfits: list[tuple[str, LayoutError]] = []
    for entry in file.entries:
        if entry.name not in chosen:
            outputs.append(_copied(file, entry))
            continue
        try:
            old = _kept_spec(file, entry)
            spec = _spec_of(layout, old.dimensions, old.primitive_type, parameters)
            if spec.primitive_type != old.primitive_type:
                raise _Misfit(f"the layout is for {spec.primitive_type}, the tensor is {old.primitive_type}")
        except _Misfit as error:
            misfits.append((entry.name, _named(entry, error)))
            outputs.append(_copied(file, entry))
            continue
        except (LayoutError, TypeError) as error:
            raise _named(entry, error) from error
        make = partial(_relaid, file, entry, old, spec, threads)
        outputs.append(Output(entry.name, *_stored(spec), spec.size_in_bytes, make))
        converted.append(Converted(entry.name, spec, entry.nbytes, spec.size_in_bytes))
        metadata[METADATA_PREFIX + entry.name] = json.dumps(spec.to_json(), separators=(",", ":"))
    left, reason = _left(misfits, raises=bool(tensors) or not converted)
    return Plan(tuple(outputs), metadata, tuple(converted), left=left, reason=reason)


class _Misfit(LayoutError):
    """The layout is none of this tensor's; it may be one of another's."""


def _spec_of(layout: Any, dims: tuple[int, ...], dtype: str, parameters: dict[str, Any]) -> Spec:
    """The tensor's shape in the layout.

    Raises:
        _Misfit: the layout is of other ranks, dtypes or sizes, or cannot be read at all.
        TypeError: a parameter is not the layout's, whatever the tensor.
    """
    try:
        spec = as_layout(layout, dims=dims, dtype=dtype, **parameters)
        check_packable(spec)
        refuse_overlaps(spec)
    except LayoutError as error:
        raise _Misfit(str(error)) from error
    return spec


def _left(misfits: list[tuple[str, LayoutError]], *, raises: bool) -> tuple[tuple[str, ...], str]:
    """The names of the tensors that a layout does not fit, and what is wrong with the first.

    Raises:
        LayoutError: that itself, where the caller named these tensors, or no other tensor fits.
    """
    if misfits and raises:
        raise misfits[0][1]
    return tuple(name for name, _ in misfits), str(misfits[0][1]) if misfits else ""


def _relaid(file: Container, entry: Entry, old: Spec, spec: Spec, threads: int | None) -> Array:
    try:
        return relayout(TiledArray.from_buffer(file.bytes_of(entry), old), spec, threads=threads).buffer
    except (LayoutError, TypeError) as error:
        raise _named(entry, error) from error


def _chosen(file: Container, tensors: Collection[str]) -> set[str]:
    names = {entry.name for entry in file.entries}
    unknown = [name for name in tensors if name not in names]
    if unknown:
        some = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
        raise LayoutError(f"there is no tensor {unknown[0]!r}\n  the file has {some or 'none'}")
    return set(tensors) or names


def _named(entry: Entry, error: Exception) -> LayoutError:
    name = entry.name if len(entry.name) <= 120 else entry.name[:117] + "..."
    return LayoutError(f"tensor {name!r}: {error}")


def _copied(file: Container, entry: Entry) -> Output:
    return Output(entry.name, entry.dtype, entry.shape, entry.nbytes, partial(file.bytes_of, entry))


def _keeps_its_dtype(entry: Entry, dtype: str) -> bool:
    """Whether a tensor of indices or flags would become floating-point numbers."""
    name = PRIMITIVE_OF.get(entry.dtype)
    integers = ("pred", "signed", "unsigned")
    return (
        name is not None and primitive_type(name).kind in integers and primitive_type(dtype).kind == "float"
    )


def _packed_spec(
    file: Container, entry: Entry, layout: Any, dtype: str | None, parameters: dict[str, Any]
) -> Spec:
    """The tensor's shape in the layout, with the dtype it will have there."""
    if METADATA_PREFIX + entry.name in file.metadata:
        raise LayoutError("it is packed already\n  unpack it first, or name others with --tensor")
    own = PRIMITIVE_OF.get(entry.dtype)
    if own is None:
        raise _Misfit(f"its dtype {entry.dtype} cannot be packed\n  name others with --tensor")
    wanted = own if dtype is None else primitive_type(dtype).name
    spec = _spec_of(layout, entry.shape, wanted, parameters)
    _restored(spec)
    narrowed = dtype is None and WIDENED.get(spec.primitive_type) == entry.dtype
    if spec.primitive_type != wanted and not narrowed:
        fate = (
            f"is {own}\n  convert with --dtype {spec.primitive_type}"
            if dtype is None
            else f"becomes {wanted}"
        )
        raise _Misfit(f"the layout is for {spec.primitive_type}, the tensor {fate}")
    return spec


def _stored(spec: Spec) -> tuple[str, tuple[int, ...]]:
    """The dtype and the shape under which the packed buffer is stored."""
    dtype = None if spec.packed else DTYPE_OF.get(spec.primitive_type)
    if dtype is None:
        return "U8", (spec.size_in_bytes,)
    return dtype, (spec.size_in_bytes // spec.dtype.itemsize,)


def _restored(spec: Spec) -> str:
    """The dtype under which the tensor is stored when it is not packed."""
    name = spec.primitive_type
    if name == "f4e2m1fn" and prod(spec.dimensions) % 2 == 0:
        return "F4"
    dtype = DTYPE_OF.get(name) or WIDENED.get(name)
    if dtype is None:
        raise LayoutError(f"safetensors cannot hold its {prod(spec.dimensions)} elements of {name}")
    return dtype


def _kept_spec(file: Container, entry: Entry) -> Spec:
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
    if (entry.dtype, entry.shape) != _stored(spec):
        stored, (length,) = _stored(spec)
        raise LayoutError(
            f"{entry.dtype}{list(entry.shape)} is stored, but its layout takes {stored}[{length}]\n"
            "  the metadata belongs to another tensor, or the file was changed"
        )
    return spec


def _array(file: Container, entry: Entry) -> Array:
    """The tensor as an array; straight from the file, unless elements share bytes."""
    data = file.bytes_of(entry)
    spec = Shape(PRIMITIVE_OF[entry.dtype], entry.shape, _linear(entry.dtype, len(entry.shape)))
    if spec.packed:
        return unpack(data, spec)
    try:
        return data.view(spec.dtype).reshape(entry.shape)
    except ValueError as error:
        raise LayoutError(f"NumPy holds no array of {len(entry.shape)} dimensions: {error}") from error


def _linear(dtype: str, rank: int) -> Layout:
    """How safetensors itself lays out a tensor: row-major, F4 two to a byte."""
    return Layout(tuple(reversed(range(rank))), element_size_in_bits=4 if dtype == "F4" else 0)


def _packed(file: Container, entry: Entry, spec: Spec, casting: str, threads: int | None) -> Array:
    try:
        return pack(_array(file, entry), spec, casting=casting, threads=threads).buffer
    except (LayoutError, TypeError) as error:
        raise _named(entry, error) from error


def _unpacked(file: Container, entry: Entry, spec: Spec, restored: str, threads: int | None) -> Array:
    try:
        array = unpack(TiledArray.from_buffer(file.bytes_of(entry), spec), threads=threads)
        if restored == "F4":
            linear = Shape("f4e2m1fn", spec.dimensions, _linear("F4", spec.rank))
            return pack(array, linear, threads=threads).buffer
    except (LayoutError, TypeError) as error:
        raise _named(entry, error) from error
    if spec.primitive_type in WIDENED:
        return array.astype(np.int8 if restored == "I8" else np.uint8)
    return array
