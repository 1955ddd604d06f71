"""What a layout is like as a function: injective, bijective."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tilejit.layout.cute.layout import Layout, extent, offsets
from tilejit.layout.cute.modes import flat_modes
from tilejit.layout.cute.swizzle import ComposedLayout


def is_injective(layout: Layout | ComposedLayout) -> bool:
    """Whether no two coordinates have one offset.

    (4,8):(1,5) -> True    (4,4):(1,2) -> False    4:0 -> False

    Raises:
        LayoutError: it takes a table to tell, and the layout is too large for one.
    """
    if isinstance(layout, Layout):
        quick = _by_strides(layout)
        if quick is not None:
            return quick
    table = offsets(layout)
    return np.unique(table).size == table.size


def _by_strides(layout: Layout) -> bool | None:
    """Yes where each stride passes all smaller modes, no where one is 0 or twice there; else unknown."""
    if layout.size <= 1:
        return True
    modes = sorted((abs(step), size) for size, step in flat_modes(layout) if size > 1)
    if modes[0][0] == 0 or any(a[0] == b[0] for a, b in pairwise(modes)):
        return False
    reach = 0
    for step, size in modes:
        if step <= reach:
            low, high = extent(layout)
            return False if high - low + 1 < layout.size else None
        reach += (size - 1) * step
    return True


def is_bijective(layout: Layout | ComposedLayout) -> bool:
    """Whether the offsets are 0 to size - 1, each once.

    (4,8):(8,1) -> True    (4,8):(1,5) -> False    4:-1 -> False

    Raises:
        LayoutError: it takes a table to tell, and the layout is too large for one.
    """
    if isinstance(layout, Layout):
        return layout.size == 0 or (extent(layout) == (0, layout.size - 1) and is_injective(layout))
    table = offsets(layout)
    return bool((np.sort(table) == np.arange(table.size)).all())
