"""The longest right inverse if carries may cancel: a search in a table of A's offsets."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.cute.digits import Mode
from tilejit.cute.exact.injective import distinct
from tilejit.cute.exact.radices import TooManyError
from tilejit.cute.layout import Layout, offsets

MAX_TABLE = 1 << 20
"""The most elements of a layout to tabulate."""
MAX_WORK = 700_000
"""The most steps of the search; each takes about a microsecond."""

SHORT = 16
"""Multiples of many strides to examine together, before those of each stride."""

Offsets: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class ByTable:
    """A table of A's offsets, an upper bound on the length of R, and the best R so far.

    Attributes:
        table: the offset of each index.
        order, values: the indices in ascending order of their offsets, and these offsets.
        limit: an upper bound on the number of elements of R.
        length: the number of elements of the longest R.
        best: its modes; empty while the previous R is the longest.
        work: the remaining work.
    """

    table: Offsets
    order: Offsets
    values: Offsets
    limit: int
    length: int
    best: tuple[Mode, ...] = ()
    work: int = MAX_WORK

    @staticmethod
    def of(layout: Layout, length: int) -> ByTable:
        """The search for an R longer than `length`.

        Raises:
            TooManyError: the layout is too large for a table.
        """
        if layout.size > MAX_TABLE:
            raise TooManyError
        table = offsets(layout)
        order = np.argsort(table, kind="stable")
        met = distinct(table[table >= 0])
        gap = np.flatnonzero(met != np.arange(met.size))
        return ByTable(table, order, table[order], int(gap[0]) if gap.size else met.size, length)

    def run(self) -> int:
        """Try all candidates; return an upper bound on the length of R.

        Raises:
            TooManyError: the work limit was exceeded.
        """
        self.extend((), np.zeros(1, np.int64))
        return self.limit

    def extend(self, modes: tuple[Mode, ...], places: Offsets) -> None:
        """Try every mode that may follow; `places` holds R so far."""
        reach = places.size
        if reach > self.length:
            self.length, self.best = reach, modes
        if reach * (self.limit // reach) <= self.length:
            return
        steps, tops = self.steps(reach)
        length, fewest = self.length, self.fewest(reach)
        for step, top in zip(steps.tolist(), tops.tolist(), strict=True):
            if length != self.length:
                length, fewest = self.length, self.fewest(reach)
            if top < fewest:
                continue
            for count in range(self.most(places, step, top), fewest - 1, -1):
                self.spend(1)
                if reach * count * (self.limit // (reach * count)) > self.length:
                    wider = (np.arange(count)[:, None] * step + places).reshape(-1)
                    self.extend((*modes, Mode(count, step)), wider)

    def fewest(self, reach: int) -> int:
        """The size of the smallest mode that may lead to a longer R."""
        reaches = np.arange(2, self.limit // reach + 1) * reach
        self.spend(10 + reaches.size // 200)
        hopeful = reaches * (self.limit // reaches) > self.length
        return 2 + int(hopeful.argmax()) if hopeful.any() else self.limit + 1

    def steps(self, reach: int) -> tuple[Offsets, Offsets]:
        """Indices whose offset is `reach`, and how many of their multiples have multiples of that offset."""
        begin, end = np.searchsorted(self.values, (reach, reach + 1))
        steps = self.order[begin:end]
        tops = np.ones(steps.size, np.int64)
        alive = np.arange(steps.size)
        most = self.limit // reach
        for count in range(2, min(most, SHORT) + 1):
            self.spend(10 + alive.size // 50)
            alive = alive[(count - 1) * steps[alive] < self.table.size]
            alive = alive[self.table[(count - 1) * steps[alive]] == (count - 1) * reach]
            if not alive.size:
                return steps, tops
            tops[alive] = count
        for place in alive.tolist():
            line = self.table[:: steps[place]][:most]
            self.spend(10 + line.size // 200)
            wrong = line != np.arange(line.size) * reach
            tops[place] = wrong.argmax() if wrong.any() else line.size
        return steps, tops

    def most(self, places: Offsets, step: int, top: int) -> int:
        """The longest mode of that stride that may follow, at most `top`."""
        reach, last = places.size, self.table.size - 1
        begin, width = 1, SHORT
        while begin < top:
            counts = np.arange(begin, min(begin + width, top))[:, None]
            self.spend(20 + counts.size * reach // 50)
            moved = counts * step + places
            right = (moved <= last) & (
                self.table[np.minimum(moved, last)] == counts * reach + np.arange(reach)
            )
            whole = right.all(axis=1)
            if not whole.all():
                return begin + int(whole.argmin())
            begin, width = begin + width, 4 * width
        return top

    def spend(self, work: int) -> None:
        """Count work.

        Raises:
            TooManyError: the work limit was exceeded.
        """
        self.work -= work
        if self.work < 0:
            raise TooManyError
