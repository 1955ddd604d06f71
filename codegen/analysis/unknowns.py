"""The unknowns of one function, and proofs that linear expressions over them are not negative.

The prover of bounds: `range` and `extremes` give the least and the largest value of an expression, and
`proves` also tries facts of which one of several cases holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from codegen.analysis.cases import Case, Cases, Entry, Facts, Unknown
from codegen.analysis.polyhedra import range_within
from codegen.analysis.ranges import Ends, range_in
from codegen.analysis.refutation import ends, implied, meet, refutes, related
from codegen.ir.elements import MOST
from codegen.ir.index import Affine, Index, index_symbol
from codegen.support.dataclasses import dataclass


class Exclusive(NamedTuple):
    """The sides of a ^, as written and over unknowns, and its result."""

    written: tuple[Index, Index]
    sides: tuple[Affine, Affine]
    result: Affine


@dataclass(slots=True)
class Unknowns:
    """All unknowns of a function by name.

    Attributes:
        known: the facts about each.
        ranges: the range of each.
        named: how many unknowns share a name; an apostrophe and a number distinguish them.
        made: quotients, remainders, minima and bits, so that the same expression is the same unknown.
        minima: the expressions of which an unknown is the minimum.
        exclusive: each ^ that is an unknown.
        words: the expressions that are 64-bit numbers, such as loop indices, whether or not their ranges are
            known; None if numbers are never so large that they wrap around.
    """

    known: dict[str, Unknown] = field(default_factory=dict)
    ranges: dict[str, Ends] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    made: dict[Any, Affine] = field(default_factory=dict)
    minima: dict[str, tuple[Affine, ...]] = field(default_factory=dict)
    exclusive: list[Exclusive] = field(default_factory=list)
    words: set[Affine] | None = None

    def copy(self) -> Unknowns:
        """The same unknowns, of which further facts may be stated."""
        return Unknowns(
            dict(self.known),
            dict(self.ranges),
            dict(self.named),
            dict(self.made),
            dict(self.minima),
            list(self.exclusive),
            None if self.words is None else set(self.words),
        )

    def new(
        self,
        name: str,
        low: int | None = None,
        high: int | None = None,
        *,
        entry: Entry | None = None,
        beside: str = "",
    ) -> Affine:
        """A new unknown, named after its meaning."""
        number = self.named[name] = self.named.get(name, 0) + 1
        unique = f"{name}'{number}" if number > 1 else name
        self.ranges[unique] = low, high
        self.known[unique] = Unknown(unique, entry=entry, beside=beside)
        return index_symbol(unique)

    def range(self, expression: Affine) -> Ends:
        """The range of an expression by the ranges of its unknowns alone."""
        return range_in(expression, self.ranges)

    def extremes(self, expression: Affine) -> Ends:
        """The least and the largest value of an expression by all that is certain about its unknowns.

        (1, 0) if nothing can have these facts.
        """
        unknowns = related(self.known, [expression])
        rows = [row for x in unknowns for row in (*x.rows, *x.zero, *(zero * -1 for zero in x.zero))]
        if not rows:
            return self.range(expression)
        return range_within(expression, [*rows, *ends({x.name: self.ranges[x.name] for x in unknowns})])

    def is_within(self, expression: Affine, least: int, most: int) -> bool:
        """Whether an expression certainly has no value outside a range."""
        found = (find(expression) for find in (self.range, self.extremes))
        return any(
            low is not None and high is not None and (low > high or (low >= least and high <= most))
            for low, high in found
        )

    def size(self, name: str) -> Affine:
        """The unknown for a size or an integer argument."""
        if name not in self.made:
            self.made[name] = self.new(name, 0 if ".shape[" in name else None)
            self.expect_word(self.made[name])
        return self.made[name]

    def expect_word(self, expression: Affine) -> None:
        """State that an expression is a 64-bit number."""
        if self.words is not None:
            self.words.add(expression)

    def word(self, exact: Affine, most: int = MOST) -> Affine:
        """The expression in 64 bits: an unknown without a range if it may be beyond `most`."""
        if self.words is None or exact in self.words:
            return exact
        if self.is_within(exact, -most - 1, most):
            return exact
        key = "word", exact
        if key not in self.made:
            self.made[key] = self.new(f"{exact} in 64 bits")
        return self.made[key]

    def floor(self, of: Affine, by: int) -> Affine:
        """The quotient by a positive number, rounded down.

        64*q + r + 70, by 64 -> q + 1 + (r + 6) // 64, where the last quotient is an unknown
        """
        exact = Affine(of.constant // by, tuple((n, c // by) for n, c in of.terms if c % by == 0))
        rest = Affine(of.constant % by, tuple(term for term in of.terms if term[1] % by))
        if not rest.terms:
            return exact
        key = "floor", rest, by
        if key not in self.made:
            low, high = (None if end is None else end // by for end in self.extremes(rest))
            if low is not None and low < 0 and self.proves(rest):
                low = 0
            if low is not None and low == high:
                self.made[key] = Affine(low)
            else:
                quotient = self.new(f"({rest}) // {by}", low, high)
                inside = rest - quotient * by
                rows = [inside, Affine(by - 1) - inside]
                if exact.terms:
                    low, high = (None if end is None else end // by for end in self.extremes(of))
                    rows += [] if low is None else [exact + quotient - Affine(low)]
                    rows += [] if high is None else [Affine(high) - exact - quotient]
                self.define(quotient, rows)
                self.made[key] = quotient
        return exact + self.made[key]

    def remainder(self, of: Affine, by: int) -> Affine:
        """The remainder of floor division by a positive number."""
        rest = of - self.floor(of, by) * by
        if None not in self.range(rest):
            return rest
        key = "remainder", rest
        if key not in self.made:
            remainder = self.made[key] = self.new(f"({of}) % {by}", 0, by - 1)
            self.define(remainder, zero=(rest - remainder,))
        return self.made[key]

    def least(self, expressions: Sequence[Affine], facts: Facts) -> Affine:
        """The minimum of several expressions: one of them if the facts decide, else an unknown."""
        left: list[Affine] = []
        for each in dict.fromkeys(expressions):
            if any(self.proves(each - other, facts) for other in left):
                continue
            left = [other for other in left if not self.proves(other - each, facts)]
            left.append(each)
        if len(left) == 1:
            return left[0]
        key = "least", tuple(left)
        if key not in self.made:
            lows, highs = zip(*map(self.range, left), strict=True)
            low = None if None in lows else min(lows)
            high = min((high for high in highs if high is not None), default=None)
            least = self.new(f"min({', '.join(map(str, left))})", low, high)
            self.define(least, [each - least for each in left], tuple(Case((each - least,)) for each in left))
            self.minima[least.terms[0][0]] = tuple(left)
            self.made[key] = least
        return self.made[key]

    def greatest(self, expressions: Sequence[Affine], facts: Facts) -> Affine:
        """The maximum of several expressions."""
        return self.least([each * -1 for each in expressions], facts) * -1

    def above_minima(self, expression: Affine) -> list[Affine]:
        """Expressions that are at least as large, each minimum replaced by each of its operands."""
        out = []
        for name, c in expression.terms:
            if c > 0:
                rest = expression - Affine(0, ((name, c),))
                out += [rest + each * c for each in self.minima.get(name, ())]
        return out

    def define(
        self, unknown: Affine, rows: Iterable[Affine] = (), cases: Cases = (), zero: tuple[Affine, ...] = ()
    ) -> None:
        """Add facts about an unknown, in terms of itself."""
        ((name, _),) = unknown.terms
        self.known[name] = replace(self.known[name], rows=tuple(rows), cases=cases, zero=zero)

    def add_cases(self, unknown: Affine, cases: Cases) -> None:
        """State that one of some cases holds, for an unknown that has none."""
        ((name, _),) = unknown.terms
        self.known[name] = replace(self.known[name], cases=cases)

    def suppose(self, row: Affine) -> None:
        """State that an expression is not negative."""
        for name, end in implied(row, self.ranges):
            meet(self.ranges, name, end)
        for unknown in related(self.known, [row]):
            self.known[unknown.name] = replace(unknown, rows=(*unknown.rows, row))

    def refutes(self, rows: tuple[Affine, ...]) -> bool:
        """Whether certainly not all of these expressions are nonnegative."""
        return refutes(self.known, self.ranges, Case((), rows), ())

    def system(self) -> tuple[list[Affine], list[Affine]]:
        """All that is certain: expressions that are 0, and others that are not negative."""
        rows = [row for unknown in self.known.values() for row in unknown.rows]
        return [row for x in self.known.values() for row in x.zero], [*rows, *ends(self.ranges)]

    def proves(self, expression: Affine, facts: Facts = ()) -> bool:
        """Whether an expression is proven to be nonnegative wherever the facts hold."""
        low, _ = self.range(expression)
        if low is not None and low >= 0:
            return True
        if not expression.terms and not facts:
            return False
        return refutes(self.known, self.ranges, Case((), (expression * -1 - Affine(1),)), facts)

    def at_most(self, expression: Affine, expected: int, facts: Facts) -> int:
        """The least number, `expected` or above, that an expression is proven not to exceed; for messages."""
        low, high = expected, expected
        while high < 1 << 63 and not self.proves(Affine(high) - expression, facts):
            low, high = high + 1, high + max(2 * (high - expected), 1)
        while low < high:
            middle = (low + high) // 2
            if self.proves(Affine(middle) - expression, facts):
                high = middle
            else:
                low = middle + 1
        return low

    def at_least(self, expression: Affine, expected: int, facts: Facts) -> int:
        """The greatest number, `expected` or below, that an expression is proven not to fall below."""
        return -self.at_most(expression * -1, -expected, facts)
