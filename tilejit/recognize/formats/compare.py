"""Compare all elements: by their places in a small array, by unpacking the buffer of a large one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.recognize.formats.changes import Index, ValueChange
from tilejit.recognize.formats.storage import Storage, whole_index
from tilejit.recognize.formats.trials import SMALL, Score, Trial, within

CHUNK = 1 << 20
"""Elements that are compared at a time."""
PART = 1 << 21
"""Elements that are unpacked at a time."""
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
    first: Difference | None = None
    differing: Index = ()


def compare(score: Score, data: Array, array: Array, buffers: Mapping[str, Array]) -> Comparison:
    """Compare all elements, in the way in which a score read some.

    Args:
        score: the explanation.
        data: flat bytes of the buffer that holds the elements.
        array: the right elements.
        buffers: all buffers by name.

    Raises:
        LayoutError: a buffer holds what the format never stores.
    """
    if array.size > SMALL or not score.trial.last.has_places:
        return _by_unpacking(score, data, array, buffers)
    index = whole_index(array.shape)
    same, inside, found, wanted = score.agreement(data, array, index)
    wrong = np.flatnonzero(~same)
    if not wrong.size:
        return Comparison(1.0)
    present = wrong[inside[wrong]]
    first = None
    if present.size:
        at = int(present[0])
        where = tuple(int(axis[at]) for axis in index)
        first = _shown(where, found[at], wanted[at], score.trial.storage, array)
    some = wrong[:: -(-wrong.size // KEPT)]
    return Comparison(1 - wrong.size / array.size, first, tuple(axis[some] for axis in index))


def _by_unpacking(score: Score, data: Array, array: Array, buffers: Mapping[str, Array]) -> Comparison:
    trial, storage, codes = score.trial, score.trial.storage, score.codes
    wrong: list[Array] = []
    first: Difference | None = None
    count = 0

    def origin(numbers: Array) -> Index:
        return trial.change.origin(tuple(np.unravel_index(numbers, trial.first.dims)))

    for start, found, absent, wanted in _chunks(score, data, array, buffers):
        got, right = _raw(found, storage), storage.raw(wanted)
        if storage.is_code:
            got = score.change.undone(got, storage.bits)
        same = _rows_equal(got, right) if got.ndim > 1 else got == right
        there: Array = np.ones(same.size, bool)
        if absent is not None:
            part = np.ascontiguousarray(absent).view(np.uint8)
            there = np.all(part.reshape(same.size, -1) == 0, axis=1)
        same &= there
        if codes is not None:
            same &= within(wanted, codes)
        if same.all():
            continue
        at = np.flatnonzero(~same)
        count += at.size
        if len(wrong) < KEPT:
            wrong.append(at[:: -(-at.size // 8)] + start)
        present = at[there[at]]
        if first is None and present.size:
            where = tuple(int(axis[0]) for axis in origin(present[:1] + start))
            first = _shown(where, got[present[0]], right[present[0]], storage, array)
    if not count:
        return Comparison(1.0)
    return Comparison(1 - count / array.size, first, origin(np.concatenate(wrong)))


Chunk = tuple[int, Array, Array | None, Array]
"""The number of the first element, the elements found, which are missing, and the right ones."""


def _chunks(score: Score, data: Array, array: Array, buffers: Mapping[str, Array]) -> Iterator[Chunk]:
    """All elements in the order of the changed array, some rows at a time."""
    trial, last = score.trial, score.trial.last
    whole, missing = fitted(data, last.size, score.reordering.shift)
    whole = score.reordering.restored(whole)
    missing = None if missing is None else score.reordering.restored(missing)
    changed, row, place = trial.change.apply(array), 0, 0
    for part in _parts(trial):
        rows, size = part.first.dims[0], part.last.size
        found = _unpacked(part, score.change, whole[place : place + size], buffers)
        absent = None
        if missing is not None and last.has_places:
            absent = _unpacked(part, score.change, missing[place : place + size], buffers)
        wanted = last.rounded(changed[row : row + rows])
        if found.flags.c_contiguous and wanted.flags.c_contiguous:
            found, wanted = found.reshape(-1), wanted.reshape(-1)
            absent = None if absent is None else absent.reshape(-1)
        each = max(1, found[0].size)
        step, start = max(1, CHUNK // each), row * (array.size // len(changed))
        for k in range(0, len(found), step):
            some = slice(k, k + step)
            yield start + k * each, found[some], None if absent is None else absent[some], wanted[some]
        row, place = row + rows, place + size


def _parts(trial: Trial) -> list[Trial]:
    """The trial, or those of consecutive rows, if whole-array steps pack blocks of rows one after another.

    New memory for all elements takes longer than unpacking them.
    """
    order = trial.first
    rows, each = order.dims[0], prod(order.dims[1:])
    block = order.first_rows if order.candidate.is_own and not order.has_places else 0
    step = max(1, PART // max(1, each * block)) * block
    if not 0 < step < rows:
        return [trial]
    parts = [trial.of_rows(min(step, rows - row)) for row in range(0, rows, step)]
    found = [part for part in parts if part is not None]
    is_whole = len(found) == len(parts) and sum(part.last.size for part in found) == trial.last.size
    return found if is_whole else [trial]


def fitted(data: Array, size: int, shift: int) -> tuple[Array, Array | None]:
    """The bytes of the format's buffer, and ones where they are missing."""
    start = max(shift, 0)
    stop = max(start, min(data.size, shift + size))
    if stop - start == size:
        return data[start:stop].copy() if start else data[start:stop], None
    whole, missing = np.zeros(size, np.uint8), np.full(size, 255, np.uint8)
    whole[start - shift : stop - shift] = data[start:stop]
    missing[start - shift : stop - shift] = 0
    return whole, missing


def _unpacked(trial: Trial, change: ValueChange, data: Array, buffers: Mapping[str, Array]) -> Array:
    """All elements in the order of the changed array."""
    if change.kind == "bytes":
        data = data.reshape(-1, trial.storage.bits // 8)[:, ::-1].reshape(-1)
    return trial.unpacked(data, buffers)


def _raw(found: Array, storage: Storage) -> Array:
    """The bits of elements as they were stored: a uint8 for each code, or a row of bytes for each."""
    flat = np.ascontiguousarray(found).reshape(-1).view(np.uint8)
    return flat if storage.is_code else flat.reshape(found.size, -1)


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

    is_integer = array.dtype.kind in "iu" and not storage.cast
    return index, value(found), array[index].item() if is_integer else value(wanted)
