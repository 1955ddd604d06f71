"""Turned digits of blockings in CuTe layouts: negative strides if reversed, a swizzle for each XOR."""

from __future__ import annotations

from dataclasses import replace

from codegen import LayoutError
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.formats.blocking import Blocking, DigitName
from tilejit.layout.formats.strided import strided_shape


def turned_shape(blocking: Blocking, element: PrimitiveType, bits: int) -> CuteShape:
    """Return the CuteShape of a blocked array some of whose digits are turned.

    [64,8] as (8,8) and (8), order (0,0) (0,1) (1,0), of u8, digit (1,0) XORed with (0,1)
        -> u8[64,8] Sw<3,0,3> o 0 o (64,8):(8,1)

    Raises:
        LayoutError: `bits` does not fit the element, the digits of an XOR are not bits of the offset, or the
            buffer exceeds 2^63 bits.
    """
    backward = frozenset(turn.digit for turn in blocking.turns if turn.by is None)
    shape = strided_shape(blocking, element, bits, reversed_digits=backward)
    layout = shape.layout
    for turn in blocking.turns:
        if turn.by is not None:
            layout = ComposedLayout(_swizzle(blocking, turn.digit, turn.by), 0, layout)
    return replace(shape, layout=layout)


def _swizzle(blocking: Blocking, digit: DigitName, by: DigitName) -> Swizzle:
    """The swizzle that XORs one digit into another."""
    target, source = (_first_bit(blocking, one) for one in (digit, by))
    return Swizzle(blocking.size(by).bit_length() - 1, min(target, source), source - target)


def _first_bit(blocking: Blocking, digit: DigitName) -> int:
    """The bit of the offset at which a digit starts."""
    below = blocking.order[blocking.order.index(digit) + 1 :]
    stride = blocking.extent(below)
    if stride & (stride - 1):
        raise LayoutError(
            f"digits of {stride} elements lie below a digit that is XORed or read by an XOR\n"
            "  XOR needs a power of two there: choose other sizes, or another order"
        )
    return stride.bit_length() - 1
