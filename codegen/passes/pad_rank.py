"""Give a nest one of a few numbers of outer loops, with loops of one outside the others."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.copies.nodes import For, LoopNest, Transpose, wrap
from codegen.schedule.schedule import Schedule


def pad_rank(nest: LoopNest, schedule: Schedule) -> LoopNest:
    """Add loops of one behind the first loop, the one that threads share.

    before:  for i in 9:                          copy_run …
    after:   for i in 9: for pad1 in 1:           copy_run …
    """
    loops = nest.loops
    if isinstance(nest.innermost, Transpose):
        return nest
    missing = schedule.rank - len(loops)
    ones = tuple(For(f"one{k}", 1, nest.innermost) for k in range(missing))
    padded = (*loops[:1], *ones, *loops[1:]) if loops else ones
    return replace(nest, body=wrap(padded, nest.table_loop, nest.innermost))
