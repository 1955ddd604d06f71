"""Split and combine layouts by modes: make_layout, coalesce, filter, select, group, append, ….

No function here changes an offset; filter and filter_zeros drop coordinates that do not change the offset.
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
"""The most modes of a layout."""


def make_layout(*parts: Any) -> Layout:
    """Put layouts side by side as modes, or create a layout from a shape and a stride.

    >>> print(make_layout(parse("2:1"), parse("(3,4):(2,6)")))
    (2,(3,4)):(1,(2,6))
    >>> print(make_layout((4, 8)), make_layout((4, 8), (8, 1)))
    (4,8):(1,4) (4,8):(8,1)

    Args:
        parts: layouts, or an iterable of layouts; or a shape in elements, optionally followed by its strides.

    Returns:
        The layout.

    Raises:
        TypeError: the parts are neither layouts nor a shape and a stride.
        LayoutError: the shape and the stride do not make a layout; see `Layout`.

    Source: CuTe's make_layout.
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
        raise TypeError("make_layout: expected layouts, or a shape and a stride")
    return Layout(*parts)


def layout_like(value: object) -> Layout:
    """Return a Layout as it is, and a size or shape as its compact layout.

    Raises:
        TypeError: the value is neither.
    """
    return expect_layout(value) if isinstance(value, Layout) or is_composed(value) else Layout(value)


def flat_modes(layout: Layout) -> list[Mode]:
    """List the modes of a layout from left to right, without nesting."""
    expect_layout(layout)
    return list(map(Mode, tuples.flatten(layout.shape), tuples.flatten(layout.stride)))


def from_modes(modes: Iterable[Mode]) -> Layout:
    """Create a flat layout; one mode gives an integer shape, no mode 1:0.

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
    """Simplify a layout to the fewest flat modes that define the same function.

    >>> print(coalesce(parse("(2,(1,6)):(1,(6,2))")))
    12:1
    >>> print(coalesce(parse("(2,4):(4,1)"), (8,)))
    (2,4):(4,1)

    Args:
        layout: a Layout or a ComposedLayout.
        profile: an IntTuple. With it, the function coalesces within each mode of the profile; modes beyond it
            stay as they are.

    Returns:
        The coalesced layout.

    Raises:
        LayoutError: the profile has more modes than the layout.
        TypeError: an argument has the wrong type.

    Source: CuTe's coalesce.
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
    """Replace sizes by 1 wherever the stride is 0.

    >>> print(filter_zeros(parse("(2,3):(0,1)")))
    (1,3):(0,1)

    Args:
        layout: a Layout or a ComposedLayout.
        profile: an IntTuple that nests like the shape; sizes become 1 where it is 0. None takes the strides.

    Returns:
        The layout.

    Raises:
        LayoutError: the profile does not nest like the shape.
        TypeError: an argument has the wrong type.

    Source: CuTe's filter_zeros.
    """
    expect_layout(layout)
    guide = layout.stride if profile is None else as_int_tuple(profile, "a profile")
    return trusted(_without(guide, layout.shape), layout.stride)


def _without(guide: IntTuple, shape: IntTuple) -> IntTuple:
    if isinstance(guide, tuple):
        if not isinstance(shape, tuple) or len(guide) > len(shape):
            raise LayoutError(
                f"the profile {named(guide)} does not nest like {named(shape)}\n"
                "  pass one integer for each mode"
            )
        return (*map(_without, guide, shape), *shape[len(guide) :])
    if guide != 0:
        return shape
    return unflatten(iter([1] * len(tuples.flatten(shape))), shape)  # type: ignore[no-any-return]


@of_inner
def filter_(layout: Layout, profile: object = None) -> Layout:
    """Drop modes of stride 0 and coalesce; the remaining modes reach the same offsets.

    >>> print(filter_(parse("(2,3,4):(1,0,2)")), filter_(parse("(2,3):(0,0)")))
    8:1 1:0

    `cute.filter` is the same function.

    Args:
        layout: a Layout or a ComposedLayout.
        profile: an IntTuple. With it, the function filters within each mode of the profile.

    Returns:
        The filtered layout; 1:0 if no mode remains.

    Raises:
        LayoutError: the profile has more modes than the layout.
        TypeError: an argument has the wrong type.

    Source: CuTe's filter.
    """
    guide = None if profile is None else as_int_tuple(profile, "a profile")
    if isinstance(guide, tuple):
        return by_mode(layout, guide, filter_)
    return coalesce(filter_zeros(layout))


def by_mode(layout: Layout, guide: Iterable[Any], change: Callable[[Layout, Any], Layout]) -> Layout:
    """Change each mode by the matching part of a guide; modes without one stay the same.

    Raises:
        LayoutError: the guide has more modes than the layout.
    """
    expect_layout(layout)
    limit_nesting(guide, "a tiler")
    parts, kept = list(guide), list(layout)
    if len(parts) > len(kept):
        raise LayoutError(
            f"{len(parts)} modes were requested, but {named(layout)} has {len(kept)}\n  pass no more"
        )
    changed = [change(mode, part) for mode, part in zip(kept, parts, strict=False)]
    return make_layout(*changed, *kept[len(parts) :]) if kept else layout


