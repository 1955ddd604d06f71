"""Whether a carried local is a scan: it is combined with a term in each iteration, and the loop uses it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codegen.analysis.bodies import stored, values
from codegen.analysis.reductions import mentions, picked, reduces
from codegen.ir.combiners import combined, combiner_of, neutral
from codegen.ir.nodes import COMBINERS, Carried, For, Let, Statement, Store
from codegen.ir.rewriting import map_value
from codegen.ir.values import Const, Local, Op, Value
from codegen.ir.visit import loads, parts
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scan:
    """A carried local, and what super-vectors need to compute its value in each iteration.

        for i: s = s + A[i]; Y[i] = s          add, term A[i], after "s.1"
        for i: Y[i] = s; s = s + A[i]          add, term A[i], before

    name      the carried local
    how       the way in which it is combined with the term, as `combiners` describes
    term      a value that does not depend on the local
    place     the statements of the body before the first one that needs the scan
    after     the let that holds the new value, "" if there is none
    before    whether the loop uses the value before the iteration
    unused    lets that only lead to the new value
    """

    name: str
    how: str
    term: Value
    place: int
    after: str
    before: bool
    unused: frozenset[str]


def scans_of(node: For) -> tuple[Scan, ...]:
    """The carried locals of a loop that are scans, not reductions."""
    found = (scan_of(carried, node) for carried in node.carried if not reduces(carried, node))
    return tuple(each for each in found if each is not None)


def scanned_in(node: For) -> tuple[str, ...]:
    """The values that a loop scans, and the combiner of each: "s is scanned by add"."""
    return tuple(f"{scan.name} is scanned by {combiner_of(scan.how)}" for scan in scans_of(node))


def scan_of(carried: Carried, node: For) -> Scan | None:
    """The scan that a carried local is, or None.

    s = s + A[i]; B[i] = s                 a scan by add
    s = max(s, A[i]); B[i] = s             a scan by max
    s = 0.5 * s + A[i]; B[i] = s           None: the local is not only combined
    s = s + A[i]; for j: B[i, j] = s       None: the loop is not innermost
    """
    if not all(isinstance(statement, Let | Store) for statement in node.body):
        return None
    chain = _Chain(carried.name, carried.start.dtype, node.body)
    found = chain.term(carried.update)
    if found is None or found.value is None:
        return None
    lets = chain.lets
    after = carried.update.name if isinstance(carried.update, Local) else ""
    unused = _unused(carried, node, chain.holders, after)
    kept = [(k, s) for k, s in enumerate(node.body) if not (isinstance(s, Let) and s.name in unused)]
    updates = [c.update for c in node.carried if c is not carried]
    uses = [k for k, s in kept if s is not lets.get(after) and _uses(values((s,)), carried.name)]
    before = bool(uses) or _uses(updates, carried.name)
    ends = node.body.index(lets[after]) if after else len(node.body)
    place = min((*uses, ends))
    later = {s.name for s in node.body[place:] if isinstance(s, Let)}
    term = map_value(found.value, lambda v: chain.inlined(v) if _names(v) & later else v)
    read = min([place, *(node.body.index(lets[name]) for name in chain.followed)])
    moved = {load.array for load in loads(found.value)} & stored(node.body[read:ends])
    if _names(term) & (later | {c.name for c in node.carried}) or moved or not (before or after):
        return None
    return Scan(carried.name, found.how, term, place, after, before, unused)


@dataclass(frozen=True, slots=True)
class _Term:
    """The value combined with a local on the way to its update; value None: the local itself."""

    how: str = ""
    value: Value | None = None


class _Chain:
    """The way from a carried local to its update, through the lets of a body."""

    def __init__(self, name: str, dtype: str, body: tuple[Statement, ...]) -> None:
        self.name, self.dtype = name, dtype
        self.lets = {s.name: s for s in body if isinstance(s, Let)}
        self.stored = stored(body)
        self.holders = {name}
        self.followed: set[str] = set()
        for let in self.lets.values():
            if self.mentions(let.value):
                self.holders.add(let.name)

    def mentions(self, value: Value) -> bool:
        """Whether a value depends on the local."""
        return mentions(value, self.holders)

    def term(self, value: Value) -> _Term | None:
        """The term of a value, or None if the local is not only combined with values."""
        match value:
            case Local(name) if name == self.name:
                return _Term()
            case Local(name) if name in self.holders:
                self.followed.add(name)
                return self.term(self.lets[name].value)
            case Op("cast", (same,), dtype) if _as_signed(same.dtype) == _as_signed(dtype):
                return self.term(same)  # MLIR's integers are signless
            case Op("select", (test, then, otherwise)):
                return self.picked(test, then, otherwise) or self.selected(test, then, otherwise)
            case Op("sub", (left, right)) if not self.mentions(right):
                return self.joined(left, "add", Op("neg", (right,), right.dtype))
            case Op(combiner, (left, right), dtype) if combiner in COMBINERS and dtype == self.dtype:
                if not self.mentions(right):
                    return self.joined(left, combiner, right)
                if not self.mentions(left):
                    how = f"{combiner}_swapped" if combiner in ("min", "max") else combiner
                    return self.joined(right, how, left)
        return None

    def joined(self, chain: Value, how: str, value: Value) -> _Term | None:
        """The term of a chain that is combined with one more value."""
        inner = self.term(chain)
        if inner is None:
            return None
        if inner.value is None:
            return _Term(how, value)
        if inner.how != how:
            return None
        return _Term(how, combined(how, inner.value, value, self.dtype))

    def selected(self, test: Value, then: Value, otherwise: Value) -> _Term | None:
        """s + x if c else s  ->  the term x if c else 0"""
        if self.mentions(test):
            return None
        one, two = self.term(then), self.term(otherwise)
        if one is None or two is None:
            return None
        known = one if one.value is not None else two
        if known.value is None:
            return known
        if any(t.value is not None and t.how != known.how for t in (one, two)):
            return None
        rest = Const(neutral(combiner_of(known.how), self.dtype), self.dtype)
        values = tuple(rest if t.value is None else t.value for t in (one, two))
        return replace(known, value=Op("select", (test, *values), self.dtype))

    def picked(self, test: Value, then: Value, otherwise: Value) -> _Term | None:
        """x if x > s else s  ->  the term x, or the neutral element for NaN: it never compares as larger."""
        compared = self.inlined(test)
        if not isinstance(compared, Op) or len(compared.operands) != 2:
            return None
        sides = tuple(map(self.inlined, compared.operands))
        chosen = self.inlined(then), self.inlined(otherwise)
        combiner = picked(compared.name, first=chosen[0] == sides[0])
        if set(sides) != set(chosen) or sides[0] == sides[1] or combiner == "?":
            return None
        new_is_first = not self.mentions(chosen[0])
        new, best = (then, otherwise) if new_is_first else (otherwise, then)
        floats = self.dtype[0] not in "iu"
        if self.mentions(new) or not self.mentions(best) or (floats and not new_is_first):
            return None  # max(x, s) takes a NaN, and starts over after it.
        strict = not new_is_first or compared.name in ("gt", "lt")  # equal integers are interchangeable
        how = {"max": ("ge", "gt"), "min": ("le", "lt")}[combiner][strict]
        if floats:
            rest = Const(neutral(combiner, self.dtype), self.dtype)
            new = Op("select", (Op("eq", (new, new), "i1"), new, rest), self.dtype)
        return self.joined(best, how, new)

    def inlined(self, value: Value) -> Value:
        """The value of a local that a let assigns, unless its loads may read something else later."""
        if not isinstance(value, Local) or value.name == self.name or value.name not in self.lets:
            return value
        found = self.lets[value.name].value
        return value if any(load.array in self.stored for load in loads(found)) else self.inlined(found)


def _unused(carried: Carried, node: For, holders: set[str], after: str) -> frozenset[str]:
    """The lets that hold the local and only serve to compute its update."""
    kept = [s for s in node.body if not (isinstance(s, Let) and s.name == after)]
    updates = [c.update for c in node.carried if c is not carried]
    unused: set[str] = set()
    for let in reversed([s for s in kept if isinstance(s, Let) and s.name in holders]):
        if not _uses([*values(tuple(kept)), *updates], let.name):
            kept.remove(let)
            unused.add(let.name)
    return frozenset(unused)


def _as_signed(dtype: str) -> str:
    return f"i{dtype[1:]}" if dtype[0] == "u" else dtype


def _names(value: Value) -> set[str]:
    return {part.name for part in parts(value) if isinstance(part, Local)}


def _uses(given: Iterable[Value], name: str) -> bool:
    return any(mentions(value, {name}) for value in given)
