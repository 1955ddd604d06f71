"""Guesses without an original: from the size of a buffer, its padding, and the scales in its records."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing, Sizes, extents
from tilejit.copies.planes import buffer_sizes
from tilejit.layout.dtypes import PrimitiveType, lookup
from tilejit.layout.formats.packings import elements_of
from tilejit.recognize.formats.candidates import Candidate, candidates
from tilejit.recognize.formats.groups import padding_index
from tilejit.recognize.formats.identification import Identification, Match
from tilejit.recognize.formats.orders import order_of
from tilejit.recognize.formats.other_planes import Planes
from tilejit.recognize.formats.places import places_in_fields, read
from tilejit.recognize.formats.storage import Storage

MOST_SCALES = 4096
"""Scales of a plane that are looked at."""
LEAST_SCALES = 8
PLAUSIBLE_SCALE = (2.0**-24, 2.0**7)
"""Magnitudes that scales of quantized weights have; those of random bits lie outside in a third of cases."""
SCALES = ("f16", "bf16", "f32")
SHOWN = 8

Row = tuple[float, Match]
"""A match, and how plausible it is."""


def guess(planes: Planes, dims: tuple[int, ...] | None, element: PrimitiveType | None) -> Identification:
    """Rank the formats that buffers may be in, the most plausible first.

    Args:
        planes: the buffers.
        dims: the dimensions of the array, if they are known.
        element: its element type, if it is known.
    """
    found: list[Row] = []
    for candidate in candidates():
        packing = candidate.example_packing
        if packing is not None and not packing.is_layout:
            found += _of_planes(candidate, packing, planes, dims)
        elif dims is not None and len(planes.buffers) == 1:
            found += _of_layout(candidate, next(iter(planes.buffers.values())), dims, element)
    found.sort(key=lambda row: -row[0])
    return Identification("guess" if found else "unknown", tuple(match for _, match in found[:SHOWN]))


def _match(candidate: Candidate, note: str) -> Match:
    return Match(candidate.name, candidate.parameters, agreement=None, note=note)


def _of_layout(
    candidate: Candidate, data: Array, dims: tuple[int, ...], element: PrimitiveType | None
) -> Iterator[Row]:
    """A layout whose buffer has the size, if its padding is uniform."""
    for storage in _storages(element):
        order = order_of(candidate, storage, dims)
        if order is None or not order.has_places or order.size != data.size:
            continue
        padded = order.inner or dims
        index = padding_index(dims, padded)
        if index is None:
            yield 0.1, _match(candidate, "the size fits")
            continue
        found, inside = read(data, order.parts(index))
        values = np.unique(found[inside], axis=0)
        if len(values) == 1:
            number, count = int.from_bytes(values[0].tobytes(), "little"), prod(padded) - prod(dims)
            note = f"the size fits, and sampled padding, of {count} elements, holds {number}"
            yield min(1.0, 0.2 + count / 64), _match(candidate, note)


def _storages(element: PrimitiveType | None) -> tuple[Storage, ...]:
    """The types in which elements may be stored: their own, and as codes."""
    own = lookup("u8") if element is None else element
    widths = (own.storage_bits, *((1, 2, 4) if own.name in ("u8", "s8") else (own.bits,) * (own.bits < 8)))
    return tuple(Storage(own.codes(bits), bits) for bits in widths)


def _of_planes(
    candidate: Candidate, packing: Packing, planes: Planes, dims: tuple[int, ...] | None
) -> Iterator[Row]:
    """A format of planes whose buffers have the sizes, if its scales are plausible."""
    buffers = dict(planes.buffers)
    if len(buffers) == 1:
        buffers = dict(zip(packing.buffers[:1], buffers.values(), strict=True))
    if {*buffers} != {*packing.buffers}:
        return
    own = dict(candidate.parameters)
    wanted = dims or _fitting_dims(candidate, packing, sum(data.size for data in buffers.values()))
    if wanted is None:
        return
    try:
        sizes = buffer_sizes(candidate.name, wanted, lookup("f16"), own)
        if any(sizes[name] != data.size for name, data in buffers.items()):
            return
        count, share = _plausible_scales(packing, buffers, packing.sizes(wanted, candidate.name))
    except LayoutError:
        return
    if count >= LEAST_SCALES and share > 0.99:
        note = f"the size fits, and {count} sampled scales are plausible"
        yield 0.5 + min(count, 256) / 512, _match(candidate, note)
    elif not count and dims is not None:
        yield 0.1, _match(candidate, "the size fits")


def _fitting_dims(candidate: Candidate, packing: Packing, size: int) -> tuple[int, ...] | None:
    """Dimensions of an array whose buffers have that many bytes together: few rows, and many columns."""
    axes = [axis for axis in packing.main.axes.split() if axis != "..."]
    least = tuple(packing.multiples.get(axis, 1) for axis in axes)
    try:
        sizes = buffer_sizes(candidate.name, least, lookup("f16"), dict(candidate.parameters))
    except LayoutError:
        return None
    block = sum(sizes.values())
    if not block or size % block or prod(least) == 0 or not least:
        return None
    return (*least[:-1], least[-1] * (size // block))


def _plausible_scales(packing: Packing, buffers: dict[str, Array], sizes: Sizes) -> tuple[int, float]:
    """The number of sampled scales, and the share of plausible ones."""
    elements = elements_of(packing.planes, lookup("f16"))
    values: list[Any] = []
    for plane in packing.planes:
        if plane.dtype not in SCALES:
            continue
        found = places_in_fields(packing, plane.name, sizes, elements)
        dims = extents(plane.axes, sizes)
        if found is None or len(found[0]) != 1 or not prod(dims):
            continue
        (field,), buffer, _ = found
        numbers = np.random.default_rng(0).integers(0, prod(dims), min(MOST_SCALES, prod(dims)))
        rows, _ = read(buffers[buffer], field.parts(np.unravel_index(numbers, dims)))
        numpy: Any = elements[plane.name].numpy
        values.append(np.ascontiguousarray(rows).reshape(-1).view(numpy).astype(np.float64))
    if not values:
        return 0, 0.0
    scales = np.concatenate(values)
    size = np.abs(scales[np.isfinite(scales)])
    low, high = PLAUSIBLE_SCALE
    good = (size == 0) | ((size >= low) & (size <= high))
    return scales.size, float(np.sum(good)) / scales.size
