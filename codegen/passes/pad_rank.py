"""Pad the outer loops of a nest to one of a few ranks, with loops that run once."""

from __future__ import annotations

from dataclasses import replace

from codegen.schedule.schedule import Schedule
from codegen.schedule.transfers import Loop, TransferNest, TransposeRuns, TransposeTiles


def pad_rank(nest: TransferNest, schedule: Schedule) -> TransferNest:
    """Add loops that run once after the first loop, the one that is split among threads.

    before:  for i in 9:                          CopyRun(…)
    after:   for i in 9: for one0 in 1:           CopyRun(…)
    """
    if isinstance(nest.transfer, TransposeTiles | TransposeRuns):
        return nest
    loops = nest.loops
    ones = tuple(Loop(f"one{k}") for k in range(schedule.rank - len(loops)))
    return replace(nest, loops=(*loops[:1], *ones, *loops[1:]))
