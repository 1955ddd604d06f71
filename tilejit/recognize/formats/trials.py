"""Trials: each format, applied once or twice to an array after a change, and scores of sampled elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.copies.bit_streams import unpack_stream
from tilejit.recognize.formats.candidates import Candidate
from tilejit.recognize.formats.changes import (
    UNCHANGED,
    Change,
    Index,
    Reordering,
    ValueChange,
)
from tilejit.recognize.formats.orders import Order, again, order_of, parts_of_both
from tilejit.recognize.formats.places import Part, decoded, read
from tilejit.recognize.formats.storage import Storage

ROWS = 512
"""Trials that are read at a time, so that their places fit in cache."""
SMALL = 1 << 18
"""Elements of a small array, of which all are read where of a large one only some are."""


class Trial(NamedTuple):
    """A format, applied once or twice to an array after a change.

    Attributes:
        change: the change before packing.
        first: the order of the first application.
        second: that of the second; None if there is one.
    """

    change: Change
    first: Order
    second: Order | None = None

    @property
    def last(self) -> Order:
        """The order that wrote the buffer."""
        return self.second or self.first

    @property
    def times(self) -> int:
        """How often the format was applied."""
        return 1 if self.second is None else 2

    @property
    def storage(self) -> Storage:
        """The type of the stored elements."""
        return self.first.storage

    @property
    def table(self) -> Array | None:
        """The stored code of each code after all applications; None if codes stay as they are."""
        table = self.first.table
        if table is None or self.second is None:
            return table
        return np.where(table < 0, table, table[table])

    def parts(self, index: Index) -> tuple[Part, ...]:
        """The places of some elements of the array."""
        return self.moved_parts(self.change.index(index))

    def moved_parts(self, moved: Index) -> tuple[Part, ...]:
        """The places of elements by their indices after the change."""
        if self.second is None:
            return self.first.parts(moved)
        return parts_of_both(self.first, self.second, moved)

    def unpacked(self, data: Array, buffers: Mapping[str, Array]) -> Array:
        """All elements of a buffer, in the order of the changed array; codes as uint8."""
        return self.unpacked_first(self.last.unpacked(data, buffers), buffers)

    def unpacked_first(self, found: Array, buffers: Mapping[str, Array]) -> Array:
        """All elements, from those of the last application."""
        return found if self.second is None else self.first.unpacked_again(found.reshape(-1), buffers)

    def of_rows(self, rows: int) -> Trial | None:
        """The trial with an array of some first rows, after the change; None if the format does not take it.

        Args:
            rows: a multiple of those whose bytes are the first ones of the buffer; 0 if there are none.
        """
        part = self.first.of_rows(rows) if 0 < rows < self.first.dims[0] else None
        if part is None:
            return None
        second = None if self.second is None else again(part)
        return None if self.second is not None and second is None else Trial(self.change, part, second)


def trials_of(
    candidates: Iterable[Candidate], dims: tuple[int, ...], changes: Sequence[Change], storage: Storage
) -> Iterator[list[Trial]]:
    """The trials, those with equal dimensions after the change and equal orders together.

    Args:
        candidates: the formats.
        dims: the dimensions of the array.
        changes: the changes before packing.
        storage: the type in which elements are stored.
    """
    by_dims = sorted(changes, key=lambda change: change.dims(dims) != dims)
    groups = [(shape, [*group]) for shape, group in groupby(by_dims, lambda change: change.dims(dims))]
    for candidate in candidates:
        for shape, own in groups:
            first = order_of(candidate, storage, shape)
            if first is None:
                continue
            yield [Trial(change, first) for change in own]
            second = again(first)
            if second is not None:
                yield [Trial(change, first, second) for change in own]


class Score(NamedTuple):
    """The share of sampled elements that agree in a trial, read in one way.

    Attributes:
        share: the share, from 0 to 1; elements outside the buffer do not agree.
        trial: the trial.
        reordering: how the bits of the buffer were moved.
        change: how its values were changed.
        parts: the places of the sampled elements; none if the order has no places.
    """

    share: float
    trial: Trial
    reordering: Reordering
    change: ValueChange
    parts: tuple[Part, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """What was done beside packing, in words."""
        trial = self.trial
        # A rule that depends on the dtype has no parameter for the width of codes.
        code = f"as {trial.storage.element.name}" if trial.last.spec and trial.storage.is_narrow else ""
        own = (
            code or trial.storage.text,
            trial.change.text,
            self.reordering.text,
            self.change.text(trial.storage.bits),
        )
        return tuple(filter(None, own))

    @property
    def codes(self) -> tuple[int, int] | None:
        """The least and the greatest value that the format holds; None if it holds all of the array."""
        codes, span, (kind, number) = self.trial.first.codes, self.trial.storage.span, self.change
        if codes is None or span is None:
            return None
        count = 1 << self.trial.storage.bits
        is_added = kind == "+" or (kind == "^" and number == count >> 1)
        added = (number, number - count) if is_added else (0,)
        ranges = [(codes[0] - one, codes[1] - one) for one in added]
        if any(low <= span[0] and span[1] <= high for low, high in ranges):
            return None
        return max(ranges, key=lambda row: min(row[1], span[1]) - max(row[0], span[0]))

    @property
    def simplicity(self) -> tuple[int, int, bool, int]:
        """A key that sorts simple explanations first, and of codes those in formats of codes."""
        last = self.trial.last
        return (
            len(self.texts),
            self.trial.times,
            last.is_part,
            last.candidate.generality if last.bits < 8 else 0,
        )

    def read(self, data: Array, parts: tuple[Part, ...]) -> tuple[Array, Array]:
        """The elements in some places as the format stores them, and which of them the buffer has."""
        way, size = self.reordering, self.trial.last.size
        return read(data, tuple(part._replace(places=way.moved(part.places, size)) for part in parts))

    def agreement(self, data: Array, array: Array, index: Index) -> tuple[Array, Array, Array, Array]:
        """Compare some elements, of an order with places.

        Returns:
            Which elements agree, which the buffer has, their values and the right ones.
        """
        trial, bits = self.trial, self.trial.storage.bits
        found, inside = self.read(data, trial.parts(index))
        if trial.table is not None:
            found, inside = decoded(found, inside, trial.table)
        found, wanted = self.change.undone(found, bits), trial.storage.raw(array[index])
        same = found == wanted
        same = (same.all(axis=-1) if same.ndim > 1 else same) & inside
        if self.codes is not None:
            same &= within(array[index], self.codes)
        return same, inside, found, wanted

    def packed(self, array: Array) -> Array:
        """The buffer of an array, for a format that whole-array steps pack; other planes are random."""
        trial, storage = self.trial, self.trial.storage
        codes = trial.change.apply(array)
        if storage.is_code:
            codes = self.change.applied(storage.raw(codes).reshape(codes.shape), storage.bits)
        data = trial.last.packed(codes)
        if trial.second is not None:
            data = trial.last.packed(unpack_stream(data, storage.bits, codes.size).reshape(codes.shape))
        return self.reordering.restored(data)


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Trials whose elements have the same form, and their places: a row for each trial."""

    trials: tuple[Trial, ...]
    parts: tuple[Part, ...]

    def rows(self, rows: Any) -> tuple[Part, ...]:
        """The places in some of the trials."""
        return tuple(part._replace(places=part.places[rows]) for part in self.parts)

    def scores(
        self, rows: Sequence[int], data: Array, wanted: Array, way: Reordering, least: float
    ) -> Iterator[Score]:
        """The scores of some trials that reach the least share.

        Args:
            rows: the trials.
            data: flat bytes of the buffer.
            wanted: the sampled elements, a code or a row of bytes for each.
            way: how the buffer is reordered.
            least: the least share of agreement.
        """
        for start in range(0, len(rows), ROWS):
            chosen = rows[start : start + ROWS]
            trials = [self.trials[row] for row in chosen]
            sizes = np.array([trial.last.size for trial in trials])[:, None]
            parts = tuple(p._replace(places=way.moved(p.places, sizes)) for p in self.rows(chosen))
            found, inside = read(data, parts)
            for number, trial in enumerate(trials):
                if trial.table is not None:
                    found[number], inside[number] = decoded(found[number], inside[number], trial.table)
            for row, share, change in shares(found, inside, wanted, trials[0].storage.bits, least):
                yield Score(share, trials[row], way, change, self.rows(chosen[row]))


