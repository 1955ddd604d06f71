"""One field of a packing: from the arrays of its planes to its bytes in a buffer, and back."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Field, Packing, Plane, Sizes, extents
from tilejit.copies.bit_streams import pack_stream, stream_bytes, unpack_stream
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, from_numpy, lookup
from tilejit.layout.formats.packings import SAME_ORDER, Place, pattern_shape, record_shape
from tilejit.layout.text.pattern_text import parse_pattern
from tilejit.programs.tuning import DEFAULT
from tilejit.tiled.outputs import padding_of
from tilejit.tiled.plans import pack_plan
from tilejit.tiled.tiled_array import TiledArray

Elements = Mapping[str, PrimitiveType]


@dataclass(frozen=True, slots=True)
class PlacedField:
    """A field of an array with known dimensions, and its bytes in each record of a buffer.

    Attributes:
        packing: the packing.
        field: the field.
        sizes: the size of each axis.
        elements: the element type of each plane.
        records: the number of records.
        start: the first byte in a record.
        length: the bytes in a record.
        pitch: the bytes of a record.
    """

    packing: Packing
    field: Field
    sizes: Sizes
    elements: Elements
    records: int
    start: int
    length: int
    pitch: int

    @property
    def plane(self) -> Plane:
        """The first plane."""
        return self.packing.plane(self.field.planes[0])

    @property
    def layout(self) -> CuteShape | None:
        """The layout of the field's elements in the whole buffer; None if strides do not say it."""
        field = self.field
        bits = field_bits(field, self.plane)
        if field.codec or field.words or bits in (3, 5, 6, 7):
            return None
        element = _element(bits, self.elements[self.plane.name])
        place = Place(8 * self.start, 8 * self.length, 8 * self.pitch)
        dims = _field_dims(field, self.plane, self.sizes)
        return record_shape(field.pattern, field.sizes or {}, element, dims, place)

    def write(self, buffer: Array, arrays: Mapping[str, Array], threads: int | None) -> None:
        """Write the field to its bytes of each record of a flat buffer."""
        spec = None if self.field.codec else self.layout
        if spec is not None:
            values = _stored(self.field, arrays).view(spec.dtype)
            target = buffer[: spec.size_in_bytes]
            _pack(values, spec, None, threads, target if spec.packed else target.view(spec.dtype))
            return
        data = self._encoded(arrays, threads)
        buffer.reshape(self.records, self.pitch)[:, self.start : self.start + self.length] = data.reshape(
            self.records, self.length
        )

    def read(self, buffer: Array, planes: Mapping[str, Array], threads: int | None) -> dict[str, Array]:
        """Return the arrays, or the bits of codes, that the field holds; `planes` has those that it uses."""
        spec = None if self.field.codec else self.layout
        if spec is not None:
            own = buffer[: spec.size_in_bytes]
            values = TiledArray(own if spec.packed else own.view(spec.dtype), spec).unpack(threads=threads)
            return self._planes(values)
        rows = buffer.reshape(self.records, self.pitch)[:, self.start : self.start + self.length]
        return self._decoded(np.ascontiguousarray(rows).reshape(-1), planes, threads)

    def _encoded(self, arrays: Mapping[str, Array], threads: int | None) -> Array:
        """The field's bytes, those of each record contiguous."""
        field = self.field
        if field.codec:
            given = tuple(arrays[name] for name in (*field.planes, *field.uses))
            return field.codec.encode(given, self.sizes).reshape(-1)
        spec, bits = field_layout(self.packing, field, self.sizes, self.elements)
        values = _stored(field, arrays).view(spec.dtype)
        flat = _pack(values, spec, padding_of(field.padding or None, spec, None), threads)
        if bits != spec.bits:
            flat = pack_stream(flat, bits)
        return _moved_words(flat, field, self.sizes, back=False)

    def _decoded(self, data: Array, planes: Mapping[str, Array], threads: int | None) -> dict[str, Array]:
        field = self.field
        if field.codec:
            shaped = data.reshape(extents(field.codec.extents, self.sizes))
            used = (planes[name] for name in field.uses)
            return dict(zip(field.planes, field.codec.decode(shaped, self.sizes, *used), strict=True))
        spec, bits = field_layout(self.packing, field, self.sizes, self.elements)
        flat = _moved_words(data, field, self.sizes, back=True)
        if bits != spec.bits:
            flat = unpack_stream(flat, bits, spec.physical_size)
        values = TiledArray(flat if spec.packed else flat.view(spec.dtype), spec).unpack(threads=threads)
        return self._planes(values)

    def _planes(self, values: Array) -> dict[str, Array]:
        """The elements of a field as codes of its planes."""
        codes, names = self._codes(values), self.field.planes
        if len(names) == 1:
            return {names[0]: codes}
        return {name: np.ascontiguousarray(codes[..., k]) for k, name in enumerate(names)}

    def _codes(self, values: Array) -> Array:
        """The elements of a field as the codes of its plane."""
        if not self.plane.bits:
            return values
        field, bits = self.field, field_bits(self.field, self.plane)
        values = values.view(np.uint8)
        if bits < 8:
            values = values & np.uint8((1 << bits) - 1)
        if field.values:
            values = field.values.decode(values)
        return values << np.uint8(field.take[0]) if field.take and field.take[0] else values


