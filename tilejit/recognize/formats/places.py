"""Where the bits of an array's elements are in a buffer, computed for some elements without packing any."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Field, Packing, Sizes, extents
from tilejit.copies.plane_fields import Elements, place_fields
from tilejit.layout.formats.blocking import Blocking, Permutation
from tilejit.layout.formats.packings import field_blocking
from tilejit.layout.text.pattern_text import parse_pattern
from tilejit.recognize.formats.changes import Index


class Part(NamedTuple):
    """Some bits of each of several elements, all in one byte, or whole bytes.

    Attributes:
        places: the bit of the buffer where they start, for each element.
        low: the lowest bit of the element that they hold.
        bits: their number.
    """

    places: Array
    low: int
    bits: int


def slots_of(blocking: Blocking, index: Index) -> Array:
    """The slots of elements in a blocked buffer.

    [2,8] as (2) and (4,2), order (0,0) (1,0) (1,1), indices (1, 5) -> 13
    """
    values: dict[tuple[int, int], Array] = {}
    for dim, sizes in enumerate(blocking.digits):
        rest = index[dim]
        for number in range(len(sizes) - 1, 0, -1):
            size = sizes[number]
            if size > 1:
                upper = rest // size
                values[dim, number] = rest - upper * size
                rest = upper
        if sizes[0] > 1:
            values[dim, 0] = rest
    for one in blocking.permutations:
        if one.reverses and one.digit in values:
            values[one.digit] = blocking.size(one.digit) - 1 - values[one.digit]
    for one in blocking.permutations:
        if not one.reverses and one.digit in values:
            values[one.digit] = _turned(values, one, blocking.size(one.digit))
    out, stride = np.zeros(np.shape(index[0]) if index else (), np.int64), 1
    for digit in reversed(blocking.order):
        if digit in values:
            out += values[digit] * stride
        stride *= blocking.size(digit)
    return out


def _turned(values: Mapping[tuple[int, int], Array], one: Permutation, size: int) -> Array:
    """The positions of a digit that another one or a table moves."""
    own = values[one.digit]
    if one.by is None:
        return np.array(one.table)[own]
    by = values.get(one.by, 0)
    if one.operation == "^":
        return own ^ by
    return (own + by if one.operation == "+" else own - by) % size


@dataclass(frozen=True, slots=True)
class FieldPlaces:
    """The places of one plane in a field of a buffer.

    Attributes:
        blocking: the order of the field's elements.
        bits: the width of each.
        low: the lowest bit of a code that the field holds.
        stacked: the number of the plane if the field stacks several, and how many.
        words: extents and order of the stream's 32-bit words, if they move.
        start: the first byte of the field in a record.
        length: its bytes in a record.
        pitch: the bytes of a record.
    """

    blocking: Blocking
    bits: int
    low: int
    stacked: tuple[int, int] | None
    words: tuple[tuple[int, ...], Blocking] | None
    start: int
    length: int
    pitch: int

    @property
    def padded(self) -> tuple[int, ...]:
        """The dimensions of the field's elements, padding included."""
        return self.blocking.padded

    @property
    def is_plain(self) -> bool:
        """Whether the field fills the buffer with whole elements in the order of the blocking."""
        return self.pitch == self.length and self.words is None and self.stacked is None

    def parts(self, index: Index) -> tuple[Part, ...]:
        """The bits of some elements of the plane: bit by bit if elements straddle bytes."""
        if self.stacked is not None:
            index = (*index, np.full(np.shape(index[0]), self.stacked[0], np.int64))
        stream = slots_of(self.blocking, index) * self.bits
        if 8 % self.bits == 0 or self.bits % 8 == 0:
            return (Part(self._moved(stream), self.low, self.bits),)
        return tuple(Part(self._moved(stream + bit), self.low + bit, 1) for bit in range(self.bits))

    def _moved(self, stream: Array) -> Array:
        """Bits of the field's stream as bits of the buffer."""
        if self.words is not None:
            shape, order = self.words
            word = np.minimum(stream >> 5, prod(shape) - 1)
            stream = slots_of(order, np.unravel_index(word, shape)) << 5 | stream & 31
        if self.pitch == self.length:
            return stream
        byte = stream >> 3
        record = byte // self.length
        return record * self.pitch + (self.start + byte - record * self.length) << 3 | stream & 7


