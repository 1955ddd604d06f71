"""The longest right inverse if offsets occur twice or strides are negative: two searches by values.

`run_by_room` examines runs that never carry. A carry out of digit k changes the value by d[k+1] - S[k]*d[k].
If all of these have one sign, carries cannot cancel and no other runs exist. Otherwise `run_by_table`
continues.
"""

from __future__ import annotations

from itertools import pairwise

from codegen import LayoutError
from tilejit.cute.digits import joined
from tilejit.cute.exact.radices import TooManyError
from tilejit.cute.exact.run_by_room import ByRoom
from tilejit.cute.exact.run_by_table import ByTable
from tilejit.cute.layout import Layout
from tilejit.cute.modes import flat_modes, from_modes
from tilejit.support.tokens import MAX_INT64, named


def longest_run(layout: Layout, found: Layout) -> Layout:
    """The longest R with A(R(i)) = i, or `found` if nothing is longer.

    (4,4):(1,2) -> (4,2):(1,8), of 8 elements; the chain of strides ends after 4

    Raises:
        LayoutError: there are too many candidates to try, or strides of the longest exceed 64 bits.
    """
    digits = joined(flat_modes(layout))
    search: ByRoom | ByTable = ByRoom.of(digits, found.size)
    best = found
    try:
        most = search.run()
        best = _better(search, best)
        carries = [after.stride - size * step for (size, step), after in pairwise(digits)]
        if min(carries, default=1) < 0 < max(carries, default=1) and search.length < most:
            search = ByTable.of(layout, search.length)
            search.run()
    except TooManyError:
        best = _better(search, best)
        raise LayoutError(
            f"{named(layout)}: there are too many right inverses to try; the longest found so far is "
            f"{named(best)}, of {best.size} elements\n"
            "  use nonnegative strides with distinct offsets"
        ) from None
    best = _better(search, best)
    if any(mode.stride > MAX_INT64 for mode in flat_modes(best)):
        raise LayoutError(
            f"a stride of the right inverse of {named(layout)} exceeds 64 bits\n  use smaller sizes"
        )
    return best


def _better(search: ByRoom | ByTable, best: Layout) -> Layout:
    """The result of a search, or the previous one if it found nothing."""
    return from_modes(joined(search.best)) if search.best else best
