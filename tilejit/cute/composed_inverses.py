"""left_inverse and right_inverse of layouts, and of layouts composed with swizzles and other layouts.

Every swizzle is its own inverse, so the inverse of Sw o B is the inverse of B after Sw.
"""

from __future__ import annotations

from typing import overload

from codegen import LayoutError, ceil_div
from tilejit.cute.compose import composition
from tilejit.cute.digit_step import DigitStep
from tilejit.cute.exact.left_inverse import left_inverse_of_layout
from tilejit.cute.inverses import longest_within, right_inverse_of_layout
from tilejit.cute.layout import Layout, expect_layout, extent, offsets
from tilejit.cute.swizzle import ComposedLayout, Outer, Swizzle
from tilejit.cute.witness import NoLayoutError, Witness
from tilejit.support.tokens import named


@overload
def left_inverse(layout: Layout) -> Layout: ...
@overload
def left_inverse(layout: ComposedLayout) -> Layout | ComposedLayout: ...
def left_inverse(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """Find the layout that maps every offset back to its coordinate.

    >>> print(left_inverse(parse("(4,8):(1,5)")), left_inverse(parse("(6,3):(8,3)")))
    (5,8):(1,4) (8,6):(2,1)
    >>> print(left_inverse(parse("4:3")))
    (3,4):(0,1)
    >>> print(left_inverse(parse("Sw<1,0,2> o 0 o (4,2):(2,1)")))
    (2,4):(4,1) o 0 o Sw<1,0,2> o 0 o 8:1

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        The layout L with L(layout(i)) = i for every i, coordinates of stride 0 taken as 0. Other offsets may
        map anywhere. A layout composed with a swizzle gives a ComposedLayout whose domain ends with a whole
        block of the swizzle. If an offset was added, L accepts only the offsets of the layout, not lower
        ones.

    Raises:
        NoLayoutError: there is no left inverse: an offset is negative or occurs twice, or no mixed radix
            fits. The witness is an index, the value that layouts correct for smaller indices return, and the
            index again.
        LayoutError: there are too many mixed radices to try, strides exceed 64 bits, or a composed layout has
            negative strides.
        TypeError: the argument is not a layout.

    Source: CuTe's left_inverse.
    """
    if not isinstance(layout, ComposedLayout):
        return left_inverse_of_layout(expect_layout(layout))
    layout = _regrouped(layout)
    if isinstance(layout, Layout):
        return left_inverse_of_layout(layout)
    outer, offset, inner = layout.outer, layout.offset, layout.inner
    if _range(inner)[0] < 0:
        raise LayoutError(
            f"cannot find the left inverse of {named(layout)}, because its strides are negative\n"
            "  write the layout with nonnegative strides"
        )
    undone = left_inverse(inner)
    if isinstance(outer, Swizzle | DigitStep):
        back = outer if isinstance(outer, Swizzle) else outer.inverse
        return ComposedLayout(
            undone, -offset, _swizzled(back, _whole_blocks(outer, _range(inner)[1] + offset))
        )
    try:
        first = left_inverse_of_layout(_layout(outer))
    except NoLayoutError as error:
        raise LayoutError(
            f"cannot find the left inverse of {named(layout)}, because {named(outer)} has none\n"
            "  write it as one layout"
        ) from error
    return ComposedLayout(undone, -offset, first)


@overload
def right_inverse(layout: Layout) -> Layout: ...
@overload
def right_inverse(layout: ComposedLayout) -> Layout | ComposedLayout: ...
def right_inverse(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """Find the longest layout R with layout(R(i)) = i.

    >>> print(right_inverse(parse("(4,8):(8,1)")), right_inverse(parse("(4,6):(0,1)")))
    (8,4):(4,1) 6:4
    >>> print(right_inverse(parse("(4,8):(1,5)")))
    4:1
    >>> print(right_inverse(parse("Sw<1,0,2> o 0 o (4,2):(2,1)")))
    (2,4):(4,1) o 0 o Sw<1,0,2> o 0 o 8:1

    R follows the chain of modes whose strides continue each other from 1 on. If strides are negative or
    offsets occur twice, the function searches for a longer run. For a composed layout, R is the longest that
    goes through the right inverse of the inner layout.

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        The right inverse.

    Raises:
        NoLayoutError: no coordinate has offset 0.
        LayoutError: the layout has no elements, the search exceeds its work limit, an offset is added to
            negative strides or before a layout, or a DigitStep comes last.
        TypeError: the argument is not a layout.

    Source: CuTe's right_inverse.
    """
    if not isinstance(layout, ComposedLayout):
        return right_inverse_of_layout(layout)
    layout = _regrouped(layout)
    if isinstance(layout, Layout):
        return right_inverse_of_layout(layout)
    outer, offset, inner = layout.outer, layout.offset, layout.inner
    if offset:
        raise _without_zero(layout)
    if isinstance(outer, DigitStep):
        raise LayoutError(
            f"cannot find the right inverse of {named(layout)}, because {outer} comes last\n"
            "  use its left inverse"
        )
    undone = right_inverse(inner)
    if isinstance(outer, Swizzle):
        return ComposedLayout(undone, 0, _swizzled(outer, first_from(outer, undone.size)))
    first = longest_within(right_inverse_of_layout(_layout(outer)), undone.size)
    try:
        return composition(undone, first)  # type: ignore[no-any-return]
    except LayoutError:
        return ComposedLayout(undone, 0, first)


def first_from(swizzle: Swizzle, bound: int) -> int:
    """The smallest i with swizzle(i) >= bound, where bound >= 0; all smaller i stay below the bound.

    Sw<1,0,2> from 5 -> 4, because it exchanges 4 and 5    from 6 -> 6
    """
    least = int(swizzle(bound))
    for free in range(max(bound.bit_length(), swizzle.block.bit_length()) + 1):
        if not bound >> free & 1:
            least = min(least, _least(swizzle, (bound >> free | 1) << free, free))
    return least


def _least(swizzle: Swizzle, begin: int, free: int) -> int:
    """The smallest swizzle(x) for x from `begin`, a multiple of 2^free, to begin + 2^free - 1."""
    if swizzle.shift >= 0:
        return int(swizzle(begin)) >> free << free
    # A free bit that is XORed into a bit at or above `free` can clear that bit.
    for bit in range(swizzle.base, swizzle.base + swizzle.bits):
        target = bit - swizzle.shift
        if bit < free <= target:
            begin |= (begin >> target & 1) << bit
    return int(swizzle(begin))


def _regrouped(layout: ComposedLayout) -> Layout | ComposedLayout:
    """Rewrite a composed layout so that its outer part is not composed; return a Layout if possible."""
    outer, offset, inner = layout.outer, layout.offset, layout.inner
    if isinstance(inner, ComposedLayout):
        inner = _regrouped(inner)
    if isinstance(outer, ComposedLayout):
        return _regrouped(
            ComposedLayout(outer.outer, outer.offset, ComposedLayout(outer.inner, offset, inner))
        )
    if isinstance(outer, Swizzle) and outer.bits == 0 and offset == 0:
        return inner
    if isinstance(outer, Layout) and isinstance(inner, Layout) and offset == 0:
        try:
            return composition(outer, inner)  # type: ignore[no-any-return]
        except LayoutError:
            pass
    return ComposedLayout(outer, offset, inner)


def _swizzled(swizzle: Swizzle | DigitStep, size: int) -> ComposedLayout:
    return ComposedLayout(swizzle, 0, Layout(size, 1))


def _whole_blocks(swizzle: Swizzle | DigitStep, top: int) -> int:
    """The size of the fewest whole blocks of the swizzle, from offset 0, that contain `top`."""
    return ceil_div(top + 1, swizzle.block) * swizzle.block


def _range(layout: Layout | ComposedLayout) -> tuple[int, int]:
    """Bounds on the offsets, both included."""
    if isinstance(layout, Layout):
        return extent(layout)
    if isinstance(layout.outer, Swizzle | DigitStep):
        return 0, _whole_blocks(layout.outer, _range(layout.inner)[1] + layout.offset) - 1
    table = offsets(layout)
    return int(table.min(initial=0)), int(table.max(initial=0))


def _layout(outer: Outer) -> Layout:
    assert isinstance(outer, Layout), "regrouped"
    return outer


def _without_zero(layout: ComposedLayout) -> LayoutError:
    """The error for a composed layout that adds an offset."""
    low, offset = _range(layout.inner)[0], layout.offset
    if isinstance(layout.outer, Swizzle) and low + offset > 0:
        seen = Witness(0, layout(0), 0)
        return NoLayoutError(
            f"{named(layout)} has no right inverse: no coordinate has offset 0, and {seen}\n"
            "  remove the offset, and add it where the layout is used",
            seen,
        )
    return LayoutError(
        f"cannot find the right inverse of {named(layout)}, because it adds the offset {offset}\n"
        "  write it without an offset"
    )
