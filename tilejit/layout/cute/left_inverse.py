"""left_inverse: the layout L with L(A(i)) = i, by the chain of A's strides or a search over mixed radices.

L is a sum of digit times stride in some mixed radix. Finer radices say all that coarser ones say, so prime
ones are tried; given those, the strides solve linear equations in integers, one for each offset of A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.errors import LayoutError
from codegen.records import dataclass
from tilejit.layout.cute.composition import compose_layouts
from tilejit.layout.cute.layout import Layout, expect_layout, offsets, trusted
from tilejit.layout.cute.modes import EMPTY_MODE, flat_modes, from_modes, joined
from tilejit.layout.cute.radices import MAX_STEPS, Radices, TooManyError, prime_factors
from tilejit.layout.cute.witness import NoLayoutError, Witness

MAX_ROUNDS = 200
MAX_TABLE = 1 << 20
MANY_POINTS = 256
"""Offsets that the search begins with."""


def left_inverse(layout: Layout) -> Layout:
    """The layout L with L(A(i)) = i for every i, coordinates of stride 0 taken as 0; judged nowhere else.

    (4,8):(1,5) -> (5,8):(1,4)    (6,3):(8,3) -> (8,6):(2,1)    4:3 -> (3,4):(0,1)

    Raises:
        NoLayoutError: there is none: an offset is negative or met twice, or no mixed radix fits; the witness
            is an index, what a layout gives back for it that is right before, and the index again.
        LayoutError: too many mixed radices to try.
    """
    expect_layout(layout)
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
                Witness(weight, step, None),
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
        indices += self.lowest()
        points: dict[int, int] = {}
        steps = [MAX_STEPS]
        for _ in range(MAX_ROUNDS):
            for index in indices:
                self.add(points, index)
            found = self.answer(points, steps)
            indices = self.mistakes(found)
            if not indices:
                return found
        raise self.given_up()

    def lowest(self) -> list[int]:
        """Indices of the smallest offsets, which rule out radices before others are tried on top of them."""
        if self.core.size > MAX_TABLE:
            return []
        table = offsets(self.core)
        count = min(MANY_POINTS, table.size)
        found = np.argpartition(table, count - 1)[:count]
        return [int(index) for index in found]

    def add(self, points: dict[int, int], index: int) -> None:
        """A point, unless its offset is there with another index."""
        offset, wanted = self.core(index), self.wanted(index)
        if points.setdefault(offset, wanted) != wanted:
            first, second = sorted((points[offset], wanted))
            raise self.met_twice(first, second, offset)

    def answer(self, points: dict[int, int], steps: list[int]) -> Layout:
        """A layout through the points."""
        search = Radices(sorted(points.items()), self.primes(), steps)
        try:
            found = search.solution()
        except TooManyError:
            self.check_injective()
            raise self.given_up() from None
        if found is None:
            self.check_injective()
            raise self.no_radix(points)
        return found

    def no_radix(self, points: dict[int, int]) -> LayoutError:
        """The error for points that no layout goes through, with the first that those before rule out.

        They are taken in the order of the indices to give back.
        """
        ordered = sorted(points.items(), key=lambda point: point[1])
        seen, before = None, EMPTY_MODE
        steps = [MAX_STEPS]
        low, high = 0, len(ordered)  # so many points have a layout, and so many none
        try:
            while high - low > 1:
                middle = (low + high) // 2
                found = Radices(sorted(ordered[:middle]), self.primes(), steps).solution()
                low, high, before = (middle, high, found) if found else (low, middle, before)
            offset, index = ordered[low]
            seen = Witness(index, before(offset), index)
        except TooManyError:
            pass
        one = f": one that gives back the indices before, at {seen}" if seen else ""
        return NoLayoutError(
            f"{str(self.layout)[:80]} has no left inverse: no mixed radix gives back all indices{one}\n"
            "  give strides of which each is a multiple of the one before",
            seen,
        )

    def primes(self) -> list[int]:
        """The primes in A's strides: radices to try first."""
        found = {p for step in flat_steps(self.core) for p in prime_factors(step)}
        return sorted(found)

    def mistakes(self, found: Layout) -> list[int]:
        """Indices that L gets wrong; none when it is right."""
        try:
            back = compose_layouts(found, self.core)
        except NoLayoutError as error:
            if error.witness is None:
                raise
            (index,) = error.witness.multi_index
            return self.with_parts(index)
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
            Witness(second, first, second),
        )

    def given_up(self) -> LayoutError:
        return LayoutError(
            f"{str(self.layout)[:80]}: too many mixed radices would have to be tried\n"
            "  give strides of which each is a multiple of the one before"
        )


def flat_sizes(layout: Layout) -> list[int]:
    """Sizes from left to right."""
    return [size for size, _ in flat_modes(layout)]


def flat_steps(layout: Layout) -> list[int]:
    """Strides from left to right."""
    return [step for _, step in flat_modes(layout)]
