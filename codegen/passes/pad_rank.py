"""Pad the outer loops of a nest to one of a few ranks, with loops that run once."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import For, LoopNest, Transpose, TransposeTiles, wrap
from codegen.schedule.schedule import Schedule


def pad_rank(nest: LoopNest, schedule: Schedule) -> LoopNest:
    """Add loops that run once after the first loop, the one that is split among threads.

    before:  for i in 9:                          copy_run …
    after:   for i in 9: for one0 in 1:           copy_run …
    """
    loops = nest.loops
    if isinstance(nest.innermost, Transpose | TransposeTiles):
        return nest
    missing = schedule.rank - len(loops)
    ones = tuple(For(f"one{k}", 1, nest.innermost) for k in range(missing))
    padded = (*loops[:1], *ones, *loops[1:]) if loops else ones
    return replace(nest, body=wrap(padded, nest.table_loop, nest.innermost))
