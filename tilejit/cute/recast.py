"""Layouts in units of other widths: upcast, downcast, recast_layout, max_alignment."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from codegen import LayoutError, shown
from tilejit.cute.digits import Mode, joined
from tilejit.cute.int_tuple import as_integer, unflatten
from tilejit.cute.inverses import right_inverse_of_layout
from tilejit.cute.layout import Layout, expect_layout, trusted
from tilejit.cute.modes import flat_modes
from tilejit.support.tokens import named


def upcast(layout: Layout, count: int) -> Layout:
    """The layout in units of `count` elements: strides divided, runs of that many elements become one.

    (4,8):(1,4), 2 -> (2,8):(1,2)    (4,8):(0,8), 4 -> (4,8):(0,2)

    A run that is no whole number of units is rounded up, as in CuTe.

    Raises:
        LayoutError: a stride neither divides the count nor is a multiple of it, or is negative and smaller.
    """
    expect_layout(layout)
    units = _positive(count)

    def mode(size: int, step: int) -> Mode:
        if step == 0 or size == 1:
            return Mode(size, -(-step // units))
        if step % units == 0:
            return Mode(size, step // units)
        if step < 0 or units % step:
            raise LayoutError(
                f"{named(layout)} has a mode {size}:{step}: no run of {shown(units)} elements, no multiple\n"
                "  give a count that divides its stride, or is a multiple of it"
            )
        return Mode(-(-size * step // units), 1)

    return _each(layout, mode)


def downcast(layout: Layout, count: int) -> Layout:
    """The layout in units of which `count` make an element: the mode of stride 1 grows, other strides too.

    (2,8):(1,2), 2 -> (4,8):(1,4)    (1,8):(1,2), 2 -> (2,8):(1,4)

    Raises:
        LayoutError: there is not exactly one mode of stride 1 to grow.
    """
    expect_layout(layout)
    units = _positive(count)
    ones = [mode.size for mode in flat_modes(layout) if mode.stride == 1]
    growing = [size for size in ones if size != 1] or ones
    if len(growing) != 1:
        mend = (
            "give a layout with one mode of contiguous elements"
            if growing
            else "add a mode in which the units of an element are to lie: make_layout(Layout(1, 1), layout)"
        )
        raise LayoutError(
            f"{named(layout)} has {len(growing)} modes of stride 1, and one is to grow\n  {mend}"
        )
    wide = any(size != 1 for size in ones)

    def mode(size: int, step: int) -> Mode:
        if step == 1 and (size != 1 or not wide):
            return Mode(size * units, 1)
        return Mode(size, step * units)

    return _each(layout, mode)


def recast_layout(layout: Layout, old_bits: int, new_bits: int) -> Layout:
    """The layout of the same memory in elements of another width, in bits.

    (4,8):(1,4) from 16 to 32 bits -> (2,8):(1,2)    from 16 to 8 bits -> (8,8):(1,8)

    Raises:
        LayoutError: as upcast and downcast.
    """
    expect_layout(layout)
    old, new = _positive(old_bits), _positive(new_bits)
    common = gcd(old, new)
    out = layout
    if new > common:
        out = upcast(out, new // common)
    return downcast(out, old // common) if old > common else out


def max_alignment(layout: Layout) -> int:
    """The most elements that can be one unit: upcast by it, or a divisor of it, is whole everywhere.

    (4,8):(1,4) -> 32    (4,8):(1,16) -> 4    (4,8):(2,8) -> 1

    Raises:
        LayoutError: as right_inverse.
    """
    expect_layout(layout)
    run = right_inverse_of_layout(layout)
    inside = {mode.stride for mode in joined(flat_modes(run))}
    units, weight = run.size, 1
    for size, step in joined(flat_modes(layout)):
        if weight not in inside and step:
            units = gcd(units, step)
        weight *= size
    while units > 1 and not _whole(layout, units):
        units = max(k for k in range(1, units) if units % k == 0)
    return units


def _whole(layout: Layout, units: int) -> bool:
    """Whether every mode is runs of whole units or moves by them."""
    return all(
        d % units == 0 or (d > 0 and units % d == 0 and (n * d) % units == 0) or _inner(layout, n, d, units)
        for n, d in joined(flat_modes(layout))
    )


def _inner(layout: Layout, size: int, step: int, units: int) -> bool:
    """Whether a mode is the lower part of a unit that another mode completes."""
    return (
        step > 0
        and units % (size * step) == 0
        and any(mode.stride == size * step for mode in joined(flat_modes(layout)))
    )


def _each(layout: Layout, mode: Callable[[int, int], Mode]) -> Layout:
    changed = [mode(size, step) for size, step in flat_modes(layout)]
    return trusted(
        unflatten(iter([own.size for own in changed]), layout.shape),
        unflatten(iter([own.stride for own in changed]), layout.shape),
    )


def _positive(count: int) -> int:
    number = as_integer(count, "a width")
    if number < 1:
        raise LayoutError(f"a width is {shown(number)}\n  give 1 or more")
    return number
