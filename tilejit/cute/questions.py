"""Properties of a layout as a function: injective, bijective."""

from __future__ import annotations

import numpy as np

from tilejit.cute.digit_step import DigitStep
from tilejit.cute.exact import injective
from tilejit.cute.layout import Layout, expect_layout, extent, offsets
from tilejit.cute.swizzle import ComposedLayout, Outer, Swizzle


def is_injective(layout: Layout | ComposedLayout) -> bool:
    """Whether no two coordinates share an offset.

    >>> is_injective(parse("(4,8):(1,5)")), is_injective(parse("(4,4):(1,2)")), is_injective(parse("4:0"))
    (True, False, False)

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        True if all offsets differ.

    Raises:
        LayoutIndexError: a swizzle receives negative offsets.
        LayoutError: the answer needs a table of offsets, and the layout is too large for one.
        TypeError: the argument is not a layout.
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


def _apart(outer: Outer, offset: int, inner: Layout | ComposedLayout) -> bool:
    """Whether A maps all offsets of B to distinct values."""
    permutes = isinstance(outer, Swizzle | DigitStep)
    if isinstance(inner, ComposedLayout):
        return permutes and isinstance(inner.outer, Swizzle | DigitStep) and offset >= 0
    low, high = extent(inner)
    if isinstance(outer, Swizzle | DigitStep):
        outer(low + offset)  # raises for negative offsets
        return True
    inside = isinstance(outer, Layout) and 0 <= low + offset <= high + offset < outer.size
    return inside and is_injective(outer)


def is_bijective(layout: Layout | ComposedLayout) -> bool:
    """Whether the offsets are 0 to size - 1, each exactly once.

    >>> is_bijective(parse("(4,8):(8,1)")), is_bijective(parse("(4,8):(1,5)")), is_bijective(parse("4:-1"))
    (True, False, False)

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        True if the layout permutes 0 to size - 1.

    Raises:
        LayoutIndexError: a swizzle receives negative offsets.
        LayoutError: the answer needs a table of offsets, and the layout is too large for one.
        TypeError: the argument is not a layout.
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
