"""Whether a carried local is a reduction that each lane can compute on its own."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.combiners import neutral
from codegen.ir.index import Affine, add_indices, index_symbols
from codegen.ir.nodes import COMBINERS, Carried, For, Let, Statement, Store
from codegen.ir.values import Const, Local, Op, Value
from codegen.ir.visit import loads, parts, values_of


def reduces(carried: Carried, node: For) -> bool:
    """Whether a carried local is only combined with values, at least once, and has no other use.

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
    if any(mentions(c.update, names) for c in others):
        return False
    return _chain(carried.update, names, carried.combiner)


def _through(body: tuple[Statement, ...], names: set[str], combiner: str) -> bool:
    """Whether a body passes the local on through the combiner only; adds the names that hold it."""
    for node in body:
        match node:
            case Let(name, value):
                if mentions(value, names):
                    if not _chain(value, names, combiner):
                        return False
                    names.add(name)
            case Store():
                if any(mentions(value, names) for value in node.values):
                    return False
            case For():
                if not _through_loop(node, names, combiner):
                    return False
    return True


def _through_loop(node: For, names: set[str], combiner: str) -> bool:
    passed = {c.name for c in node.carried if mentions(c.start, names)}
    shadowed = {c.name for c in node.carried}
    inner = (names - shadowed) | passed
    if not all(_chain(c.start, names, combiner) for c in node.carried if c.name in passed):
        return False
    if not _through(node.body, inner, combiner):
        return False
    for c in node.carried:
        right = _chain(c.update, inner, combiner) if c.name in passed else not mentions(c.update, inner)
        if not right:
            return False
    names -= shadowed - passed
    names |= passed
    return True


def mentions(value: Value, names: set[str]) -> bool:
    """Whether a value refers to a local of one of these names."""
    return any(isinstance(part, Local) and part.name in names for part in parts(value))


def picked(test: str, *, first: bool) -> str:
    """The combiner equivalent to `a if a > b else b`, "?" if there is none; `first`: whether it returns a."""
    larger = {"gt": first, "ge": first, "lt": not first, "le": not first}.get(test)
    return "?" if larger is None else "max" if larger else "min"


def _chain(value: Value, names: set[str], combiner: str) -> bool:
    """Whether a value is the local, combined with values that do not depend on it."""
    match value:
        case Local(name):
            return name in names
        case Op("select", (Op(test, (left, right)), then, otherwise), dtype) if {left, right} == {
            then,
            otherwise,
        } and picked(test, first=left == then) == combiner:
            best, new = (otherwise, then) if _chain(otherwise, names, combiner) else (then, otherwise)
            # A comparison with NaN is false. So Python's max(s, x) never takes a NaN in x, in any order.
            # max(x, s) does, and starts over after it.
            any_order = dtype[0] in "iu" or best is otherwise
            return any_order and _chain(best, names, combiner) and not mentions(new, names)
        case Op("select", (condition, then, otherwise)):
            both = _chain(then, names, combiner) and _chain(otherwise, names, combiner)
            return both and not mentions(condition, names)
        case Op("sub", (left, right)) if combiner == "add":
            return _chain(left, names, combiner) and not mentions(right, names)
        case Op(name, (left, right)) if name == combiner:
            on_left = _chain(left, names, combiner) and not mentions(right, names)
            return on_left or (_chain(right, names, combiner) and not mentions(left, names))
        case _:
            return False


def reduced_in(node: For) -> tuple[str, ...]:
    """The values that a loop reduces, and the combiner of each.

    for j: acc += A[j]; C[i] += A[j]    "acc is reduced by add", "C[i] is reduced by add"
    """
    held = [(local.name, local.combiner) for local in node.carried if reduces(local, node)]
    held += [(f"{s.array}[{', '.join(map(str, s.subscripts))}]", s.accumulate) for s in sums_in_memory(node)]
    return tuple(f"{name} is reduced by {how}" for name, how in held)


def sums_in_memory(node: For) -> tuple[Store, ...]:
    """The stores that combine one element with a value in each iteration, if nothing else accesses the array.

    for j: C[i] += A[i, j]                 that store
    for j: C[i] += A[i, j]; B[j] = C[i]    none
    """
    if node.step < 0 or len(node.lower) > 1:
        return ()
    found = [
        store
        for store in node.body
        if isinstance(store, Store)
        and store.accumulate in COMBINERS
        and not any(node.index in index_symbols(subscript) for subscript in store.subscripts)
    ]
    updates = [load.array for c in node.carried for load in loads(c.update)]
    return tuple(s for s in found if _accesses(node.body, s.array) == 1 and s.array not in updates)


def _accesses(body: tuple[Statement, ...], array: str) -> int:
    """The number of loads from an array and stores to it."""
    count = sum(load.array == array for value in values_of(body) for load in loads(value))
    for node in body:
        if isinstance(node, Store):
            count += node.array == array
        elif isinstance(node, For):
            count += _accesses(node.body, array) - sum(
                load.array == array for value in values_of(node.body) for load in loads(value)
            )
    return count


def sums_in_locals(node: For) -> tuple[For, tuple[Statement, ...]]:
    """The loop with sums in memory carried as locals, and the loops after it that add them to memory.

    before:  for j in a..b:  C[i] += A[i, j]
    after:   for j in a..b carrying s = 0:  s = s + A[i, j]
             for once in a..min(b, a + 1):  C[i] += s          no access if the loop has no iterations
    """
    sums = sums_in_memory(node)
    body: list[Statement] = []
    carried: list[Carried] = []
    after: list[Statement] = []
    for statement in node.body:
        if not isinstance(statement, Store) or not any(statement is each for each in sums):
            body.append(statement)
            continue
        name, dtype, how = f"{statement.array}.{len(carried)}", statement.value.dtype, statement.accumulate
        term = Local(f"{name}.term", dtype)
        added = statement.value
        if statement.where is not None:
            added = Op("select", (statement.where, added, Const(neutral(how, dtype), dtype)), dtype)
        body.append(Let(term.name, added))
        update = Op(how, (Local(name, dtype), term), dtype)
        carried.append(Carried(name, Const(neutral(how, dtype), dtype), update, how))
        upper = (*node.upper, *(add_indices(bound, Affine(1)) for bound in node.lower))
        once = replace(statement, value=Local(name, dtype), where=None)
        after.append(For(f"{node.index}_once", node.lower, upper, 1, (once,), line=node.line))
    return replace(node, body=tuple(body), carried=(*node.carried, *carried)), tuple(after)
