"""Swizzled layouts as the compiler stages them: plain digits, and a permutation of every period of memory."""

from __future__ import annotations

from codegen import PermutedMap
from tilejit.cute.digits import Chain, Mode, digits_of, joined
from tilejit.cute.function import Function
from tilejit.cute.swizzled import swizzled_roots
from tilejit.layout.cute_shape import CuteShape, Spec


def permuted_map(spec: Spec) -> PermutedMap | None:
    """The layout of a swizzled array; None for other layouts, packed elements and swizzles with an offset.

    Sw<1,1,1> o 0 o (8):(1) -> modes (((8, 1),),), period 8, a tree of the offsets 0 1 2 3 6 7 4 5
    """
    if not isinstance(spec, CuteShape) or 0 in spec.dimensions or spec.bits != 8 * spec.dtype.itemsize:
        return None
    found = spec.function.swizzle
    if found is None or found[0] or not found[1].bits:
        return None
    swizzle = found[1]
    period = 1 << (swizzle.bits + swizzle.base + abs(swizzle.shift))
    roots = swizzled_roots(Function(((Mode(period, 1),),), ((0, swizzle),)), (period,))
    if roots is None or len(roots[1]) != 1:
        return None
    modes = tuple(_used(mode, n) for mode, n in zip(spec.function.modes, spec.dimensions, strict=True))
    return PermutedMap(modes, period, roots[0], roots[1][0].tree)


def _used(chain: Chain, extent: int) -> Chain:
    """The digits that indices below an extent use; adjacent ones that are contiguous together are joined."""
    digits = digits_of((chain,), (extent,))
    return tuple(joined(Mode(digit.size, digit.stride) for digit in digits)) or (Mode(1, 1),)
