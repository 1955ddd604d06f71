"""Run the outer loops of super-vectors of several dimensions row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.ir.nodes import For, Function, Statement
from codegen.ir.rewriting import in_sizes
from codegen.schedule.registers import LoopPlan, RegisterSchedule
from codegen.support.errors import KernelError
from codegen.support.lookups import expect


def run_rows(function: Function, schedule: RegisterSchedule) -> Function:
    """Run loops over super-vectors that the schedule has no registers for iteration by iteration.

    before:  for i in 0..n step 4: for j in 0..m step 64: C[i, j] = A[i, j] [4, 64]
    after:   for i in 0..n:        for j in 0..m step 64: C[i, j] = A[i, j] [64]

    The order is between that of elements and that of super-vectors, so it is legal if both are.

    Raises:
        KernelError: the schedule is that of another function.
    """
    count = sum(1 for _ in _loops(function.body))
    if count != len(schedule.loops):
        raise KernelError(f"{function.name} has {count} loops, its schedule {len(schedule.loops)}")
    plans = iter(schedule.loops)
    return replace(function, body=tuple(_rows(s, plans, 0) for s in function.body))


def _loops(body: tuple[Statement, ...]) -> Iterator[For]:
    for statement in body:
        if isinstance(statement, For):
            yield statement
            yield from _loops(statement.body)


def _rows(statement: Statement, plans: Iterator[LoopPlan], position: int) -> Statement:
    """A statement inside `position` loops over super-vectors."""
    if not isinstance(statement, For):
        return statement
    loop = statement
    if expect(plans, f"a plan of {loop.index}", "the registers of a function") is None and loop.size > 1:
        loop = in_sizes(loop, 1, position)
    inside = position + (loop.size > 1)
    return replace(loop, body=tuple(_rows(s, plans, inside) for s in loop.body))