@of_inner
def flatten(value: Any) -> Any:
    """Remove the nesting of a layout or an IntTuple.

    >>> print(flatten(parse("((2,3),4):((1,2),6)")), flatten(((2, 3), 4)))
    (2,3,4):(1,2,6) (2, 3, 4)

    Args:
        value: a Layout, a ComposedLayout or an IntTuple.

    Returns:
        The same without nesting.

    Raises:
        TypeError: the value has another type.

    Source: CuTe's flatten.
    """
    if isinstance(value, Layout):
        if not isinstance(value.shape, tuple):
            return value
        return trusted(tuples.flatten(value.shape), tuples.flatten(value.stride))
    return tuples.flatten(as_int_tuple(value))


def rank(value: Any) -> int:
    """Count the modes at the top level.

    >>> rank(parse("((2,3),4):((1,2),6)")), rank(5)
    (2, 1)

    Args:
        value: a layout or an IntTuple.

    Returns:
        The number of modes; 1 for an integer.

    Raises:
        TypeError: the value has another type.

    Source: CuTe's rank.
    """
    return value.rank if hasattr(value, "rank") else tuples.rank(as_int_tuple(value))


def depth(value: Any) -> int:
    """Count the levels of nesting.

    >>> depth(parse("((2,3),4):((1,2),6)")), depth(5)
    (2, 0)

    Args:
        value: a layout or an IntTuple.

    Returns:
        The depth; 0 for an integer.

    Raises:
        TypeError: the value has another type.

    Source: CuTe's depth.
    """
    return value.depth if hasattr(value, "depth") else tuples.depth(as_int_tuple(value))


@of_inner
def select(layout: Layout, *places: int) -> Layout:
    """Select modes in the given order.

    >>> print(select(parse("(2,3,4):(1,2,6)"), 2, 0))
    (4,2):(6,1)

    Args:
        layout: a Layout or a ComposedLayout.
        places: the numbers of the modes; negative ones count from the end.

    Returns:
        A layout of those modes.

    Raises:
        LayoutIndexError: a mode does not exist.
        TypeError: a number is not an integer.

    Source: CuTe's select.
    """
    expect_layout(layout)
    if any(isinstance(place, tuple | list) for place in places):
        raise TypeError("expected one argument for each mode, as in select(layout, 0, 2)")
    chosen = [layout[as_integer(place, "a mode's place")] for place in places]
    return trusted(tuple(mode.shape for mode in chosen), tuple(mode.stride for mode in chosen))


@of_inner
def group(layout: Layout, begin: int, end: int) -> Layout:
    """Group the modes from begin to end - 1 into one.

    >>> print(group(parse("(2,3,4):(1,2,6)"), 0, 2))
    ((2,3),4):((1,2),6)

    Args:
        layout: a Layout or a ComposedLayout.
        begin: the first mode.
        end: one past the last mode.

    Returns:
        The layout with those modes nested in one.

    Raises:
        LayoutError: the range violates 0 <= begin <= end <= rank.
        TypeError: an argument has the wrong type.

    Source: CuTe's group.
    """
    expect_layout(layout)
    begin, end = as_integer(begin, "begin"), as_integer(end, "end")
    if not 0 <= begin <= end <= layout.rank:
        raise LayoutError(
            f"modes {shown(begin)} to {shown(end)} are not all in {named(layout)}\n"
            "  pass 0 <= begin <= end <= rank"
        )
    parts = list(layout)
    middle = select(layout, *range(begin, end))
    return make_layout(*parts[:begin], middle, *parts[end:])


def append(layout: Layout, mode: Layout = EMPTY_MODE, rank: int | None = None) -> Layout:
    """Add a mode at the end.

    >>> print(append(parse("(2,3):(1,2)"), parse("4:6")), append(parse("2:1"), rank=3))
    (2,3,4):(1,2,6) (2,1,1):(1,0,0)

    Args:
        layout: a Layout.
        mode: the mode to add; 1:0 by default.
        rank: the number of modes to reach by adding the mode repeatedly. None adds one.

    Returns:
        The extended layout.

    Raises:
        LayoutError: the layout has more modes than `rank`, or `rank` is too large.
        TypeError: an argument has the wrong type.

    Source: CuTe's append.
    """
    expect_layout(layout)
    expect_layout(mode)
    count = _missing(layout, rank)
    return make_layout(*layout, *[mode] * count) if count else layout


def prepend(layout: Layout, mode: Layout = EMPTY_MODE, rank: int | None = None) -> Layout:
    """Add a mode at the front.

    >>> print(prepend(parse("(2,3):(1,2)"), parse("4:6")))
    (4,2,3):(6,1,2)

    Args:
        layout: a Layout.
        mode: the mode to add; 1:0 by default.
        rank: the number of modes to reach by adding the mode repeatedly. None adds one.

    Returns:
        The extended layout.

    Raises:
        LayoutError: the layout has more modes than `rank`, or `rank` is too large.
        TypeError: an argument has the wrong type.

    Source: CuTe's prepend.
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
        raise LayoutError(f"a rank of {shown(rank)} is too large\n  use at most {MAX_RANK} modes")
    if rank < layout.rank:
        raise LayoutError(f"{named(layout)} has more than {shown(rank)} modes\n  pass {layout.rank} or more")
    return rank - layout.rank
