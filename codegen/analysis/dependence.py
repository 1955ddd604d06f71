"""Which iterations may run as lanes together: dependences between accesses, decided by linear inequalities.

In a super-vector each statement runs for all its lanes before the next one does, and what it loads is loaded
before anything is stored. Iterations i and i + d of the scalar loop, d less than the size, may then meet in
one super-vector, and whatever the scalar loop does later must still come later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from codegen.analysis.polyhedra import feasible, projected
from codegen.ir.index import Affine, FloorDiv, Index, Mod, Sum, affine, index_symbol
from codegen.ir.visit import Access, Loop
from codegen.support.caching import remember


@dataclass(frozen=True, slots=True)
class Dependence:
    """What stands in the way of lanes: `later` must follow `earlier`, but in lanes it would not.

    loop    the number of the vectorized loop that carries it
    """

    loop: int
    earlier: Access
    later: Access

    def __str__(self) -> str:
        words = {
            (True, False): "is written and {} read",
            (False, True): "is read and {} written",
            (True, True): "is written and {} written",
        }[self.earlier.stores, self.later.stores]
        index = next(loop.node.index for loop in self.earlier.loops if loop.number == self.loop)
        return (
            f"{self.earlier} {words.format(self.later)} in a later iteration of {index} of the super-vector"
        )


@dataclass(slots=True)
class _System:
    """Equations and inequalities that are being written down, and what was asked of them."""

    zero: list[Affine]
    not_negative: list[Affine]
    made: int = 0
    answers: dict[Any, bool] = field(default_factory=dict)

    def feasible(self, zero: Sequence[Affine], not_negative: Sequence[Affine]) -> bool:
        """Whether these may hold besides."""
        key = *zero, None, *not_negative
        known = self.answers.get(key)
        if known is not None:
            return known
        found = feasible([*self.zero, *zero], [*self.not_negative, *not_negative])
        return remember(self.answers, key, found)

    def fresh(self) -> Affine:
        self.made += 1
        return index_symbol(f"#{self.made}")


def first_dependence(accesses: Sequence[Access], sizes: Mapping[int, int]) -> Dependence | None:
    """The first dependence that forbids to run loops as lanes, or None where nothing does.

    sizes: for the number of each loop to vectorize, how many iterations run together.

        for i: A[i + 1] = A[i]      sizes {0: 4} -> A[i + 1] is written and A[i] read …
        for i: A[i] = A[i + 1]      None: all lanes load before any stores
        for i: A[i + 4] = A[i]      None: four iterations later it is another super-vector

    Different arrays are taken to be different memory. Loops that are marked as parallel carry nothing.
    """
    for earlier in accesses:
        for later in accesses:
            if earlier.array == later.array and (earlier.stores or later.stores):
                loop = _carried_by(earlier, later, sizes)
                if loop is not None:
                    return Dependence(loop, earlier, later)
    return None


def goes_back(accesses: Sequence[Access], band: Sequence[Loop]) -> bool:
    """Whether a dependence goes on along one of these loops and back along one inside: no tiles then.

        for i: for j: A[i, j] = A[i - 1, j + 1]     True: the tile that is read comes after
        for i: for j: A[i, j] = A[i - 1, j - 1]     False

    Loops that are marked as parallel carry nothing.
    """
    for earlier in accesses:
        for later in accesses:
            if earlier.array != later.array or not (earlier.stores or later.stores):
                continue
            common = [a for a, b in zip(earlier.loops, later.loops, strict=False) if a.number == b.number]
            if band[0] not in common:
                continue
            system = _system_of(earlier, later)
            if system is None:
                continue
            for level, carrier in enumerate(common):
                if carrier not in band or carrier.node.parallel:
                    continue
                zero = [_distance(outer) for outer in common[:level]]
                for inner in common[level + 1 :]:
                    back = [_distance(carrier) - Affine(1), _distance(inner) * -1 - Affine(1)]
                    if inner in band and system.feasible(zero, back):
                        return True
    return False


def _carried_by(earlier: Access, later: Access, sizes: Mapping[int, int]) -> int | None:
    """The loop whose lanes would put `later` before, or at once with, an `earlier` that it must follow."""
    common = [a for a, b in zip(earlier.loops, later.loops, strict=False) if a.number == b.number]
    if not any(loop.number in sizes and not loop.node.parallel for loop in common):
        return None
    system = _system_of(earlier, later)
    if system is None:
        return None
    for level, loop in enumerate(common):
        if loop.number not in sizes or loop.node.parallel:
            continue
        same_before = [_distance(outer) for outer in common[:level]]
        together = [_distance(loop) - Affine(1), Affine(sizes[loop.number] - 1) - _distance(loop)]
        if not system.feasible(same_before, together):
            continue
        follows = later.place > earlier.place
        for zero, rows in _not_after(common[level + 1 :], sizes, follows):
            if system.feasible([*same_before, *zero], [*together, *rows]):
                return loop.number
    return None


def _not_after(
    loops: Sequence[Loop], sizes: Mapping[int, int], follows: bool
) -> Iterator[tuple[list[Affine], list[Affine]]]:
    """How iterations of these loops may differ such that lanes run the later access no later."""
    if not loops:
        if not follows:
            yield [], []
        return
    first, *rest = loops
    distance = _distance(first)
    yield [], [distance * -1 - Affine(1)]
    for zero, rows in _not_after(rest, sizes, follows):
        if first.number in sizes:
            yield zero, [distance, Affine(sizes[first.number] - 1) - distance, *rows]
        else:
            yield [distance, *zero], rows


def _distance(loop: Loop | _Range) -> Affine:
    """Iterations of a loop from the earlier access to the later."""
    return index_symbol(f"distance {loop.number}")


class _Range(NamedTuple):
    """What a loop's index goes through."""

    number: int
    name: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int