def place_fields(packing: Packing, buffer: str, sizes: Sizes, elements: Elements) -> list[PlacedField]:
    """The fields of one buffer whose planes have elements, each with its bytes in a record."""
    fields = [f for f in packing.fields if f.buffer == buffer and all(p in elements for p in f.planes)]
    records = prod(extents(packing.records, sizes)) if packing.records else 1
    lengths = [_field_bytes(packing, field, sizes, elements) // max(records, 1) for field in fields]
    starts = [sum(lengths[:k]) for k in range(len(fields))]
    return [
        PlacedField(packing, field, sizes, elements, records, start, length, sum(lengths))
        for field, start, length in zip(fields, starts, lengths, strict=True)
    ]


def element_of(plane: Plane, array: Array | None) -> PrimitiveType:
    """The element type of a plane; that of the array if the plane takes any."""
    if plane.bits:
        return PRIMITIVE_TYPES["u8"]
    if plane.dtype:
        return lookup(plane.dtype)
    if array is None:
        raise LayoutError(f"the plane {plane.name!r} takes any dtype\n  pass dtype=")
    return from_numpy(array.dtype)


def field_bits(field: Field, plane: Plane) -> int:
    """The width of a field's codes; 0 if its plane has a dtype."""
    return field.take[1] if field.take else plane.bits


def field_layout(packing: Packing, field: Field, sizes: Sizes, elements: Elements) -> tuple[Spec, int]:
    """The layout of a field's elements in its own bytes, and the bits of each element there."""
    plane = packing.plane(field.planes[0])
    bits = field_bits(field, plane)
    element = _element(bits, elements[plane.name])
    dims = _field_dims(field, plane, sizes)
    width = bits if bits in (1, 2, 4) else 0
    spec = pattern_shape(field.pattern, field.sizes or {}, element, dims, width)
    return spec, bits or spec.bits


def _field_dims(field: Field, plane: Plane, sizes: Sizes) -> tuple[int, ...]:
    """The dimensions of a field's elements; several planes are stacked along a new last one."""
    stack = (len(field.planes),) if len(field.planes) > 1 else ()
    return (*extents(plane.axes, sizes), *stack)


def _element(bits: int, element: PrimitiveType) -> PrimitiveType:
    return PRIMITIVE_TYPES[f"u{bits}"] if bits in (1, 2, 4) else element


def _field_bytes(packing: Packing, field: Field, sizes: Sizes, elements: Elements) -> int:
    """The bytes of a field, over all records."""
    if field.codec:
        return prod(extents(field.codec.extents, sizes))
    plane = packing.plane(field.planes[0])
    element = _element(field_bits(field, plane), elements[plane.name])
    padded = parse_pattern(field.pattern or SAME_ORDER).blocking(
        _field_dims(field, plane, sizes), field.sizes or {}
    )
    return stream_bytes(prod(padded.padded), field_bits(field, plane) or element.storage_bits)


def _stored(field: Field, arrays: Mapping[str, Array]) -> Array:
    """The codes that a field holds of its planes' codes."""
    given = [arrays[name] for name in field.planes]
    values = np.stack(given, axis=-1) if len(given) > 1 else given[0]
    if field.take:
        low, number = field.take
        values = values >> np.uint8(low) & np.uint8((1 << number) - 1)
    return field.values.encode(values) if field.values else values


def _moved_words(flat: Array, field: Field, sizes: Sizes, *, back: bool) -> Array:
    """The stream with its 32-bit words in memory order, or back in the order of the stream."""
    if field.words is None:
        return flat
    shape, pattern = field.words
    words: Any = flat.view(np.uint32)
    spec = pattern_shape(pattern, {}, PRIMITIVE_TYPES["u32"], extents(shape, sizes), 0)
    if back:
        return TiledArray(words, spec).unpack().reshape(-1).view(np.uint8)
    return _pack(words.reshape(extents(shape, sizes)), spec, bytes(4), None)


def _pack(values: Array, spec: Spec, fill: bytes | None, threads: int | None, out: Any = None) -> Array:
    """The bytes of an array in a layout; without a fill, the padding of `out` stays."""
    own = (values.shape, values.strides, values.dtype)
    buffer: Array = pack_plan(TiledArray, spec, own, fill, "no", threads, DEFAULT)(values, out).buffer
    return buffer.view(np.uint8)
