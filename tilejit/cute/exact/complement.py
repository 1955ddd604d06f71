"""complement: the layout that repeats another one so that every offset below a bound is reached once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, shown
from tilejit.cute.digits import Mode, by_stride, joined
from tilejit.cute.exact.injective import MAX_MARKS, distinct_offsets, is_injective
from tilejit.cute.exact.repeats import window_repeats
from tilejit.cute.int_tuple import as_int_tuple, product
from tilejit.cute.layout import Layout, cosize, extent, offsets, trusted
from tilejit.cute.modes import flat_modes, from_modes, layout_like
from tilejit.cute.witness import NoLayoutError, Witness
from tilejit.support.tokens import named

_FIX = "use strides that are multiples of the range that smaller ones reach"
MAX_SUMS = 1 << 26
"""The most sums of offsets and repeats to enumerate, if strides alone do not decide."""

Offsets: TypeAlias = NDArray[np.int64]


def complement(layout: object, cotarget: object = None) -> Layout:
    """Find the ascending layout whose sums with a layout's offsets are distinct and cover 0 to cotarget - 1.

    >>> print(complement(parse("4:2"), 24), complement(parse("(2,2):(1,6)"), 24))
    (2,3):(1,8) (3,2):(2,12)
    >>> print(complement(parse("4:1"), 10))  # covers 12
    3:4
    >>> print(complement(parse("4:-1"), 8))  # covers -3 to 8
    3:4

    An offset that the layout reaches twice counts once, and modes of stride 0 are dropped. The complement is
    unique except at its end, where it repeats until it reaches the bound. With negative strides, it also
    starts at 0 but is one of several.

    Args:
        layout: a Layout, or a size or shape for the compact one.
        cotarget: the bound in elements: a size, a shape or a Layout. None takes the cosize of the layout.

    Returns:
        The complement.

    Raises:
        NoLayoutError: the layout has no complement. The witness is an offset that cannot be reached exactly
            once, with the number of times that the repeats forced by smaller offsets reach it.
        LayoutError: the search exceeds its limits, because strides are negative or the layout is large.
        TypeError: an argument has the wrong type.

    Source: CuTe's complement.
    """
    base = layout_like(layout)
    bound = _bound(base, cotarget)
    if base.size == 0:
        raise NoLayoutError(
            f"{named(base)} has no elements to repeat\n  pass a layout with elements", Witness(0, 0, 1)
        )
    moving = _moving(base)
    if moving and moving[0].stride < 0:
        return _of_negative(base, bound)
    return _of_modes(base, moving, bound)


def _moving(base: Layout) -> list[Mode]:
    """The modes that change the offset, in ascending order."""
    return sorted((mode for mode in flat_modes(base) if mode.stride and mode.size != 1), key=by_stride)


def _of_negative(base: Layout, bound: int) -> Layout:
    """The complement of a layout whose lowest offset is -begin.

    The same layout shifted to start at 0 has the same repeats, which need not reach offsets below `begin`.
    """
    begin = -extent(base)[0]
    sizes, steps = zip(*flat_modes(base), strict=True)
    tile = trusted(sizes, tuple(map(abs, steps)))
    try:
        return _of_modes(tile, _moving(tile), begin + bound)
    except NoLayoutError:
        found = window_repeats(tile, begin, begin + bound)
    if found is None:
        raise LayoutError(
            f"{named(base)}: there are too many complements in {shown(bound)} to try\n"
            "  use nonnegative strides"
        )
    if isinstance(found, int):
        raise NoLayoutError(
            f"{named(base)} has no complement in {shown(bound)}: repeats that reach all offsets from 0 to "
            f"{found - begin - 1} cannot reach {found - begin}\n"
            f"  {_FIX}",
            Witness(found - begin, 0, 1),
        )
    return from_modes(joined(found))


def _of_modes(base: Layout, modes: list[Mode], bound: int) -> Layout:
    """The complement of the offsets that modes reach, in ascending order of strides."""
    gaps: list[Mode] = []
    current = 1
    for place, (size, step) in enumerate(modes):
        if step % current:
            fewer = _merged(modes)
            if len(fewer) < len(modes):
                return _of_modes(base, fewer, bound)
            return _undivided(base, modes, place, gaps, bound)
        if step != current:
            gaps.append(Mode(step // current, current))
        current = step * size
    gaps.append(Mode(max(1, -(-bound // current)), current))
    return from_modes(joined(gaps))


def _bound(base: Layout, cotarget: object) -> int:
    if cotarget is None:
        return cosize(base)
    if isinstance(cotarget, Layout):
        bound = cotarget.size
    else:
        bound = cotarget if type(cotarget) is int else product(as_int_tuple(cotarget, "a cotarget"))
    if bound < 0:
        raise LayoutError(f"the cotarget is {shown(bound)}\n  pass 0 or more")
    return bound


def _merged(modes: list[Mode]) -> list[Mode]:
    """Join modes whose offsets together are multiples of one stride without a gap; the offsets stay the same.

    (4, 1), (4, 2) -> (10, 1)
    """
    out: list[Mode] = []
    for size, step in modes:
        if out and step % out[-1].stride == 0 and step <= out[-1].size * out[-1].stride:
            count, first = out[-1]
            out[-1] = Mode(count + step // first * (size - 1), first)
        else:
            out.append(Mode(size, step))
    return out


def _undivided(base: Layout, modes: list[Mode], place: int, gaps: list[Mode], bound: int) -> Layout:
    """The complement if the range of the modes before a mode does not divide its stride.

    The modes before it and their repeats reach every offset once. Below the next offset of the layout, no
    other repeats are possible. One of them reaches that offset again, so bounds past it have no complement.
    """
    lower = modes[:place]
    current = lower[-1].size * lower[-1].stride
    first: int | None = modes[place].stride
    if not _repeat_of(modes[place].stride, lower):
        tile = distinct_offsets(base)
        repeats = _repeat_of(tile, lower)
        at = int(np.asarray(repeats != 0).argmax())
        first = int(tile[at]) if repeats[at] else None
    all_repeats = [*gaps, Mode(max(1, -(-bound // current)), current)]
    if first is None:
        return from_modes(joined(all_repeats))
    again = _repeat_of(first, lower)
    if again < bound:
        raise NoLayoutError(
            f"{named(base)} has no complement in {shown(bound)}: offset {again} needs a repeat of its own, "
            f"which would reach offset {first} again\n"
            f"  {_FIX}",
            Witness(first, 2, 1),
        )
    within = [Mode(min(size, -(-bound // step)), step) for size, step in all_repeats if step < bound]
    found = from_modes(joined(within))
    _check_disjoint(base, modes, found, bound)
    return found


def _repeat_of(offset: Any, modes: list[Mode]) -> Any:
    """The repeat that reaches an offset, among those of these modes and their gaps.

    5, of (2, 2) -> 5: repeats at 0, 1, 4, 5 and so on    6 -> 4
    """
    out = 0
    reach = 1
    for size, step in modes:
        out = out + offset % step // reach * reach
        reach = step * size
    return out + offset // reach * reach


def _check_disjoint(base: Layout, modes: list[Mode], repeats: Layout, bound: int) -> None:
    """Raise if the repeats reach an offset twice."""
    apart = joined(sorted([*modes, *flat_modes(repeats)], key=lambda mode: mode.stride))
    if repeats.size == 1 or is_injective(from_modes(apart)):
        return
    if repeats.size * base.size > MAX_SUMS:
        raise LayoutError(f"{named(base)}: the complement is too large to check\n  pass a smaller cotarget")
    twice = _first_twice(distinct_offsets(base), offsets(repeats))
    if twice is not None:
        raise NoLayoutError(
            f"{named(base)} has no complement in {shown(bound)}: repeats at the offsets it needs, "
            f"{repeats}, reach offset {twice[0]} {twice[1]} times\n"
            f"  {_FIX}",
            Witness(*twice, 1),
        )


def _first_twice(a: Offsets, b: Offsets) -> tuple[int, int] | None:
    """The smallest sum a[i] + b[j] that occurs more than once, and its count; both arrays ascend from 0."""
    few, many = (a, b) if a.size < b.size else (b, a)
    reach = int(few[-1] + many[-1]) + 1
    if reach > MAX_MARKS:
        sums = np.sort((few[:, None] + many).reshape(-1))
        at = np.flatnonzero(sums[1:] == sums[:-1])
        first = int(sums[at[0]]) if at.size else None
    else:
        met = np.zeros(reach, bool)
        first = None
        for offset in few:
            places = many + offset
            if met[places].any():
                first = int(places[met[places].argmax()])
                break
            met[places] = True
    return None if first is None else (first, int(np.isin(first - few, many).sum()))
