"""Find layouts through given points by a search over mixed radices; the strides solve integer equations.

A layout is L(x) = the sum of e[k] * (x // q[k]) over weights 1 = q[0] | q[1] | … and integers e: with the
radices r[k] = q[k+1] / q[k] its strides are d[0] = e[0] and d[k+1] = e[k+1] + r[k] * d[k]. For neighboring
points x < y,

    L(y) - L(x) = the sum of e[k] * (the number of multiples of q[k] in (x, y])

Suppose that no integers solve these equations for some of the pairs, with the weights q[0] … q[k] alone. A
layout whose weights start with these has a multiple of q[k+1] in one of those pairs. Otherwise none of its
later weights, which are multiples of q[k+1], would have one either, and e[0] … e[k] would solve the
equations. Adding a weight excludes no layout, so q[k+1] may be q[k] times a prime, and the prime divides a
number m for which q[k] * m is in one of the pairs. Pairs with few multiples of q[k] leave few primes, and
pairs without any leave no layout. Therefore the search adds pairs in ascending order of their number of
multiples, until they have no solution.

The equations of pairs without a multiple of q[k] hold for every continuation of the weights. Two lists of
weights are the same case if their last weights and their remaining functions are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.cute.digits import Mode, joined
from tilejit.cute.exact.equations import Solutions
from tilejit.cute.exact.primes import is_prime, prime_factors
from tilejit.cute.layout import Layout
from tilejit.cute.modes import EMPTY_MODE, from_modes
from tilejit.cute.tables import Table
from tilejit.support.tokens import MAX_INT64

MAX_WORK = 20_000
"""The most work of a search: a second or two."""
STEP_WORK = 3
"""Work for each weight that is tried, in addition to the numbers in its equations."""
NUMBERS = 1 << 13
"""The numbers that one unit of work processes."""

MOST_FACTORED = 64
"""The most numbers to factor; if there are more, primes are tried in turn."""

MOST_DROPPED = 6
"""The most pairs to drop, one by one, from those without a solution, if the others have none either."""

EACH, MOST = 64, 2048
"""About how many pairs a search starts with: for each gap and rise, and for the smallest gaps."""

State = tuple[int, tuple[tuple[int, ...], ...]]
"""The last weight, and the earlier weights that still have free functions: weight, base, free rows."""

Span = tuple[int, int]
"""A range (a, b]: the numbers after a, up to b."""


class TooManyError(Exception):
    """The work limit was exceeded."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Neighboring points.

    Attributes:
        low, high: their offsets.
        rise: the layout's value for the higher offset minus its value for the lower one.
    """

    low: Table
    high: Table
    rise: Table

    @staticmethod
    def of(offsets: Table, values: Table) -> Pairs:
        """Pairs of points in ascending order of offsets; the first point is 0 and maps to 0."""
        return Pairs(offsets[:-1], offsets[1:], np.diff(values))

    def multiples(self, weights: Sequence[int]) -> Table:
        """The number of multiples of each weight after the lower point, up to the higher one."""
        out = np.empty((self.low.size, len(weights)), self.low.dtype)
        for place, weight in enumerate(weights):
            out[:, place] = self.high // weight - self.low // weight
        return out

    def at(self, places: NDArray[np.intp]) -> Pairs:
        """A subset of the pairs."""
        return Pairs(self.low[places], self.high[places], self.rise[places])

    def typical(self) -> Pairs:
        """A few pairs for each gap and rise, which give similar equations; pairs of small gaps come first."""
        if self.low.size <= MOST or self.low.dtype == object:
            return self
        gap = self.high - self.low
        order = np.lexsort((self.rise, gap))
        gap, rise = gap[order], self.rise[order]
        begins = np.flatnonzero(np.append(True, (gap[1:] != gap[:-1]) | (rise[1:] != rise[:-1])))
        counts = np.diff(np.append(begins, gap.size))
        numbers = np.arange(gap.size) - np.repeat(begins, counts)
        picked = order[numbers % np.repeat(np.maximum(1, counts // EACH), counts) == 0]
        return self.at(np.sort(np.append(picked[:MOST], _spread(picked[MOST:], MOST))))

    def joined(self, more: Pairs) -> Pairs:
        """Both lists, concatenated."""
        return Pairs(
            np.append(self.low, more.low), np.append(self.high, more.high), np.append(self.rise, more.rise)
        )


def _spread(places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most `count` of the places, evenly spaced."""
    return places[:: max(1, -(-places.size // count))]


@dataclass(slots=True)
class Radices:
    """The search for weights and strides.

    Attributes:
        every: all pairs.
        steps: numbers, such as strides, whose divisors are tried before other weights.
        primes: the primes that divide any of them.
        work: the remaining work, in a list that later searches share.
        some: pairs that filter weights; weights that satisfy all of them are checked against every pair.
        divisors_alone: whether only divisors are tried.
        failed: cases that no layout starts with.
    """

    every: Pairs
    steps: Sequence[int]
    primes: Collection[int]
    work: list[int]
    some: Pairs
    divisors_alone: bool = True
    failed: set[State] = field(default_factory=set)

    @staticmethod
    def through(offsets: Table, values: Table, steps: Sequence[int], work: list[int]) -> Layout | None:
        """A layout through points in ascending order of their offsets, (0, 0) first; None if there is none.

        Raises:
            TooManyError: the work limit was exceeded.
            LayoutError: the strides exceed 64 bits.
        """
        if offsets.size == 1:
            return EMPTY_MODE
        every = Pairs.of(offsets, values)
        primes = {p for step in steps for p in prime_factors(step)}
        search = Radices(every, steps, primes, [work[0] // 4], every.typical())
        with suppress(TooManyError):
            if found := search.extend((1,), Solutions()):
                return found
        search = Radices(every, steps, primes, work, search.some, divisors_alone=False)
        search.spend(16 * every.low.size)
        return search.extend((1,), Solutions())

    def extend(self, weights: tuple[int, ...], before: Solutions) -> Layout | None:
        """Finish with an unbounded digit, or continue with another weight; `before` excludes the last one."""
        rows = self.some.multiples(weights)
        self.spend(rows.size * (1 + len(before.free)), STEP_WORK)
        order = np.argsort(rows[:, -1], kind="stable")
        rows, rise = rows[order], self.some.rise[order]
        begun = int((rows[:, -1] == 0).sum())
        settled = _narrowed(before.wider(), rows[:begun], rise[:begun], [])
        if settled is None:
            return None
        state = _state(weights, settled)
        if state in self.failed:
            return None
        taken: list[int] = []
        known = _narrowed(settled, rows[begun:], rise[begun:], taken)
        if known is None:
            needed = [begun + k for k in _needed(settled, rows[begun:], rise[begun:], taken)]
            for prime in self.candidates(self.some.at(order[needed]), weights[-1]):
                found = self.extend((*weights, weights[-1] * prime), settled)
                if found:
                    return found
            self.failed.add(state)
            return None
        wrong = self.wrong(weights, known)
        if not wrong.size:
            return self.layout(weights, known)
        self.some = self.some.joined(self.every.at(wrong))
        return self.extend(weights, before)

    def wrong(self, weights: Sequence[int], known: Solutions) -> NDArray[np.intp]:
        """A sample of the pairs that contradict the solutions."""
        rows = self.every.multiples(weights)
        self.spend(rows.size)
        return _spread(np.flatnonzero(known.broken(rows, self.every.rise)), EACH)

    def candidates(self, pairs: Pairs, weight: int) -> Iterator[int]:
        """Primes whose product with the weight has a multiple in one of these pairs."""
        spans = [(int(a) // weight, int(b) // weight) for a, b in zip(pairs.low, pairs.high, strict=True)]
        if sum(b - a for a, b in spans) <= MOST_FACTORED:
            numbers = {m for a, b in spans for m in range(a + 1, b + 1)}
            found = {p for m in numbers for p in prime_factors(m)}
            yield from self.in_order(found, weight)
            return
        first = [p for p in self.primes if _meets(spans, p)]
        yield from self.in_order(first, weight)
        if self.divisors_alone:
            return
        for number in range(2, max(b for _, b in spans) + 1):
            if number % 64 == 0:
                self.spend(NUMBERS)
            if number not in first and _meets(spans, number) and is_prime(number):
                yield number

    def in_order(self, primes: Iterable[int], weight: int) -> list[int]:
        """Sort: first primes whose product with the weight divides a step, then those that divide one."""
        divide = {p for p in primes if any(step % (weight * p) == 0 for step in self.steps)}
        chosen = divide if self.divisors_alone else primes
        return sorted(chosen, key=lambda p: (p not in divide, p not in self.primes, p))

    def spend(self, numbers: int, steps: int = 0) -> None:
        """Count the work for that many numbers.

        Raises:
            TooManyError: the work limit was exceeded.
        """
        slow = 16 if self.every.high[-1] >= 1 << 31 else 1  # products exceed 64 bits
        self.work[0] -= steps + slow * numbers // NUMBERS
        if self.work[0] < 0:
            raise TooManyError

    def layout(self, weights: Sequence[int], known: Solutions) -> Layout:
        """One solution: strides that continue each other, or small ones if those exceed 64 bits."""
        radices = [b // a for a, b in pairwise(weights)]
        on = known
        for place in range(1, len(weights)):
            row = [int(k == place) for k in range(len(weights))]
            on = on.narrowed(row, 0) or on
        strides = _strides(on.base, radices)
        for solutions in (on, known):
            if max(map(abs, strides)) > MAX_INT64:
                free = tuple(_strides(row, radices) for row in solutions.free)
                strides = Solutions(_strides(solutions.base, radices), free).least()
        if max(map(abs, strides)) > MAX_INT64:
            raise LayoutError("a stride of the left inverse exceeds 64 bits\n  use smaller strides")
        top = int(self.every.high[-1]) // weights[-1] + 1
        return from_modes(joined(map(Mode, (*radices, top), strides)))


def _strides(coefficients: Sequence[int], radices: Sequence[int]) -> tuple[int, ...]:
    """The strides of digits from the coefficients of weights."""
    out = [coefficients[0]]
    for radix, more in zip(radices, coefficients[1:], strict=True):
        out.append(more + radix * out[-1])
    return tuple(out)


def _meets(spans: Sequence[Span], number: int) -> bool:
    """Whether a multiple of the number is in one of the spans."""
    return any(b // number > a // number for a, b in spans)


def _narrowed(known: Solutions, rows: Table, rise: Table, taken: list[int]) -> Solutions | None:
    """The solutions of all rows; `taken` receives the positions of rows that excluded some, in order."""
    at, block = 0, 64
    while at < rise.size:
        wrong = known.broken(rows[at : at + block], rise[at : at + block])
        first = int(wrong.argmax())
        if not wrong[first]:
            at, block = at + block, 2 * block
            continue
        at += first
        taken.append(at)
        fewer = known.narrowed(rows[at].tolist(), int(rise[at]))
        if fewer is None:
            return None
        known, at = fewer, at + 1
    return known


def _needed(known: Solutions, rows: Table, rise: Table, taken: list[int]) -> list[int]:
    """Rows without a common solution; fewer if some can be dropped, the last ones first."""
    for drop in taken[-2 : -2 - MOST_DROPPED : -1]:
        others = [place for place in taken if place != drop]
        if _narrowed(known, rows[others], rise[others], []) is None:
            taken = others
    return taken


def _state(weights: Sequence[int], settled: Solutions) -> State:
    """The key of a case."""
    free = tuple(row[:-1] for row in settled.free if any(row[:-1]))
    own = Solutions(settled.base[:-1], free).canonical()
    columns = zip(weights, own.base, *own.free, strict=False)
    return weights[-1], tuple(column for column in columns if any(column[1:]))
