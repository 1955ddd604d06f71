"""`Order`: the order of an array's elements in the buffer of a format."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError, cached, dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.entries import field_text
from tilejit.catalog.packing import Field, Packing, Plane, extents
from tilejit.copies.bit_streams import pack_stream, unpack_stream
from tilejit.copies.planes import pack_planes, unpack_planes
from tilejit.layout.cute_shape import Spec, retyped
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, lookup
from tilejit.layout.formats.examples import example_planes
from tilejit.layout.formats.packings import elements_of, field_blocking
from tilejit.layout.formats.spelling import blocked_shape
from tilejit.layout.indexing import linear_index
from tilejit.recognize.formats.candidates import ROW_MAJOR, Candidate
from tilejit.recognize.formats.changes import Index
from tilejit.recognize.formats.places import (
    FieldPlaces,
    Part,
    bit_places,
    decoded,
    places_in_fields,
)
from tilejit.recognize.formats.storage import Storage, holds
from tilejit.tiled.tiled_array import TiledArray

BYTE = 8
"""Rows of codes of any width that end with a byte."""
ROWS = (16, 32, 64, 128, 256)
"""Numbers of rows; the first rows are compared that no other row changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Where a format puts the elements of an array, or of its main plane.

    Attributes:
        candidate: the format.
        storage: the type of the stored elements.
        dims: the dimensions of the array.
        buffer: the name of the buffer; empty for a layout of one array.
        size: the bytes of the buffer.
        inner: the dimensions of the buffer's elements, if it holds no others and can be packed again.
        fields: the places of the elements; empty if `spec` has them, or if whole-array steps pack them.
        spec: the layout, if a rule or a function decides it.
        packing: planes and fields; None if there is one plane in one buffer.
        table: the stored code of each code, -1 for one that is never stored; None if all are stored as they
            are.
        padding: the stored value of padding elements.
    """

    candidate: Candidate
    storage: Storage
    dims: tuple[int, ...]
    buffer: str
    size: int
    inner: tuple[int, ...] | None
    fields: tuple[FieldPlaces, ...] = ()
    spec: Spec | None = None
    packing: Packing | None = None
    table: Array | None = None
    padding: int = 0

    @property
    def bits(self) -> int:
        """The width of an element."""
        return self.storage.bits

    @property
    def codes(self) -> tuple[int, int] | None:
        """The least and the greatest code that the format holds; None if it holds all values of the array.

        Signed values may be stored in a format of unsigned codes by their bits, and the other way round.
        """
        if not self.storage.is_code or self.storage.span is None:
            return None
        (low, high), count = self.storage.span, 1 << self.bits
        plane = None if self.packing is None else self.packing.main
        least = plane.low if plane is not None and plane.low > 0 else 0
        ranges = (least, least + count - 1), (-(count >> 1), (count >> 1) - 1)
        if any(first <= low and high <= last for first, last in ranges[: 1 if least else 2]):
            return None
        return ranges[1 if plane is not None and plane.code_range[0] < 0 else 0]

    @property
    def is_part(self) -> bool:
        """Whether the format has further buffers."""
        return self.packing is not None and len(self.packing.buffers) > 1

    def others(self, given: frozenset[str]) -> tuple[object, ...]:
        """What some buffers hold beside the elements: for each field its text, and the form of its planes."""
        packing = self.packing
        if packing is None or len(packing.planes) == 1:
            return ()
        given |= {self.buffer}
        fields = [f for f in packing.fields if f.buffer in given and packing.main.name not in f.planes]
        forms = (self.form(packing.plane(name)) for field in fields for name in field.planes)
        return (*(field_text(packing, field) for field in fields), *forms)

    def form(self, plane: Plane) -> tuple[object, ...]:
        """What tells a plane of the format from others, whatever text says its extents."""
        assert self.packing is not None
        sizes = self.packing.sizes(self.dims, self.candidate.name)
        return plane.name, plane.bits, plane.dtype, plane.low, plane.signed, extents(plane.axes, sizes)

    @property
    def has_places(self) -> bool:
        """Whether elements have places in the buffer; no whole-array steps pack them."""
        return bool(self.fields) or self.spec is not None

    @property
    def first_rows(self) -> int:
        """A number of rows whose bytes are the first ones of the buffer, as those of its multiples; or 0."""
        if self.candidate is ROW_MAJOR:
            return BYTE
        packing = self.candidate.example_packing
        if packing is None or packing.steps:
            return 0
        return first_rows(self.candidate, self.buffer or packing.buffers[0], len(self.dims))

    def of_rows(self, rows: int) -> Order | None:
        """The order of an array with so many rows; None if the format does not take it."""
        return order_of(self.candidate, self.storage, (rows, *self.dims[1:]))

    def of_columns(self, columns: int) -> Order | None:
        """The order of an array with so many columns; None if the format does not take it."""
        return order_of(self.candidate, self.storage, (*self.dims[:-1], columns))

    def parts(self, index: Index) -> tuple[Part, ...]:
        """The places of some elements."""
        if self.spec is not None:
            return (Part(np.asarray(linear_index(self.spec, index)) * self.bits, 0, self.bits),)
        return tuple(part for field in self.fields for part in field.parts(index))

    def unpacked(self, data: Array, buffers: Mapping[str, Array]) -> Array:
        """All elements of a buffer of `size` bytes; codes as uint8.

        Args:
            data: the buffer.
            buffers: all buffers by name, for steps that need several.

        Raises:
            LayoutError: the buffer holds what the format never stores.
        """
        if self.packing is not None:
            return self._main_plane(data, buffers)
        spec = self.spec
        if self.candidate is ROW_MAJOR and self.bits >= 8 and data.ctypes.data % max(1, self.bits // 8) == 0:
            dtype: Any = np.uint8 if self.storage.is_code else self.storage.element.numpy
            elements: Array = data.view(dtype).reshape(self.dims)
            return elements
        if spec is None:
            (field,) = self.fields
            if self.bits not in (1, 2, 4) and self.bits < 8:
                return self._stream(data)
            spec = blocked_shape(field.blocking, self._element, self.bits % 8 if self.bits < 8 else 0)
        found = TiledArray(data if spec.packed else data.view(spec.dtype), spec).unpack()
        if self.storage.is_code:
            found = found.view(np.uint8)
            found &= np.uint8((1 << self.bits) - 1)
        return found

    def unpacked_again(self, elements: Array, buffers: Mapping[str, Array]) -> Array:
        """All elements of a buffer whose elements were read in their own order; codes as uint8."""
        spec, code = self.spec, self.storage.is_code
        if spec is not None or (len(self.fields) == 1 and self.fields[0].is_plain):
            byte = lookup("u8") if code else self.storage.element
            spec = retyped(spec, byte.name) if spec else blocked_shape(self.fields[0].blocking, byte, 0)
            found = TiledArray(elements, spec).unpack()
            return found if self.table is None else decoded(found, np.ones((), bool), self.table)[0]
        return self.unpacked(pack_stream(elements, self.bits), buffers)

    @property
    def _element(self) -> PrimitiveType:
        """The type of the elements in the buffer; that of codes has their width."""
        bits = self.bits
        return (
            PRIMITIVE_TYPES[f"u{bits}"] if bits < 8 else lookup("u8") if bits == 8 else self.storage.element
        )

    def _stream(self, data: Array) -> Array:
        return unpack_stream(data, self.bits, prod(self.dims)).reshape(self.dims)

    def _main_plane(self, data: Array, buffers: Mapping[str, Array]) -> Array:
        packing, own = self.packing, self.candidate
        assert packing is not None
        known = {name: rest for name, rest in buffers.items() if packing.steps and name in packing.buffers}
        named = {**known, self.buffer: data}
        free = _free(packing, self.storage)
        found = unpack_planes(named, own.name, self.dims, free, dict(own.parameters))
        main: Array = found[packing.main.name] if isinstance(found, dict) else found
        low, high = packing.main.code_range if packing.main.bits else (-1, -1)
        if not self.storage.is_code or (low >= 0 and not high >> self.bits):
            return main
        return self.storage.raw(main).reshape(self.dims)

    def packed(self, codes: Array) -> Array:
        """The buffer of codes modulo 2**bits, or of wide elements; other planes are random."""
        assert self.packing is not None
        plane = self.packing.main
        if plane.bits:
            low, _ = plane.code_range
            numbers = (codes.astype(np.int16) - low) % (1 << plane.bits) + low
            codes = numbers.astype(plane.array_dtype)
        return packed_at_random(self.candidate, self.packing, self.dims, codes)[self.buffer]

    def rounded(self, array: Array) -> Array:
        """The array as the format stores it."""
        if self.packing is None or not self.packing.rounds:
            return array
        packed: Any = pack_planes(array, self.candidate.name, dict(self.candidate.parameters))
        found: Array = packed.unpack()
        return found


@cached(1 << 13)
def order_of(candidate: Candidate, storage: Storage, dims: tuple[int, ...]) -> Order | None:
    """The order of an array in a format; None if the format does not take it."""
    if candidate is ROW_MAJOR:
        if storage.cast and storage.bits < 8:
            return None
        blocking = field_blocking(Field(()), dims)
        size = -(-prod(dims) * storage.bits // 8)
        return Order(candidate, storage, dims, "", size, None, (_whole(blocking, storage.bits, size),))
    example = candidate.example_packing
    if example is not None and not holds(example.main, storage):
        return None
    try:
        packing = candidate.packing(storage.element, dims)
        if packing is None:
            return _order_of_rule(candidate, storage, dims)
        if not holds(packing.main, storage):
            return None
        if packing.is_layout:
            return _order_of_layout(candidate, packing, storage, dims)
        return _order_of_planes(candidate, packing, storage, dims)
    except LayoutError:
        return None


def _order_of_rule(candidate: Candidate, storage: Storage, dims: tuple[int, ...]) -> Order | None:
    spec = candidate.layout(storage.element, dims)
    if spec is None or spec.bits != storage.bits:
        return None
    inner = dims if prod(dims) == spec.physical_size else None
    return Order(candidate, storage, dims, "", spec.size_in_bytes, inner, spec=spec)


def _order_of_layout(
    candidate: Candidate, packing: Packing, storage: Storage, dims: tuple[int, ...]
) -> Order:
    (field,) = packing.fields
    packing.sizes(dims, candidate.name)
    blocking = field_blocking(field, dims)
    size = -(-prod(blocking.padded) * storage.bits // 8)
    fields = (_whole(blocking, storage.bits, size),)
    return Order(candidate, storage, dims, "", size, blocking.padded, fields, padding=field.padding)


def _whole(blocking: object, bits: int, size: int) -> FieldPlaces:
    return FieldPlaces(blocking, bits, 0, None, None, 0, size, size)  # type: ignore[arg-type]


def _order_of_planes(
    candidate: Candidate, packing: Packing, storage: Storage, dims: tuple[int, ...]
) -> Order | None:
    main = packing.main
    sizes = packing.sizes(dims, candidate.name)
    found = places_in_fields(packing, main.name, sizes, elements_of(packing.planes, _free(packing, storage)))
    if found is None:
        return None
    fields, buffer, size = found
    if not fields and (storage.cast or not candidate.is_opaque):
        return None
    padded = fields[0].padded if len(fields) == 1 else dims
    alone = len(packing.planes) == 1 and -(-prod(padded) * storage.bits // 8) == size
    inner = padded if alone and (fields or storage.is_code) else None
    field = next(field for field in packing.fields if main.name in field.planes)
    table = _table(main, field, storage.bits) if fields else None
    return Order(candidate, storage, dims, buffer, size, inner, fields, None, packing, table, field.padding)


@cached(1 << 10)
def first_rows(candidate: Candidate, buffer: str, rank: int) -> int:
    """The least number of first rows whose bytes are the first ones of a buffer; 0 if there is none."""
    packing, example = candidate.example_packing, candidate.found and candidate.found.example
    assert packing is not None
    assert example
    (_, *rest), _ = example
    if rank > len(rest) + 1:
        return 1
    for rows in ROWS:
        try:
            few, many = (packed_at_random(candidate, packing, (n, *rest))[buffer] for n in (rows, 2 * rows))
        except LayoutError:  # not a multiple
            continue
        if np.array_equal(few, many[: few.size]):
            return rows
    return 0


def packed_at_random(
    candidate: Candidate, packing: Packing, dims: tuple[int, ...], main: Array | None = None
) -> dict[str, Array]:
    """The bytes of each buffer, of random planes whose first rows do not depend on the number of rows.

    Args:
        candidate: the format.
        packing: its planes and fields.
        dims: the dimensions of the main plane.
        main: the main plane, if it is not random.
    """

    def values(shape: tuple[int, ...], number: int, seed: int) -> Array:
        return np.random.default_rng(seed).integers(0, number, shape)

    planes = example_planes(packing, packing.sizes(dims, candidate.name), lookup("f16"), values)
    if main is not None:
        planes[packing.main.name] = main
    packed = pack_planes(planes, candidate.name, dict(candidate.parameters)).buffers
    return {name: np.ascontiguousarray(data).reshape(-1).view(np.uint8) for name, data in packed.items()}


def _free(packing: Packing, storage: Storage) -> PrimitiveType:
    """The type of planes which take any: the array's if the main one does."""
    return storage.element if packing.main.is_free else lookup("f16")


