"""Trials: each format, applied once or twice to an array after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.recognize.formats.candidates import Candidate, candidates
from tilejit.recognize.formats.changes import Change, Index
from tilejit.recognize.formats.orders import Order, again, order_of, parts_of_both
from tilejit.recognize.formats.places import Part
from tilejit.recognize.formats.storage import Storage


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


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Trials whose elements have the same form, and their places: a row for each trial."""

    trials: tuple[Trial, ...]
    parts: tuple[Part, ...]
    storage: Storage


def trials_of(
    dims: tuple[int, ...],
    changes: Sequence[Change],
    storage: Storage,
    fits: Callable[[Order], bool],
) -> Iterator[list[Trial]]:
    """The trials, those with equal dimensions after the change and equal orders together.

    Args:
        dims: the dimensions of the array.
        changes: the changes before packing.
        storage: the type in which elements are stored.
        fits: fits(the last order) -> whether to try it.
    """
    for shape, group in groupby(sorted(changes, key=lambda c: c.dims(dims) != dims), lambda c: c.dims(dims)):
        own = list(group)
        for candidate in candidates():
            for first, second in _chains(candidate, storage, shape):
                if fits(second or first):
                    yield [Trial(change, first, second) for change in own]


def _chains(
    candidate: Candidate, storage: Storage, dims: tuple[int, ...]
) -> Iterator[tuple[Order, Order | None]]:
    first = order_of(candidate, storage, dims)
    if first is not None:
        yield first, None
        second = again(first)
        if second is not None:
            yield first, second


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
        form = (group[0].storage, *((part.low, part.bits, part.follow is None) for part in parts))
        trials, rows = found.setdefault(form, ([], []))
        trials += group
        rows.append(parts)
    count = len(index[0]) if index else 1
    return [
        Stack(tuple(trials), tuple(_joined(own, count) for own in zip(*rows, strict=True)), trials[0].storage)
        for trials, rows in found.values()
    ]


def _joined(parts: tuple[Part, ...], count: int) -> Part:
    places = np.concatenate([part.places for part in parts]).reshape(-1, count)
    first = parts[0]
    if first.follow is None:
        return Part(places, first.low, first.bits)
    follow = np.concatenate([part.follow for part in parts if part.follow is not None]).reshape(-1, count)
    return Part(places, first.low, first.bits, follow)
