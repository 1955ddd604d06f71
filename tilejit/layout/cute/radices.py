"""Layouts through given points, by a search over mixed radices; the strides solve equations in integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isqrt

from tilejit.layout.cute.layout import Layout
from tilejit.layout.cute.modes import from_modes, joined

MAX_RADICES = 10_000
Point = tuple[int, int]
"""An offset, and what the layout is to give for it."""


class TooManyError(Exception):
    """More radices than anyone waits for."""


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
    """The search for radices and strides through given points; `first` are primes tried before others."""

    points: Sequence[Point]
    first: Sequence[int]
    tried: int = 0

    def solution(self) -> Layout | None:
        """A layout through all points; None where there is none.

        Raises:
            TooManyError: more radices than the limit were tried.
        """
        return self.extend((), 1, _Solutions())

    def extend(self, radices: tuple[int, ...], weight: int, known: _Solutions) -> Layout | None:
        """Close with a digit without end, or go on with a prime radix while the equations have solutions."""
        closed = self.constrained(radices, known.wider(), weight, self.points[-1][0] + 1)
        if closed:
            return self.layout(radices, weight, closed)
        for prime in self.candidates(self.points[-1][0] // weight):
            known_here = self.constrained(radices, known.wider(), weight, weight * prime)
            if known_here:
                found = self.extend((*radices, prime), weight * prime, known_here)
                if found:
                    return found
        return None

    def constrained(
        self, radices: Sequence[int], known: _Solutions, begin: int, end: int
    ) -> _Solutions | None:
        """What the points from begin to end - 1 leave; the last digit takes all that is left of a number."""
        now: _Solutions | None = known
        for offset, index in self.points:
            if begin <= offset < end and now is not None:
                now = now.narrowed(_digits(offset, radices), index)
        return now

    def candidates(self, largest: int) -> Iterator[int]:
        """Primes to try as the next radix."""
        for number in chain(self.first, range(2, largest + 1)):
            if number <= largest and (number in self.first or _is_prime(number)):
                self.tried += 1
                if self.tried > MAX_RADICES:
                    raise TooManyError
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
