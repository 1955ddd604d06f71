"""What a layout is like as a function: injective, bijective."""

from __future__ import annotations

import numpy as np

from tilejit.cute.exact import injective
from tilejit.cute.layout import Layout, expect_layout, extent, offsets
from tilejit.cute.swizzle import ComposedLayout, Swizzle


def is_injective(layout: Layout | ComposedLayout) -> bool:
    """Whether no two coordinates have one offset.

    (4,8):(1,5) -> True    (4,4):(1,2) -> False    4:0 -> False

    Strides decide wherever they can, and a swizzle moves no two offsets to one.

    Raises:
        LayoutIndexError: a swizzle is given negative offsets.
        LayoutError: it takes a table to tell, and the layout is too large for one.
    """
    if not isinstance(layout, ComposedLayout):
        return injective.is_injective(expect_layout(layout))
    if layout.size == 0:
        return True
    if not is_injective(layout.inner):
        return False
    if _apart(layout.outer, layout.offset, layout.inner):
        return True
    table = offsets(layout)
    return injective.distinct(table).size == table.size


def _apart(outer: Swizzle | Layout | ComposedLayout, offset: int, inner: Layout | ComposedLayout) -> bool:
    """Whether A keeps all places apart that B can give it."""
    if isinstance(inner, ComposedLayout):
        return isinstance(outer, Swizzle) and isinstance(inner.outer, Swizzle) and offset >= 0
    low, high = extent(inner)
    if isinstance(outer, Swizzle):
        outer(low + offset)  # refuses what is negative
        return True
    inside = isinstance(outer, Layout) and 0 <= low + offset <= high + offset < outer.size
    return inside and is_injective(outer)


def is_bijective(layout: Layout | ComposedLayout) -> bool:
    """Whether the offsets are 0 to size - 1, each once.

    (4,8):(8,1) -> True    (4,8):(1,5) -> False    4:-1 -> False

    Raises:
        LayoutIndexError: a swizzle is given negative offsets.
        LayoutError: it takes a table to tell, and the layout is too large for one.
    """
    if not isinstance(layout, ComposedLayout):
        whole = extent(expect_layout(layout)) == (0, layout.size - 1)
        return layout.size == 0 or (whole and injective.is_injective(layout))
    if layout.is_compact:
        return True
    if not is_injective(layout):
        return False
    table = offsets(layout)
    return bool((np.sort(table) == np.arange(table.size)).all())
