"""The longest right inverse whose digits never carry, found by values and by the room that digits leave.

Write indices in the mixed radix of A's coalesced sizes. A mode n:s of R whose digits never carry maps to n
times the value of s. So modes are found by their values and by how much room their digits leave: a digit of
size S has room S - 1, and a mode takes n - 1 times its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from math import gcd

from codegen import dataclass
from tilejit.cute.digits import Digit, Mode
from tilejit.cute.exact.radices import TooManyError

MAX_WORK = 2_000_000
"""The most steps of the search; two or three take a microsecond."""

Rooms = tuple[tuple[int, int], ...]
"""Stride and room of each digit with remaining room."""


@dataclass(slots=True)
class ByRoom:
    """The search for the longest R whose digits never carry, over the digits of A that change its value.

    Attributes:
        sizes, steps, weights: of each digit; the weight is the index at which it is 1.
        length: the number of elements of the longest R.
        best: its modes; empty while the previous R is the longest.
        seen: values reached, with the rooms left.
        work: the remaining work.
    """

    sizes: list[int]
    steps: list[int]
    weights: list[int]
    length: int
    best: tuple[Mode, ...] = ()
    seen: set[tuple[int, Rooms]] = field(default_factory=set)
    work: int = MAX_WORK

    @staticmethod
    def of(digits: Sequence[Mode], length: int) -> ByRoom:
        """The search for an R longer than `length`."""
        moving: list[Digit] = []
        weight = 1
        for size, step in digits:
            if step:
                moving.append(Digit(size, step, 0, weight))
            weight *= size
        moving.sort(key=lambda digit: (-abs(digit.stride), digit.stride, digit.size, digit.weight))
        sizes, steps, _, weights = ([digit[k] for digit in moving] for k in range(4))
        return ByRoom(sizes, steps, weights, length)

    def run(self) -> int:
        """Try all candidates; return an upper bound on the length of R.

        Raises:
            TooManyError: the work limit was exceeded.
        """
        rooms = tuple(size - 1 for size in self.sizes)
        self.extend(1, rooms, ())
        return self.bound(1, rooms)

    def extend(self, reach: int, rooms: tuple[int, ...], modes: tuple[Mode, ...]) -> None:
        """Try every mode that may follow an R of `reach` elements."""
        if reach > self.length:
            self.length, self.best = reach, modes
        self.spend(10 + 5 * len(rooms))
        bound = self.bound(reach, rooms)
        state = reach, tuple(sorted((d, r) for d, r in zip(self.steps, rooms, strict=True) if r))
        if reach * bound <= self.length or state in self.seen:
            return
        self.seen.add(state)
        for count in self.counts(reach, rooms, bound):
            for parts in self.sums(reach, rooms, count):
                left = tuple(r - (count - 1) * part for r, part in zip(rooms, parts, strict=True))
                step = sum(part * weight for part, weight in zip(parts, self.weights, strict=True))
                self.extend(reach * count, left, (*modes, Mode(count, step)))
                if reach * count * (bound // count) <= self.length:
                    break

    def bound(self, reach: int, rooms: Sequence[int]) -> int:
        """An upper bound on the factor by which R can grow, from the remaining room of each digit."""
        least = sum(-d * r for d, r in zip(self.steps, rooms, strict=True) if d < 0)
        most = reach - 1
        for step, room in sorted(zip(self.steps, rooms, strict=True)):
            if step > most + 1 + least:
                break
            if step > 0:
                most += step * room
        return (most + 1) // reach

    def counts(self, reach: int, rooms: Sequence[int], bound: int) -> Iterator[int]:
        """Sizes of the next mode, the largest first, that could beat the longest R."""
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
                self.spend(1)
                continue
            yield count
            count -= 1

    def sums(self, value: int, rooms: Sequence[int], count: int) -> Iterator[list[int]]:
        """Shares of the digits that add up to a value and leave room for count - 1 times as much."""
        self.spend(10 + 2 * len(rooms))
        room = _Room.of(self.steps, rooms, count)
        if not room.fits(0, value):
            return
        parts: list[int] = []
        stack = [room.choices(0, value, parts)]
        rest = value
        while stack:
            self.spend(2)
            place = len(stack) - 1
            if len(parts) > place:
                rest += parts.pop() * self.steps[place]
            part = next(stack[-1], None)
            if part is None:
                stack.pop()
                continue
            parts.append(part)
            rest -= part * self.steps[place]
            if place + 1 == len(rooms):
                yield list(parts)
            elif room.fits(place + 1, rest):
                stack.append(room.choices(place + 1, rest, parts))

    def spend(self, work: int) -> None:
        """Count work.

        Raises:
            TooManyError: the work limit was exceeded.
        """
        self.work -= work
        if self.work < 0:
            raise TooManyError


@dataclass(frozen=True, slots=True)
class _Room:
    """The shares of each digit that a mode of some size can take, and the values they give.

    Attributes:
        steps: of each digit.
        boxes: the largest share of each digit.
        lows, highs, divisors: of the values of all digits from each one on.
        ends: one past the last digit that equals each one.
    """

    steps: Sequence[int]
    boxes: Sequence[int]
    lows: Sequence[int]
    highs: Sequence[int]
    divisors: Sequence[int]
    ends: Sequence[int]

    @staticmethod
    def of(steps: Sequence[int], rooms: Sequence[int], count: int) -> _Room:
        """The room for a mode of `count`."""
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
        """Whether a value is in the range of the digits from `place`, and divisible by their divisor."""
        divisor = self.divisors[place]
        within = self.lows[place] <= value <= self.highs[place]
        return within and (value % divisor == 0 if divisor else value == 0)

    def choices(self, place: int, rest: int, parts: Sequence[int]) -> Iterator[int]:
        """The shares of a digit that later digits can complete; equal digits take non-increasing shares."""
        step, most, end = abs(self.steps[place]), self.boxes[place], self.ends[place]
        if place and self.ends[place - 1] == end:
            most = min(most, parts[place - 1])
        if self.steps[place] > 0:
            needed, allowed = rest - self.highs[end], rest - self.lows[place + 1]
        else:
            needed, allowed = self.lows[end] - rest, self.highs[place + 1] - rest
        least = max(0, -(-needed // (step * (end - place))))
        return iter(range(min(most, allowed // step), least - 1, -1))
