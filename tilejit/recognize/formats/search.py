"""The search among formats: samples rule out most, and comparisons of all elements decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.recognize.formats.candidates import candidates
from tilejit.recognize.formats.changes import PLAIN, Index, Reordering, changes, reorderings
from tilejit.recognize.formats.compare import Comparison, compare, fitted
from tilejit.recognize.formats.corners import corner as corner_of
from tilejit.recognize.formats.groups import Group, groups_of, refined, same_bytes
from tilejit.recognize.formats.orders import Order
from tilejit.recognize.formats.other_planes import Planes
from tilejit.recognize.formats.storage import Storage, casts, chance, sampled_index, storages, whole_index
from tilejit.recognize.formats.trials import SMALL, Score, Trial, shares, stacked, trials_of

FEW, MANY = 64, 2048
"""Sampled elements: those that rule out most trials, and those that the others are compared with."""
UNPACKED = 1 << 12
"""Elements that are compared where whole-array steps unpack first rows."""
NEAR = 0.3
"""The least share of agreement of a near candidate, between chance and 1."""
SURE = 0.9
"""The share of agreement from which no other explanation is sought."""
MOST_TRIALS = 400
"""The most explanations that are compared with many elements."""
MOST_COMPARED = 12
"""The most orders whose whole buffer is compared."""
SHOWN_ORDERS = 3
"""Orders that explain all bytes, after which the search ends."""
SHOWN = 5
"""The most near candidates."""

Ways = Callable[[Order], Sequence[Reordering]]
Unpacked = dict[tuple[Order, Reordering], Array]
"""The elements of a buffer by its order and its reordering: an application, or the last of two."""


class Compared(NamedTuple):
    """A group of explanations, and how far the simplest explains the buffer."""

    group: Group
    comparison: Comparison
    data: Array

    @property
    def surplus(self) -> int:
        """The bytes that are missing, or too many."""
        return abs(self.data.size - self.group[0].trial.last.size)


class Found(NamedTuple):
    """The orders that explain all elements, or else the nearest; and how many more are not ruled out."""

    exact: list[Compared]
    near: list[Compared]
    more: int


class Search:
    """The search for the orders of an array in buffers.

    Args:
        planes: the buffers, and what is known of other planes.
        array: the array, with at least one dimension.
    """

    def __init__(self, planes: Planes, array: Array) -> None:
        self.planes, self.array = planes, array
        self.given = frozenset(planes.buffers)
        self.changes = tuple(changes(array.shape))
        self.kinds = storages(array)
        self.few = sampled_index(array, self.kinds[0], FEW)
        self.many = sampled_index(array, self.kinds[0], MANY)

    def run(self) -> Found:
        """Try the array's own type, then casts of it, then buffers of other sizes."""
        best: list[Score] = []
        near: list[Compared] = []
        stages: Any = (
            (lambda: self.kinds, self._same_size),
            (lambda: tuple(casts(self.array)), self._same_size),
            (lambda: self.kinds, self._other_sizes),
        )
        for kinds, ways in stages:
            found, more = self._scored(kinds(), ways)
            exact, tried, left = self._decided(
                groups_of((score for score in found if score.share == 1.0), self.given)
            )
            if exact and ways == self._same_size:
                return Found(exact, [], more + left)
            near += exact + tried
            best += [score for score in found if score.share < 1.0]
            agreements = [row.comparison.agreement for row in near] + [score.share for score in best]
            if max(agreements, default=0.0) > SURE:
                break
        return Found([], self._nearest(near, best), 0)

    def _same_size(self, order: Order) -> Sequence[Reordering]:
        data = self.planes.data_of(order)
        if data is None or data.size != order.size or not self.planes.fits(order):
            return ()
        found = reorderings(order.bits, order.size)
        if order.has_places:
            return found
        if order.packing is None or len(order.packing.planes) > 1 or order.bits > 8:
            return (PLAIN,)
        return [way for way in found if self.array.size <= SMALL or way.flip < 8]

    def _other_sizes(self, order: Order) -> Sequence[Reordering]:
        data = self.planes.data_of(order)
        if data is None or data.size == order.size or len(self.planes.buffers) > 1:
            return ()
        if not order.has_places and (2 * data.size < order.size or not self.planes.fits(order)):
            return ()
        return PLAIN, Reordering("", shift=data.size - order.size)

    def _scored(self, kinds: Sequence[Storage], ways: Ways) -> tuple[list[Score], int]:
        """The scores with many elements of trials that a few do not rule out; and how many were not tried."""
        kept = [score for storage in kinds for score in self._with_few(storage, ways)]
        kept.sort(key=lambda score: (-score.share, score.simplicity))
        more = sum(score.share == 1.0 for score in kept[MOST_TRIALS:])
        chosen: dict[Storage, dict[object, Trial]] = {}
        given: dict[int, set[Reordering]] = {}
        for score in kept[:MOST_TRIALS]:
            trial = score.trial
            key = trial.change.text, id(trial.first), trial.times
            chosen.setdefault(trial.storage, {})[key] = trial
            given.setdefault(id(trial.last), set()).add(score.reordering)
        found: list[Score] = []
        for storage, trials in chosen.items():
            groups = [[trial] for trial in trials.values()]
            found += self._with(self.many, storage, groups, lambda order: sorted(given[id(order)]))
        is_sure = ways == self._other_sizes and any(score.share > SURE for score in found)
        if not more and not is_sure:
            found += [score for storage in kinds for score in self._by_unpacking(storage, ways)]
        return found, more

    def _with_few(self, storage: Storage, ways: Ways) -> Iterator[Score]:
        longest = max(data.size for data in self.planes.buffers.values())
        if ways == self._same_size and storage.bits * self.array.size > 8 * longest:
            return iter(())
        own = (candidate for candidate in candidates() if not candidate.is_opaque)
        groups = trials_of(own, self.array.shape, self.changes, storage)
        used: dict[int, Sequence[Reordering]] = {}
        fitting = []
        for group in groups:
            order = group[0].last
            if id(order) not in used:
                used[id(order)] = ways(order)
            if used[id(order)]:
                fitting.append(group)
        return self._with(self.few, storage, fitting, lambda order: used[id(order)])

    def _with(self, index: Index, storage: Storage, groups: list[list[Trial]], ways: Ways) -> Iterator[Score]:
        """The scores of trials that reach a near candidate's share of some elements."""
        wanted = storage.raw(self.array[index])
        least = _least(wanted, NEAR if len(index[0]) > FEW else NEAR / 2)
        for stack in stacked(groups, index):
            chosen: dict[tuple[int, Reordering], tuple[Array, list[int]]] = {}
            for row, trial in enumerate(stack.trials):
                data = self.planes.data_of(trial.last)
                assert data is not None
                for way in ways(trial.last):
                    chosen.setdefault((id(data), way), (data, []))[1].append(row)
            for (_, way), (data, rows) in chosen.items():
                yield from stack.scores(rows, data, wanted, way, least)

    def _by_unpacking(self, storage: Storage, ways: Ways) -> Iterator[Score]:
        """The scores of formats that whole-array steps pack; of a large array, its beginning is unpacked."""
        own = (candidate for candidate in candidates() if candidate.is_opaque)
        known: Unpacked = {}
        for group in trials_of(own, self.array.shape, self.changes, storage):
            if group[0].times == 1:
                known.clear()
            for way in ways(group[0].last):
                with suppress(LayoutError):  # the buffer holds what the format never stores
                    yield from self._of_opaque(group, way, *self._beginning(group[0], way, known))

    def _beginning(self, trial: Trial, way: Reordering, known: Unpacked) -> tuple[Order, Array]:
        """The order of the first rows of a large array, or of their first columns, and its elements."""
        corner = None
        if self.array.size > SMALL:
            trial = trial.of_rows(trial.first.first_rows) or trial
            corner = corner_of(trial)
        order, buffers = trial.last, self.planes.buffers
        data = self.planes.data_of(order)
        assert data is not None
        if corner is None and (order, way) in known:
            return trial.first, trial.unpacked_first(known[order, way], buffers)
        whole, _ = fitted(way.with_halves_in_order(data, order.size), order.size, way.shift)
        whole = whole if way.halves else way.restored(whole)
        if corner is not None:
            return corner.first, corner.unpacked(whole, buffers)
        known[order, way] = order.unpacked(whole, buffers)
        return trial.first, trial.unpacked_first(known[order, way], buffers)

    def _of_opaque(self, group: list[Trial], way: Reordering, order: Order, found: Array) -> Iterator[Score]:
        """The scores of trials that differ in their changes, of which some first elements were unpacked."""
        storage = order.storage
        if prod(order.dims) <= UNPACKED:
            index = whole_index(order.dims)
        else:
            rng = np.random.default_rng(0)
            index = tuple(rng.integers(0, size, UNPACKED) for size in order.dims)
        got = storage.raw(found[index])[None]
        inside = np.ones(got.shape[:2], bool)
        least = None
        for trial in group:
            if order.packing is not None and order.packing.rounds:
                first = self.array[trial.change.origin(whole_index(order.dims))]
                wanted = order.rounded(first.reshape(order.dims))[index]
            else:
                wanted = self.array[trial.change.origin(index)]
            raw = storage.raw(wanted)
            least = _least(raw, NEAR) if least is None else least
            for _, share, change in shares(got, inside, raw, storage.bits, least):
                if change.kind != "bytes":
                    yield Score(share, trial, way, change, ())

    def _decided(self, groups: list[Group]) -> tuple[list[Compared], list[Compared], int]:
        """Compare whole buffers until several orders explain one; and how many explanations are left."""
        exact: list[Compared] = []
        near: list[Compared] = []
        groups.sort(key=self._is_partial)
        while groups and len(exact) < SHOWN_ORDERS and len(exact) + len(near) < MOST_COMPARED:
            group, *groups = groups
            if exact and self._is_partial(group) and not self._is_partial(exact[0].group):
                return exact, near, 0
            parts, holds_all = self._divided(group), group[0].codes is None
            if holds_all:
                parts = [part for part in parts if not self._joined(part, exact)]
            if not parts:
                continue
            compared = self._compared(group)
            if compared.comparison.agreement == 1.0:
                for part in parts:
                    if holds_all or not self._joined(part, exact):
                        exact.append(compared._replace(group=part))
                continue
            near.append(self._refined(compared))
            differing = compared.comparison.differing
            groups = [other for other in groups if not differing or self._agrees(other[0], differing)]
        return exact, near, sum(map(len, groups))

    def _divided(self, group: Group) -> list[Group]:
        """A group divided by what it stores; explanations that say no more than others are left out."""
        data = self.planes.data_of(group[0].trial.last)
        assert data is not None
        return refined(group, data, self.array)

    def _joined(self, group: Group, exact: list[Compared]) -> bool:
        """Whether a group gives the bytes of an explanation of all elements for any array, and joins it."""
        for number, other in enumerate(exact):
            if self._same_bytes(group[0], other.group[0]):
                exact[number] = other._replace(group=(*other.group, *group))
                return True
        return False

    def _same_bytes(self, score: Score, other: Score) -> bool:
        """Whether two explanations, one of which has no places, give the same bytes for any array."""
        if score.parts and other.parts:
            return False
        first, second = (other, score) if score.parts else (score, other)
        return same_bytes(first, second, self.array, self.given)

    def _is_partial(self, group: Group) -> bool:
        """Whether a group explains only some bytes of the buffers."""
        return bool(group[0].trial.last.others(self.given))

    def _compared(self, group: Group) -> Compared:
        data = self.planes.data_of(group[0].trial.last)
        assert data is not None
        try:
            return Compared(group, compare(group[0], data, self.array, self.planes.buffers), data)
        except LayoutError:  # the buffer holds what the format never stores
            return Compared(group, Comparison(0.0), data)

    def _refined(self, compared: Compared) -> Compared:
        """A near candidate without explanations that write other padding, if no bytes are missing."""
        return compared if compared.surplus else compared._replace(group=self._divided(compared.group)[0])

    def _agrees(self, score: Score, index: Index) -> bool:
        """Whether an explanation agrees at some elements, or has no places."""
        data = self.planes.data_of(score.trial.last)
        if not score.parts or data is None:
            return True
        same, inside, *_ = score.agreement(data, self.array, index)
        return bool(same[inside].all())

    def _nearest(self, near: list[Compared], best: list[Score]) -> list[Compared]:
        """The nearest candidates, of those compared and those that only share some elements."""
        if not any(row.comparison.agreement > SURE for row in near):
            best.sort(key=lambda score: (-score.share, score.simplicity))
            groups = groups_of(best[: 4 * SHOWN], self.given)
            groups.sort(key=lambda group: -group[0].share)
            near = near + [self._refined(self._compared(group)) for group in groups[:SHOWN]]
        every = (*self.kinds, *casts(self.array))
        least = {storage: _least(storage.raw(self.array[self.many]), NEAR) for storage in every}
        near = [row for row in near if row.comparison.agreement > least[row.group[0].trial.storage]]
        near.sort(key=lambda row: (-row.comparison.agreement, row.group[0].simplicity, row.surplus))
        return near[:SHOWN]


def _least(raw: Array, share: float) -> float:
    """The agreement of elements in no order, and a share of the rest."""
    by_chance = chance(raw)
    return by_chance + share * (1 - by_chance)
