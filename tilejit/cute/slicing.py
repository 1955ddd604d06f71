"""`_`, which keeps a mode, and what it does in coordinates: slice, dice, slice_and_offset, domain_offset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen import LayoutError
from tilejit.cute.coordinates import offset_at, whole_number
from tilejit.cute.int_tuple import IntTuple, limit_nesting
from tilejit.cute.layout import Layout, expect_layout, is_composed, trusted
from tilejit.support.tokens import named


class Underscore:
    """The type of `_`, a mode that stays whole."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"

    def __reduce__(self) -> str:
        return "_"


_ = Underscore()


def is_underscore(value: object) -> bool:
    """Whether a coordinate or a tiler keeps the mode: `_`, None, or the slice `:`."""
    return (
        value is None or isinstance(value, Underscore) or (isinstance(value, slice) and value == slice(None))
    )


def has_underscore(crd: object) -> bool:
    """Whether `_` stands anywhere in a coordinate."""
    if isinstance(crd, tuple | list):
        return any(map(has_underscore, crd))
    return is_underscore(crd)


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
    return _side_by_side(_kept(crd, layout.shape, layout.stride, True))


def dice(crd: Any, layout: Layout) -> Layout:
    """The modes at which the coordinate has an integer: what `slice_` leaves out.

    (_, 5), (3,4):(4,1) -> (4):(1)

    Raises:
        LayoutIndexError: a coordinate is negative.
        LayoutError: the coordinate does not nest like the layout.
    """
    expect_layout(layout)
    limit_nesting(crd, "a coordinate")
    return _side_by_side(_kept(crd, layout.shape, layout.stride, False))


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


def _side_by_side(kept: list[tuple[IntTuple, IntTuple]]) -> Layout:
    return trusted(tuple(shape for shape, _ in kept), tuple(stride for _, stride in kept))


def _kept(crd: Any, shape: IntTuple, stride: IntTuple, whole: bool) -> list[tuple[IntTuple, IntTuple]]:
    """Modes under `_` (whole) or under integers (not whole), in order."""
    if isinstance(crd, tuple | list):
        if not isinstance(shape, tuple) or not isinstance(stride, tuple) or len(crd) != len(shape):
            raise LayoutError(
                f"the coordinate {named(crd)} does not fit {named(trusted(shape, stride))}\n"
                "  give one integer or _ a mode"
            )
        parts = zip(crd, shape, stride, strict=True)
        return [pair for c, s, d in parts for pair in _kept(c, s, d, whole)]
    free = is_underscore(crd)
    if not free:
        whole_number(crd)
    return [(shape, stride)] if free is whole else []


def _filled(crd: Any) -> Any:
    """The coordinate with 0 for each `_`."""
    if isinstance(crd, tuple | list):
        return tuple(map(_filled, crd))
    return 0 if is_underscore(crd) else crd