def within(values: Array, codes: tuple[int, int]) -> Array:
    """Which values lie in a range."""
    flat = values.reshape(-1)
    inside: Array = (flat >= codes[0]) & (flat <= codes[1])
    return inside


def stacked(groups: Iterable[list[Trial]], index: Index) -> list[Stack]:
    """The places of sampled elements in all trials."""
    found: dict[tuple[object, ...], tuple[list[Trial], list[tuple[Part, ...]]]] = {}
    moved: dict[tuple[str, ...], Index] = {}
    for group in groups:
        key = tuple(trial.change.text for trial in group)
        if key not in moved:
            each = [trial.change.index(index) for trial in group]
            moved[key] = tuple(np.concatenate(axis) for axis in zip(*each, strict=True))
        parts = group[0].moved_parts(moved[key])
        form = (group[0].storage, *((part.low, part.bits) for part in parts))
        trials, rows = found.setdefault(form, ([], []))
        trials += group
        rows.append(parts)
    return [
        Stack(tuple(trials), tuple(_joined(own, len(index[0])) for own in zip(*rows, strict=True)))
        for trials, rows in found.values()
    ]


def _joined(parts: tuple[Part, ...], count: int) -> Part:
    return parts[0]._replace(places=np.concatenate([part.places for part in parts]).reshape(-1, count))


