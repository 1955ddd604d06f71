"""What `_` does in coordinates: slice, dice, slice_and_offset, domain_offset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilejit.cute.coordinates import offset_at
from tilejit.cute.int_tuple import limit_nesting
from tilejit.cute.layout import Layout, expect_layout, is_composed, sliced
from tilejit.cute.underscore import is_underscore


def slice_(crd: Any, layout: Any) -> Any:
    """The modes at which the coordinate has `_`, side by side.

    (_, 5), (3,4):(4,1) -> (3):(4)    ((0, _), _), ((2,3),4):((1,2),6) -> (3,4):(2,6)

    A composed layout keeps what `slice_and_offset` adds to its offset, and so gives what it gave before.

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
    """
    if is_composed(layout):
        return slice_and_offset(crd, layout)[0]
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return sliced(layout, crd)


def dice(crd: Any, layout: Layout) -> Layout:
    """The modes at which the coordinate has an integer: what `slice_` leaves out.

    (_, 5), (3,4):(4,1) -> (4):(1)

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
    """
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return sliced(layout, crd, whole=False)


def slice_and_offset(crd: Any, layout: Any) -> tuple[Any, int]:
    """The slice, and the offset at which it begins.

    (_, 2), (3,4):(4,1) -> (3):(4), 2    (_, 2), Sw<1,0,2> o 0 o (3,4):(4,1) -> Sw<1,0,2> o 2 o (3):(4), 0

    Raises:
        LayoutError, LayoutIndexError: as slice_ and crd2idx.
    """
    if is_composed(layout):
        return _moved(layout, slice_and_offset(crd, layout.inner))
    return slice_(crd, layout), offset_at(_filled(crd), layout.shape, layout.stride)


def domain_offset(crd: Any, layout: Any) -> tuple[Any, int]:
    """The same layout seen from another coordinate: itself, and the offset of that coordinate.

    (1, 2), (3,4):(4,1) -> (3,4):(4,1), 6

    Raises:
        LayoutError, LayoutIndexError: as crd2idx.
    """
    if is_composed(layout):
        return _moved(layout, domain_offset(crd, layout.inner))
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return layout, offset_at(crd, layout.shape, layout.stride)


def _moved(composed: Any, inner: tuple[Any, int]) -> tuple[Any, int]:
    """A o offset + start o inner, which begins at 0: what A does depends on where B begins."""
    kept, start = inner
    return replace(composed, offset=composed.offset + start, inner=kept), 0


def _filled(crd: Any) -> Any:
    """The coordinate with 0 for each `_`."""
    if isinstance(crd, tuple | list):
        return tuple(map(_filled, crd))
    return 0 if is_underscore(crd) else crd
