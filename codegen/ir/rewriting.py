"""Rewrite all values, or all index expressions, of statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from codegen.ir.combiners import scans_by
from codegen.ir.index import Affine, Index, substitute_index
from codegen.ir.nodes import Alloc, Call, Compare, For, If, Let, Prefetch, Statement, Store, View
from codegen.ir.values import Entries, IndexValue, Load, Local, Op, Reduce, Step, Value

Body = tuple[Statement, ...]
OfValue = Callable[[Value], Value]
OfIndex = Callable[[Index], Index]
Access = TypeVar("Access", Load, Store)
T = TypeVar("T")


def map_value(value: Value, change: OfValue) -> Value:
    """A value with changed parts, operands before their users."""
    match value:
        case Op(_, given):
            operands = tuple([map_value(each, change) for each in given])
            if any(new is not old for new, old in zip(operands, given, strict=True)):
                value = replace(value, operands=operands)
        case Reduce():
            value = replace(
                value, vector=map_value(value.vector, change), start=map_value(value.start, change)
            )
        case Load(offsets=offsets) if offsets is not None:
            value = replace(value, offsets=map_value(offsets, change))
    return change(value)


def map_values(statement: Statement, change: OfValue) -> Statement:
    """A statement, with the statements inside it, with changed outermost values."""
    match statement:
        case Let(_, value):
            return replace(statement, value=change(value))
        case Store(_, _, value, where=where, offsets=offsets, carry=carry):
            before = None if carry is None else change(carry)
            assert before is None or isinstance(before, Load), "carried bytes are those of a load"
            return replace(
                statement,
                value=change(value),
                where=None if where is None else change(where),
                offsets=None if offsets is None else change(offsets),
                carry=before,
            )
        case For(body=body, carried=carried):
            held = tuple(replace(c, start=change(c.start), update=change(c.update)) for c in carried)
            return replace(statement, body=tuple(map_values(s, change) for s in body), carried=held)
        case If(tests, then, otherwise):
            return If(
                tuple(t if isinstance(t, Compare) else change(t) for t in tests),
                tuple(map_values(s, change) for s in then),
                tuple(map_values(s, change) for s in otherwise),
            )
        case Prefetch(load):
            changed = change(load)
            assert isinstance(changed, Load), "a prefetch has the lines of a load"
            return Prefetch(changed)
        case View() | Call() | Alloc():
            return statement
        case _:
            raise AssertionError(f"map_values: no rule for {type(statement).__name__}")


def rewrite_body(body: Body, change: Callable[[Statement], Body]) -> Body:
    """A body with replaced statements, those inside loops and branches first."""
    made: list[Statement] = []
    for node in body:
        match node:
            case For(body=inside):
                node = replace(node, body=rewrite_body(inside, change))
            case If(tests, then, otherwise):
                node = If(tests, rewrite_body(then, change), rewrite_body(otherwise, change))
        made += change(node)
    return tuple(made)


def map_indices(statement: Statement, change: OfIndex) -> Statement:
    """A statement, with the statements inside it, with changed index expressions."""

    def value(node: Value) -> Value:
        match node:
            case IndexValue(index):
                return replace(node, index=change(index))
            case Load():
                return _changed(node, change)
        return node

    return _own_indices(map_values(statement, lambda found: map_value(found, value)), change)


def _own_indices(statement: Statement, change: OfIndex) -> Statement:
    """Change the index expressions of statements that are not in values, which are already changed."""
    match statement:
        case Store():
            return _changed(statement, change)
        case View(offset=offset):
            return replace(statement, offset=change(offset))
        case Call(_, operands):
            return replace(
                statement, operands=tuple(x if isinstance(x, str) else change(x) for x in operands)
            )
        case For():
            return replace(
                statement,
                lower=tuple(map(change, statement.lower)),
                upper=tuple(map(change, statement.upper)),
                body=tuple(_own_indices(s, change) for s in statement.body),
            )
        case If(tests, then, otherwise):
            return If(
                tuple(
                    Compare(change(t.left), t.relation, change(t.right)) if isinstance(t, Compare) else t
                    for t in tests
                ),
                tuple(_own_indices(s, change) for s in then),
                tuple(_own_indices(s, change) for s in otherwise),
            )
    return statement


def _changed(access: Access, change: OfIndex) -> Access:
    return replace(
        access,
        subscripts=tuple(map(change, access.subscripts)),
        steps=tuple(_step(step, change) for step in access.steps),
        first=None if access.first is None else change(access.first),
    )


def _step(step: Step, change: OfIndex) -> Step:
    if isinstance(step, Entries):
        return replace(step, first=change(step.first))
    if not isinstance(step, Affine):
        return step
    changed = change(step)
    assert isinstance(changed, Affine), "the distance between lanes is affine"
    return changed


def substituted(statement: Statement, name: str, by: Index) -> Statement:
    """A statement with an index expression in place of a symbol."""
    return map_indices(statement, lambda index: substitute_index(index, name, by))


def rename_carried(loop: For, names: Mapping[str, str]) -> For:
    """A loop with other names for the locals that it carries, also where loops inside carry them on."""
    if not names:
        return loop

    def part(value: Value) -> Value:
        return (
            replace(value, name=names[value.name])
            if isinstance(value, Local) and value.name in names
            else value
        )

    def assigned(node: Statement) -> Body:
        match node:
            case Let(name):
                return (replace(node, name=names.get(name, name)),)
            case For(carried=held):
                return (
                    replace(node, carried=tuple(replace(c, name=names.get(c.name, c.name)) for c in held)),
                )
        return (node,)

    changed = map_values(loop, lambda value: map_value(value, part))
    (changed,) = rewrite_body((changed,), assigned)
    assert isinstance(changed, For), "a renamed loop is a loop"
    pairs = zip(changed.carried, loop.carried, strict=True)
    return replace(changed, carried=tuple(replace(c, start=old.start) for c, old in pairs))


def on_buffers(statement: Statement, names: Mapping[str, str]) -> Statement:
    """A statement without nested ones, with some buffers replaced by others."""

    def value(node: Value) -> Value:
        return replace(node, array=names.get(node.array, node.array)) if isinstance(node, Load) else node

    changed = map_values(statement, lambda found: map_value(found, value))
    match changed:
        case Store(array):
            return replace(changed, array=names.get(array, array))
        case View(_, buffer):
            return replace(changed, buffer=names.get(buffer, buffer))
        case Call(_, operands):
            given = (names.get(x, x) if isinstance(x, str) else x for x in operands)
            return replace(changed, operands=tuple(given))
    return changed


def in_sizes(loop: For, size: int, position: int) -> For:
    """A loop over super-vectors that runs `size` iterations at once; 1 for one by one.

    before:  for i step 256: C[i] = A[i] [256]          size 64, position 0
    after:   for i step 64:  C[i] = A[i] [64]

    position  the number of loops over super-vectors around it, which is its vector dimension
    """
    changed = resized(loop, size if size > 1 else 0, position)
    assert isinstance(changed, For)
    return replace(changed, step=loop.step // loop.size * size, size=size)


def resized(statement: Statement, size: int, position: int) -> Statement:
    """A statement with another extent of a vector dimension, in all its values; 0 drops the dimension."""

    def cut(each: tuple[T, ...], new: tuple[T, ...]) -> tuple[T, ...]:
        return (*each[:position], *new, *each[position + 1 :]) if len(each) > position else each

    def shape(given: tuple[int, ...]) -> tuple[int, ...]:
        return cut(given, (size,) if size else ())

    def same(each: tuple[T, ...]) -> tuple[T, ...]:
        return cut(each, each[position : position + 1] if size else ())

    def value(node: Value) -> Value:
        match node:
            case Load():
                return replace(
                    node,
                    shape=shape(node.shape),
                    dims=same(node.dims),
                    steps=same(node.steps),
                    along=same(node.along),
                )
            case IndexValue():
                return replace(node, shape=shape(node.shape), along=same(node.along))
            case Op("broadcast", (operand,)) if operand.shape == shape(node.shape):
                return operand
            case Op(name, (operand, *_), _, (_,)) if not size and (name == "slide" or scans_by(name)):
                return operand  # a scan of one lane is its term, and before it is the first operand of slide
            case Op("last", (operand,)) if not operand.shape:
                return operand
            case _:
                return replace(node, shape=shape(node.shape))

    return _resized(map_values(statement, lambda found: map_value(found, value)), same)


def _resized(node: Statement, same: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Statement:
    """Change the dimensions of stores; values are already changed."""
    match node:
        case Store():
            return replace(node, dims=same(node.dims), steps=same(node.steps), along=same(node.along))
        case For():
            return replace(node, body=tuple(_resized(s, same) for s in node.body))
        case If(tests, then, otherwise):
            return If(
                tests, tuple(_resized(s, same) for s in then), tuple(_resized(s, same) for s in otherwise)
            )
    return node
