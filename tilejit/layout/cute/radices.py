"""Layouts through given points, by a search over mixed radices; the strides solve equations in integers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import chain
from math import isqrt

from codegen.records import dataclass
from tilejit.layout.cute.layout import Layout
from tilejit.layout.cute.modes import from_modes, joined

MAX_STEPS = 60_000
"""Equations solved and numbers tried before a search is given up: under a second."""

Point = tuple[int, int]
"""An offset, and what the layout is to give for it."""


class TooManyError(Exception):
    """A longer search than anyone waits for."""


@dataclass(frozen=True, slots=True)
class _Solutions:
    """All integer solutions of linear equations: base + any combination of the rows of `free`."""

    base: tuple[int, ...] = ()
    free: tuple[tuple[int, ...], ...] = ()

    def wider(self) -> _Solutions:
        """One more unknown, about which nothing is known."""
        width = len(self.base)
        unit = (*[0] * width, 1)
        return _Solutions((*self.base, 0), (*((*row, 0) for row in self.free), unit))

    def narrowed(self, row: Sequence[int], right: int) -> _Solutions | None:
        """Those with row * solution = right; None where there is none."""
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
        return _Solutions(_minus(self.base, -(missing // value), vector), tuple(kept))


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _minus(a: Sequence[int], times: int, b: Sequence[int]) -> tuple[int, ...]:
    return tuple(x - times * y for x, y in zip(a, b, strict=True))


@dataclass(slots=True)
class Radices:
    """The search for radices and strides through given points.

    Attributes:
        points: in ascending order of their offsets.
        first: primes tried before others.
        steps: how many there may be yet, in a list that searches after this one go on with.
        seen: weights, with the strides that are known there.
    """

    points: Sequence[Point]
    first: Sequence[int]
    steps: list[int] = field(default_factory=lambda: [MAX_STEPS])
    seen: set[tuple[int, tuple[tuple[int, int], ...]]] = field(default_factory=set)

    def solution(self) -> Layout | None:
        """A layout through all points; None where there is none.

        Raises:
            TooManyError: more steps than the limit.
        """
        return self.extend((), 1, _Solutions())

    def extend(self, radices: tuple[int, ...], weight: int, known: _Solutions) -> Layout | None:
        """Close with a digit without end, or go on with a prime radix while the equations have solutions.

        A larger radix has the equations of a smaller one and more: the first point that this digit cannot
        reach together with those before ends the radices to try.
        """
        if not known.free:  # finer radices of the same strides are no new way
            state = weight, tuple(joined(zip(radices, known.base, strict=True)))
            if state in self.seen:
                return None
            self.seen.add(state)
        passed = [(weight, known.wider())]
        end = None
        for offset, index in self.points:
            if offset < weight:
                continue
            self.step()
            now = passed[-1][1].narrowed(_digits(offset, radices), index)
            if now is None:
                end = offset
                break
            passed.append((offset + 1, now))
        if end is None:
            return self.layout(radices, weight, passed[-1][1])
        for prime in self.candidates(end // weight):
            _, known_here = passed[bisect_right(passed, weight * prime, key=lambda state: state[0]) - 1]
            found = self.extend((*radices, prime), weight * prime, known_here)
            if found:
                return found
        return None

    def step(self) -> None:
        """Count an equation or a number.

        Raises:
            TooManyError: that was one too many.
        """
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise TooManyError

    def candidates(self, largest: int) -> Iterator[int]:
        """Primes to try as the next radix."""
        for number in chain(self.first, range(2, largest + 1)):
            self.step()
            if number <= largest and (number in self.first or _is_prime(number)):
                yield number

    def layout(self, radices: tuple[int, ...], weight: int, known: _Solutions) -> Layout:
        """One solution, strides that run on from digit to digit where they may."""
        width = len(known.base)
        for place, radix in enumerate(radices):
            row = [0] * width
            row[place], row[place + 1] = radix, -1
            known = known.narrowed(row, 0) or known
        sizes = (*radices, self.points[-1][0] // weight + 1)
        return from_modes(joined(zip(sizes, known.base, strict=True)))


def _digits(number: int, radices: Sequence[int]) -> list[int]:
    out = []
    for radix in radices:
        number, digit = divmod(number, radix)
        out.append(digit)
    return [*out, number]


def _is_prime(number: int) -> bool:
    return all(number % k for k in range(2, isqrt(number) + 1))


def prime_factors(number: int) -> set[int]:
    """The primes below 2^10 that divide a number."""
    return {p for p in range(2, 1 << 10) if number % p == 0 and _is_prime(p)}
