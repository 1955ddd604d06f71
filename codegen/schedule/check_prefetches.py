"""Check that the prefetch pass can obey the Prefetch directives of a copy."""

from __future__ import annotations

from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Assemble, Prefetch
from codegen.schedule.offset_tables import ENTRIES_ARGUMENT
from codegen.schedule.read_directives import refuse


def check_prefetches(nest: CopyNest) -> None:
    """Check the Prefetch directives of a nest whose sizes are numbers.

    Raises:
        ScheduleError: the pass cannot obey them.
    """
    for x in nest.obeying(Prefetch):
        if x.loop not in (loops := _loops(nest)):
            refuse(f"expected requests for {', '.join(loops) or 'nothing'} in this copy, got {x}", x)
        has_chunks = any(loop.axis == x.loop and loop.src_table for loop in nest.loops)
        if x.chunks and (x.chunks < 0 or not has_chunks):
            refuse(f"expected chunks=0 for a loop without a table, got {x}", x)
        if x.loop == "tile" and x.distance != 1:
            refuse(f"expected a distance of 1 tile, got {x}", x)
        if x.loop == "entry" and x.distance == ENTRIES_ARGUMENT:
            continue
        goes_back = nest.goes_back and x.loop != "entry"
        if not isinstance(x.distance, int) or (x.distance < 1 and not goes_back):
            refuse(f"expected a distance of 1 or more, got {x}", x)


def _loops(nest: CopyNest) -> list[str]:
    """The loops whose later iterations a copy can request.

    The next tile is requested where lines are stored past the cache, or leave scratch if loops over tiles are
    outermost. Source rows that are shorter than a lane mostly follow each other, so hardware prefetches them.
    """
    if nest.fills or nest.requests or nest.unit_bits == 1:
        return []
    in_registers = nest.lanes or nest.obeying(Assemble)
    own = "column" if nest.transposes else nest.loops[0].axis
    found = [own] * bool(nest.transposes or in_registers or len(nest.loops) == 1)
    found += ["entry"] * bool(nest.entries)
    in_lines = nest.transposes and nest.stream and nest.tiles("row") and nest.tiles("column")
    in_order = nest.order == (*nest.outer, *nest.in_block)
    in_order = in_order and not any(x.axis in nest.in_block for x in nest.around)
    return [*found, *["tile"] * bool((in_order if nest.staged else in_lines) and not nest.short)]
