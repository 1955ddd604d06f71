"""Proofs that some facts about unknowns contradict each other.

There are three steps, each tried only if the one before fails: the ranges of unknowns narrow each other;
unknowns are eliminated (`polyhedra`); and if one of several cases holds, each is refuted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import gcd

from codegen.analysis.cases import Case, Cases, Facts, Unknown
from codegen.analysis.polyhedra import feasible
from codegen.analysis.ranges import Ends
from codegen.ir.index import Affine
from codegen.support.dataclasses import dataclass

MOST_CASES = 400
"""The most cases that one proof may try; a kernel needs far fewer."""

PASSES = 3
"""How many times ranges narrow each other."""


def refutes(unknowns: Mapping[str, Unknown], ranges: Mapping[str, Ends], goal: Case, facts: Facts) -> bool:
    """Whether a goal contradicts the facts and what is known about the unknowns.

    0 <= i < 10, j = min(i, 6):  i >= 10 -> True;  j >= 7 -> True;  i - j >= 3 -> False
    """
    sure = [goal, *(cases[0] for cases in facts if len(cases) == 1)]
    return _Proof(unknowns, ranges).refuted(sure, [cases for cases in facts if len(cases) > 1], frozenset())


@dataclass(slots=True)
class _Proof:
    """A proof, case by case. tried: the number of cases so far."""

    known: Mapping[str, Unknown]
    ranges: Mapping[str, Ends]
    tried: int = 0

    def refuted(self, sure: list[Case], open_facts: list[Cases], split: frozenset[str]) -> bool:
        """Whether cases that all hold contradict each other, or one of each of the open facts.

        The first of `sure` is the goal. `split` names unknowns whose cases are among `sure`.
        """
        self.tried += 1
        if self.tried > MOST_CASES:
            return False
        unknowns = related(self.known, _rows(sure))
        zero = [row for case in sure for row in case.zero] + [row for u in unknowns for row in u.zero]
        rows = [row for case in sure for row in case.not_negative] + [row for u in unknowns for row in u.rows]
        rows = [_tightened(row) for row in rows]
        ranges = {u.name: self.ranges[u.name] for u in unknowns}
        if not _narrow([*rows, *_combined(zero, rows), *zero, *(row * -1 for row in zero)], ranges, unknowns):
            return True
        if not feasible(zero, [*rows, *ends(ranges)]):
            return True
        near = related(self.known, _rows(sure[:1]))
        for unknown in (u for u in unknowns if u.cases and u.name not in split):
            if unknown in near or not open_facts:
                done = split | {unknown.name}
                return all(self.refuted([*sure, case], open_facts, done) for case in unknown.cases)
        for cases in open_facts:
            left = [each for each in open_facts if each is not cases]
            return all(self.refuted([*sure, case], left, split) for case in cases)
        return False


def related(unknowns: Mapping[str, Unknown], rows: Iterable[Affine]) -> list[Unknown]:
    """The unknowns in expressions and in the definitions of these, in the order of their distance."""
    found: dict[str, None] = {}
    front = [name for row in rows for name, _ in row.terms]
    while front:
        front = list(dict.fromkeys(front))
        found.update(dict.fromkeys(front))
        inside = (unknowns[name] for name in front)
        front = [name for unknown in inside for name in _mentioned(unknown) if name not in found]
    return [unknowns[name] for name in found]


def _rows(cases: Iterable[Case]) -> Iterator[Affine]:
    return (row for case in cases for row in (*case.zero, *case.not_negative))


def _mentioned(unknown: Unknown) -> Iterator[str]:
    """The unknowns in the definition of one."""
    for row in (*unknown.rows, *unknown.zero, *([unknown.entry.index] if unknown.entry else [])):
        yield from (name for name, _ in row.terms)
    if unknown.beside:
        yield unknown.beside


def _narrow(rows: list[Affine], ranges: dict[str, Ends], unknowns: list[Unknown]) -> bool:
    """Narrow the ranges by rows that are not negative; False if these cannot hold."""
    entries = [u for u in unknowns if u.entry]
    for _ in range(PASSES):
        changed = False
        for unknown in reversed(entries):
            assert unknown.entry
            changed |= meet(
                ranges, unknown.name, unknown.entry.within(ranges, _compared(unknown.entry.index, rows))
            )
        for row in rows:
            if not row.terms:
                if row.constant < 0:
                    return False
                continue
            for name, end in implied(row, ranges):
                changed |= meet(ranges, name, end)
        if any(low is not None and high is not None and low > high for low, high in ranges.values()):
            return False
        if not changed:
            break
    return True


def _compared(index: Affine, rows: list[Affine]) -> Ends:
    """The smallest and the largest value of an index by the rows that compare it with a number.

    384*t + 64*j - 64 >= 0 -> 384*t + 64*j is at least 64, though t and j may both be 0
    """
    opposite = (index * -1).terms
    least = max((index.constant - row.constant for row in rows if row.terms == index.terms), default=None)
    most = min((row.constant + index.constant for row in rows if row.terms == opposite), default=None)
    return least, most


def _combined(zero: list[Affine], rows: list[Affine]) -> Iterator[Affine]:
    """The rows that equations turn into bounds of a single unknown.

    n - 384*t - 64*j = 0 and 3136 - 384*t - 64*j >= 0 -> 3136 - n >= 0
    """
    for equation in zero:
        factors = dict(equation.terms)
        for row in rows:
            name, c = next(((n, c) for n, c in row.terms if n in factors), ("", 0))
            if name and c % factors[name] == 0:
                both = row - equation * (c // factors[name])
                if len(both.terms) == 1:
                    yield both


def _tightened(row: Affine) -> Affine:
    """The same inequality of integers with the smallest constant: 1535 - 64*i >= 0 -> 1472 - 64*i >= 0."""
    factor = gcd(*(c for _, c in row.terms)) or 1
    return Affine(row.constant // factor * factor, row.terms)


def implied(row: Affine, ranges: Mapping[str, Ends]) -> Iterator[tuple[str, Ends]]:
    """The range that a row implies for each of its unknowns, given the ranges of the others."""
    most, open_names = row.constant, []
    for name, c in row.terms:
        end = ranges[name][1 if c > 0 else 0]
        if end is None:
            open_names.append(name)
        else:
            most += c * end
    if len(open_names) > 1:
        return
    for name, c in row.terms:
        if open_names and name not in open_names:
            continue
        end = ranges[name][1 if c > 0 else 0]
        others = most if end is None else most - c * end
        # c * x + others >= 0
        yield name, ((-(others // c), None) if c > 0 else (None, others // -c))


def meet(ranges: dict[str, Ends], name: str, end: Ends) -> bool:
    """Narrow the range of an unknown to what is also in another one; return whether it changed."""
    low, high = ranges[name]
    if end[0] is not None and (low is None or end[0] > low):
        low = end[0]
    if end[1] is not None and (high is None or end[1] < high):
        high = end[1]
    changed = (low, high) != ranges[name]
    ranges[name] = low, high
    return changed


def ends(ranges: Mapping[str, Ends]) -> Iterator[Affine]:
    """Ranges as expressions that are not negative."""
    for name, (low, high) in ranges.items():
        if low is not None:
            yield Affine(-low, ((name, 1),))
        if high is not None:
            yield Affine(high, ((name, -1),))
