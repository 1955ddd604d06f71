"""Add loop-invariant offsets to addresses once, before a loop over super-vectors."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import defined
from codegen.ir.building import plus
from codegen.ir.index import Greatest, Index, Least, index_symbol, index_symbols
from codegen.ir.nodes import For, Function, If, Let, Statement, Store, View
from codegen.ir.rewriting import map_value, map_values
from codegen.ir.values import IndexValue, Load, Value
from codegen.passes.new_names import NewNames
from codegen.schedule.loop_schedule import LoopSchedule

Rows = dict[tuple[str, tuple[Index, ...]], View]


def hoist_rows(function: Function, _: LoopSchedule) -> Function:
    """Compute the address of each row before the loop over super-vectors that accesses it.

    before:  for j in 0..m step 64: C[i * C.stride[0], 4*j] = …
    after:   C_row = C + i * C.stride[0]
             for j in 0..m step 64: C_row[4*j] = …

    The full blocks and the tail of a loop share row addresses. Blocks of two loops have none.
    """
    return replace(function, body=_body(function.body, {}, NewNames("row")))


def _body(body: tuple[Statement, ...], known: Rows, names: NewNames) -> tuple[Statement, ...]:
    made: list[Statement] = []
    rows = dict(known)
    at: int | None = None
    for statement in body:
        match statement:
            case For(body=(For(lanes=side),), lanes=held) if side and held:
                made.append(statement)
            case For() | If() if _in_lanes(statement):
                at = len(made) if at is None else at
                made.append(_on_rows(statement, rows, names))
            case For():
                made.append(replace(statement, body=_body(statement.body, {}, names)))
            case If(tests, then, otherwise):
                made.append(If(tests, _body(then, rows, names), _body(otherwise, rows, names)))
            case _:
                made.append(statement)
    new = [view for key, view in rows.items() if key not in known]
    return (*made[:at], *new, *made[at:]) if at is not None else tuple(made)


def _in_lanes(node: Statement) -> bool:
    """Whether a statement is a loop over super-vectors, or branches that hold nothing else.

    for j_block in 0..m step 8: j = min(j_block, m - 8); for j in j..j + 8: …      is one, too
    """
    match node:
        case If(_, then, otherwise):
            return all(isinstance(x, Let) or _in_lanes(x) for x in (*then, *otherwise))
        case For(index, body=(Let(_, IndexValue(Least(of) | Greatest(of))), For() as inner)):
            return index_symbol(index) in of and _in_lanes(inner)
    return isinstance(node, For) and node.lanes > 0


def _on_rows(loop: For | If, rows: Rows, names: NewNames) -> Statement:
    moving = defined((loop,))

    def row(access: Load | Store) -> tuple[str, tuple[Index, ...]]:
        stays = tuple(s for s in access.subscripts if not moving & index_symbols(s))
        if not stays:
            return access.array, access.subscripts
        key = access.array, stays
        if key not in rows:
            rows[key] = View(names.name(f"{access.array}_row"), access.array, plus(*stays))
        return rows[key].name, tuple(s for s in access.subscripts if moving & index_symbols(s))

    def part(value: Value) -> Value:
        if not isinstance(value, Load):
            return value
        array, subscripts = row(value)
        return replace(value, array=array, subscripts=subscripts)

    def statement(node: Statement) -> Statement:
        match node:
            case Store():
                changed = map_values(node, lambda value: map_value(value, part))
                assert isinstance(changed, Store)
                array, subscripts = row(changed)
                return replace(changed, array=array, subscripts=subscripts)
            case For(body=body, carried=carried):
                held = tuple(
                    replace(c, start=map_value(c.start, part), update=map_value(c.update, part))
                    for c in carried
                )
                return replace(node, body=tuple(map(statement, body)), carried=held)
            case If(tests, then, otherwise):
                return If(tests, tuple(map(statement, then)), tuple(map(statement, otherwise)))
            case _:
                return map_values(node, lambda value: map_value(value, part))

    return statement(loop)
