"""Blocks of registers whose rows become lanes."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import ELEMENT_BYTES
from codegen.ir.nodes import Let, Statement, Store
from codegen.ir.values import Const, Load, Local, Op, Value
from codegen.ir.visit import loads
from codegen.passes.new_names import NewNames
from codegen.passes.register_scope import Lanes, Scope
from codegen.passes.register_values import registers_of


def by_columns(access: Load | Store, dtype: str, lanes: Lanes) -> bool:
    """Whether an access of a block is contiguous from row to row, and not from lane to lane."""
    if not lanes.rows or len(access.steps) < 2:
        return False
    size = ELEMENT_BYTES[dtype]
    return access.steps[1 - lanes.dimension] == size != access.steps[lanes.dimension]


def transposed(values: tuple[Value, ...], names: NewNames, out: list[Statement]) -> tuple[Value, ...]:
    """Name the rows of a block, transpose it, and return the new rows.

    after:   row = A[i]; row_2 = A[i + 1]; …
             columns = transposed(stack(row, row_2, …))
    """
    rows: list[Value] = []
    for value in values:
        if not isinstance(value, Local):
            out.append(Let(names.name("row"), value))
            value = Local(out[-1].name, value.dtype, value.shape)  # type: ignore[union-attr]
        rows.append(value)
    shape, dtype = (len(rows), *rows[0].shape), rows[0].dtype
    block = Op("stack", tuple(rows), dtype, shape)
    out.append(Let(names.name("columns"), Op("transpose", (block,), dtype, shape[::-1])))
    columns = Local(out[-1].name, dtype, shape[::-1])  # type: ignore[union-attr]
    return tuple(Op("row", (columns, Const(k, "i64")), dtype, (shape[0],)) for k in range(shape[1]))


def with_columns(statement: Statement, scope: Scope, names: NewNames, out: list[Statement]) -> Scope:
    """The scope of a statement, whose loads by columns are transposed before it."""
    lanes = scope.lanes
    if lanes is None or not lanes.rows:
        return scope
    if not isinstance(statement, Let | Store):
        return replace(scope, columns={})
    values = (statement.value,) if isinstance(statement, Let) else statement.values
    found: dict[Load, tuple[Value, ...]] = {}
    for load in dict.fromkeys(load for value in values for load in loads(value)):
        if by_columns(load, load.dtype, lanes):
            columns = registers_of(load, replace(scope, lanes=lanes.transposed(), columns={}))
            assert isinstance(columns, tuple)
            found[load] = transposed(columns, names, out)
    return replace(scope, columns=found)
