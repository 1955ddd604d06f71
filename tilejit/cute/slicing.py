"""The meaning of `_` in coordinates: slice, dice, slice_and_offset, domain_offset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilejit.cute.coordinates import offset_at
from tilejit.cute.int_tuple import limit_nesting
from tilejit.cute.layout import Layout, expect_layout, is_composed, sliced
from tilejit.cute.underscore import is_underscore


def slice_(crd: Any, layout: Any) -> Any:
    """Keep the modes at which a coordinate has `_`.

    >>> print(slice_((_, 5), parse("(3,4):(4,1)")))
    (3):(4)
    >>> print(slice_(((0, _), _), parse("((2,3),4):((1,2),6)")))
    (3,4):(2,6)

    A slice of a composed layout includes the offset that `slice_and_offset` adds, so it maps coordinates to
    the same offsets as before.

    Args:
        crd: a coordinate that nests like the layout, with `_` for modes to keep.
        layout: a Layout or a ComposedLayout.

    Returns:
        The layout of those modes, side by side.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
        TypeError: an argument has the wrong type.

    Source: CuTe's slice.
    """
    if is_composed(layout):
        return slice_and_offset(crd, layout)[0]
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return sliced(layout, crd)


def dice(crd: Any, layout: Layout) -> Layout:
    """Keep the modes at which a coordinate has an integer: the modes that `slice_` drops.

    >>> print(dice((_, 5), parse("(3,4):(4,1)")))
    (4):(1)

    Args:
        crd: a coordinate that nests like the layout, with `_` for modes to drop.
        layout: a Layout.

    Returns:
        The layout of those modes, side by side.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
        TypeError: an argument has the wrong type.

    Source: CuTe's dice.
    """
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return sliced(layout, crd, whole=False)


def slice_and_offset(crd: Any, layout: Any) -> tuple[Any, int]:
    """Return a slice and the offset at which it begins.

    >>> [str(part) for part in slice_and_offset((_, 2), parse("(3,4):(4,1)"))]
    ['(3):(4)', '2']
    >>> [str(part) for part in slice_and_offset((_, 2), parse("Sw<1,0,2> o 0 o (3,4):(4,1)"))]
    ['Sw<1,0,2> o 2 o (3):(4)', '0']

    Args:
        crd: a coordinate that nests like the layout, with `_` for modes to keep.
        layout: a Layout or a ComposedLayout.

    Returns:
        The slice, and its offset in elements. A composed layout keeps the offset itself.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
        TypeError: an argument has the wrong type.

    Source: CuTe's slice_and_offset.
    """
    if is_composed(layout):
        return _moved(layout, slice_and_offset(crd, layout.inner))
    return slice_(crd, layout), offset_at(_filled(crd), layout.shape, layout.stride)


def domain_offset(crd: Any, layout: Any) -> tuple[Any, int]:
    """Return the layout as seen from another coordinate: the layout and the offset of that coordinate.

    >>> [str(part) for part in domain_offset((1, 2), parse("(3,4):(4,1)"))]
    ['(3,4):(4,1)', '6']

    Args:
        crd: a coordinate of the layout.
        layout: a Layout or a ComposedLayout.

    Returns:
        The layout, and the offset in elements.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
        TypeError: an argument has the wrong type.

    Source: CuTe's domain_offset.
    """
    if is_composed(layout):
        return _moved(layout, domain_offset(crd, layout.inner))
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return layout, offset_at(crd, layout.shape, layout.stride)


def _moved(composed: Any, inner: tuple[Any, int]) -> tuple[Any, int]:
    """Add the start of the inner layout to the offset, because A is applied to their sum."""
    kept, start = inner
    return replace(composed, offset=composed.offset + start, inner=kept), 0


def _filled(crd: Any) -> Any:
    """The coordinate with 0 for each `_`."""
    if isinstance(crd, tuple | list):
        return tuple(map(_filled, crd))
    return 0 if is_underscore(crd) else crd
