"""The longest right inverse where offsets are met twice or strides are negative: a search by values.

Write indices in the mixed radix of A's coalesced sizes. A mode n:s of R whose digits never carry gives n
times the value of s; so modes are found by their values, and by how much room their digits leave: a
digit of size S has room S - 1, and a mode takes n - 1 times its part. A carry out of digit k changes the
value by d[k+1] - S[k]*d[k]; where these all have one sign no carries cancel, and nothing else need be looked
at. Otherwise a table of values is searched too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from math import gcd

import numpy as np
from numpy.typing import NDArray

from codegen.errors import LayoutError
from codegen.records import dataclass
from tilejit.layout.cute.injective import distinct
from tilejit.layout.cute.layout import Layout, offsets
from tilejit.layout.cute.modes import flat_modes, from_modes, joined
from tilejit.layout.tokens import MAX_INT64

MAX_TABLE = 1 << 20
MAX_TRIES = 1_000_000
Mode = tuple[int, int]


def longest_run(layout: Layout, found: Layout) -> Layout:
    """The longest R with A(R(i)) = i, or `found` where nothing is longer.

    (4,4):(1,2) -> (4,2):(1,8), of 8 elements; the chain of strides ends after 4

    Raises:
        LayoutError: there are too many ways to try them all, or the longest has strides past 64 bits.
    """
    digits = joined(flat_modes(layout))
    search = _ByRoom.of(digits, layout, found.size)
    rooms = tuple(search.sizes[k] - 1 for k in range(len(search.sizes)))
    search.extend(1, rooms, ())
    best, length = search.best, search.length
    carries = [after[1] - size * step for (size, step), after in pairwise(digits)]
    if min(carries, default=1) < 0 < max(carries, default=1) and length < search.bound(1, rooms):
        by_table = _ByTable.of(layout, length)
        by_table.extend((), np.zeros(1, np.int64))
        best = by_table.best or best
    if any(step > MAX_INT64 for _, step in best):
        raise LayoutError(
            f"the right inverse of {str(layout)[:80]} has strides past 64 bits\n  give smaller sizes"
        )
    return from_modes(joined(best)) if best else found


def _given_up(layout: Layout) -> LayoutError:
    return LayoutError(
        f"{str(layout)[:80]}: more than {MAX_TRIES} ways to a right inverse\n"
        "  give strides that are not negative and meet no offset twice"
    )


@dataclass(slots=True)
class _ByRoom:
    """The digits of A that move it, and the longest R so far; R never carries.

    Attributes:
        layout: A.
        sizes, steps, weights: of each digit; the weight is the index at which it is 1.
        length: elements of the longest R.
        best: its modes; none while the one that was there before is the longest.
        seen: values reached, with the rooms that were left.
    """

    layout: Layout
    sizes: list[int]
    steps: list[int]
    weights: list[int]
    length: int
    best: tuple[Mode, ...] = ()
    seen: set[tuple[int, tuple[Mode, ...]]] = field(default_factory=set)
    tries: int = 0

    @staticmethod
    def of(digits: Sequence[Mode], layout: Layout, length: int) -> _ByRoom:
        """The search for something longer than `length`."""
        moving: list[tuple[int, int, int]] = []
        weight = 1
        for size, step in digits:
            if step:
                moving.append((step, size, weight))
            weight *= size
        moving.sort(key=lambda digit: (-abs(digit[0]), digit))
        steps, sizes, weights = ([digit[k] for digit in moving] for k in range(3))
        return _ByRoom(layout, sizes, steps, weights, length)

    def extend(self, reach: int, rooms: tuple[int, ...], modes: tuple[Mode, ...]) -> None:
        """Try every mode that may follow an R of `reach` elements."""
        if reach > self.length:
            self.length, self.best = reach, modes
        bound = self.bound(reach, rooms)
        state = reach, tuple(sorted((d, r) for d, r in zip(self.steps, rooms, strict=True) if r))
        if reach * bound <= self.length or state in self.seen:
            return
        self.seen.add(state)
        for count in self.counts(reach, rooms, bound):
            for parts in self.sums(reach, rooms, count):
                left = tuple(r - (count - 1) * part for r, part in zip(rooms, parts, strict=True))
                step = sum(part * weight for part, weight in zip(parts, self.weights, strict=True))
                self.extend(reach * count, left, (*modes, (count, step)))
                if reach * count * (bound // count) <= self.length:
                    break

    def bound(self, reach: int, rooms: Sequence[int]) -> int:
        """How many times longer R can become: values grow by what the rooms hold, smaller strides first."""
        least = sum(-d * r for d, r in zip(self.steps, rooms, strict=True) if d < 0)
        most = reach - 1
        for step, room in sorted(zip(self.steps, rooms, strict=True)):
            if step > most + 1 + least:
                break
            if step > 0:
                most += step * room
        return (most + 1) // reach

    def counts(self, reach: int, rooms: Sequence[int], bound: int) -> Iterator[int]:
        """Sizes of the next mode, the largest first, that leave a chance to be longer than the longest."""
        low, high = 1, bound
        while low < high:
            middle = (low + high + 1) // 2
            if next(self.sums(reach, rooms, middle), None) is None:
                high = middle - 1
            else:
                low = middle
        count = low
        while count > 1:
            times = bound // count
            least = max(bound // (times + 1), self.length // (reach * times))
            if count <= least:
                count = bound // (times + 1)
                self.tick()
                continue
            yield count
            count -= 1

    def sums(self, value: int, rooms: Sequence[int], count: int) -> Iterator[list[int]]:
        """Parts of the digits whose value it is, and that have room count - 1 times."""
        room = _Room.of(self.steps, rooms, count)
        if not room.fits(0, value):
            return
        parts: list[int] = []
        ways = [room.choices(0, value, parts)]
        rest = value
        while ways:
            self.tick()
            place = len(ways) - 1
            if len(parts) > place:
                rest += parts.pop() * self.steps[place]
            part = next(ways[-1], None)
            if part is None:
                ways.pop()
                continue
            parts.append(part)
            rest -= part * self.steps[place]
            if place + 1 == len(rooms):
                yield list(parts)
            elif room.fits(place + 1, rest):
                ways.append(room.choices(place + 1, rest, parts))

    def tick(self) -> None:
        """Count a try.

        Raises:
            LayoutError: too many.
        """
        self.tries += 1
        if self.tries > MAX_TRIES:
            raise _given_up(self.layout)


@dataclass(frozen=True, slots=True)
class _Room:
    """What a mode of some size can take of each digit, and what values that makes.

    Attributes:
        steps: of each digit.
        boxes: the largest part of each digit.
        lows, highs, divisors: of the values of all digits from each one on.
        ends: behind the last digit that is like each one.
    """

    steps: Sequence[int]
    boxes: Sequence[int]
    lows: Sequence[int]
    highs: Sequence[int]
    divisors: Sequence[int]
    ends: Sequence[int]

    @staticmethod
    def of(steps: Sequence[int], rooms: Sequence[int], count: int) -> _Room:
        """For a mode of `count`."""
        boxes = [room // (count - 1) for room in rooms]
        last = len(boxes)
        lows, highs, divisors = [0] * (last + 1), [0] * (last + 1), [0] * (last + 1)
        ends = [*range(1, last + 1)]
        for k in reversed(range(last)):
            reach = boxes[k] * steps[k]
            lows[k], highs[k] = lows[k + 1] + min(reach, 0), highs[k + 1] + max(reach, 0)
            divisors[k] = gcd(divisors[k + 1], steps[k] if boxes[k] else 0)
            if k + 1 < last and (steps[k], rooms[k]) == (steps[k + 1], rooms[k + 1]):
                ends[k] = ends[k + 1]
        return _Room(steps, boxes, lows, highs, divisors, ends)

    def fits(self, place: int, value: int) -> bool:
        """Whether the digits from one on may make a value: it is within reach, and a multiple."""
        divisor = self.divisors[place]
        within = self.lows[place] <= value <= self.highs[place]
        return within and (value % divisor == 0 if divisor else value == 0)

    def choices(self, place: int, rest: int, parts: Sequence[int]) -> Iterator[int]:
        """What a digit can take, if those behind it can make up for the rest; like ones take ever less."""
        step, most, end = abs(self.steps[place]), self.boxes[place], self.ends[place]
        if place and self.ends[place - 1] == end:
            most = min(most, parts[place - 1])
        if self.steps[place] > 0:
            needed, allowed = rest - self.highs[end], rest - self.lows[place + 1]
        else:
            needed, allowed = self.lows[end] - rest, self.highs[place + 1] - rest
        least = max(0, -(-needed // (step * (end - place))))
        return iter(range(min(most, allowed // step), least - 1, -1))


@dataclass(slots=True)
class _ByTable:
    """A table of A's offsets, the most elements that any R can have, and the best R so far."""

    layout: Layout
    table: NDArray[np.int64]
    limit: int
    length: int
    best: tuple[Mode, ...] = ()
    tries: int = 0

    @staticmethod
    def of(layout: Layout, length: int) -> _ByTable:
        """The search for something longer than `length`.

        Raises:
            LayoutError: the layout is too large for a table.
        """
        if layout.size > MAX_TABLE:
            raise _given_up(layout)
        table = offsets(layout)
        met = distinct(table[table >= 0])
        gap = np.flatnonzero(met != np.arange(met.size))
        return _ByTable(layout, table, int(gap[0]) if gap.size else met.size, length)

    def extend(self, modes: tuple[Mode, ...], places: NDArray[np.int64]) -> None:
        """Try every mode that may follow; `places` holds R so far."""
        reach = places.size
        if reach > self.length:
            self.length, self.best = reach, modes
        if reach * (self.limit // reach) <= self.length:
            return
        steps, tops = self.steps(reach)
        for step, top in zip(steps.tolist(), tops.tolist(), strict=True):
            if not any(self.hopeful(reach, count) for count in range(2, top + 1)):
                continue
            self.tries += 1
            if self.tries > MAX_TRIES:
                raise _given_up(self.layout)
            for count in range(self.most(places, step, top), 1, -1):
                if self.hopeful(reach, count):
                    wider = (np.arange(count)[:, None] * step + places).reshape(-1)
                    self.extend((*modes, (count, step)), wider)

    def hopeful(self, reach: int, count: int) -> bool:
        """Whether a mode of so many may lead to something longer."""
        return reach * count * (self.limit // (reach * count)) > self.length

    def steps(self, reach: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of that value, and how far the values of their multiples go on as they should."""
        steps = np.flatnonzero(self.table == reach)
        tops = np.ones(steps.size, np.int64)
        alive = np.arange(steps.size)
        for count in range(2, self.limit // reach + 1):
            alive = alive[count - 1 < -(-self.table.size // np.maximum(steps[alive], 1))]
            alive = alive[self.table[(count - 1) * steps[alive]] == (count - 1) * reach]
            if not alive.size:
                break
            tops[alive] = count
        return steps, tops

    def most(self, places: NDArray[np.int64], step: int, top: int) -> int:
        """The longest mode of that stride which may follow, at most `top`."""
        reach = places.size
        for count in range(1, top):
            moved = places + count * step
            if moved.max() >= self.table.size:
                return count
            if (self.table[moved] != np.arange(count * reach, (count + 1) * reach)).any():
                return count
        return top
