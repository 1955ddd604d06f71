"""Guesses without an original: from the size of a buffer, its padding, and the scales in its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing
from tilejit.copies.planes import buffer_sizes, unpack_planes
from tilejit.layout.dtypes import PrimitiveType, lookup
from tilejit.recognize.candidates import Candidate, candidates
from tilejit.recognize.identification import Identification, Match
from tilejit.recognize.orders import order_of
from tilejit.recognize.padded import padding_index
from tilejit.recognize.readings import read
from tilejit.recognize.storage import Storage

MOST_RECORDS = 4096
"""Records whose scales are looked at."""
LEAST_RECORDS = 8
PLAUSIBLE_SCALE = (2.0**-24, 2.0**7)
"""Magnitudes that scales of quantized weights have; those of random bits lie outside in a third of cases."""
SHOWN = 8


def guess(
    buffers: Mapping[str, Array], dims: tuple[int, ...] | None, element: PrimitiveType | None
) -> Identification:
    """Rank the formats that a buffer may be in, the most plausible first.

    Args:
        buffers: flat bytes by name; one buffer may have the empty name.
        dims: the dimensions of the array, if they are known.
        element: its element type, if it is known.
    """
    found: list[tuple[float, Match]] = []
    for candidate in candidates():
        packing = candidate.example_packing
        if packing is not None and not packing.is_layout:
            found += _records(candidate, packing, buffers, dims)
        elif dims is not None and len(buffers) == 1:
            found += _padded(candidate, next(iter(buffers.values())), dims, element)
    found.sort(key=lambda row: -row[0])
    plausible = tuple(match for score, match in found if score > 0)[:SHOWN]
    return Identification("guess" if plausible else "unknown", plausible)


def _match(candidate: Candidate, note: str) -> Match:
    return Match(candidate.name, candidate.parameters, note=note)


def _padded(
    candidate: Candidate, data: Array, dims: tuple[int, ...], element: PrimitiveType | None
) -> Iterator[tuple[float, Match]]:
    """A layout whose buffer has the size, if its padding is uniform."""
    for storage in _storages(element):
        order = order_of(candidate, storage, dims)
        if order is None or order.size != data.size:
            continue
        index = padding_index(dims, order.inner or dims)
        if index is None:
            yield 0.1, _match(candidate, "the size fits")
            continue
        found, inside = read(data, order.parts(index), None)
        values = np.unique(found[inside], axis=0)
        if len(values) == 1:
            value = int.from_bytes(values[0].tobytes(), "little")
            count = prod(order.inner or dims) - prod(dims)
            note = f"sampled padding, of {count} slots, holds {value}"
            yield min(1.0, 0.2 + count / 64), _match(candidate, note)


def _storages(element: PrimitiveType | None) -> tuple[Storage, ...]:
    """The types in which elements may be stored: their own, and as codes."""
    own = lookup("u8") if element is None else element
    widths = (own.storage_bits, *((1, 2, 4) if own.name in ("u8", "s8") else (own.bits,) * (own.bits < 8)))
    return tuple(Storage(own.codes(bits), bits) for bits in widths)


def _records(
    candidate: Candidate, packing: Packing, buffers: Mapping[str, Array], dims: tuple[int, ...] | None
) -> Iterator[tuple[float, Match]]:
    """A format of planes whose buffers have the sizes, if its scales are plausible."""
    named = {packing.buffers[0] if name == "" else name: data for name, data in buffers.items()}
    if {*named} != {*packing.buffers}:
        return
    own = dict(candidate.parameters)
    wanted = dims or _fitting_dims(candidate, packing, sum(data.size for data in named.values()))
    if wanted is None:
        return
    try:
        sizes = buffer_sizes(candidate.name, wanted, None, own)
    except LayoutError:
        return
    if any(sizes[name] != data.size for name, data in named.items()):
        return
    floats = [plane.name for plane in packing.planes if plane.dtype in ("f16", "bf16", "f32")]
    if not floats:
        if dims is not None:
            yield 0.1, _match(candidate, "the size fits")
        return
    try:
        planes: Any = unpack_planes(named, candidate.name, wanted, None, own)
    except LayoutError:  # the buffer holds what the format never stores
        return
    if not isinstance(planes, Mapping):  # the array of a format of one plane
        planes = {packing.main.name: planes}
    scales = np.concatenate([planes[name].reshape(-1)[:MOST_RECORDS].astype(np.float64) for name in floats])
    size = np.abs(scales[np.isfinite(scales)])
    low, high = PLAUSIBLE_SCALE
    share = float(np.sum((size == 0) | ((size >= low) & (size <= high)))) / max(1, scales.size)
    if scales.size >= LEAST_RECORDS and share > 0.99:
        yield 0.5 + min(scales.size, 256) / 512, _match(candidate, f"{scales.size} scales are plausible")


def _fitting_dims(candidate: Candidate, packing: Packing, size: int) -> tuple[int, ...] | None:
    """Dimensions of an array whose buffers have that many bytes together: few rows, and many columns."""
    axes = [axis for axis in packing.main.axes.split() if axis != "..."]
    least = tuple((packing.multiples or {}).get(axis, 1) for axis in axes)
    try:
        sizes = buffer_sizes(candidate.name, least, None, dict(candidate.parameters))
    except LayoutError:
        return None
    block = sum(sizes.values())
    if not block or size % block or prod(least) == 0:
        return None
    return (*least[:-1], least[-1] * (size // block))
