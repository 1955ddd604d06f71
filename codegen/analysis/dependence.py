"""Dependences between accesses, tested by linear inequalities: they decide which iterations may run as lanes.

In a super-vector, each statement runs for all lanes before the next one, and its loads come before its
stores. Iterations i and i + d of the scalar loop, d less than the size, may then share a super-vector. An
access that comes later in the scalar loop must still come later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

from codegen.analysis.linear import linear, loop_index
from codegen.analysis.polyhedra import feasible, projected
from codegen.analysis.unknowns import Exclusive, Unknowns
from codegen.ir.index import Affine, Index, distinct_element, index_symbol, index_symbols
from codegen.ir.nodes import MANY
from codegen.ir.visit import Access, Loop
from codegen.support.caching import Cache, cached
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect


@dataclass(frozen=True, slots=True)
class Dependence:
    """A dependence that prevents lanes: `later` must follow `earlier`, but in lanes it would not.

    loop    the number of the vectorized loop that carries it
    """

    loop: int
    earlier: Access
    later: Access

    @property
    def has_same_subscripts(self) -> bool:
        """Whether it is between accesses with the same subscripts."""
        return self.earlier.subscripts == self.later.subscripts

    def __str__(self) -> str:
        return f"{self.reason} of the super-vector"

    @property
    def reason(self) -> str:
        """Why the later access must follow."""
        phrase = {
            (True, False): "is written and {} read",
            (False, True): "is read and {} written",
            (True, True): "is written and {} written",
        }[self.earlier.stores, self.later.stores]
        around = (loop.node.index for loop in self.earlier.loops if loop.number == self.loop)
        index = expect(around, f"loop {self.loop}", self.earlier)
        return f"{self.earlier} {phrase.format(self.later)} in a later iteration of {index}"


@dataclass(slots=True)
class _System:
    """Equations and inequalities under construction, and the answers to previous queries.

    exclusive   each ^ of the subscripts
    """

    zero: list[Affine]
    not_negative: list[Affine]
    exclusive: Sequence[Exclusive] = ()
    answers: Cache[Any, bool] = field(default_factory=Cache)

    def feasible(self, zero: Sequence[Affine], not_negative: Sequence[Affine]) -> bool:
        """Whether the system may hold with these added."""
        key = *zero, None, *not_negative
        known = self.answers.get(key)
        if known is not None:
            return known
        found = feasible([*self.zero, *zero], [*self.not_negative, *not_negative])
        return self.answers.keep(key, found)

    def is_zero(self, expression: Affine) -> bool:
        """Whether an expression is 0 wherever the system holds."""
        rows = expression, expression * -1
        return not any(feasible(self.zero, [*self.not_negative, row - Affine(1)]) for row in rows)


def first_dependence(
    accesses: Sequence[Access], sizes: Mapping[int, int], distrusted: int | None = None
) -> Dependence | None:
    """The first dependence that forbids running loops as lanes, or None.

    sizes: how many iterations run together, by the number of each loop to vectorize.

        for i: A[i + 1] = A[i]      sizes {0: 4} -> A[i + 1] is written and A[i] read …
        for i: A[i] = A[i + 1]      None: all lanes load before any stores
        for i: A[i + 4] = A[i]      None: four iterations later is another super-vector

    Different arrays are assumed not to overlap. Loops that are marked as parallel carry no dependence, and
    those with a minimum distance only between iterations that are this far apart. The promises of the loop
    with the number `distrusted` do not count.
    """
    for earlier in accesses:
        for later in accesses:
            if earlier.array == later.array and (earlier.stores or later.stores):
                loop = _carried_by(earlier, later, sizes, distrusted)
                if loop is not None:
                    return Dependence(loop, earlier, later)
    return None


Blocks: TypeAlias = Sequence[tuple[str, int]]
"""Loops, outermost first: for each, a loop of the function, and its iterations in one of theirs."""


def first_reversed(accesses: Sequence[Access], order: Blocks, lanes: Mapping[str, int]) -> Dependence | None:
    """The first dependence that another order of perfectly nested loops would reverse, or None.

    order  the loops, over tiles and over what is in a tile
    lanes  the iterations of each loop that run together, of loops around these ones as well

        for i: for j: A[i, j] = A[i - 1, j + 1]     order i 8, j 8, i 1, j 1 -> i: it reads from a later tile
        for i: for j: A[i, j] = A[i - 1, j - 1]     order i 8, j 8, i 1, j 1 -> None
        for i: for j: A[i, j] = A[i - 1, j + 1]     order j 1, i 1 -> i: it reads what a later j writes

    Loops that are marked as parallel carry no dependence. The lanes are legal without the new order.
    """
    names = [name for name, _ in order]
    for earlier in accesses:
        for later in accesses:
            if earlier.array != later.array or not (earlier.stores or later.stores):
                continue
            common = [a for a, b in zip(earlier.loops, later.loops, strict=False) if a.number == b.number]
            known = {loop.node.index: loop for loop in common}
            system = _system_of(earlier, later) if names[0] in known else None
            if system is None:
                continue
            around = [(name, lanes.get(name, 1)) for name in known if name not in names]
            around = around[: next(k for k, name in enumerate(known) if name in names)]
            for level, carrier in enumerate(common):
                if carrier.node.parallel:
                    continue
                zero = [_distance(outer) for outer in common[:level]]
                for back in (loop for loop in common[level + 1 :] if loop.node.index in names):
                    before = [*around, *order[: names.index(back.node.index)]]
                    rows = [_distance(carrier) - Affine(1), _distance(back) * -1 - Affine(1)]
                    for name, size in before:
                        apart = _distance(known[name])
                        rows += [Affine(size - 1) - apart, Affine(size - 1) + apart]
                    if system.feasible(zero, rows):
                        return Dependence(carrier.number, earlier, later)
    return None


def _carried_by(
    earlier: Access, later: Access, sizes: Mapping[int, int], distrusted: int | None
) -> int | None:
    """The loop whose lanes would run `later` before, or together with, an `earlier` that it must follow."""
    common = [a for a, b in zip(earlier.loops, later.loops, strict=False) if a.number == b.number]
    least = {loop.number: _nearest(loop, distrusted) for loop in common if loop.number in sizes}
    if not any(nearest < sizes[number] for number, nearest in least.items()):
        return None
    system = _system_of(earlier, later)
    if system is None:
        return None
    for level, loop in enumerate(common):
        if least.get(loop.number, MANY) >= sizes.get(loop.number, MANY):
            continue
        same_before = [_distance(outer) for outer in common[:level]]
        apart = _distance(loop)
        together = [apart - Affine(least[loop.number]), Affine(sizes[loop.number] - 1) - apart]
        if not system.feasible(same_before, together):
            continue
        follows = later.place > earlier.place
        for zero, rows in _not_after(common[level + 1 :], sizes, follows):
            if system.feasible([*same_before, *zero], [*together, *rows]):
                return loop.number
    return None


def _nearest(loop: Loop, distrusted: int | None) -> int:
    """The least distance between iterations of a loop that may depend on each other."""
    if loop.number == distrusted:
        return 1
    return MANY if loop.node.parallel else loop.node.min_distance


def _not_after(
    loops: Sequence[Loop], sizes: Mapping[int, int], follows: bool
) -> Iterator[tuple[list[Affine], list[Affine]]]:
    """The iteration distances of these loops for which lanes do not run the later access later."""
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
    """The iterations of a loop from the earlier access to the later one."""
    return index_symbol(f"distance {loop.number}")


class _Range(NamedTuple):
    """The range of a loop's index."""

    number: int
    name: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int


