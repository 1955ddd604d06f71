"""Split deeply nested expressions: Python's parser limits the nesting of parentheses."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.nodes import Carried, For, Function, Let, Local, Op, Statement, Store, Value

DEEP = 40
"""Maximum depth of nested operations: Python parses 200 nested parentheses, and an operation has several."""


def flatten_values(function: Function) -> Function:
    """Assign parts of expressions to locals where operations are nested more than DEEP levels.

    before: C[i] = (((… + a) + b) + c) + d
    after:  deep.x0 = ((… + a) + b); C[i] = (deep.x0 + c) + d
    """
    return _Cut().function(function)


class _Cut:
    def __init__(self) -> None:
        self._count = 0

    def function(self, function: Function) -> Function:
        """The function with its body and its results split."""
        lets: list[Statement] = []
        results = tuple(self.value(value, lets) for value in function.results)
        return replace(function, body=(*self.body(function.body), *lets), results=results)

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The statements, each preceded by the Lets for its parts."""
        made: list[Statement] = []
        for node in body:
            match node:
                case Let():
                    made.append(replace(node, value=self.value(node.value, made)))
                case Store():
                    where = None if node.where is None else self.value(node.where, made)
                    made.append(replace(node, value=self.value(node.value, made), where=where))
                case For():
                    made.append(self.loop(node, made))
        return tuple(made)

    def loop(self, loop: For, before: list[Statement]) -> For:
        """The loop; parts of start values are named before it, parts of updates at the end of its body."""
        inside = list(self.body(loop.body))
        carried = tuple(self.carried(each, before, inside) for each in loop.carried)
        return replace(loop, body=tuple(inside), carried=carried)

    def carried(self, each: Carried, before: list[Statement], inside: list[Statement]) -> Carried:
        """A carried local with its start and update split."""
        return replace(each, start=self.value(each.start, before), update=self.value(each.update, inside))

    def value(self, value: Value, lets: list[Statement]) -> Value:
        """The value, with parts that are too deep appended to `lets`."""
        if not isinstance(value, Op) or value.depth <= DEEP:
            return value
        operands = [self.value(x, lets) for x in value.operands]
        return replace(value, operands=tuple(self.named(x, lets) for x in operands))

    def named(self, value: Value, lets: list[Statement]) -> Value:
        """The operand, or a new local for it if no operation can be nested around it."""
        if not isinstance(value, Op) or value.depth < DEEP:
            return value
        name = f"deep.x{self._count}"
        self._count += 1
        lets.append(Let(name, value))
        return Local(name, value.dtype, value.shape)
