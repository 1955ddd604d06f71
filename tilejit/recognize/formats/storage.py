"""How the values of an array may be stored, as they are, as narrow codes or cast; and samples of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Plane
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, from_numpy, lookup
from tilejit.recognize.formats.changes import Index

CASTS = {
    "float": ("f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"),
    "signed": ("u8", "s8", "s16", "s32", "s64"),
    "unsigned": ("u8", "s8", "u16", "s32", "u32", "s64"),
    "pred": ("u8", "s32", "f32"),
}
"""Dtypes in which values of a kind are often stored, if not in their own."""
LARGE, KINDS = 64, 16
"""The elements of a large slice, and the most kinds of many such slices that leave their order open."""
SLICES, FEW = 64, 256
"""The slices that are compared first, and the elements of each."""
POOL = 1 << 15
"""Random elements among which rare values are sought."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A type in which the values of an array are stored.

    Attributes:
        element: the type of the stored elements.
        bits: their width in the buffer.
        cast: whether it is another type than the array's, not only narrower codes.
        span: the least and the greatest value of an array of integers; None if it holds others, or for a
            cast.
    """

    element: PrimitiveType
    bits: int
    cast: bool = False
    span: tuple[int, int] | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether elements are stored in fewer bits than a byte."""
        return self.bits < 8

    @property
    def is_code(self) -> bool:
        """Whether elements are at most a byte, so that a uint8 holds their bits."""
        return self.bits <= 8

    @property
    def text(self) -> str:
        """The change, in words."""
        return f"cast to {self.element.name}" if self.cast else ""

    def raw(self, values: Array) -> Array:
        """The stored bits of some values: a uint8 for each code, or a row of bytes for each wide element."""
        if self.cast:
            with np.errstate(all="ignore"):
                if values.itemsize == 1 and values.dtype.kind == "V":  # ml_dtypes casts them to few dtypes
                    values = values.astype(np.float32)
                values = values.astype(self.element.numpy)
        if self.is_code:
            small = values if values.itemsize == 1 else values.astype(np.int64).astype(np.uint8)
            return small.reshape(-1).view(np.uint8) & np.uint8((1 << self.bits) - 1)
        rows = np.ascontiguousarray(values).reshape(-1)
        return rows.view(np.uint8).reshape(rows.size, -1)


def storages(array: Array) -> tuple[Storage, ...]:
    """The array's own type, and all widths of codes of as many values as it has, if not always the same."""
    element, span = from_numpy(array.dtype), _span(array)
    own = Storage(element, element.storage_bits, span=span)
    if span is None:
        narrow = element.bits < 8
        return (own, Storage(element, element.bits)) if narrow else (own,)
    low, high = span
    sign = "s" if low < 0 else "u"
    # Codes that are stored minus 1 are as great as 2**bits. An Order knows which codes its format holds.
    fitting = [b for b in range(1, 9) if high - low < 1 << b and -(1 << b - 1) <= low and high <= 1 << b]
    types = ((PRIMITIVE_TYPES.get(f"{sign}{b}", lookup("u8")), b) for b in fitting if b != own.bits)
    return (own, *(Storage(code, b, span=span) for code, b in types))


def _span(array: Array) -> tuple[int, int] | None:
    """The least and the greatest value of integers; None for other values."""
    element = from_numpy(array.dtype)
    if element.kind not in ("signed", "unsigned", "pred"):
        return None
    own = np.uint8 if element.name == "pred" else element.byte_dtype or array.dtype
    numbers = array.view(own)
    return int(numbers.min()), int(numbers.max())


def casts(array: Array) -> Iterator[Storage]:
    """Other types in which the values may be stored: integers in types that hold all of them."""
    element, span = from_numpy(array.dtype), _span(array)
    for name in CASTS.get(element.kind, ()):
        stored: Any = lookup(name).numpy
        if span is not None and np.dtype(stored).kind in "iu":
            least, greatest = np.iinfo(stored).min, np.iinfo(stored).max
            if span[0] < least or span[1] > greatest:
                continue
        if name != element.name and not (element.bits <= 8 and name.startswith("f8")):
            yield Storage(lookup(name), lookup(name).storage_bits, cast=True)


def holds(plane: Plane, storage: Storage) -> bool:
    """Whether elements may be those of a plane: codes of its width, or of its dtype."""
    if plane.bits:
        return storage.bits == plane.bits and not storage.cast
    if not plane.dtype:
        return storage.bits >= 8 or storage.bits in (1, 2, 4)
    element = storage.element
    own = lookup(plane.dtype)
    return element.name == plane.dtype or (own.bits == 8 == storage.bits and not storage.cast)


def sampled_index(array: Array, storage: Storage, count: int) -> Index:
    """Indices of elements that tell orders apart; all of them if there are at most `count`.

    Half of the elements have values that are rare, because those that most elements have agree by chance. The
    others are random, or neighbors.

    Args:
        array: the array.
        storage: the type that distinguishes its values.
        count: about how many.
    """
    size = array.size
    if size <= count:
        return whole_index(array.shape)
    rng = np.random.default_rng(0)
    neighbors = (rng.integers(size) + np.arange(count // 8)) % size
    pool = rng.integers(0, size, POOL)
    raw = storage.raw(array[np.unravel_index(pool, array.shape)])
    if raw.ndim > 1:
        raw = raw.astype(np.uint64) @ rng.integers(1, 1 << 63, raw.shape[1], np.uint64)
    _, inverse, counts = np.unique(raw, return_inverse=True, return_counts=True)
    keys = rng.exponential(counts[inverse.reshape(-1)].astype(np.float64))
    rare = pool[np.argsort(keys)[: count // 2]]
    others = rng.integers(0, size, count - rare.size - neighbors.size)
    return np.unravel_index(np.concatenate([rare, neighbors, others]), array.shape)


def chance(raw: Array) -> float:
    """The share of elements that agree if they are in no order: the sum of squared frequencies."""
    _, counts = np.unique(raw, axis=0, return_counts=True)
    return float(np.sum((counts / len(raw)) ** 2))


def repeated_axis(array: Array) -> int | None:
    """An axis whose slices are all equal, or many large ones of few kinds; None if there is none.

    Nothing tells the order of equal slices. Samples rule out most axes.
    """
    rng = np.random.default_rng(0)
    for axis, size in enumerate(array.shape):
        most = max(1, min(size >> 3, KINDS) if array.size >= LARGE * size else 0)
        if size == 1:
            continue
        slices = np.unique(np.concatenate([[0, size - 1], rng.integers(0, size, SLICES)]))
        index = [rng.integers(0, extent, (1, FEW)) for extent in array.shape]
        index[axis] = slices[:, None]
        if _are_of(most, array[tuple(index)]) and _are_of(most, np.moveaxis(array, axis, 0)):
            return axis
    return None


def _are_of(kinds: int, rows: Array) -> bool:
    """Whether there are at most so many different rows."""
    rest = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    for _ in range(kinds):
        if len(rest):
            rest = rest[(rest != rest[0]).any(axis=1)]
    return not len(rest)


def whole_index(dims: tuple[int, ...]) -> Index:
    """The index of every element."""
    return np.unravel_index(np.arange(prod(dims)), dims)