def shares(
    found: Array, inside: Array, wanted: Array, bits: int, least: float
) -> Iterator[tuple[int, float, ValueChange]]:
    """The share of each row that agrees as it is, and with each change of values, if it reaches the least."""
    for share, change in _shares(found, inside, wanted, bits):
        for row in np.flatnonzero(share >= least).tolist():
            own = change[row] if isinstance(change, list) else change
            if own is not None:
                yield row, float(share[row]), own


def _shares(
    found: Array, inside: Array, wanted: Array, bits: int
) -> Iterator[tuple[Array, ValueChange | list[ValueChange | None]]]:
    if bits > 8:
        yield np.mean(np.all(found == wanted, axis=-1) & inside, axis=1), UNCHANGED
        yield np.mean(np.all(found[..., ::-1] == wanted, axis=-1) & inside, axis=1), ValueChange("bytes")
        return
    yield np.mean((found == wanted) & inside, axis=1), UNCHANGED
    mask = np.uint8((1 << bits) - 1)
    share, xor = _most_frequent(found ^ wanted, inside)
    yield share, [ValueChange("^", number) if number else None for number in xor]
    share, added = _most_frequent(found - wanted & mask, inside)
    # A number that only one bit has is both XORed and added, if it is the highest.
    yield (
        share,
        [ValueChange("+", number) if number and number != 1 << bits - 1 else None for number in added],
    )


def _most_frequent(numbers: Array, inside: Array) -> tuple[Array, list[int]]:
    """The share of the most frequent number of each row, and the number."""
    rows, count = numbers.shape
    bins = numbers.astype(np.int64) + 256 * np.arange(rows)[:, None]
    counts = np.bincount(bins[inside], minlength=256 * rows).reshape(rows, 256)
    best = counts.argmax(axis=1)
    return counts[np.arange(rows), best] / count, best.tolist()
