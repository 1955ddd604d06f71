"""The unknowns of one kernel, and proofs that linear expressions over them are not negative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from codegen.analysis.cases import Case, Cases, Entry, Facts, Range, Unknown, range_in
from codegen.analysis.refutation import refutes
from codegen.ir.index import Affine, index_symbol
from codegen.support.dataclasses import dataclass


@dataclass(slots=True)
class Unknowns:
    """All unknowns of a kernel by name.

    Attributes:
        known: the facts about each.
        ranges: the range of each.
        named: how many unknowns share a name; an apostrophe and a number distinguish them.
        made: quotients, remainders and minima, so that the same expression is the same unknown.
        minima: the expressions of which an unknown is the minimum.
    """

    known: dict[str, Unknown] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    made: dict[Any, Affine] = field(default_factory=dict)
    minima: dict[str, tuple[Affine, ...]] = field(default_factory=dict)

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
        self.known[unique] = Unknown(unique, (low, high), entry=entry, beside=beside)
        return index_symbol(unique)

    def range(self, expression: Affine) -> Range:
        """The range of an expression by the ranges of its unknowns alone."""
        return range_in(expression, self.ranges)

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
            low, high = (None if end is None else end // by for end in self.range(rest))
            if low is not None and low < 0 and self.proves(rest):
                low = 0
            if low is not None and low == high:
                self.made[key] = Affine(low)
            else:
                quotient = self.new(f"({rest}) // {by}", low, high)
                inside = rest - quotient * by
                self.define(quotient, (inside, Affine(by - 1) - inside))
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

    def proves(self, expression: Affine, facts: Facts = ()) -> bool:
        """Whether an expression is proven to be nonnegative wherever the facts hold."""
        low, _ = self.range(expression)
        if low is not None and low >= 0:
            return True
        if not expression.terms and not facts:
            return False
        return refutes(self.known, Case((), (expression * -1 - Affine(1),)), facts)

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
