"""Prove, before a kernel runs, that every access stays inside its storage.

The check walks the function in registers, given the numbers of a launch or of a call. The address of each
access becomes a linear expression over unknowns: loop indices, addresses, minima, entries of tables. Loops,
conditions and tables limit the unknowns; nothing is known of other numbers and conditions, such as those
that are computed from elements. The check is conservative: it rejects every access that may be outside, and
every statement or expression without a rule. Prefetches may be outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from codegen.analysis.cases import Case, Facts
from codegen.analysis.footprints import Footprints
from codegen.analysis.given import Given, Storage
from codegen.analysis.linear import loop_index
from codegen.analysis.numbers import Numbers
from codegen.analysis.ranges import Ends
from codegen.analysis.scope import Scope
from codegen.analysis.unknowns import Unknowns
from codegen.ir.index import Affine
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import (
    Alloc,
    Call,
    Compare,
    For,
    Function,
    If,
    Let,
    Prefetch,
    ScalarArg,
    Statement,
    Store,
    View,
)
from codegen.ir.values import Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


def check_buffers(function: Function, given: Given) -> int:
    """Raise for a launch that might access bytes outside a storage.

    Returns:
        The number of proven accesses.

    Raises:
        KernelError: an access may be outside, and the message names the expected range and the range that it
            may reach; or a statement or an expression lacks a rule.
    """
    numbers = Numbers(function, given)
    check = _Check(numbers, Footprints(numbers))
    check.block(function.body, check.arguments())
    return numbers.proven


@dataclass(slots=True)
class _Check:
    """The walk of one function.

    Attributes:
        numbers: its integers.
        footprints: its accesses.
        limits: the ranges of the locals that the enclosing loops carry.
        results: the values of each of these locals on the last walk, and the facts known there.
        lent: the name of the buffer in scratch, or "".
    """

    numbers: Numbers
    footprints: Footprints
    limits: dict[str, Ends] = field(default_factory=dict)
    results: dict[str, list[tuple[Affine, Facts]]] = field(default_factory=dict)
    lent: str = ""

    @property
    def unknowns(self) -> Unknowns:
        return self.numbers.unknowns

    def arguments(self) -> Scope:
        """The scope of the arguments."""
        end = self.unknowns.new("end", 0, self.numbers.given.trips)
        begin = self.unknowns.new("begin", 0, self.numbers.given.trips)
        self.unknowns.define(begin, [end - begin])
        scope = Scope({BEGIN: begin, END: end}, {})
        for argument in self.numbers.function.arguments:
            if isinstance(argument, ScalarArg):
                number = self.numbers.given.numbers.get(argument.name)
                known = self.unknowns.new(argument.name) if number is None else Affine(number)
                scope.symbols[argument.name] = known
        for buffer in self.numbers.function.buffers:
            storage = self.numbers.given.storages.get(buffer.name, Storage(0, 0))
            start = Affine(storage.start)
            self.footprints.add_storage(buffer.name, storage, start, buffer.unit_bits, scope)
        return scope

    def block(self, body: Iterable[Statement], scope: Scope) -> None:
        """Check statements in order; the names that they define enter the scope."""
        for statement in body:
            match statement:
                case Let(name, value):
                    self.let(name, value, scope)
                case Store():
                    self.footprints.store(statement, scope)
                case For():
                    self.loop(statement, scope)
                case If():
                    self.branches(statement, scope)
                case View(name, buffer, offset, _, unit_bits, lines=""):
                    self.footprints.view(name, buffer, self.numbers.index(offset, scope), scope, unit_bits)
                case Alloc():
                    self.allocate(statement, scope)
                case Prefetch(load):
                    self.footprints.prefetch(load, scope)
                case Call(name, operands):
                    self.footprints.call(name, operands, scope)
                case _:
                    raise KernelError(f"bounds: no rule for {type(statement).__name__}")

    def allocate(self, node: Alloc, scope: Scope) -> None:
        """Memory of the thread; the scratch that the thread lends holds one block."""
        given, name, size = self.numbers.given, node.name, node.size_bytes
        size_bytes = given.numbers[size] if isinstance(size, str) else size
        if node.space == "scratch":
            lent = given.scratch_bytes
            if size_bytes > lent:
                raise KernelError(f"bounds: {name} leaves scratch: expected {lent} bytes, got {size_bytes}")
            if self.lent not in ("", name):
                raise KernelError(f"bounds: {name} may overlap {self.lent}: both are in scratch")
            self.lent = name
        self.footprints.add_storage(name, Storage(0, size_bytes), Affine(), 8, scope)

    def let(self, name: str, value: Value, scope: Scope) -> None:
        """Name a value; integers are symbols of index expressions."""
        number = self.footprints.reads(value, scope)
        scope.symbols.pop(name, None)
        if number is not None:
            scope.symbols[name] = number

    def loop(self, node: For, scope: Scope) -> None:
        """A loop, with the locals that it carries from one iteration to the next."""
        if node.size > 1 or node.live:
            raise KernelError(f"bounds: no rule for the loop over {node.index}: it is not lowered to the end")
        lower, upper = (
            [self.numbers.index(bound, scope) for bound in bounds] for bounds in (node.lower, node.upper)
        )
        values = {each.name: self.footprints.reads(each.start, scope) for each in node.carried}
        starts = {name: number for name, number in values.items() if number is not None}
        for name in values:
            scope.symbols.pop(name, None)
        scope.symbols |= starts
        found = loop_index(node.index, lower, upper, node.step, self.unknowns)
        if found is None:
            return
        index, count, entered = found
        inner = scope.inside(*([(Case((), tuple(entered)),)] if entered else []), loop=node.index)
        inner.symbols[node.index] = index
        if starts:
            self.carrying(node, starts, count, scope, inner)
        else:
            self.iteration(node, starts, count, scope, inner)

    def carrying(
        self, node: For, starts: dict[str, Affine], count: Affine, scope: Scope, inner: Scope
    ) -> None:
        """A loop that carries locals, each within limits that every iteration keeps.

        A local is expected to stay at or above its start, and at or below its largest new value. Inner loops
        that also carry it have the same limits. If locals are within their limits at the start of a loop or
        an iteration, they must be so at its end; broken limits are dropped.
        """
        if starts.keys() <= self.limits.keys():
            self.iteration(node, starts, count, scope, inner)
            return
        outer = self.limits, self.results
        limits = {name: (self.unknowns.range(start)[0], None) for name, start in starts.items()}
        self.limits, self.results = self.limits | limits, dict(self.results)
        walk = node, starts, count, scope, inner
        self.keep_limits(*walk)
        for name in starts:
            self.limits[name] = (
                self.limits[name][0],
                self.highest(*(value for value, _ in self.results[name])),
            )
        self.keep_limits(*walk)
        self.iteration(*walk)
        self.limits, self.results = outer

    def keep_limits(
        self, node: For, starts: dict[str, Affine], count: Affine, scope: Scope, inner: Scope
    ) -> None:
        """Drop broken limits until all remaining ones are kept."""
        was, records, proves = self.numbers.silent, self.numbers.records, self.unknowns.proves
        dropped = True
        while dropped:
            dropped = False
            self.results |= {name: [] for name in starts}
            self.numbers.silent, self.numbers.records = True, dict(records)
            self.iteration(node, starts, count, scope.inside(), inner.inside())
            self.numbers.silent, self.numbers.records = was, records
            for name in starts:
                low, high = self.limits[name]
                if low is not None and not all(
                    proves(x - Affine(low), facts) for x, facts in self.results[name]
                ):
                    low, dropped = None, True
                if high is not None and not all(
                    proves(Affine(high) - x, facts) for x, facts in self.results[name]
                ):
                    high, dropped = None, True
                self.limits[name] = low, high

    def iteration(
        self, node: For, starts: dict[str, Affine], count: Affine, scope: Scope, inner: Scope
    ) -> None:
        """The body of a loop; the integers that it carries are within their limits."""
        inner.symbols |= self.carried_values(starts, count)
        self.block(node.body, inner)
        for each in node.carried:
            update = self.footprints.reads(each.update, inner)
            if update is not None:
                values = (starts[each.name], scope.facts), (update, inner.facts)
                self.results.setdefault(each.name, []).extend(values)
                scope.symbols[each.name] = self.unknowns.new(each.name, *self.limits[each.name])

    def carried_values(self, starts: dict[str, Affine], count: Affine) -> dict[str, Affine]:
        """The locals in some iteration: as they start in the first one."""
        out = {}
        for name, start in starts.items():
            value = out[name] = self.unknowns.new(name, *self.limits[name])
            later = Case((), (count - Affine(1),))
            self.unknowns.define(value, (), (Case((value - start, count)), later))
        return out

    def highest(self, *expressions: Affine) -> int | None:
        """The highest value among those that have a range, with branches and choices split."""
        found: list[int] = []
        for expression in expressions:
            if len(expression.terms) == 1 and expression.terms[0][0] in self.numbers.choices:
                highest = self.highest(*self.numbers.choices[expression.terms[0][0]])
            else:
                _, highest = self.unknowns.range(expression)
            found += [] if highest is None else [highest]
        return max(found, default=None)

    def branches(self, node: If, scope: Scope) -> None:
        """Both branches, each with the facts of the tests; names that both define are known afterwards."""
        for test in node.tests:
            if not isinstance(test, Compare):
                self.footprints.reads(test, scope)
        tests = [self.numbers.test(test, scope) for test in node.tests]
        unsure = [test for test in tests if not self.numbers.holds(test)]
        failing = next((test for test in tests if self.numbers.fails(test)), None)
        if failing or not unsure:
            chosen = node.otherwise if failing else node.body
            self.block(chosen, scope)
            return
        fails = tuple(case for _, negative in unsure for case in negative)
        branches = [
            (tuple(positive for positive, _ in unsure), node.body),
            ((fails,), node.otherwise),
        ]
        ends = []
        for facts, body in branches:
            inner = scope.inside(*facts)
            self.block(body, inner)
            ends.append((facts, inner))
        self.join(ends, scope)

    def join(self, ends: list[tuple[Facts, Scope]], scope: Scope) -> None:
        """Let each name that all branches define stand for one of its values."""
        (_, one), (_, two) = ends
        for name, value in one.symbols.items():
            other = two.symbols.get(name, value)
            if other is value or name in one.pointers:
                continue
            values = [(facts, inner.symbols[name]) for facts, inner in ends]
            scope.symbols[name] = value if value == other else self.numbers.either(name, values)
        for name in one.pointers.keys() & two.pointers.keys():
            if one.pointers[name] is not two.pointers[name]:
                pointer = tuple(
                    ((*facts, *more), place) for facts, inner in ends for more, place in inner.pointers[name]
                )
                self.footprints.point(name, pointer, scope)
