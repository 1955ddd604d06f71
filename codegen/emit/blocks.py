"""Blocks of super-vectors of two loops, some of whose accesses are transposed in registers."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import held_dtype
from codegen.emit.emitter import Emitter
from codegen.emit.names import Names
from codegen.emit.ranges import whole_text
from codegen.emit.scope import Lanes, Scope
from codegen.emit.values import accumulated, unwrapped, value_text
from codegen.emit.writer import Writer
from codegen.ir.nodes import For, Let, Load, Statement, Store, Value
from codegen.ir.visit import loads
from codegen.schedule.registers import TransposedLoops


def is_transposed(access: Load | Store, scope: Scope) -> bool:
    """Whether an access in a block is by columns."""
    return scope.lanes is not None and (access.array, access.subscripts) in scope.lanes.columns


def transposed(
    texts: tuple[str, ...], dtype: str, scope: Scope, names: Names, out: Writer
) -> tuple[str, ...]:
    """Transpose a block: swap its rows and lanes; return the new registers."""
    lanes = scope.lanes
    assert lanes is not None
    given = [text if text.isidentifier() else names.fresh("row") for text in texts]
    for name, text in zip(given, texts, strict=True):
        if name != text:
            out.line(f"{name} = {unwrapped(text)}")
    columns = names.fresh("columns")
    out.line(f"{columns} = transposed_{held_dtype(dtype)}x{lanes.count}(({', '.join(given)}))")
    return tuple(f"{columns}[{k}]" for k in range(lanes.count))


def transposed_loads(statement: Statement, scope: Scope, names: Names, out: Writer) -> Scope:
    """The scope of a statement, with its loads by columns in `transposed`; a loop starts with none."""
    if scope.lanes is None or not scope.lanes.rows:
        return scope
    if not isinstance(statement, Let | Store):
        return replace(scope, transposed={})
    values = list(_values(statement))
    if isinstance(statement, Store) and statement.accumulate:
        values.append(accumulated(statement, scope.function.array(statement.array).dtype))
    found: dict[Load, tuple[str, ...]] = {}
    for load in dict.fromkeys(load for value in values for load in loads(value)):
        if is_transposed(load, scope):
            columns = value_text(load, replace(scope, lanes=scope.lanes.transposed(), transposed={}))
            assert isinstance(columns, tuple)
            found[load] = transposed(columns, load.dtype, scope, names, out)
    return replace(scope, transposed=found)


def _values(statement: Let | Store) -> tuple[Value, ...]:
    return (statement.value,) if isinstance(statement, Let) else statement.values


def emit_blocks(
    emitter: Emitter, outer: For, plan: TransposedLoops, ends: tuple[str, str], scope: Scope, out: Writer
) -> None:
    """Write full blocks, the inner loop's tail row by row, then the rows that do not fill a block."""
    step = outer.step // outer.size
    first, last = (
        emitter.bound_name(outer, end, what, out) for end, what in zip(ends, ("lower", "upper"), strict=True)
    )
    whole = emitter.names.fresh(f"{outer.index}_whole")
    out.line(f"{whole} = {whole_text(first, last, step, plan.side)}")
    row = emitter.names.fresh(outer.index)
    inside = replace(scope, indices={**scope.indices, outer.index: row})
    with out.block(f"for {row} in range({first}, {whole}, {plan.side * step}):"):
        _between(emitter, outer, plan, outer.body[0], plan.between, row, inside, out)
    if plan.row_tail:
        emitter.plain_loop(replace(outer, step=step, size=1), whole, last, scope, {}, out)


def _between(
    emitter: Emitter,
    outer: For,
    plan: TransposedLoops,
    loop: Statement,
    between: int,
    row: str,
    scope: Scope,
    out: Writer,
) -> None:
    """Write the loops between the two, then the inner one."""
    assert isinstance(loop, For), "a block's loops stand alone in each other"
    lower, upper = emitter.ends(loop, scope)
    step = loop.step // loop.size
    if between:
        index = emitter.names.fresh(loop.index)
        inside = replace(scope, indices={**scope.indices, loop.index: index})
        with out.block(f"for {index} in range({lower}, {upper}, {step}):"):
            _between(emitter, outer, plan, loop.body[0], between - 1, row, inside, out)
        return
    first, last = emitter.bound_name(loop, lower, "lower", out), emitter.bound_name(loop, upper, "upper", out)
    whole = emitter.names.fresh(f"{loop.index}_whole")
    out.line(f"{whole} = {whole_text(first, last, step, plan.side)}")
    row_step = outer.step // outer.size
    lanes = Lanes(
        loop.index,
        plan.side,
        plan.side,
        step,
        fast=emitter.fast,
        rows=outer.index,
        row_step=row_step,
        columns=plan.columns,
    )
    index = emitter.names.fresh(loop.index)
    inside = replace(scope, indices={**scope.indices, loop.index: index}, lanes=lanes)
    with out.block(f"for {index} in range({first}, {whole}, {plan.side * step}):"):
        emitter.statements(loop.body, inside, out)
    if not plan.lane_tail:
        return
    one = emitter.names.fresh(outer.index)
    inside = replace(scope, indices={**scope.indices, outer.index: one})
    rows = f"for {one} in range({row}, {row} + {plan.side * row_step}, {row_step}):"
    with out.block(f"if {whole} {'<' if step > 0 else '>'} {last}:"), out.block(rows):
        emitter.vector_loop(loop, plan.rest, whole, last, inside, out)
