"""Blocks of super-vectors of two loops, each of which has arrays that are contiguous along it.

A block has as many rows (iterations of the outer loop) as a register has lanes of the inner loop. An array
that is contiguous along the outer loop is loaded or stored by columns and transposed in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.emit.emitter import Emitter
from codegen.emit.facts import accumulated, flat, vector_dtypes
from codegen.emit.names import Names
from codegen.emit.ranges import whole_text
from codegen.emit.scope import ELEMENT_BYTES, Lanes, Scope, byte_stride, held_dtype, slope
from codegen.emit.values import unwrapped, value_text
from codegen.emit.writer import Writer
from codegen.ir.nodes import For, Function, Let, Load, Statement, Store, Value
from codegen.ir.visit import loads

MOST_ROWS, LEAST_ROWS = 16, 4
"""Maximum and minimum rows per block: more do not fit in the registers, fewer are not worth the shuffles."""


@dataclass(frozen=True, slots=True)
class Block:
    """Two loops, with the inner one perfectly nested inside the outer one. rows: rows per block."""

    outer: For
    inner: For
    rows: int


def block_of(function: Function, outer: For, vector_bytes: int) -> Block | None:
    """The block of a loop over super-vectors and the innermost one inside it; None if no array is transposed.

    for i: for j: C[j, i] = A[i, j]     C is contiguous along i, A along j: a block
    """
    if outer.size < LEAST_ROWS or outer.carried:
        return None
    inner = outer
    while len(inner.body) == 1 and isinstance(inner.body[0], For) and not inner.body[0].carried:
        inner = inner.body[0]
        if not any(isinstance(s, For) and s.size > 1 for s in flat(inner.body)):
            break
    if inner is outer or inner.size < LEAST_ROWS:
        return None
    widest = max((ELEMENT_BYTES[held_dtype(d)] for d in vector_dtypes(inner)), default=8)
    rows = min(
        MOST_ROWS, vector_bytes // widest, *(1 << (s.bit_length() - 1) for s in (outer.size, inner.size))
    )
    found = Block(outer, inner, rows)
    accesses = _accesses(inner.body)
    return found if rows >= LEAST_ROWS and any(_columns(function, found, a) for a in accesses) else None


def _accesses(body: tuple[Statement, ...]) -> list[Load | Store]:
    found: list[Load | Store] = []
    for statement in flat(body):
        found += [load for value in _values(statement) for load in loads(value)]
        found += [statement] if isinstance(statement, Store) else []
    return found


def _values(statement: Statement) -> tuple[Value, ...]:
    match statement:
        case Let(_, value):
            return (value,)
        case Store():
            return statement.values
        case For(carried=carried):
            return tuple(value for each in carried for value in (each.start, each.update))
        case _:
            raise AssertionError(f"emit: no rule for {type(statement).__name__}")


def _columns(function: Function, block: Block, access: Load | Store) -> bool:
    outer, inner = block.outer, block.inner
    return _transposed(
        function, access, outer.index, outer.step // outer.size, inner.index, inner.step // inner.size
    )


def _transposed(
    function: Function, access: Load | Store, rows: str, row_step: int, index: str, step: int
) -> bool:
    """Whether elements are contiguous from row to row, and not from lane to lane."""
    if isinstance(access, Load) and access.along:
        return False
    array, apart = function.array(access.array), False
    for dimension, subscript in enumerate(access.subscripts):
        down, across = slope(subscript, rows) * row_step, slope(subscript, index) * step
        if byte_stride(array, dimension) is None:
            apart = apart or across != 0
            if down:
                return False
        elif across or down != 1:
            return False
    return apart


def is_transposed(access: Load | Store, scope: Scope) -> bool:
    """Whether an access in a block is by columns."""
    lanes = scope.lanes
    if lanes is None or not lanes.rows:
        return False
    return _transposed(scope.function, access, lanes.rows, lanes.row_step, lanes.index, lanes.step)


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
    if isinstance(statement, For):
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


def emit_blocks(emitter: Emitter, block: Block, ends: tuple[str, str], scope: Scope, out: Writer) -> None:
    """Write full blocks, the inner loop's tail row by row, then the rows that do not fill a block."""
    outer = block.outer
    step = outer.step // outer.size
    first, last = (
        emitter.bound_name(outer, end, what, out) for end, what in zip(ends, ("lower", "upper"), strict=True)
    )
    whole = emitter.names.fresh(f"{outer.index}_whole")
    out.line(f"{whole} = {whole_text(first, last, step, block.rows)}")
    row = emitter.names.fresh(outer.index)
    inside = replace(scope, indices={**scope.indices, outer.index: row})
    with out.block(f"for {row} in range({first}, {whole}, {block.rows * step}):"):
        _between(emitter, block, outer.body[0], row, inside, out)
    if emitter.tail != "assume_divisible" or outer.size % block.rows:
        emitter.plain_loop(replace(outer, step=step, size=1), whole, last, scope, {}, out)


def _between(emitter: Emitter, block: Block, loop: Statement, row: str, scope: Scope, out: Writer) -> None:
    """Write the loops between the two, then the inner one."""
    assert isinstance(loop, For), "a block's loops stand alone in each other"
    lower, upper = emitter.ends(loop, scope)
    step = loop.step // loop.size
    if loop is not block.inner:
        index = emitter.names.fresh(loop.index)
        inside = replace(scope, indices={**scope.indices, loop.index: index})
        with out.block(f"for {index} in range({lower}, {upper}, {step}):"):
            _between(emitter, block, loop.body[0], row, inside, out)
        return
    first, last = emitter.bound_name(loop, lower, "lower", out), emitter.bound_name(loop, upper, "upper", out)
    whole = emitter.names.fresh(f"{loop.index}_whole")
    out.line(f"{whole} = {whole_text(first, last, step, block.rows)}")
    row_step = block.outer.step // block.outer.size
    lanes = Lanes(
        loop.index,
        block.rows,
        block.rows,
        step,
        fast=emitter.fast,
        rows=block.outer.index,
        row_step=row_step,
    )
    index = emitter.names.fresh(loop.index)
    inside = replace(scope, indices={**scope.indices, loop.index: index}, lanes=lanes)
    with out.block(f"for {index} in range({first}, {whole}, {block.rows * step}):"):
        emitter.statements(loop.body, inside, out)
    if emitter.tail == "assume_divisible" and loop.size % block.rows == 0:
        return
    one = emitter.names.fresh(block.outer.index)
    inside = replace(scope, indices={**scope.indices, block.outer.index: one})
    rows = f"for {one} in range({row}, {row} + {block.rows * row_step}, {row_step}):"
    with out.block(f"if {whole} {'<' if step > 0 else '>'} {last}:"), out.block(rows):
        emitter.vector_loop(loop, whole, last, inside, out)
