"""The locals that statements assign, and those that they read before they assign them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def assigned(statements: Iterable[ast.stmt]) -> list[str]:
    """The locals that statements assign, loop indices included, each once, in source order."""
    found: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
    return list(found)


def reads(node: ast.AST | None) -> set[str]:
    """The names in an expression."""
    if node is None:
        return set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def live_after(statements: Sequence[ast.stmt], after: set[str]) -> list[set[str]]:
    """For each statement, the names read after it before they are assigned; `after`: those after the last."""
    found = []
    live = after
    for statement in reversed(statements):
        found.append(live)
        live = _before(statement, live)
    return found[::-1]


def live_before(statements: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """The names whose values before the statements are read, in the statements or after them."""
    live = after
    for statement in reversed(statements):
        live = _before(statement, live)
    return live


def _before(statement: ast.stmt, live: set[str]) -> set[str]:
    match statement:
        case ast.For(target, iterator, body):
            # A loop may run zero times: names that are live after it are live before it.
            once = live_before(body, live) - set(assigned([ast.Expr(target)]))
            return live | once | reads(iterator)
        case ast.If(test, body, otherwise):
            return reads(test) | live_before(body, live) | live_before(otherwise, live)
        case ast.Assign(targets, value):
            return live - {t.id for t in _names(targets)} | reads(value) | set().union(*map(reads, targets))
        case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
            return live - {name} | reads(value)
        case ast.AugAssign(ast.Name(name), _, value):
            return live | {name} | reads(value)
        case ast.Return(value):
            return reads(value)
    return live | reads(statement)


def _names(targets: Iterable[ast.expr]) -> Iterable[ast.Name]:
    for target in targets:
        match target:
            case ast.Name():
                yield target
            case ast.Tuple(parts) | ast.List(parts):
                yield from _names(parts)
