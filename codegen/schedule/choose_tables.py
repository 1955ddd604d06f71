"""Choose the loops that become tables of offsets, if a box has more loops than any kernel."""

from __future__ import annotations

from codegen.ir.strided_box import StridedBox
from codegen.schedule.choose_order import best_order
from codegen.schedule.schedule import MOST_LOOPS


def table_axes(box: StridedBox, *, past_cache: bool) -> tuple[str, ...]:
    """The loops that become tables, outermost first; none if a kernel has a loop for each axis.

    The loop over table entries runs outside all others. It takes the first loops of the order that touches
    fewer pages. In the order of the destination, neighboring lines of the source may be read at very
    different times: bf16[8192,4096] from T(32,32)(16,16) to T(8,128)(2,1) had 0.37 of the speed of memcpy,
    and has 1.0 or more in the order of the source (Zen 4, AVX2, 2026-11).
    """
    extra = len(box.axes) - MOST_LOOPS
    if extra <= 0:
        return ()
    inner = tuple(axis.name for axis in (box.contiguous("dst"), box.contiguous("src")) if axis)
    outer = [axis for axis in box.axes if axis.name not in inner]
    order = best_order(box, outer, inner, stream=past_cache)
    return tuple(axis.name for axis in order[:extra])
