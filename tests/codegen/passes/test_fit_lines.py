"""Long expressions are split into named parts, in order; short ones are unchanged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.emit.source import body_of
from codegen.ir.building import compare, times
from codegen.ir.index import index_symbol
from codegen.ir.names import BEGIN, END, LINE_LENGTH
from codegen.ir.nodes import BufferArg, Carried, For, Function, If, Let, Statement, Store
from codegen.ir.values import Const, Load, Local, Op, Value
from codegen.passes.fit_lines import fit_lines
from codegen.passes.python_names import name_for_python

LANES, AT = (16,), (times("i", 4),)
LETTERS = tuple(f"operand_{letter}" for letter in "abcdef")
RESULT = "result_of_a_long_name"


def loaded(name: str) -> Value:
    """A super-vector of a buffer at the loop's index."""
    return Load(name, AT, "f32", LANES, (0,), (4,))


def op(name: str, *values: Value, dtype: str = "f32") -> Value:
    return Op(name, values, dtype, LANES)


def total(*values: Value) -> Value:
    """v0 + v1 + …, grouped from the left."""
    first, *others = values
    for value in others:
        first = op("add", first, value)
    return first


HALF = op("broadcast", Const(0.5, "f32"))
SUM = total(*map(loaded, LETTERS))
CLIPPED = op("select", op("gt", SUM, HALF, dtype="i1"), op("mul", SUM, SUM), HALF)
VALUES = {
    "short": loaded("operand_a"),
    "sum": SUM,
    "nested to the right": op("sub", loaded("operand_a"), op("div", SUM, SUM)),
    "select": CLIPPED,
    "one operand": op("sqrt", op("neg", CLIPPED)),
    "deep": total(CLIPPED, CLIPPED, HALF, CLIPPED),
}


def stored(value: Value, where: Value | None = None) -> Store:
    return Store(RESULT, AT, value, (0,), (4,), where=where)


def over_i(*body: Statement, carried: tuple[Carried, ...] = ()) -> Function:
    loop = For("i", (index_symbol(BEGIN),), (index_symbol(END),), 16, body, carried)
    buffers = tuple(map(BufferArg, (*LETTERS, RESULT)))
    return Function("f", (), (loop,), buffers=buffers, summary="Long expressions.")


def fitted(function: Function) -> Function:
    return fit_lines(function)


def inlined(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements without the locals that the pass added."""
    known: dict[str, Value] = {}
    out: list[Statement] = []
    for node in body:
        match node:
            case Let(name, value) if ":fit" in name:
                known[name] = _with(value, known)
            case Let(value=value):
                out.append(replace(node, value=_with(value, known)))
            case Store(value=value, where=where):
                mask = None if where is None else _with(where, known)
                out.append(replace(node, value=_with(value, known), where=mask))
            case For():
                updates = [replace(c, update=_with(c.update, {})) for c in node.carried]
                out.append(replace(node, body=inlined(node.body), carried=tuple(updates)))
            case If(tests, then, otherwise):
                made = tuple(x if not isinstance(x, Op | Local) else _with(x, known) for x in tests)
                out.append(If(made, inlined(then), inlined(otherwise)))
            case _:
                out.append(node)
    return tuple(out)


def _with(value: Value, known: dict[str, Value]) -> Value:
    match value:
        case Local(name) if name in known:
            return known[name]
        case Op(operands=operands):
            return replace(value, operands=tuple(_with(x, known) for x in operands))
    return value


@pytest.mark.parametrize("value", VALUES.values(), ids=[*VALUES])
@pytest.mark.parametrize("depth", [0, 3])
def test_inlining_the_parts_gives_the_same_function(value: Value, depth: int) -> None:
    """In stores, masks, locals and branches at any depth. Each line of source is then short enough."""
    mask = op("gt", value, HALF, dtype="i1")
    body: tuple[Statement, ...] = (Let("x", value), stored(value), stored(HALF, mask))
    for _ in range(depth):
        body = (If((compare("i", "lt", 8),), body, (stored(value),)),)
    function = over_i(*body)
    made = fitted(function)
    assert inlined(made.body) == function.body
    lines = body_of(name_for_python(made)).splitlines()
    assert all(len(line) <= LINE_LENGTH for line in lines)
    assert not any(line.endswith("= (") for line in lines), "an assignment fills several lines"


def test_short_expressions_stay() -> None:
    function = over_i(stored(VALUES["short"]), stored(op("add", loaded("operand_a"), HALF)))
    assert fitted(function) == function
