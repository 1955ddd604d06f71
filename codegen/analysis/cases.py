"""Integers that are unknown before a kernel runs, and the facts about them.

An unknown is a loop index, an address, a quotient, a minimum, or an entry of a table. All facts about it
are linear: expressions over unknowns that are 0, or not negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.ranges import Ends, range_in
from codegen.ir.index import Affine
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """Linear expressions that are 0, and others that are not negative."""

    zero: tuple[Affine, ...] = ()
    not_negative: tuple[Affine, ...] = ()

    @property
    def rows(self) -> tuple[Affine, ...]:
        """The same as inequalities."""
        return (*self.not_negative, *self.zero, *(row * -1 for row in self.zero))


Cases: TypeAlias = tuple[Case, ...]
"""One of these holds."""

Facts: TypeAlias = tuple[Cases, ...]
"""All of these hold: the facts from the conditions around a statement."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The place where an unknown is read: one of `count` entries of a table from an index on."""

    values: NDArray[np.int64]
    index: Affine
    count: int = 1

    def within(self, ranges: Mapping[str, Ends], index_range: Ends = (None, None)) -> Ends:
        """The range of the entries that the index may select; index_range: a further limit of the index."""
        low, high = range_in(self.index, ranges)
        least, most = index_range
        if least is not None:
            low = least if low is None else max(low, least)
        if most is not None:
            high = most if high is None else min(high, most)
        step = gcd(*(c for _, c in self.index.terms)) if self.index.terms and self.count == 1 else 1
        first = max(low or 0, 0)
        first += (self.index.constant - first) % step
        last = len(self.values) if high is None else min(high + self.count, len(self.values))
        chosen = self.values[first:last:step]
        return (int(chosen.min()), int(chosen.max())) if len(chosen) else (1, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """The facts that always hold for an unknown.

    rows    expressions that are not negative
    zero    expressions that are 0
    cases   one of them holds
    entry   the entry of a table that it is
    beside  an unknown whose cases are also about this one
    """

    name: str
    rows: tuple[Affine, ...] = ()
    zero: tuple[Affine, ...] = ()
    cases: Cases = ()
    entry: Entry | None = None
    beside: str = ""
