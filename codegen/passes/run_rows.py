"""Run the outer loops of super-vectors of several dimensions row by row."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import in_sizes
from codegen.schedule.loop_schedule import LoopSchedule


def run_rows(function: Function, schedule: LoopSchedule) -> Function:
    """Run loops over super-vectors that the schedule has no registers for iteration by iteration.

    before:  for i in 0..n step 4: for j in 0..m step 64: C[i, j] = A[i, j] [4, 64]
    after:   for i in 0..n:        for j in 0..m step 64: C[i, j] = A[i, j] [64]

    The order is between that of elements and that of super-vectors, so it is legal if both are.
    """
    return replace(function, body=tuple(_rows(s, schedule, 0) for s in function.body))


def _rows(statement: Statement, schedule: LoopSchedule, position: int) -> Statement:
    """A statement inside `position` loops over super-vectors."""
    if not isinstance(statement, For):
        return statement
    loop = statement
    if loop.size > 1 and not (schedule.registers(loop.index) or schedule.block(loop.index)):
        loop = in_sizes(loop, 1, position)
    inside = position + (loop.size > 1)
    return replace(loop, body=tuple(_rows(s, schedule, inside) for s in loop.body))
