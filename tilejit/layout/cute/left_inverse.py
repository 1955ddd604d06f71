"""left_inverse: the layout L with L(A(i)) = i, by the chain of A's strides or a search over mixed radices.

L is a sum of digit times stride in some mixed radix. Finer radices say all that coarser ones say, so prime
ones are tried; given those, the strides solve linear equations in integers, one for each offset of A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from codegen.errors import LayoutError
from tilejit.layout.cute.composition import compose_layouts
from tilejit.layout.cute.layout import Layout, offsets, trusted
from tilejit.layout.cute.modes import EMPTY_MODE, flat_modes, from_modes, joined
from tilejit.layout.cute.witness import NoLayoutError, Witness

MAX_RADICES = 4000
MAX_ROUNDS = 200
MAX_TABLE = 1 << 20
Point = tuple[int, int]
"""An offset of A and the index that has it."""


def left_inverse(layout: Layout) -> Layout:
    """The layout L with L(A(i)) = i for every i, coordinates of stride 0 taken as 0; judged nowhere else.

    (4,8):(1,5) -> (5,8):(1,4)    (6,3):(8,3) -> (8,6):(2,1)    4:3 -> (3,4):(0,1)

    Raises:
        NoLayoutError: there is none: an offset is negative or met twice, or no mixed radix fits.
        LayoutError: too many mixed radices to try.
    """
    if layout.size == 0:
        raise NoLayoutError(f"{layout} has no elements to find\n  give it some")
    modes: list[tuple[int, int, int]] = []
    weight = 1
    for size, step in flat_modes(layout):
        if size > 1 and step:
            modes.append((step, size, weight))
        if size > 1 and step < 0:
            raise NoLayoutError(
                f"{str(layout)[:80]} has no left inverse: index {weight} gives {step}, before any element\n"
                "  give strides of 0 or more",
                Witness(weight, step, 0),
            )
        weight *= size
    modes.sort()
    return _chain(modes) or _Problem.of(layout, modes).solved()


def _chain(modes: Sequence[tuple[int, int, int]]) -> Layout | None:
    """Each stride divides the next and ends before it: the radices are the strides."""
    out: list[tuple[int, int]] = []
    current, below, slope = 1, 0, 0
    for step, size, weight in modes:
        if step % current or below >= step:
            return None
        out.append((step // current, slope))
        current, slope = step, weight
        below += (size - 1) * step
    if not modes:
        return EMPTY_MODE
    return from_modes(joined([*out, (modes[-1][1], slope)]))


@dataclass(frozen=True, slots=True)
class _Problem:
    """A without stride 0: its modes as a layout, and the indices it should give back, as another."""

    layout: Layout
    core: Layout
    wanted: Layout

    @staticmethod
    def of(layout: Layout, modes: Sequence[tuple[int, int, int]]) -> _Problem:
        sizes = tuple(size for _, size, _ in modes)
        core = trusted(sizes, tuple(step for step, _, _ in modes))
        return _Problem(layout, core, trusted(sizes, tuple(weight for _, _, weight in modes)))

    def solved(self) -> Layout:
        """L: solve for some offsets, and for those that it gets wrong, until none is."""
        indices = [0]
        scale = 1
        for size in flat_sizes(self.core):
            indices += [scale * c for c in {1, size // 2, size - 1} if c]
            scale *= size
        if scale <= 64:
            indices = list(range(scale))
        points: dict[int, int] = {}
        for _ in range(MAX_ROUNDS):
            for index in indices:
                self.add(points, index)
            found = self.answer(points)
            indices = self.mistakes(found)
            if not indices:
                return found
        raise self.given_up()

    def add(self, points: dict[int, int], index: int) -> None:
        """A point, unless its offset is there with another index."""
        offset, wanted = self.core(index), self.wanted(index)
        if points.setdefault(offset, wanted) != wanted:
            first, second = sorted((points[offset], wanted))
            raise self.met_twice(first, second, offset)

    def answer(self, points: dict[int, int]) -> Layout:
        """A layout through the points."""
        search = _Radices(sorted(points.items()), self.primes())
        try:
            found = search.solution()
        except _TooManyError:
            self.check_injective()
            raise self.given_up() from None
        if found is None:
            self.check_injective()
            raise NoLayoutError(
                f"{str(self.layout)[:80]} has no left inverse: no mixed radix gives back all indices\n"
                "  give strides of which each is a multiple of the one before"
            )
        return found

    def primes(self) -> list[int]:
        """The primes in A's strides: radices to try first."""
        found = {p for step in flat_steps(self.core) for p in _prime_factors(step)}
        return sorted(found)

    def mistakes(self, found: Layout) -> list[int]:
        """Indices that L gets wrong; none when it is right."""
        try:
            back = compose_layouts(found, self.core)
        except NoLayoutError as error:
            if error.witness is None:
                raise
            return self.with_parts(error.witness.index)
        if back == self.wanted:
            return []
        out: list[int] = []
        scale = 1
        for mode, wanted in zip(back, self.wanted, strict=True):
            out += [scale * c for c in range(1, min(64, wanted.size)) if mode(c) != wanted(c)][:1]
            if mode != wanted:
                out.append(scale * (wanted.size - 1))
                run = mode.shape[0] if isinstance(mode.shape, tuple) else 1
                out.append(scale * min(wanted.size - 1, run if isinstance(run, int) else 1))
            scale *= wanted.size
        return out

    def with_parts(self, index: int) -> list[int]:
        """An index and its coordinates, each alone."""
        out = [index]
        scale = 1
        rest = index
        for size in flat_sizes(self.core):
            rest, digit = divmod(rest, size)
            if digit:
                out.append(digit * scale)
            scale *= size
        return out

    def check_injective(self) -> None:
        """Raise with two indices where an offset is met twice; large layouts are not looked through."""
        if self.core.size > MAX_TABLE:
            return
        table, wanted = offsets(self.core), offsets(self.wanted)
        order = np.lexsort((wanted, table))
        twice = np.flatnonzero(table[order][1:] == table[order][:-1])
        if twice.size:
            first, second = wanted[order[twice[0]]], wanted[order[twice[0] + 1]]
            raise self.met_twice(int(first), int(second), int(table[order[twice[0]]]))

    def met_twice(self, first: int, second: int, offset: int) -> LayoutError:
        return NoLayoutError(
            f"{str(self.layout)[:80]} has no left inverse: indices {first} and {second} both give {offset}\n"
            "  give strides that meet no offset twice",
            Witness(second, offset, offset),
        )

    def given_up(self) -> LayoutError:
        return LayoutError(
            f"{str(self.layout)[:80]}: more than {MAX_RADICES} mixed radices would have to be tried\n"
            "  give strides of which each is a multiple of the one before"
        )


def flat_sizes(layout: Layout) -> list[int]:
    """Sizes from left to right."""
    return [size for size, _ in flat_modes(layout)]


def flat_steps(layout: Layout) -> list[int]:
    """Strides from left to right."""
    return [step for _, step in flat_modes(layout)]


class _TooManyError(Exception):
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
class _Radices:
    """The search for radices and strides through given points; `first` are primes tried before others."""

    points: Sequence[Point]
    first: Sequence[int]
    tried: int = 0

    def solution(self) -> Layout | None:
        return self.extend((), 1, _Solutions())

    def extend(self, radices: tuple[int, ...], weight: int, known: _Solutions) -> Layout | None:
        """Close with a digit without end, or go on with a prime radix while the equations have solutions."""
        self.tried += 1
        if self.tried > MAX_RADICES:
            raise _TooManyError
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
        yield from (p for p in self.first if p <= largest)
        yield from (p for p in range(2, largest + 1) if _is_prime(p) and p not in self.first)

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


def _prime_factors(number: int) -> set[int]:
    """The primes below 2^10 that divide a number."""
    out = {p for p in range(2, 1 << 10) if number % p == 0 and _is_prime(p)}
    return out