_Side: TypeAlias = tuple[tuple[Index, ...], tuple[_Range, ...]]
"""Subscripts, and the loops that enclose them."""


def _system_of(earlier: Access, later: Access) -> _System | None:
    """The constraints under which both accesses touch one element; None if they never do.

    They are in terms of the distances of the loops that enclose both, as far as that keeps them short.
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


@cached(64)
def _same_element(earlier: _Side, later: _Side) -> _System | None:
    """Like _system_of, for the relevant parts of two accesses; each loop around them repeats the query."""
    unknowns = Unknowns()
    sides, indices = list[list[Affine]](), list[dict[str, Affine]]()
    for (subscripts, loops), others in ((earlier, later[0]), (later, earlier[0])):
        symbols: dict[str, Affine] = {}

        def number(index: Index, symbols: Mapping[str, Affine] = symbols) -> Affine:
            return linear(index, unknowns, lambda name: symbols.get(name) or unknowns.size(name))

        for loop in loops:
            ends = list(map(number, loop.lower)), list(map(number, loop.upper))
            inside = loop_index(loop.name, *ends, loop.step, unknowns)
            if inside is None:
                return None
            symbols[loop.name], _, _ = inside
        sides.append([number(index) for index in _told_apart(subscripts, others)])
        indices.append(symbols)
    system = _System(*unknowns.system(), unknowns.exclusive)
    system.zero += [a - b for a, b in zip(*sides, strict=True)]
    common = [a for a, b in zip(earlier[1], later[1], strict=False) if a.number == b.number]
    for loop in common:
        here, there = (symbols[loop.name] for symbols in indices)
        system.zero.append(there - here - _distance(loop) * loop.step)
    _invert_exclusive(system, common, {loop.name for loop in (*earlier[1], *later[1])})
    found = projected(
        system.zero, system.not_negative, {name for x in common for name, _ in _distance(x).terms}
    )
    if found is None or not feasible(*found):
        return None
    return _System(*found)


def _invert_exclusive(system: _System, common: Sequence[_Range], differing: set[str]) -> None:
    """Equate the sides of ^ whose results and other sides are equal.

    j ^ (i & 7) == j' ^ (i' & 7), i == i' -> j == j'

    differing: the indices of all loops around one of the accesses.
    """
    if not system.exclusive:
        return
    for loop in common:
        if system.is_zero(_distance(loop)):
            system.zero.append(_distance(loop))
            differing.discard(loop.name)
    for one, other in combinations(reversed(system.exclusive), 2):
        for a, c in product((0, 1), repeat=2):
            known, also = one.written[1 - a], other.written[1 - c]
            alike = known == also and not differing & index_symbols(known)
            equal = alike or system.is_zero(one.sides[1 - a] - other.sides[1 - c])
            if equal and system.is_zero(one.result - other.result):
                system.zero.append(one.sides[a] - other.sides[c])
                break


def _told_apart(subscripts: Sequence[Index], others: Sequence[Index]) -> Iterator[Index]:
    """Subscripts with distinct elements of one array replaced by their own subscripts, if on both sides.

    y[p[i]], y[p[j + 1]] -> i and j + 1, which are equal if and only if the elements are
    """
    for one, two in zip(subscripts, others, strict=True):
        here, there = distinct_element(one), distinct_element(two)
        if here and there and here.array == there.array:
            yield from here.subscripts
        else:
            yield one
