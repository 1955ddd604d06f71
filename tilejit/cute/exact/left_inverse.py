"""left_inverse: the layout L with L(A(i)) = i, from the chain of A's strides or a search over mixed radices.

L is a sum of digit times stride in some mixed radix; `radices` finds one through all points (A(i), i).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from codegen import LayoutError, dataclass, shown
from tilejit.cute.compose import compose_layouts
from tilejit.cute.digits import Digit, Mode, joined
from tilejit.cute.exact.injective import meeting
from tilejit.cute.exact.radices import MAX_WORK, Radices, TooManyError
from tilejit.cute.integers import narrowed
from tilejit.cute.layout import Layout, extent, trusted
from tilejit.cute.modes import EMPTY_MODE, flat_modes, from_modes
from tilejit.cute.tables import Table
from tilejit.cute.witness import NoLayoutError, Witness
from tilejit.support.tokens import MAX_INT64, named

MAX_TABLE = 1 << 21
"""The most elements of a layout whose points are all used."""
MAX_SAMPLE = 1 << 12
"""The number of points to start with for larger layouts."""
MAX_ROUNDS = 20
"""The most candidates that fit some points but not others."""


def left_inverse_of_layout(layout: Layout) -> Layout:
    """`left_inverse` of a Layout."""
    if layout.size == 0:
        raise NoLayoutError(f"{named(layout)} has no elements\n  use a layout with elements")
    digits: list[Digit] = []
    weight = 1
    for size, step in flat_modes(layout):
        if size > 1 and step:
            digits.append(Digit(size, step, 0, weight))
        if size > 1 and step < 0:
            raise NoLayoutError(
                f"{named(layout)} has no left inverse: index {shown(weight)} gives {step}, before the first "
                "element\n"
                "  use nonnegative strides",
                Witness(weight, step, None),
            )
        weight *= size
    digits.sort(key=attrgetter("stride", "size", "weight"))
    return _chain(digits) or _Problem.of(layout, digits).solved()


def _chain(digits: Sequence[Digit]) -> Layout | None:
    """The left inverse whose radices are the strides, or None.

    It exists if each stride divides the next one and exceeds all offsets of the smaller strides.
    """
    out: list[Mode] = []
    current, below, slope = 1, 0, 0
    for size, step, _, weight in digits:
        if step % current or below >= step:
            return None
        out.append(Mode(step // current, slope))
        current, slope = step, weight
        below += (size - 1) * step
    if not digits:
        return EMPTY_MODE
    return from_modes(joined([*out, Mode(digits[-1].size, slope)]))


@dataclass(frozen=True, slots=True)
class _Problem:
    """A without modes of stride 0: its modes as a layout, and the indices to return, as another layout."""

    layout: Layout
    core: Layout
    wanted: Layout

    @staticmethod
    def of(layout: Layout, digits: Sequence[Digit]) -> _Problem:
        sizes = tuple(digit.size for digit in digits)
        core = trusted(sizes, tuple(digit.stride for digit in digits))
        return _Problem(layout, core, trusted(sizes, tuple(digit.weight for digit in digits)))

    def solved(self) -> Layout:
        """Find L through all points of A, or through a sample that mistakes extend until none remain."""
        tops = extent(self.core)[1], extent(self.wanted)[1]
        whole = self.core.size <= MAX_TABLE and max(tops) <= MAX_INT64
        if not whole and (pair := meeting(self.core)):
            indices = self.wanted(pair[0]), self.wanted(pair[1])
            raise self.twice(min(indices), max(indices), self.core(pair[0]))
        points = self.points(np.arange(self.core.size) if whole else self.sample())
        work = [MAX_WORK]
        for _ in range(MAX_ROUNDS):
            try:
                found = Radices.through(*points, flat_steps(self.core), work)
            except TooManyError:
                break
            if found is None:
                raise self.no_radix(*points, whole)
            mistakes = [] if whole else self.mistakes(found)
            if not mistakes:
                return found
            points = self.points(np.array(mistakes, object), points)
        raise LayoutError(
            f"{named(self.layout)}: there are too many mixed radices to try\n"
            "  use strides that are each a multiple of the one before"
        )

    def sample(self) -> Table:
        """Indices at the start, in the middle and at the end of each mode, combined if there are few."""
        together, alone = np.zeros(1, object), [0]
        scale, room = 1, MAX_SAMPLE
        sizes = flat_sizes(self.core)
        for place, size in enumerate(sizes):
            share = min(room, max(2, int(room ** (1 / (len(sizes) - place)))))
            at = _spread(size, share).astype(object) * scale
            together = (at[:, None] + together).reshape(-1)
            room //= at.size
            alone += [scale * c for c in (1, size // 2, size - 1)]
            scale *= size
        return narrowed(np.append(together, np.array(alone, object)))

    def points(self, places: Table, others: tuple[Table, Table] | None = None) -> tuple[Table, Table]:
        """The points of elements, and others: offsets in ascending order, and the indices to return for them.

        Raises:
            NoLayoutError: two indices share an offset.
        """
        table, wanted = self.core(places), self.wanted(places)
        if others:
            table, wanted = np.append(others[0], table), np.append(others[1], wanted)
        order = np.lexsort((wanted, table))
        table, wanted = table[order], wanted[order]
        again = table[1:] == table[:-1]
        twice = np.flatnonzero(again & (wanted[1:] != wanted[:-1]))
        if twice.size:
            at = int(twice[0])
            raise self.twice(int(wanted[at]), int(wanted[at + 1]), int(table[at]))
        once = np.append(True, ~again)
        return table[once], wanted[once]

    def twice(self, first: int, second: int, offset: int) -> NoLayoutError:
        """The error for two indices that share an offset."""
        return NoLayoutError(
            f"{named(self.layout)} has no left inverse: indices {shown(first)} and {shown(second)} both "
            f"give {shown(offset)}\n"
            "  use strides whose offsets are distinct",
            Witness(second, first, second),
        )

    def no_radix(self, table: Table, wanted: Table, whole: bool) -> NoLayoutError:
        """The error for points that no layout passes through; it names the first that earlier ones rule out.

        Points are added in the order of the indices to return. If the search exceeds its work limit, the
        error describes a layout through fewer of them.
        """
        ordered = np.sort(wanted)
        before, none, step = EMPTY_MODE, ordered.size, 1  # no layout passes through that many points
        work = [MAX_WORK // 4]
        while True:
            values = before(table)
            index = wanted[values != wanted].min()
            right = int(np.searchsorted(ordered, index))
            if right + 1 == none:
                break
            last = min(right + step, (right + none - 1) // 2)
            step *= 4
            inside = wanted <= ordered[last]
            try:
                found = Radices.through(table[inside], wanted[inside], flat_steps(self.core), work)
            except (TooManyError, LayoutError):
                break
            none, before = (none, found) if found else (last + 1, before)
        seen = Witness(int(index), int(values[wanted == index][0]), int(index))
        return NoLayoutError(
            f"{named(self.layout)} has no left inverse: a layout that is correct for "
            f"{'all' if whole else right} smaller indices fails: {seen}\n"
            "  use strides that are each a multiple of the one before",
            seen,
        )

    def mistakes(self, found: Layout) -> list[int]:
        """Indices that L gets wrong; empty if it is correct."""
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
        """An index, and each of its coordinates alone."""
        out = [index]
        scale = 1
        rest = index
        for size in flat_sizes(self.core):
            rest, digit = divmod(rest, size)
            if digit:
                out.append(digit * scale)
            scale *= size
        return out


def _spread(size: int, count: int) -> Table:
    """All coordinates of a mode, or a limited number: half from the start, others from the middle and end."""
    if size <= count:
        return np.arange(size)
    quarter = count // 4
    middle, end = size // 2 + np.arange(quarter), size - 1 - np.arange(quarter)
    return np.unique(np.concatenate([np.arange(count - 2 * quarter), middle, end]))


def flat_sizes(layout: Layout) -> list[int]:
    """Sizes from left to right."""
    return [mode.size for mode in flat_modes(layout)]


def flat_steps(layout: Layout) -> list[int]:
    """Strides from left to right."""
    return [mode.stride for mode in flat_modes(layout)]