def _table(plane: Plane, field: Field, bits: int) -> Array | None:
    """The stored code of each code modulo 2**bits; None if all are stored as they are."""
    if not plane.bits or not (plane.low or plane.levels or field.values):
        return None
    mask = (1 << bits) - 1
    codes = np.arange(plane.levels or mask + 1, dtype=np.uint8)
    stored = field.values.encode(codes) if field.values else codes
    table = np.full(mask + 1, -1, np.int16)
    table[codes.astype(np.int64) + plane.low & mask] = stored.astype(np.int64) & mask
    return table


def again(order: Order) -> Order | None:
    """The order of a second application to the elements of the buffer; None if there is none."""
    if order.inner is None:
        return None
    return order_of(order.candidate, order.storage, order.inner)


def parts_of_both(first: Order, second: Order, index: Index) -> tuple[Part, ...]:
    """The places of elements after two applications."""
    parts, bits = first.parts(index), first.bits
    assert first.inner is not None
    if len(parts) == 1 and (8 % bits == 0 or bits > 8 or first.fields[0].is_plain):
        return second.parts(np.unravel_index(parts[0].places // bits, first.inner))
    places = bit_places(parts, bits)
    out = []
    for bit, place in enumerate(places):
        inner = second.parts(np.unravel_index(place // bits, first.inner))
        rows = bit_places(inner, bits)
        out.append(Part(np.take_along_axis(rows, (place % bits)[None], 0)[0], bit, 1))
    return tuple(out)
