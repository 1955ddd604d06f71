"""The search among formats whose places are known: samples rule out most, and whole comparisons decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tilejit.arrays.memory import Array
from tilejit.recognize.formats.changes import Change, Index, changes
from tilejit.recognize.formats.groups import Group, Key, groups_of, refined
from tilejit.recognize.formats.orders import Order
from tilejit.recognize.formats.readings import PLAIN, Reordering, read, reorderings
from tilejit.recognize.formats.samples import chance, sampled_index
from tilejit.recognize.formats.scores import Score, scores
from tilejit.recognize.formats.storage import Storage, casts, storages
from tilejit.recognize.formats.trials import Trial, stacked, trials_of
from tilejit.recognize.formats.whole import Comparison, compare

FEW, MANY = 64, 2048
"""Sampled elements: those that rule out most trials, and those that the others are compared with."""
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


class Compared(NamedTuple):
    """A group of explanations, and how far the simplest explains the buffer."""

    group: Group
    comparison: Comparison
    data: Array

    @property
    def surplus(self) -> int:
        """The bytes that are missing, or too many."""
        return abs(self.data.size - self.group.simplest.trial.last.size)


class Found(NamedTuple):
    """The orders that explain all elements, or else the nearest; and how many more are not ruled out."""

    exact: list[Compared]
    near: list[Compared]
    more: int


def search(buffers: Mapping[str, Array], array: Array, fits: Callable[[Order], bool]) -> Found:
    """Find the orders of an array in a buffer.

    Args:
        buffers: flat bytes by name; a single one may have any name.
        array: the array, with at least one dimension.
        fits: fits(order) -> whether the order's format has the planes and the other buffers that are given.
    """
    return _Search(buffers, array, fits).run()


class _Search:
    """An array, its sampled elements, and the bytes of buffers."""

    def __init__(self, buffers: Mapping[str, Array], array: Array, fits: Callable[[Order], bool]) -> None:
        self.fits = fits
        self.buffers = buffers
        self.given = frozenset(buffers)
        self.longest = max(data.size for data in buffers.values())
        self.array = array
        self.changes: Sequence[Change] = tuple(changes(array.shape))
        self.kinds = storages(array)
        self.few = sampled_index(array, self.kinds[0], FEW)
        self.many = sampled_index(array, self.kinds[0], MANY)

    def run(self) -> Found:
        """Try the array's own type, then casts of it, then buffers of other sizes."""
        best: list[Score] = []
        stages: Any = (
            (lambda: self.kinds, self._same_size),
            (lambda: tuple(casts(self.array)), self._same_size),
            (lambda: self.kinds, self._other_sizes),
        )
        near: list[Compared] = []
        for kinds, ways in stages:
            found, more = self._scored(kinds(), ways)
            full = [score for score in found if score.share == 1.0]
            exact, tried, left = self._decided(groups_of(full, self.given))
            if exact and ways == self._same_size:
                return Found(exact, [], more + left)
            near += exact + tried
            best += [score for score in found if score.share < 1.0]
            if any(row.comparison.agreement > SURE for row in near):
                break
        return Found([], self._nearest(near, best), 0)

    def data_of(self, order: Order) -> Array | None:
        """The bytes of an order's buffer; None if it is not given."""
        if len(self.buffers) == 1:
            return next(iter(self.buffers.values()))
        return self.buffers.get(order.buffer)

    def _same_size(self, order: Order) -> Sequence[Reordering]:
        data = self.data_of(order)
        if data is None or data.size != order.size or not self.fits(order):
            return ()
        return reorderings(order.bits, order.size)

    def _other_sizes(self, order: Order) -> Sequence[Reordering]:
        data = self.data_of(order)
        if data is None or data.size == order.size or len(self.buffers) > 1:
            return ()
        return PLAIN, Reordering("", shift=data.size - order.size)

    def _scored(self, kinds: Sequence[Storage], ways: Ways) -> tuple[list[Score], int]:
        """The scores with many elements of trials that a few do not rule out; and how many were not tried."""
        kept = [score for storage in kinds for score in self._with_few(storage, ways)]
        kept.sort(key=lambda score: (-score.share, score.simplicity))
        more = sum(score.share == 1.0 for score in kept[MOST_TRIALS:])
        kept = kept[:MOST_TRIALS]
        chosen: dict[Storage, dict[Key, Trial]] = {}
        given: dict[int, set[Reordering]] = {}
        for score in kept:
            trial = score.trial
            key = trial.change.text, id(trial.first), trial.times
            chosen.setdefault(trial.storage, {})[key] = trial
            given.setdefault(id(trial.last), set()).add(score.reordering)

        def ways_of(order: Order) -> Sequence[Reordering]:
            return sorted(given[id(order)])

        found: list[Score] = []
        for storage, trials in chosen.items():
            found += self._with(self.many, storage, [[trial] for trial in trials.values()], ways_of)
        return found, more

    def _with_few(self, storage: Storage, ways: Ways) -> list[Score]:
        used: dict[int, Sequence[Reordering]] = {}

        def ways_of(order: Order) -> Sequence[Reordering]:
            if id(order) not in used:
                used[id(order)] = ways(order)
            return used[id(order)]

        if ways == self._same_size and storage.bits * self.array.size > 8 * self.longest:
            return []
        groups = trials_of(self.array.shape, self.changes, storage, lambda order: bool(ways_of(order)))
        return self._with(self.few, storage, list(groups), ways_of)

    def _with(self, index: Index, storage: Storage, groups: list[list[Trial]], ways: Ways) -> list[Score]:
        """The scores of trials that reach a near candidate's share of some elements."""
        wanted = storage.raw(self.array[index])
        by_chance = chance(wanted)
        least = by_chance + (NEAR if len(index[0]) > FEW else NEAR / 2) * (1 - by_chance)
        found: list[Score] = []
        for stack in stacked(groups, index):
            data: dict[int, tuple[Array, list[int]]] = {}
            for row, trial in enumerate(stack.trials):
                own = self.data_of(trial.last)
                assert own is not None
                data.setdefault(id(own), (own, []))[1].append(row)
            for own, rows in data.values():
                found += scores(stack, rows, own, wanted, ways, least)
        return found

    def _decided(self, groups: list[Group]) -> tuple[list[Compared], list[Compared], int]:
        """Compare whole buffers until several orders explain one; and how many explanations are left."""
        exact: list[Compared] = []
        near: list[Compared] = []
        groups.sort(key=self._is_partial)
        while groups and len(exact) < SHOWN_ORDERS and len(exact) + len(near) < MOST_COMPARED:
            group, *groups = groups
            if exact and self._is_partial(group) and not self._is_partial(exact[0].group):
                return exact, near, 0
            compared = self._compared(group)
            if compared.comparison.agreement == 1.0:
                exact += [compared._replace(group=own) for own in refined(group, compared.data)]
                continue
            near.append(
                compared if compared.surplus else compared._replace(group=refined(group, compared.data)[0])
            )
            differing = compared.comparison.differing
            groups = [other for other in groups if not differing or self._agrees(other.simplest, differing)]
        return exact, near, sum(len(group.scores) for group in groups)

    def _is_partial(self, group: Group) -> bool:
        """Whether a group explains only some bytes of the buffers."""
        return bool(group.simplest.trial.last.others(self.given))

    def _compared(self, group: Group) -> Compared:
        score = group.simplest
        data = self.data_of(score.trial.last)
        assert data is not None
        return Compared(group, compare(score, data, self.array), data)

    def _agrees(self, score: Score, index: Index) -> bool:
        """Whether an explanation agrees at some elements."""
        trial, way = score.trial, score.reordering
        data = self.data_of(trial.last)
        assert data is not None
        places = tuple(way.part(part, trial.last.size) for part in trial.parts(index))
        found, inside = read(data, places, trial.table)
        right = trial.storage.raw(self.array[index])
        same = score.change.undone(found, trial.storage.bits) == right
        return bool((same.all(axis=-1) if same.ndim > 1 else same)[inside].all())

    def _nearest(self, near: list[Compared], best: list[Score]) -> list[Compared]:
        """The nearest candidates, of those compared and those that only share some elements."""
        if not any(row.comparison.agreement > SURE for row in near):
            best.sort(key=lambda score: (-score.share, score.simplicity))
            groups = groups_of(best[: 4 * SHOWN], self.given)
            groups.sort(key=lambda group: -group.simplest.share)
            near = near + [self._compared(group) for group in groups[:SHOWN]]
        least = self._least()
        near = [row for row in near if row.comparison.agreement > least[row.group.simplest.trial.storage]]
        near.sort(key=lambda row: (-row.comparison.agreement, row.group.simplest.simplicity, row.surplus))
        return near[:SHOWN]

    def _least(self) -> dict[Storage, float]:
        """The least share of agreement of a near candidate, for each type of elements."""
        found = {}
        for storage in (*self.kinds, *casts(self.array)):
            by_chance = chance(storage.raw(self.array[self.many]))
            found[storage] = by_chance + NEAR * (1 - by_chance)
        return found
