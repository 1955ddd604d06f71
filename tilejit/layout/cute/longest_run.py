"""The longest right inverse where offsets are met twice or strides are negative: a bounded search."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from codegen.errors import LayoutError
from tilejit.layout.cute.layout import Layout, offsets
from tilejit.layout.cute.modes import from_modes, joined

MAX_TABLE = 1 << 20
MAX_TRIES = 20_000
Mode = tuple[int, int]


def longest_run(layout: Layout, found: Layout) -> Layout:
    """The longest R with A(R(i)) = i, or `found` where nothing is longer.

    (4,4):(1,2) -> (2,4):(1,4), of 8 elements; the chain of strides ends after 4

    Raises:
        LayoutError: the layout is too large, or there are too many ways to try them all.
    """
    if layout.size > MAX_TABLE:
        raise LayoutError(
            f"{str(layout)[:80]}: too large to search for the longest right inverse\n"
            "  give strides that are not negative and meet no offset twice"
        )
    table = offsets(layout)
    met = np.unique(table[table >= 0])
    gap = np.flatnonzero(met != np.arange(met.size))
    search = _Search(table, int(gap[0]) if gap.size else met.size, found.size)
    search.extend([], np.zeros(1, np.int64))
    return from_modes(joined(search.best)) if search.best else found


@dataclass(slots=True)
class _Search:
    """A table of A's offsets, the most elements that any R can have, and the best R so far."""

    table: NDArray[np.int64]
    limit: int
    length: int
    best: list[Mode] = field(default_factory=list)
    tries: int = 0

    def extend(self, modes: list[Mode], places: NDArray[np.int64]) -> None:
        """Try every mode that may follow; `places` holds R so far."""
        reach = places.size
        if reach > self.length:
            self.length, self.best = reach, modes
        for step in np.flatnonzero(self.table == reach) if reach < self.limit else ():
            if self.length >= self.limit:
                return
            self.tries += 1
            if self.tries > MAX_TRIES:
                raise LayoutError(
                    f"more than {MAX_TRIES} ways to a right inverse\n"
                    "  give a layout that meets no offset twice"
                )
            for count in range(self.most(places, int(step)), 1, -1):
                if reach * count * (self.limit // (reach * count)) > self.length:
                    wider = (np.arange(count)[:, None] * step + places).reshape(-1)
                    self.extend([*modes, (count, int(step))], wider)

    def most(self, places: NDArray[np.int64], step: int) -> int:
        """The longest mode of that stride which may follow."""
        reach = places.size
        count = 1
        while (count + 1) * reach <= self.limit:
            moved = places + count * step
            if moved.max() >= self.table.size:
                break
            if (self.table[moved] != np.arange(count * reach, (count + 1) * reach)).any():
                break
            count += 1
        return count
