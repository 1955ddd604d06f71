"""Comparisons of all elements: by their places in a small array, by unpacking the buffer of a large one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.recognize.formats.changes import Change, Index
from tilejit.recognize.formats.orders import Order
from tilejit.recognize.formats.readings import ValueChange, read
from tilejit.recognize.formats.samples import whole_index
from tilejit.recognize.formats.scores import Score
from tilejit.recognize.formats.storage import Storage

SMALL = 1 << 18
"""Elements up to which places are computed; beyond, a kernel unpacks the buffer."""
CHUNK = 1 << 20
"""Elements that are compared at a time."""
KEPT = 64
"""Differences whose indices are kept."""

Difference = tuple[tuple[int, ...], Any, Any]
"""The index of an element, the value found and the right one."""


class Comparison(NamedTuple):
    """All elements of a buffer beside those of the array.

    Attributes:
        agreement: the share of elements that agree.
        first: the first difference; None if there is none.
        differing: the indices of some elements that differ.
    """

    agreement: float
    first: Difference | None
    differing: Index


def compare(score: Score, data: Array, array: Array) -> Comparison:
    """Compare all elements, in the way in which a score read some."""
    if array.size <= SMALL:
        return _by_places(score, data, array)
    return _by_unpacking(score, data, array)


def _by_places(score: Score, data: Array, array: Array) -> Comparison:
    trial, way = score.trial, score.reordering
    index, storage = whole_index(array.shape), trial.storage
    size = trial.last.size
    parts = tuple(way.part(part, size) for part in trial.parts(index))
    found, inside = read(data, parts, trial.table)
    found = score.change.undone(found, storage.bits)
    wanted = storage.raw(array)
    same = (found == wanted).all(axis=-1) if found.ndim > 1 else found == wanted
    same &= inside
    wrong = np.flatnonzero(~same)
    if not wrong.size:
        return Comparison(1.0, None, ())
    present = np.flatnonzero(~same & inside)
    first = None
    if present.size:
        at = int(present[0])
        first = _shown(tuple(int(axis[at]) for axis in index), found[at], wanted[at], storage, array)
    some = wrong[:: -(-wrong.size // KEPT)]
    return Comparison(1 - wrong.size / array.size, first, tuple(axis[some] for axis in index))


def _by_unpacking(score: Score, data: Array, array: Array) -> Comparison:
    trial, way, storage = score.trial, score.reordering, score.trial.storage
    whole, missing = _fitted(data, trial.last, way.shift)
    whole = way.restored(whole)
    found = _unpacked(score, whole)
    absent = None
    if missing is not None:
        absent = _unpacked(score, missing)
    sides = Sides(storage, score.change, trial.change, array)
    return compare_arrays(found, sides, absent)


def _fitted(data: Array, order: Order, shift: int) -> tuple[Array, Array | None]:
    """The bytes of the format's buffer, and ones where they are missing."""
    start, stop = max(shift, 0), min(data.size, shift + order.size)
    if stop - start == order.size:
        return data[start:stop].copy() if start else data[start:stop], None
    whole, missing = np.zeros(order.size, np.uint8), np.full(order.size, 255, np.uint8)
    whole[start - shift : stop - shift] = data[start:stop]
    missing[start - shift : stop - shift] = 0
    return whole, missing


def _unpacked(score: Score, whole: Array) -> Array:
    """All elements in the order of the changed array."""
    trial, storage = score.trial, score.trial.storage
    if score.change.kind == "bytes":
        whole = whole.reshape(-1, storage.bits // 8)[:, ::-1].reshape(-1)
    found = trial.last.unpacked(whole)
    return found if trial.second is None else trial.first.unpacked_again(found.reshape(-1))


class Sides(NamedTuple):
    """The array beside which elements are compared.

    Attributes:
        storage: the type in which its values are stored.
        values: how the values of the buffer were changed.
        change: the change of its order before packing.
        array: the array.
    """

    storage: Storage
    values: ValueChange
    change: Change
    array: Array

    def equal(self, found: Array, wanted: Array) -> tuple[Array, Array, Array]:
        """Whether elements are equal, and the bits of both."""
        right = self.storage.raw(wanted)
        if self.storage.is_code:
            got = self.values.undone(found.reshape(-1).view(np.uint8), self.storage.bits)
            return got == right, got, right
        got = np.ascontiguousarray(found).reshape(-1).view(np.uint8).reshape(found.size, -1)
        return _rows_equal(got, right), got, right


def compare_arrays(found: Array, sides: Sides, absent: Array | None = None) -> Comparison:
    """Compare arrays in chunks of rows.

    Args:
        found: the elements of the buffer, in the order of the changed array.
        sides: what they are compared with.
        absent: an array that is not 0 where the buffer lacks bytes; None if it has all.
    """
    dims, wanted = found.shape, sides.change.apply(sides.array)
    if found.flags.c_contiguous and wanted.flags.c_contiguous:
        found, wanted = found.reshape(-1), wanted.reshape(-1)
        absent = None if absent is None else absent.reshape(-1)
    each = max(1, found[0].size)
    rows = max(1, CHUNK // each)
    wrong: list[Array] = []
    first: Difference | None = None
    count = 0
    for start in range(0, len(found), rows):
        same, got, right = sides.equal(found[start : start + rows], wanted[start : start + rows])
        there: Array = np.ones(same.size, bool)
        if absent is not None:
            part = np.ascontiguousarray(absent[start : start + rows]).view(np.uint8)
            there = np.all(part.reshape(same.size, -1) == 0, axis=1)
        same &= there
        if same.all():
            continue
        at = np.flatnonzero(~same)
        count += at.size
        if len(wrong) < KEPT:
            wrong.append(at[:: -(-at.size // 8)] + start * each)
        present = at[there[at]]
        if first is None and present.size:
            index = _origin(sides, dims, present[:1] + start * each)
            where = tuple(int(axis[0]) for axis in index)
            first = _shown(where, got[present[0]], right[present[0]], sides.storage, sides.array)
    if not count:
        return Comparison(1.0, None, ())
    return Comparison(1 - count / found.size, first, _origin(sides, dims, np.concatenate(wrong)))


def _origin(sides: Sides, dims: tuple[int, ...], numbers: Array) -> Index:
    """The indices in the array of elements of the changed one."""
    return sides.change.origin(tuple(np.unravel_index(numbers, dims)))


def _rows_equal(found: Array, wanted: Array) -> Array:
    """Whether rows of bytes are equal."""
    width = found.shape[1]
    if width in (2, 4, 8):
        same: Array = found.view(f"u{width}")[:, 0] == wanted.view(f"u{width}")[:, 0]
        return same
    same = (found == wanted).all(axis=1)
    return same


def _shown(index: tuple[int, ...], found: Array, wanted: Array, storage: Storage, array: Array) -> Difference:
    """A difference with values as the array has them."""

    def value(raw: Array) -> Any:
        if not storage.is_code:
            dtype: Any = storage.element.numpy if storage.cast else array.dtype
            return np.ascontiguousarray(raw).view(dtype)[0].item()
        if storage.bits == 8 and array.dtype.itemsize == 1:
            return np.array([raw], np.uint8).view(array.dtype)[0].item()
        number = int(raw)
        signed = array.dtype.kind == "i" or array.dtype.name.startswith("int")
        return number - (1 << storage.bits) if signed and number >> storage.bits - 1 else number

    return index, value(found), value(wanted)