_Side: TypeAlias = tuple[tuple[Index, ...], tuple[_Range, ...]]
"""Subscripts, and the loops around them."""


def _system_of(earlier: Access, later: Access) -> _System | None:
    """What holds where both accesses touch one element, said by the distances of the loops that they share as
    far as that is short; None where they never do.
    """
    sides = (
        (
            access.subscripts,
            tuple(
                _Range(x.number, x.node.index, x.node.lower, x.node.upper, x.node.step) for x in access.loops
            ),
        )
        for access in (earlier, later)
    )
    return _same_element(*sides)


@lru_cache(maxsize=64)
def _same_element(earlier: _Side, later: _Side) -> _System | None:
    """The same for what of two accesses matters: one is asked about for each loop around it in turn."""
    system = _System([], [])
    sides = []
    for (subscripts, loops), mark in ((earlier, "<"), (later, ">")):
        names = {loop.name: f"{loop.name}{mark}" for loop in loops}
        for loop in loops:
            _inside(loop, names, system)
        sides.append([_linear(index, names, system) for index in subscripts])
    system.zero += [a - b for a, b in zip(*sides, strict=True)]
    common = [a for a, b in zip(earlier[1], later[1], strict=False) if a.number == b.number]
    for loop in common:
        here, there = index_symbol(f"{loop.name}<"), index_symbol(f"{loop.name}>")
        system.zero.append(there - here - _distance(loop) * loop.step)
    extents = {
        name for row in (*system.zero, *system.not_negative) for name, _ in row.terms if ".shape" in name
    }
    system.not_negative += [index_symbol(name) for name in sorted(extents)]
    found = projected(
        system.zero, system.not_negative, {name for x in common for name, _ in _distance(x).terms}
    )
    if found is None or not feasible(*found):
        return None
    return _System(*found)


def _inside(loop: _Range, names: Mapping[str, str], system: _System) -> None:
    """The index of a loop is one that it takes."""
    index = index_symbol(names[loop.name])
    sign = 1 if loop.step > 0 else -1
    starts = [_linear(bound, names, system) for bound in loop.lower]
    system.not_negative += [(index - start) * sign for start in starts]
    if len(starts) == 1 and abs(loop.step) > 1:
        system.zero.append(index - starts[0] - system.fresh() * loop.step)
    ends = [_linear(bound, names, system) for bound in loop.upper]
    system.not_negative += [(end - index) * sign - Affine(1) for end in ends]


def _linear(index: Index, names: Mapping[str, str], system: _System) -> Affine:
    """An index expression with its symbols renamed; divisions become numbers between inequalities."""
    match index:
        case Affine(constant, terms):
            return affine(constant, [(names.get(name, name), c) for name, c in terms])
        case FloorDiv(of, by) | Mod(of, by):
            inner, quotient = _linear(of, names, system), system.fresh()
            rest = inner - quotient * by
            system.not_negative += [rest, Affine(by - 1) - rest]
            return quotient if isinstance(index, FloorDiv) else rest
        case Sum(pieces, rest):
            total = _linear(rest, names, system)
            for piece, k in pieces:
                total = total + _linear(piece, names, system) * k
            return total
