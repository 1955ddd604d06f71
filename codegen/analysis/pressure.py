"""How many super-vectors a loop body holds at the same time."""

from __future__ import annotations

from codegen.ir.nodes import Let, Statement, Store
from codegen.ir.values import Const, Local, Op, Value
from codegen.ir.visit import values_of


def most_live(body: tuple[Statement, ...]) -> int:
    """The most values that are held at the same time: locals that are used later, and parts of a value.

    x = a[i]; y = b[i]; c[i] = (x + y) * (x - y)    4: x, y, their sum and their difference
    """
    values = [_values(statement) for statement in body]
    last = {name: k for k, each in enumerate(values) for value in each for name in _locals(value)}
    most, held = 0, set[str]()
    for k, statement in enumerate(body):
        held = {name for name in held if last.get(name, -1) >= k}
        most = max(most, len(held) + max(map(_parts, values[k]), default=0))
        if isinstance(statement, Let) and statement.value.shape:
            held.add(statement.name)
    return most


def constants(body: tuple[Statement, ...]) -> int:
    """The numbers that all lanes share, which stay in registers."""
    found = {part for value in values_of(body) for part in _inside(value)}
    return sum(
        1 for part in found if isinstance(part, Const) or (isinstance(part, Op) and part.name == "broadcast")
    )


def _values(statement: Statement) -> tuple[Value, ...]:
    match statement:
        case Let(_, value):
            return (value,)
        case Store():
            return statement.values
    return ()


def _parts(value: Value) -> int:
    """The values that are held while one is computed, if its largest operand comes first."""
    match value:
        case Const() | Local() | Op("broadcast"):
            return 0
        case Op(_, operands):
            needs = sorted(map(_parts, operands), reverse=True)
            return max([1, *(need + k for k, need in enumerate(needs))])
    return 1


def _locals(value: Value) -> set[str]:
    return {part.name for part in _inside(value) if isinstance(part, Local)}


def _inside(value: Value) -> list[Value]:
    """A value and all of its operands."""
    operands = value.operands if isinstance(value, Op) else ()
    return [value, *(part for operand in operands for part in _inside(operand))]
