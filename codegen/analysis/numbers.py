"""The integers of a kernel over unknowns: indices, tests, entries of tables."""

from __future__ import annotations

from dataclasses import field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.cases import Case, Cases, Entry, Facts
from codegen.analysis.given import Between, Given, Lines, Listed, Records
from codegen.analysis.linear import linear
from codegen.analysis.scope import Scope
from codegen.analysis.unknowns import Unknowns
from codegen.ir.index import Affine, Bitwise, FloorDiv, Greatest, Index, Least, Mod, index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.names import END
from codegen.ir.nodes import Compare, Function
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""Comparisons, each with its opposite."""


@dataclass(slots=True)
class Numbers:
    """The integers of one kernel, as linear expressions over its unknowns.

    Attributes:
        function: the kernel.
        given: the facts before the call.
        unknowns: everything else.
        choices: the possible values of an unknown.
        records: the numbers of each record that was read from a table.
        silent: whether accesses are not proven, because the walk only finds the values that a loop carries.
        proven: the number of accesses proven so far.
    """

    function: Function
    given: Given
    unknowns: Unknowns = field(default_factory=Unknowns)
    choices: dict[str, tuple[Affine, ...]] = field(default_factory=dict)
    records: dict[tuple[str, Affine], tuple[Affine, ...]] = field(default_factory=dict)
    silent: bool = False
    proven: int = 0

    def number(self, value: Value, scope: Scope) -> Affine:
        """The value of an integer, or of a super-vector of them in any one lane.

        Elements of arrays and the results of other operations are unknown.
        """
        match value:
            case IndexValue(index, "i64", along=()):
                lanes = (self.lane(k, n) * value.steps[k] for k, n in enumerate(value.shape))
                return sum(lanes, start=self.index(index, scope))
            case Const(int(number)):
                return Affine(int(number))
            case Local(name) if name in scope.symbols:
                return scope.symbols[name]
            case Load(table, (entry,), "i64", ()) if table not in scope.pointers:
                return self.entries(table, self.index(entry, scope), 1, scope)
            case Load(array) if array in scope.pointers:
                return self.unknowns.new(array, *self.given.elements.get(array, (None, None)))
            case Load(array):
                raise KernelError(f"bounds: no rule for {array} in {self.function.name}")
            case Op("cast", (Load(dtype=dtype) as of,), "i64") if dtype[0] in "iu":
                return self.number(of, scope)
            case Op("broadcast", (of,), "i64"):
                return self.number(of, scope)
            case Op("elements_to_line"):
                return self.unknowns.new("elements to the line", 0)
            case Op("select", (condition, then, otherwise), "i64"):
                test = self.test(condition, scope)
                values = self.number(then, scope), self.number(otherwise, scope)
                if self.holds(test) or self.fails(test) or values[0] == values[1]:
                    return values[0] if self.holds(test) else values[1]
                return self.either(
                    f"{then} or {otherwise}"[:40], [((test[0],), values[0]), ((test[1],), values[1])]
                )
            case Op(name, operands, dtype):
                numbers = [self.number(each, scope) for each in operands]
                made = _operation(name, *numbers) if dtype == "i64" and len(numbers) == 2 else None
                if made is not None:
                    return linear(made, self.unknowns, index_symbol, scope.facts)
            case Reduce(_, vector, start):
                self.number(vector, scope)
                self.number(start, scope)
        return self.unknowns.new("number")

    def lane(self, dimension: int, count: int) -> Affine:
        """The number of a lane along a dimension, the same one for all super-vectors."""
        key = "lane", dimension, count
        if key not in self.unknowns.made:
            self.unknowns.made[key] = self.unknowns.new("lane", 0, count - 1)
        return self.unknowns.made[key]

    def symbol(self, name: str, scope: Scope) -> Affine:
        """The meaning of a symbol."""
        if name not in scope.symbols:
            raise KernelError(f"bounds: {name} is not known before a call of {self.function.name}")
        return scope.symbols[name]

    def index(self, index: Index, scope: Scope) -> Affine:
        """An index expression over unknowns."""
        return linear(index, self.unknowns, lambda name: self.symbol(name, scope), scope.facts)

    def entries(self, name: str, index: Affine, count: int, scope: Scope, half: str = "") -> Affine:
        """One of `count` entries of a table from an index on."""
        if name not in self.given.tables:
            raise KernelError(f"bounds: {name} is not a table of {self.function.name}")
        table = self.given.tables[name]
        match table:
            case Listed(values):
                size = Affine(len(values))
            case Between():
                size = scope.symbols[END]
            case Records(kinds):
                size = scope.symbols[END] * len(kinds[0])
        inside = index, size - index - Affine(count)
        if not self.silent and not all(self.unknowns.proves(row, scope.facts) for row in inside):
            _, last = self.unknowns.range(size)
            end = (1 << 63) - 1 if last is None else last - 1
            low = self.unknowns.at_least(index, 0, scope.facts)
            high = self.unknowns.at_most(index + Affine(count - 1), end, scope.facts)
            raise KernelError(
                f"bounds: {name}[{index}]{scope.text} of {self.function.name} may leave the table: expected "
                f"entries 0 to {end}, got {low} to {high}"
            )
        self.proven += not self.silent
        match table:
            case Listed(values):
                return self.listed(name, values, index, count, half)
            case Between():
                return self.unknowns.new(name, table.low, table.high)
            case Records():
                return self.record(name, table, index, scope)

    def listed(self, name: str, values: NDArray[np.int64], index: Affine, count: int, half: str) -> Affine:
        """An entry of a table with known entries."""
        if half:
            values = values & 0xFFFF_FFFF if half == "low" else values >> 32
        if not index.terms and count == 1 and 0 <= index.constant < len(values):
            return Affine(int(values[index.constant]))
        entry = Entry(values, index, count)
        low, high = entry.within(self.unknowns.ranges)
        return self.unknowns.new(name, low, high, entry=entry)

    def record(self, name: str, table: Records, index: Affine, scope: Scope) -> Affine:
        """A number of a record; all numbers of one record are of the same kind."""
        fields = len(table.kinds[0])
        if any(c % fields for _, c in index.terms):
            raise KernelError(f"bounds: entry {index} of {name} is not known to be a number of a record")
        number, position = index.constant // fields, index.constant % fields
        which = Affine(number, tuple((n, c // fields) for n, c in index.terms))
        if (name, which) not in self.records:
            self.records[name, which] = self.new_record(name, table, scope)
        return self.records[name, which][position]

    def new_record(self, name: str, table: Records, scope: Scope) -> tuple[Affine, ...]:
        """The numbers of a record, one case for each kind."""
        kind = self.unknowns.new(f"kind of {name}", 0, len(table.kinds) - 1)
        beside = kind.terms[0][0]
        ends = [
            (min(low for low, _ in each), max(high for _, high in each))
            for each in zip(*table.kinds, strict=True)
        ]
        numbers = tuple(self.unknowns.new(f"{name}.{k}", *end, beside=beside) for k, end in enumerate(ends))
        rows = [Affine(c) for c, _ in table.sums]
        for k, (_, factors) in enumerate(table.sums):
            for number, factor in zip(numbers, factors, strict=True):
                rows[k] = rows[k] + number * factor
        cases = []
        for each in table.kinds:
            zero, inside = [], []
            for number, (low, high) in zip(numbers, each, strict=True):
                zero += [number - Affine(low)] if low == high else []
                inside += [number - Affine(low), Affine(high) - number] if low != high else []
            cases.append(Case(tuple(zero), tuple(inside)))
        self.unknowns.define(kind, rows, tuple(cases))
        if table.lines:
            self.line_inside(table.lines, numbers[table.lines.field], scope)
        return numbers

    def line_inside(self, lines: Lines, offset: Affine, scope: Scope) -> None:
        """State that the line at an offset in a storage starts inside, unless a local is 0."""
        storage = self.given.storages[lines.storage]
        before = self.unknowns.remainder(scope.symbols[lines.storage] + offset, LINE_BYTES)
        inside = offset + Affine(storage.start - storage.low) - before
        self.unknowns.add_cases(before, (Case((scope.symbols[lines.local],)), Case((), (inside,))))

    def either(self, name: str, values: list[tuple[Facts, Affine]]) -> Affine:
        """One of several values, each under some facts."""
        lows, highs = zip(*(self.unknowns.range(value) for _, value in values), strict=True)
        low = None if None in lows else min(lows)
        high = None if None in highs else max(highs)
        found = self.unknowns.new(name, low, high)
        cases = []
        for facts, value in values:
            for several in product(*facts):
                zero = [row for case in several for row in case.zero]
                cases.append(Case((*zero, value - found), tuple(r for c in several for r in c.not_negative)))
        self.unknowns.define(found, (), tuple(cases))
        self.choices[found.terms[0][0]] = tuple(value for _, value in values)
        return found

    def test(self, test: Compare | Value, scope: Scope) -> tuple[Cases, Cases]:
        """The facts if a test holds, and if it fails."""
        match test:
            case Compare():
                sides = self.index(test.left, scope), self.index(test.right, scope)
                name: str = test.relation
            case Op(name, (left, right), "i1") if name in OPPOSITE and left.dtype == "i64":
                sides = self.number(left, scope), self.number(right, scope)
            case _:
                self.number(test, scope)
                return (Case(),), (Case(),)
        return _compared(sides[0], name, sides[1]), _compared(sides[0], OPPOSITE[name], sides[1])

    def holds(self, test: tuple[Cases, Cases]) -> bool:
        """Whether a test holds by the ranges alone."""
        return self.fails((test[1], test[0]))

    def fails(self, test: tuple[Cases, Cases]) -> bool:
        """Whether a test cannot hold by the ranges alone."""
        return all(any(self.is_negative(row) for row in case.rows) for case in test[0])

    def is_negative(self, row: Affine) -> bool:
        """Whether an expression is negative by the ranges alone."""
        _, high = self.unknowns.range(row)
        return high is not None and high < 0


def _operation(name: str, a: Affine, b: Affine) -> Index | None:
    """An operation of two numbers as an index expression; None if it is none."""
    match name, a, b:
        case "add", _, _:
            return a + b
        case "sub", _, _:
            return a - b
        case "mul", _, Affine(factor, ()):
            return a * factor
        case "mul", Affine(factor, ()), _:
            return b * factor
        case "shl", _, Affine(by, ()):
            return a * (1 << by)
        case "shr", _, Affine(by, ()):
            return FloorDiv(a, 1 << by)
        case "floordiv", _, Affine(by, ()) if by > 0:
            return FloorDiv(a, by)
        case "mod", _, Affine(by, ()) if by > 0:
            return Mod(a, by)
        case (("and" | "or" | "xor"), _, _):
            return Bitwise(name, a, b)
        case "min", _, _:
            return Least((a, b))
        case "max", _, _:
            return Greatest((a, b))
    return None


def _compared(left: Affine, relation: str, right: Affine) -> Cases:
    """The cases in which a comparison holds."""
    match relation:
        case "lt":
            return (Case((), (right - left - Affine(1),)),)
        case "le":
            return (Case((), (right - left,)),)
        case "gt":
            return (Case((), (left - right - Affine(1),)),)
        case "ge":
            return (Case((), (left - right,)),)
        case "eq":
            return (Case((left - right,)),)
    return (*_compared(left, "lt", right), *_compared(left, "gt", right))
