"""Split deeply nested expressions: Python's parser limits the nesting of parentheses."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.nodes import Function, Let
from codegen.ir.values import Local, Op, Value
from codegen.passes.cut_values import cut_values

DEEP = 40
"""Maximum depth of nested operations: Python parses 200 nested parentheses, and an operation has several."""


def flatten_values(function: Function) -> Function:
    """Assign parts of expressions to locals where operations are nested more than DEEP levels.

    before: C[i] = (((… + a) + b) + c) + d
    after:  deep.x0 = ((… + a) + b); C[i] = (deep.x0 + c) + d
    """
    return cut_values(function, _Cut().values)


class _Cut:
    def __init__(self) -> None:
        self._count = 0

    def values(self, values: tuple[Value, ...], _: int, lets: list[Let]) -> tuple[Value, ...]:
        """The values, with parts that are too deep appended to `lets`."""
        return tuple(self.value(value, lets) for value in values)

    def value(self, value: Value, lets: list[Let]) -> Value:
        """One of them."""
        if not isinstance(value, Op) or value.depth <= DEEP:
            return value
        operands = [self.value(x, lets) for x in value.operands]
        return replace(value, operands=tuple(self.named(x, lets) for x in operands))

    def named(self, value: Value, lets: list[Let]) -> Value:
        """The operand, or a new local for it if no operation can be nested around it."""
        if not isinstance(value, Op) or value.depth < DEEP:
            return value
        name = f"deep.x{self._count}"
        self._count += 1
        lets.append(Let(name, value))
        return Local(name, value.dtype, value.shape)
