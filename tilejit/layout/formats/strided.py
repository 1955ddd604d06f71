"""Blockings as CuTe layouts: a stride for each digit, which may count down, begin later or skip memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from codegen import LayoutError
from tilejit.cute.digits import Mode, joined
from tilejit.cute.layout import Layout
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.tables import layout_of
from tilejit.layout.checks import width_of
from tilejit.layout.cute_shape import CuteLayout, CuteShape
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.formats.blocking import Blocking, DigitName

IDENTITY = Swizzle(0, 0, 0)
"""The swizzle that changes nothing: CuTe's text puts one before an offset."""


def strided_shape(
    blocking: Blocking,
    element: PrimitiveType,
    bits: int,
    *,
    reversed_digits: frozenset[DigitName] = frozenset(),
    offset: int = 0,
    pitches: Mapping[DigitName, int] | None = None,
) -> CuteShape:
    """Return the CuteShape of a blocked array, with the digits in memory order.

    [2,8] as (2) and (4,2), order (0,0) (1,0) (1,1), of u4, 4 bits, digit (1,1) reversed
        -> u4[2,8] Sw<0,0,0> o 1 o (2,(2,4)):(8,(-1,2)) E(4)

    Args:
        blocking: the digits and their order.
        element: the type of the elements.
        bits: the width of an element in the buffer; 0 is the type's storage width.
        reversed_digits: digits that count down in memory.
        offset: the elements before the array in its buffer.
        pitches: strides in elements of digits that leave gaps, such as those that count records. A digit
            without one steps over all of the next more minor digit, gaps included.

    Raises:
        LayoutError: `bits` is neither the element's width nor its storage width, a digit is unknown, or the
            buffer exceeds 2^63 bits.
    """
    given = pitches or MappingProxyType({})
    unknown = sorted((reversed_digits | set(given)) - set(blocking.order))
    if unknown:
        raise LayoutError(
            f"the blocking has no digit {tuple(unknown[0])}\n  name its digits as (dimension, number)"
        )
    strides: dict[DigitName, int] = {}
    step, start = 1, offset
    for digit in reversed(blocking.order):
        size = blocking.size(digit)
        step = given.get(digit, step)
        backward = digit in reversed_digits
        strides[digit] = -step if backward else step
        start += step * max(0, size - 1) * backward
        step *= size
    layout: CuteLayout = _layout(blocking, strides)
    if start:
        layout = ComposedLayout(IDENTITY, start, layout)
    return CuteShape(element.name, blocking.dimensions, layout, width_of(element, bits))


def _layout(blocking: Blocking, strides: Mapping[DigitName, int]) -> Layout:
    """A mode for each dimension, its most minor digit first; digits that continue each other are joined."""
    return layout_of(
        tuple(joined(Mode(size, strides[DigitName(dim, k)]) for k, size in reversed([*enumerate(sizes)])))
        for dim, sizes in enumerate(blocking.digits)
    )
