"""Where the bits of an array's elements are in a buffer, computed for some elements without packing any."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Field, Packing, Sizes, extents
from tilejit.copies.plane_fields import Elements, place_fields
from tilejit.layout.formats.blocking import Blocking, Permutation
from tilejit.layout.formats.packings import SAME_ORDER
from tilejit.layout.text.pattern_text import parse_pattern
from tilejit.recognize.formats.changes import Index


class Part(NamedTuple):
    """Some bits of each of several elements.

    Attributes:
        places: the bit of the buffer where they start, for each element.
        low: the lowest bit of the element that they hold.
        bits: their number.
        follow: the bit at which the next byte of a stream starts, for each element, if codes straddle bytes.
    """

    places: Array
    low: int
    bits: int
    follow: Array | None = None

    def rows(self, rows: Any) -> Part:
        """The part in some rows, of places with a row for each of several trials."""
        follow = None if self.follow is None else self.follow[rows]
        return self._replace(places=self.places[rows], follow=follow)


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

    def part(self, index: Index) -> Part:
        """The bits of some elements of the plane."""
        if self.stacked is not None:
            index = (*index, np.full(np.shape(index[0]), self.stacked[0], np.int64))
        stream = slots_of(self.blocking, index) * self.bits
        straddles = 8 % self.bits != 0 and self.bits % 8 != 0
        follow = self._moved((stream >> 3) + 1 << 3) if straddles else None
        return Part(self._moved(stream), self.low, self.bits, follow)

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
        None if a codec holds it, or several buffers do.
    """
    buffers = {field.buffer for field in packing.fields if plane in field.planes}
    if len(buffers) != 1 or packing.steps:
        return None
    (buffer,) = buffers
    found = []
    placed = place_fields(packing, buffer, sizes, elements)
    for one in placed:
        field = one.field
        if plane not in field.planes:
            continue
        if field.codec or (field.values and field.take):
            return None
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
    blocking = parse_pattern(field.pattern or SAME_ORDER).blocking(dims, field.sizes or {})
    if field.words is None:
        return blocking, None
    shape = extents(field.words[0], sizes)
    return blocking, (shape, parse_pattern(field.words[1]).blocking(shape, {}))


def bit_places(parts: tuple[Part, ...], bits: int) -> Array:
    """The place of each bit of each element: a row for each bit, from the lowest.

    Bits of a byte and wider elements are contiguous, so that those of whole bytes count from the first.
    """
    count = len(parts[0].places)
    out = np.full((bits, count), -1, np.int64)
    for part in parts:
        for bit in range(part.bits):
            place = part.places + bit
            if part.follow is not None:
                within = (part.places & 7) + bit
                place = np.where(within < 8, place, part.follow + within - 8)
            out[part.low + bit] = place
    return out
