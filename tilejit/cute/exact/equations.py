"""Linear equations in integers, solved incrementally."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.cute.tables import Table

MAX_ROUNDS = 100
"""The most rounds of reducing solutions by each other."""


@dataclass(frozen=True, slots=True)
class Solutions:
    """All integer solutions of linear equations: base + any combination of the rows of `free`."""

    base: tuple[int, ...] = ()
    free: tuple[tuple[int, ...], ...] = ()

    def wider(self) -> Solutions:
        """Add an unknown without constraints."""
        unit = (*[0] * len(self.base), 1)
        return Solutions((*self.base, 0), (*((*row, 0) for row in self.free), unit))

    def narrowed(self, row: Sequence[int], right: int) -> Solutions | None:
        """The solutions with row * solution = right; None if there are none."""
        missing = right - _dot(row, self.base)
        free = [(_dot(row, vector), vector) for vector in self.free]
        kept = [vector for value, vector in free if value == 0]
        pivots = [(value, vector) for value, vector in free if value]
        if not pivots:
            return self if missing == 0 else None
        while len(pivots) > 1:
            pivots.sort(key=lambda p: abs(p[0]))
            least, vector = pivots[0]
            reduced = [(v - v // least * least, _minus(w, v // least, vector)) for v, w in pivots[1:]]
            kept += [w for v, w in reduced if v == 0]
            pivots = [pivots[0], *((v, w) for v, w in reduced if v)]
        value, vector = pivots[0]
        if missing % value:
            return None
        return Solutions(_minus(self.base, -(missing // value), vector), tuple(kept))

    def broken(self, rows: Table, right: Table) -> NDArray[np.bool_]:
        """The equations, one per row, that not all of these solutions satisfy."""
        largest = max(max(map(abs, vector)) for vector in (self.base, *self.free))
        sums = rows.shape[1] * largest * max(1, int(abs(rows).max(initial=0)))
        kind = np.int64 if rows.dtype == right.dtype == np.int64 and sums < 1 << 62 else object
        rows = rows.astype(kind, copy=False)
        wrong: NDArray[np.bool_] = rows @ np.array(self.base, kind) != right
        for vector in self.free:
            wrong |= rows @ np.array(vector, kind) != 0
        return wrong

    def least(self) -> tuple[int, ...]:
        """One solution with small numbers; smaller ones may exist."""
        rows = [self.base, *self.free]
        for _ in range(MAX_ROUNDS):
            before = list(rows)
            for place in range(1, len(rows)):
                vector = rows[place]
                square = _dot(vector, vector)
                for other in range(len(rows)):
                    if other != place:
                        times = (2 * _dot(rows[other], vector) + square) // (2 * square)  # rounded
                        rows[other] = _minus(rows[other], times, vector)
            if rows == before:
                break
        return rows[0]

    def canonical(self) -> Solutions:
        """The same solutions in Hermite normal form, which is unique."""
        base, rows = self.base, list(self.free)
        done = 0
        for column in range(len(base)):
            pivot, below = _eliminated(rows[done:], column)
            if pivot is None:
                continue
            size = pivot[column]
            rows = [_minus(row, row[column] // size, pivot) for row in rows[:done]]
            base = _minus(base, base[column] // size, pivot)
            rows += [pivot, *below]
            done += 1
        return Solutions(base, tuple(rows))


def _eliminated(
    rows: list[tuple[int, ...]], column: int
) -> tuple[tuple[int, ...] | None, list[tuple[int, ...]]]:
    """The same lattice with at most one row that is positive in a column; the others are 0 there."""
    zero = [row for row in rows if not row[column]]
    live = [row for row in rows if row[column]]
    while len(live) > 1:
        live.sort(key=lambda row: abs(row[column]))
        least = live[0]
        rest = [_minus(row, row[column] // least[column], least) for row in live[1:]]
        zero += [row for row in rest if not row[column]]
        live = [least, *(row for row in rest if row[column])]
    if not live:
        return None, zero
    (pivot,) = live
    return (pivot if pivot[column] > 0 else tuple(-x for x in pivot)), zero


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _minus(a: Sequence[int], times: int, b: Sequence[int]) -> tuple[int, ...]:
    return tuple(x - times * y for x, y in zip(a, b, strict=True))
