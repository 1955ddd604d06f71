"""Permuted digits of blockings in CuTe layouts: negative strides if reversed, otherwise a step for each."""

from __future__ import annotations

from dataclasses import replace

from tilejit.cute.digit_step import DigitStep
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.formats.blocking import Blocking, DigitName, Permutation
from tilejit.layout.formats.strided import strided_shape


def permuted_shape(blocking: Blocking, element: PrimitiveType, bits: int) -> CuteShape:
    """Return the CuteShape of a blocked array some of whose digits are permuted.

    [64,8] as (8,8) and (8), order (0,0) (0,1) (1,0), of u8, digit (1,0) XORed with (0,1)
        -> u8[64,8] Sw<3,0,3> o 0 o (64,8):(8,1)

    Raises:
        LayoutError: `bits` does not fit the element, or the buffer exceeds 2^63 bits.
    """
    backward = frozenset(step.digit for step in blocking.permutations if step.reverses)
    shape = strided_shape(blocking, element, bits, reversed_digits=backward)
    layout = shape.layout
    for step in blocking.permutations:
        if not step.reverses:
            layout = ComposedLayout(_step(blocking, step), 0, layout)
    return replace(shape, layout=layout)


def _step(blocking: Blocking, step: Permutation) -> Swizzle | DigitStep:
    """The step that moves a digit: a swizzle for an XOR of bits of the offset."""
    size, stride = blocking.size(step.digit), _stride(blocking, step.digit)
    if step.by is None:
        return DigitStep(size, stride, table=step.table)
    by_size, by_stride = blocking.size(step.by), _stride(blocking, step.by)
    if step.operation == "^" and _is_bit(stride) and _is_bit(by_stride):
        target, source = stride.bit_length() - 1, by_stride.bit_length() - 1
        return Swizzle(by_size.bit_length() - 1, min(target, source), source - target)
    return DigitStep(size, stride, step.operation, by_size, by_stride)


def _stride(blocking: Blocking, digit: DigitName) -> int:
    """The elements below a digit in memory."""
    return blocking.extent(blocking.order[blocking.order.index(digit) + 1 :])


def _is_bit(number: int) -> bool:
    return number & (number - 1) == 0
