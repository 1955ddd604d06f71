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
    """Express a layout in units of `count` elements: divide strides, and merge runs of `count` elements.

    >>> print(upcast(parse("(4,8):(1,4)"), 2), upcast(parse("(4,8):(0,8)"), 4))
    (2,8):(1,2) (4,8):(0,2)

    Args:
        layout: a Layout.
        count: elements in a unit.

    Returns:
        The layout in units. A run that is not a multiple of a unit is rounded up, as in CuTe.

    Raises:
        LayoutError: a stride and the count do not divide each other in either direction, or a stride is
            negative and smaller than the count.
        TypeError: an argument has the wrong type.

    Source: CuTe's upcast.
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
                f"{named(layout)} has a mode {size}:{step}, whose stride and {shown(units)} do not divide "
                "each other\n"
                "  use a count that divides the stride or is a multiple of it"
            )
        return Mode(-(-size * step // units), 1)

    return _each(layout, mode)


def downcast(layout: Layout, count: int) -> Layout:
    """Express a layout in units of which `count` make one element: the mode of stride 1 grows.

    >>> print(downcast(parse("(2,8):(1,2)"), 2), downcast(parse("(1,8):(1,2)"), 2))
    (4,8):(1,4) (2,8):(1,4)

    Args:
        layout: a Layout.
        count: units in an element.

    Returns:
        The layout in units.

    Raises:
        LayoutError: the layout does not have exactly one mode of stride 1.
        TypeError: an argument has the wrong type.

    Source: CuTe's downcast.
    """
    expect_layout(layout)
    units = _positive(count)
    ones = [mode.size for mode in flat_modes(layout) if mode.stride == 1]
    growing = [size for size in ones if size != 1] or ones
    if len(growing) != 1:
        fix = (
            "use a layout with one mode of contiguous elements"
            if growing
            else "add a mode for the units of an element: make_layout(Layout(1, 1), layout)"
        )
        raise LayoutError(
            f"{named(layout)} has {len(growing)} modes of stride 1, but exactly one must grow\n  {fix}"
        )
    wide = any(size != 1 for size in ones)

    def mode(size: int, step: int) -> Mode:
        if step == 1 and (size != 1 or not wide):
            return Mode(size * units, 1)
        return Mode(size, step * units)

    return _each(layout, mode)


def recast_layout(layout: Layout, old_bits: int, new_bits: int) -> Layout:
    """Express a layout of the same memory in elements of another width.

    >>> print(recast_layout(parse("(4,8):(1,4)"), 16, 32), recast_layout(parse("(4,8):(1,4)"), 16, 8))
    (2,8):(1,2) (8,8):(1,8)

    Args:
        layout: a Layout.
        old_bits: the width of its elements in bits.
        new_bits: the width of the new elements in bits.

    Returns:
        The layout in new elements.

    Raises:
        LayoutError: as `upcast` and `downcast`.
        TypeError: an argument has the wrong type.

    Source: CuTe's recast_layout.
    """
    expect_layout(layout)
    old, new = _positive(old_bits), _positive(new_bits)
    common = gcd(old, new)
    out = layout
    if new > common:
        out = upcast(out, new // common)
    return downcast(out, old // common) if old > common else out


def max_alignment(layout: Layout) -> int:
    """Find the largest unit, in elements, that divides a layout evenly: `upcast` by it is exact.

    >>> max_alignment(parse("(4,8):(1,4)")), max_alignment(parse("(4,8):(1,16)")), max_alignment(parse("8:2"))
    (32, 4, 1)

    Args:
        layout: a Layout.

    Returns:
        The number of elements.

    Raises:
        LayoutError: as `right_inverse`.
        TypeError: the argument is not a Layout.

    Source: CuTe's max_alignment.
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
    """Whether every mode consists of runs of whole units or moves by whole units."""
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
        raise LayoutError(f"a width is {shown(number)}\n  pass 1 or more")
    return number