def places_in_fields(
    packing: Packing, plane: str, sizes: Sizes, elements: Elements
) -> tuple[tuple[FieldPlaces, ...], str, int] | None:
    """The places of a plane, the buffer that holds it, and the bytes of the buffer.

    Returns:
        None if several buffers hold it. If whole-array steps pack it, it has no places.
    """
    buffers = {field.buffer for field in packing.fields if plane in field.planes}
    if len(buffers) != 1:
        return None
    (buffer,) = buffers
    found = []
    placed = place_fields(packing, buffer, sizes, elements)
    for one in placed:
        field = one.field
        if plane not in field.planes or field.codec or packing.steps or (field.values and field.take):
            continue
        blocking, words = _orders(packing, field, sizes)
        stacked = (field.planes.index(plane), len(field.planes)) if len(field.planes) > 1 else None
        own = packing.plane(plane)
        low, bits = field.take or (0, own.bits or elements[plane].storage_bits)
        found.append(FieldPlaces(blocking, bits, low, stacked, words, one.start, one.length, one.pitch))
    return tuple(found), buffer, placed[0].records * placed[0].pitch


def _orders(
    packing: Packing, field: Field, sizes: Sizes
) -> tuple[Blocking, tuple[tuple[int, ...], Blocking] | None]:
    """The order of a field's elements, and that of its words."""
    stack = (len(field.planes),) if len(field.planes) > 1 else ()
    dims = (*extents(packing.plane(field.planes[0]).axes, sizes), *stack)
    blocking = field_blocking(field, dims)
    if field.words is None:
        return blocking, None
    shape = extents(field.words[0], sizes)
    return blocking, (shape, parse_pattern(field.words[1]).blocking(shape, {}))


def bit_places(parts: tuple[Part, ...], bits: int) -> Array:
    """The place of each bit of each element: a row for each bit, from the lowest."""
    out = np.full((bits, len(parts[0].places)), -1, np.int64)
    for part in parts:
        out[part.low : part.low + part.bits] = part.places + np.arange(part.bits)[:, None]
    return out


def read(data: Array, parts: tuple[Part, ...], table: Array | None = None) -> tuple[Array, Array]:
    """Read elements from flat bytes.

    Args:
        data: the bytes.
        parts: the parts of the elements; one of more than 8 bits is a whole element.
        table: the stored code of each code.

    Returns:
        The elements, a code or a row of bytes for each, and which of them lie within the bytes and are codes
        that the format stores.
    """
    place, _, bits = parts[0]
    if bits > 8:
        first = place >> 3
        inside = (first >= 0) & (first + bits // 8 <= data.size)
        safe = np.where(inside, first, 0)[..., None] + np.arange(bits // 8)
        return np.take(data, safe, mode="clip"), inside
    codes, inside = np.zeros(place.shape, np.uint8), np.ones(place.shape, bool)
    for place, low, bits in parts:
        byte = place >> 3
        inside &= (byte >= 0) & (byte < data.size)
        got = np.take(data, byte, mode="clip") >> (place & 7).astype(np.uint8)
        codes |= (got & np.uint8((1 << bits) - 1)) << np.uint8(low)
    return (codes, inside) if table is None else decoded(codes, inside, table)


def decoded(codes: Array, inside: Array, table: Array) -> tuple[Array, Array]:
    """The codes of stored codes, and which of them the format stores."""
    inverse = np.full(table.size, -1, np.int16)
    known = np.flatnonzero(table >= 0)
    inverse[table[known]] = known
    found = inverse[codes]
    return np.where(found < 0, 0, found).astype(np.uint8), inside & (found >= 0)
