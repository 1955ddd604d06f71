"""Drop the selects that mask lanes past the end of a loop: the loop itself masks them."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import full_blocks
from codegen.ir.nodes import For, Function, Statement
from codegen.schedule.loop_schedule import LoopSchedule


def unmask_lanes(function: Function, _: LoopSchedule) -> Function:
    """Update the locals of a vectorized reduction without comparing indices with the loop's bounds.

    before:  for i in 0..n step 64 carrying s = 0: s = select(i < n, s + A[i], s)
    after:   for i in 0..n step 64 carrying s = 0: s = s + A[i]

    The tail, which is peeled off later, masks its own lanes. Full blocks have no lanes to mask.
    """
    return replace(function, body=tuple(map(_unmasked, function.body)))


def _unmasked(statement: Statement) -> Statement:
    if not isinstance(statement, For):
        return statement
    loop = full_blocks(statement) if statement.size > 1 else statement
    return replace(loop, body=tuple(map(_unmasked, loop.body)))
