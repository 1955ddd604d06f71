"""Layouts taken apart and put together by modes: make_layout, coalesce, filter, select, group, append, ….

Nothing here changes an offset; filter and filter_zeros drop coordinates that change none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from codegen import LayoutError, shown
from tilejit.cute import int_tuple as tuples
from tilejit.cute.digits import Mode, joined
from tilejit.cute.int_tuple import IntTuple, as_int_tuple, as_integer, limit_nesting, unflatten
from tilejit.cute.layout import Layout, expect_layout, is_composed, of_inner, trusted
from tilejit.support.tokens import named

EMPTY_MODE = trusted(1, 0)
MAX_RANK = 1 << 16
"""More modes than any layout has."""


def make_layout(*parts: Any) -> Layout:
    """Layouts side by side, each a mode; or a shape, with or without a stride, as Layout takes them.

    2:1, (3,4):(2,6) -> (2,(3,4)):(1,(2,6))    (4, 8) -> (4,8):(1,4)    (4, 8), (8, 1) -> (4,8):(8,1)

    Raises:
        TypeError: neither.
    """
    if (
        len(parts) == 1
        and not isinstance(parts[0], Layout | int | tuple | list)
        and isinstance(parts[0], Iterable)
    ):
        parts = tuple(parts[0])
    if parts and all(isinstance(part, Layout) for part in parts):
        return trusted(tuple(part.shape for part in parts), tuple(part.stride for part in parts))
    if not 1 <= len(parts) <= 2:
        raise TypeError("make_layout takes layouts, or a shape and a stride")
    return Layout(*parts)


def layout_like(value: object) -> Layout:
    """A Layout as itself, a size or shape as its compact layout.

    Raises:
        TypeError: neither.
    """
    return expect_layout(value) if isinstance(value, Layout) or is_composed(value) else Layout(value)


def flat_modes(layout: Layout) -> list[Mode]:
    """The modes of a layout from left to right, without nesting."""
    expect_layout(layout)
    return list(map(Mode, tuples.flatten(layout.shape), tuples.flatten(layout.stride)))


def from_modes(modes: Iterable[Mode]) -> Layout:
    """A flat layout; one mode is an integer, none 1:0.

    (2, 1), (3, 7) -> (2,3):(1,7)    (4, 1) -> 4:1
    """
    pairs = list(modes)
    if not pairs:
        return EMPTY_MODE
    if len(pairs) == 1:
        return trusted(*pairs[0])
    return trusted(*zip(*pairs, strict=True))


@of_inner
def coalesce(layout: Layout, profile: object = None) -> Layout:
    """The same function with the fewest flat modes; with a profile, mode by mode of it.

    (2,(1,6)):(1,(6,2)) -> 12:1    (2,4):(4,1) with the profile (8,) -> (2,4):(4,1)

    Modes beyond the profile's stay as they are.

    Raises:
        LayoutError: the profile has more modes than the layout.
    """
    expect_layout(layout)
    guide = None if profile is None else as_int_tuple(profile, "a profile")
    if isinstance(guide, tuple):
        return by_mode(layout, guide, coalesce)
    if 0 in tuples.flatten(layout.shape):
        return trusted(0, 0)
    return from_modes(joined(flat_modes(layout)))


@of_inner
def filter_zeros(layout: Layout, profile: object = None) -> Layout:
    """The layout with size 1 wherever a stride is 0 (or the profile has a 0).

    (2,3):(0,1) -> (1,3):(0,1)

    Raises:
        LayoutError: the profile does not nest like the shape.
    """
    expect_layout(layout)
    guide = layout.stride if profile is None else as_int_tuple(profile, "a profile")
    return trusted(_without(guide, layout.shape), layout.stride)


def _without(guide: IntTuple, shape: IntTuple) -> IntTuple:
    if isinstance(guide, tuple):
        if not isinstance(shape, tuple) or len(guide) > len(shape):
            raise LayoutError(
                f"the profile {named(guide)} does not nest like {named(shape)}\n  give an integer a mode"
            )
        return (*map(_without, guide, shape), *shape[len(guide) :])
    if guide != 0:
        return shape
    return unflatten(iter([1] * len(tuples.flatten(shape))), shape)  # type: ignore[no-any-return]


@of_inner
def filter_(layout: Layout, profile: object = None) -> Layout:
    """The coalesced layout without modes of stride 0: what tells offsets apart; 1:0 where nothing is left.

    (2,3,4):(1,0,2) -> 8:1

    Raises:
        LayoutError: the profile has more modes than the layout.
    """
    guide = None if profile is None else as_int_tuple(profile, "a profile")
    if isinstance(guide, tuple):
        return by_mode(layout, guide, filter_)
    return coalesce(filter_zeros(layout))


def by_mode(layout: Layout, guide: Iterable[Any], change: Callable[[Layout, Any], Layout]) -> Layout:
    """Each mode changed by what the guide has for it; modes beyond the guide's stay.

    Raises:
        LayoutError: the guide has more modes than the layout.
    """
    expect_layout(layout)
    limit_nesting(guide, "a tiler")
    parts, kept = list(guide), list(layout)
    if len(parts) > len(kept):
        raise LayoutError(
            f"{len(parts)} modes are asked for, but {named(layout)} has {len(kept)}\n  give fewer"
        )
    changed = [change(mode, part) for mode, part in zip(kept, parts, strict=False)]
    return make_layout(*changed, *kept[len(parts) :]) if kept else layout


@of_inner
def flatten(value: Any) -> Any:
    """A layout, or an IntTuple, without nesting.

    ((2,3),4):((1,2),6) -> (2,3,4):(1,2,6)    4:1 -> 4:1
    """
    if isinstance(value, Layout):
        if not isinstance(value.shape, tuple):
            return value
        return trusted(tuples.flatten(value.shape), tuples.flatten(value.stride))
    return tuples.flatten(as_int_tuple(value))


def rank(value: Any) -> int:
    """Modes at the top of a layout or an IntTuple.

    ((2,3),4):((1,2),6) -> 2    5 -> 1
    """
    return value.rank if hasattr(value, "rank") else tuples.rank(as_int_tuple(value))


def depth(value: Any) -> int:
    """How deep a layout or an IntTuple nests.

    ((2,3),4):((1,2),6) -> 2    5 -> 0
    """
    return value.depth if hasattr(value, "depth") else tuples.depth(as_int_tuple(value))


@of_inner
def select(layout: Layout, *places: int) -> Layout:
    """Some modes, in the order asked for.

    (2,3,4):(1,2,6) at 2, 0 -> (4,2):(6,1)

    Raises:
        LayoutIndexError: there is no such mode.
        TypeError: a place is not an integer.
    """
    expect_layout(layout)
    if any(isinstance(place, tuple | list) for place in places):
        raise TypeError("modes are named one by one: select(layout, 0, 2)")
    chosen = [layout[as_integer(place, "a mode's place")] for place in places]
    return trusted(tuple(mode.shape for mode in chosen), tuple(mode.stride for mode in chosen))


@of_inner
def group(layout: Layout, begin: int, end: int) -> Layout:
    """Modes begin to end - 1 as one.

    (2,3,4):(1,2,6), 0, 2 -> ((2,3),4):((1,2),6)

    Raises:
        LayoutError: not 0 <= begin <= end <= rank.
    """
    expect_layout(layout)
    begin, end = as_integer(begin, "begin"), as_integer(end, "end")
    if not 0 <= begin <= end <= layout.rank:
        raise LayoutError(
            f"modes {shown(begin)} to {shown(end)} are not all in {named(layout)}\n"
            "  give 0 <= begin <= end <= rank"
        )
    parts = list(layout)
    middle = select(layout, *range(begin, end))
    return make_layout(*parts[:begin], middle, *parts[end:])


def append(layout: Layout, mode: Layout = EMPTY_MODE, rank: int | None = None) -> Layout:
    """The layout with a mode more at its end; with a rank, with as many as it takes to reach that.

    (2,3):(1,2), 4:6 -> (2,3,4):(1,2,6)    2:1, rank=3 -> (2,1,1):(1,0,0)

    Raises:
        LayoutError: the rank is passed already, or larger than any.
    """
    expect_layout(layout)
    expect_layout(mode)
    count = _missing(layout, rank)
    return make_layout(*layout, *[mode] * count) if count else layout


def prepend(layout: Layout, mode: Layout = EMPTY_MODE, rank: int | None = None) -> Layout:
    """The layout with a mode more at its begin; with a rank, with as many as it takes to reach that.

    (2,3):(1,2), 4:6 -> (4,2,3):(6,1,2)

    Raises:
        LayoutError: the rank is passed already, or larger than any.
    """
    expect_layout(layout)
    expect_layout(mode)
    count = _missing(layout, rank)
    return make_layout(*[mode] * count, *layout) if count else layout


def _missing(layout: Layout, rank: int | None) -> int:
    if rank is None:
        return 1
    rank = as_integer(rank, "a rank")
    if rank > MAX_RANK:
        raise LayoutError(f"a rank of {shown(rank)} is too large\n  ask for at most {MAX_RANK} modes")
    if rank < layout.rank:
        raise LayoutError(f"{named(layout)} has more than {shown(rank)} modes\n  give its rank or more")
    return rank - layout.rank
