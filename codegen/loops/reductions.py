"""Whether what a loop carries is a reduction that each lane can do for itself."""

from __future__ import annotations

from codegen.loops.accesses import parts
from codegen.loops.ir import COMBINERS, Carried, For, Let, Local, Op, Statement, Store, Value


def reduces(carried: Carried, node: For) -> bool:
    """Whether a local of a loop is combined with something once or more, and not looked at otherwise.

    s = s + A[i]                  True
    s = s + x if x > 0 else s     True
    s = s + A[i]; B[i] = s        False    (a scan)
    s = x - s                     False
    """
    if carried.combiner not in COMBINERS:
        return False
    names = {carried.name}
    if not _through(node.body, names, carried.combiner):
        return False
    others = [c for c in node.carried if c is not carried]
    if any(_mentions(c.update, names) for c in others):
        return False
    return _chain(carried.update, names, carried.combiner)


def _through(body: tuple[Statement, ...], names: set[str], combiner: str) -> bool:
    """Whether a body passes the local on by the combiner alone; adds the names that hold it."""
    for node in body:
        match node:
            case Let(name, value):
                if _mentions(value, names):
                    if not _chain(value, names, combiner):
                        return False
                    names.add(name)
            case Store():
                if _mentions(node.value, names):
                    return False
            case For():
                if not _through_loop(node, names, combiner):
                    return False
    return True


def _through_loop(node: For, names: set[str], combiner: str) -> bool:
    passed = {c.name for c in node.carried if _mentions(c.start, names)}
    shadowed = {c.name for c in node.carried}
    inner = (names - shadowed) | passed
    if not all(_chain(c.start, names, combiner) for c in node.carried if c.name in passed):
        return False
    if not _through(node.body, inner, combiner):
        return False
    for c in node.carried:
        right = _chain(c.update, inner, combiner) if c.name in passed else not _mentions(c.update, inner)
        if not right:
            return False
    names -= shadowed - passed
    names |= passed
    return True


def _mentions(value: Value, names: set[str]) -> bool:
    return any(isinstance(part, Local) and part.name in names for part in parts(value))


def _chain(value: Value, names: set[str], combiner: str) -> bool:
    """Whether a value is the local, combined with what does not depend on it."""
    match value:
        case Local(name):
            return name in names
        case Op("select", (condition, then, otherwise)):
            both = _chain(then, names, combiner) and _chain(otherwise, names, combiner)
            return both and not _mentions(condition, names)
        case Op("sub", (left, right)) if combiner == "add":
            return _chain(left, names, combiner) and not _mentions(right, names)
        case Op(name, (left, right)) if name == combiner:
            on_left = _chain(left, names, combiner) and not _mentions(right, names)
            return on_left or (_chain(right, names, combiner) and not _mentions(left, names))
        case _:
            return False
