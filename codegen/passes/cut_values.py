"""Assign parts of the values of statements to locals, before the statements that evaluate them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from codegen.ir.names import LINE_LENGTH
from codegen.ir.nodes import Carried, Compare, For, Function, If, Let, Statement, Store
from codegen.ir.values import Value
from codegen.passes.new_names import wanted
from codegen.support.dataclasses import dataclass

Cut: TypeAlias = Callable[[tuple[Value, ...], int, list[Let]], tuple[Value, ...]]
"""(values on one line, characters of the line, lets) -> the new values; appends Lets for their parts."""


def cut_values(function: Function, cut: Cut) -> Function:
    """Cut the values that each statement always evaluates.

    before:  A[i] = x * y + z
    after:   part = x * y; A[i] = part + z
    """
    lets: list[Statement] = []
    walk = _Walk(cut)
    body = walk.body(function.body)
    results = walk.several(function.results, walk.room, lets)
    return replace(function, body=(*body, *lets), results=results)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Cuts the values of a body that is `depth` blocks deep in the source."""

    cut: Cut
    depth: int = 1

    @property
    def room(self) -> int:
        """Characters of a line after its indentation."""
        return LINE_LENGTH - 4 * self.depth

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The statements, each preceded by the Lets for its parts."""
        made: list[Statement] = []
        for node in body:
            match node:
                case Let(name, value):
                    made.append(replace(node, value=self.one(value, self.assigned(name), made)))
                case Store():
                    # A long call has each argument on its own line, with a comma.
                    room = self.inside.room - 1
                    value = self.one(node.value, room, made)
                    where = None if node.where is None else self.one(node.where, room, made)
                    made.append(replace(node, value=value, where=where))
                case For():
                    made.append(self.loop(node, made))
                case If():
                    made.append(self.branch(node, made))
                case _:
                    made.append(node)
        return tuple(made)

    def loop(self, loop: For, before: list[Statement]) -> For:
        """The loop; parts of start values are named before it, parts of updates at the end of its body."""
        inner = self.inside
        inside = list(inner.body(loop.body))
        starts = [self.one(c.start, self.assigned(c.name), before) for c in loop.carried]
        room = inner.room - sum(len(wanted(c.name)) + 2 for c in loop.carried)
        updates = inner.several(tuple(c.update for c in loop.carried), room, inside)
        carried = [
            Carried(c.name, start, update, c.combiner)
            for c, start, update in zip(loop.carried, starts, updates, strict=True)
        ]
        return replace(loop, body=tuple(inside), carried=tuple(carried))

    def branch(self, node: If, before: list[Statement]) -> If:
        """The branches and the first test. The other tests are evaluated only if it holds."""
        first, *others = node.tests
        if not isinstance(first, Compare) and not others:
            first = self.one(first, self.room - len("if :"), before)
        inside = self.inside
        return If((first, *others), inside.body(node.body), inside.body(node.otherwise))

    @property
    def inside(self) -> _Walk:
        """The same, one block deeper."""
        return _Walk(self.cut, self.depth + 1)

    def assigned(self, name: str) -> int:
        """Characters left for the value that is assigned to a name."""
        return self.room - len(wanted(name)) - len("_10 = ")

    def one(self, value: Value, room: int, before: list[Statement]) -> Value:
        """A value on its own line."""
        return self.several((value,), room, before)[0]

    def several(self, values: tuple[Value, ...], room: int, before: list[Statement]) -> tuple[Value, ...]:
        """Values on one line. The Lets for their parts go before it, and are cut as well."""
        lets: list[Let] = []
        made = self.cut(values, room, lets)
        for let in lets:
            before.append(replace(let, value=self.one(let.value, self.assigned(let.name), before)))
        return made
