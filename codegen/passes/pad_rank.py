"""Pad the outer loops of a nest to one of a few ranks, with loops that run once."""

from __future__ import annotations

from dataclasses import replace

from codegen.schedule.schedule import Schedule
from codegen.schedule.shuffles import Shuffle
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import TransferNest
from codegen.schedule.transposes import Transpose


def pad_rank(nest: TransferNest, schedule: Schedule) -> TransferNest:
    """Add loops that run once, outermost, or after the first loop if threads share its iterations.

    before:  for i in 9:                          CopyRun(…)
    after:   for one0 in 1: for i in 9:           CopyRun(…)
    shared:  for i in 9: for one0 in 1:           CopyRun(…)
    """
    loops, inner = nest.loops, nest.transfer
    if isinstance(inner, Transpose) or (isinstance(inner, Shuffle) and not loops):
        return nest
    ones = tuple(Loop(f"one{k}") for k in range(schedule.rank - len(loops)))
    first = 1 if schedule.shared else 0
    return replace(nest, loops=(*loops[:first], *ones, *loops[first:]))
