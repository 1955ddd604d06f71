"""One field of a packing: from the arrays of its planes to its bytes in a buffer, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Field, Packing, Sizes, extents
from tilejit.copies.bit_streams import pack_stream, stream_bytes, unpack_stream
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, lookup
from tilejit.layout.formats.blocking import Blocking
from tilejit.layout.formats.packings import Place, field_blocking, record_shape
from tilejit.layout.formats.spelling import blocked_shape
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
        field: the field.
        sizes: the size of each axis.
        order: the order of the field's elements; None if a codec packs them.
        element: the type of an element: that of the plane, u1, u2 or u4 for codes of that width, and u8 for
            other codes.
        bits: the width of an element in the buffer.
        is_plane: whether the elements are those of a plane as users pass it.
        records: the number of records.
        length: the bytes in a record.
        start: the first byte in a record.
        pitch: the bytes of a record.
    """

    field: Field
    sizes: Sizes
    order: Blocking | None
    element: PrimitiveType
    bits: int
    is_plane: bool
    records: int
    length: int
    start: int = 0
    pitch: int = 0

    @property
    def layout(self) -> CuteShape | None:
        """The layout of the field's elements in the whole buffer; None if strides do not say it."""
        if self.order is None or self.field.words or self._is_stream:
            return None
        place = Place(8 * self.start, 8 * self.length, 8 * self.pitch)
        return record_shape(self.order, self.element, self.bits, place)

    def encoded(self, arrays: Mapping[str, Array], threads: int | None) -> Array | None:
        """The field's bytes, those of each record contiguous; None if it has a layout in the buffer.

        Encoding may refuse an array, and `write` refuses none.
        """
        field = self.field
        if field.codec:
            given = tuple(arrays[name] for name in (*field.planes, *field.uses))
            return field.codec.encode(given, self.sizes).reshape(-1)
        if self.layout is not None:
            return None
        spec = self._own_layout
        fill = padding_of(field.padding or None, spec, None)
        flat = _pack(_stored(field, arrays), spec, fill, threads)
        if self._is_stream:
            flat = pack_stream(flat, self.bits)
        return _moved_words(flat, field, self.sizes, back=False)

    def write(
        self, buffer: Array, encoded: Array | None, arrays: Mapping[str, Array], threads: int | None
    ) -> None:
        """Write what `encoded` returned, or the elements, to the bytes of each record of a flat buffer."""
        if encoded is not None:
            self._rows(buffer)[...] = encoded.reshape(self.records, self.length)
            return
        spec = self.layout
        assert spec is not None
        target = _elements(buffer[: spec.size_in_bytes], spec)
        _pack(_stored(self.field, arrays), spec, None, threads, target)

    def read(
        self, buffer: Array, planes: Mapping[str, Array], threads: int | None, out: Array | None = None
    ) -> dict[str, Array]:
        """Return the arrays, or the bits of codes, that the field holds.

        Args:
            buffer: the bytes of the buffer.
            planes: arrays of other fields, among them those that the field uses.
            threads: the number of threads; None chooses it from the size.
            out: where to write the plane, if `is_plane`; None allocates an array.
        """
        field, layout = self.field, self.layout
        if layout is not None:
            spec: Spec = layout
            data = buffer[: spec.size_in_bytes]
        else:
            data = np.ascontiguousarray(self._rows(buffer)).reshape(-1)
            if field.codec:
                shaped = data.reshape(extents(field.codec.extents, self.sizes))
                used = (planes[name] for name in field.uses)
                return dict(zip(field.planes, field.codec.decode(shaped, self.sizes, *used), strict=True))
            spec, data = self._own_layout, _moved_words(data, field, self.sizes, back=True)
            if self._is_stream:
                data = unpack_stream(data, self.bits, spec.physical_size)
        if out is None and self.bits < 8:
            out = np.empty(spec.dimensions, np.uint8)
        elif out is not None and self.element.name == "u8":
            out = out.view(np.uint8)
        values = TiledArray(_elements(data, spec), spec).unpack(out=out, threads=threads)
        if field.values:
            values = field.values.decode(values)
        if field.take and field.take[0]:
            values = values << np.uint8(field.take[0])
        if len(field.planes) == 1:
            return {field.planes[0]: values}
        return {name: np.ascontiguousarray(values[..., k]) for k, name in enumerate(field.planes)}

    @property
    def _is_stream(self) -> bool:
        """Whether elements have a width that does not divide a byte."""
        return self.bits < 8 and 8 % self.bits != 0

    @property
    def _own_layout(self) -> Spec:
        """The layout of the elements in the field's own bytes; those of a stream have a byte each."""
        assert self.order is not None
        return blocked_shape(self.order, self.element, self.element.bits % 8 if self.bits < 8 else 0)

    def _rows(self, buffer: Array) -> Array:
        """The field's bytes in a flat buffer: a row for each record."""
        return buffer.reshape(self.records, self.pitch)[:, self.start : self.start + self.length]


def place_fields(packing: Packing, buffer: str, sizes: Sizes, elements: Elements) -> list[PlacedField]:
    """The fields of one buffer whose planes have elements, each with its bytes in a record."""
    records = prod(extents(packing.records, sizes)) if packing.records else 1
    placed: list[PlacedField] = []
    pitch = 0
    for field in packing.fields:
        if field.buffer == buffer and all(plane in elements for plane in field.planes):
            placed.append(replace(_sized(packing, field, sizes, elements, records), start=pitch))
            pitch += placed[-1].length
    return [replace(one, pitch=pitch) for one in placed]


def _sized(packing: Packing, field: Field, sizes: Sizes, elements: Elements, records: int) -> PlacedField:
    """A field with its length in a record, at the start of it."""
    number = max(records, 1)
    if field.codec:
        size = prod(extents(field.codec.extents, sizes))
        return PlacedField(field, sizes, None, lookup("u8"), 8, False, records, size // number)
    plane, stack = packing.plane(field.planes[0]), (len(field.planes),) if len(field.planes) > 1 else ()
    element, bits = elements[plane.name], field.take[1] if field.take else plane.bits
    if bits in (1, 2, 4):
        element = PRIMITIVE_TYPES[f"u{bits}"]
    order = field_blocking(field, (*extents(plane.axes, sizes), *stack))
    bits = bits or element.storage_bits
    size = stream_bytes(prod(order.padded), bits)
    changes = stack or field.take or field.values or packing.steps or plane.low or (plane.signed and bits < 8)
    return PlacedField(field, sizes, order, element, bits, not changes, records, size // number)


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
    shape = extents(field.words[0], sizes)
    spec = blocked_shape(parse_pattern(field.words[1]).blocking(shape, {}), PRIMITIVE_TYPES["u32"])
    words: Any = flat.view(np.uint32)
    if back:
        return TiledArray(words, spec).unpack().reshape(-1).view(np.uint8)
    return _pack(words.reshape(shape), spec, bytes(4), None)


def _elements(data: Array, spec: Spec) -> Array:
    """Bytes as the buffer of a layout."""
    return data if spec.packed else data.view(spec.dtype)


def _pack(values: Array, spec: Spec, fill: bytes | None, threads: int | None, out: Any = None) -> Array:
    """The bytes of an array in a layout; without a fill, the padding of `out` stays."""
    values = values.view(spec.dtype)
    own = (values.shape, values.strides, values.dtype)
    buffer: Array = pack_plan(TiledArray, spec, own, fill, "no", threads, DEFAULT)(values, out).buffer
    return buffer.view(np.uint8)
