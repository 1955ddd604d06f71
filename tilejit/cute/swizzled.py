"""Swizzled layouts as digit trees: if bits of the offset are digits, XOR reverses some of them.

Sw<B,M,S> XORs source bits of the offset into target bits. If each of those bits is a digit of its own, a pair
of bits is a pair of digits. The more major digit selects the direction of the other: up if it is 0, and down,
or by another stride, if it is 1. The rest is affine. Runs of 2^M elements stay contiguous.
"""

from __future__ import annotations

from math import prod

from codegen import Leaf, Root, Split, Switch, Tree, ceil_div, dataclass, mode_tree
from tilejit.cute.digits import Chain
from tilejit.cute.function import Function
from tilejit.cute.swizzle import Swizzle

MAX_PAIRS = 5
"""The most pairs of bits that become cases; five pairs give 32 cases."""


@dataclass(slots=True)
class _SwizzledDigit:
    """A digit of a dimension, and its part in the swizzle.

    Attributes:
        dim: the dimension.
        weight: the index of the dimension at which it is 1.
        stride: its stride; if it follows, while the more major digit of its pair is 0.
        bit: the bit of the offset that it represents, or -1.
        chooses: the number of the pair in which it is the more major digit, or -1.
        follows: the number of the pair in which it is the other digit, or -1.
        turned: its stride if the more major digit of that pair is 1.
    """

    dim: int
    weight: int
    stride: int
    bit: int = -1
    chooses: int = -1
    follows: int = -1
    turned: int = 0


def swizzled_roots(function: Function, dims: tuple[int, ...]) -> tuple[int, tuple[Root, ...]] | None:
    """The base and the roots of a function on [0, dims); None if bits of the offset are not digits.

    Without a swizzle, the result is never None unless a dimension is 0.
    """
    found = function.swizzle
    if found is None or 0 in dims:
        return None
    offset, swizzle = found
    pairs = _pairs(swizzle)
    if not pairs:
        return offset, tuple(
            Root((d,), mode_tree(m, n)) for d, (m, n) in enumerate(_with(function.modes, dims))
        )
    top = 1 << max(max(pair) for pair in pairs) + 1
    digits: list[list[_SwizzledDigit]] = []
    for dim, (mode, size) in enumerate(_with(function.modes, dims)):
        cut = _bits(dim, mode, size, top)
        if cut is None:
            return None
        digits.append(cut)
    owners = _owners([digit for own in digits for digit in own], offset % top)
    if owners is None or not _mark(pairs, owners, offset):
        return None
    joined = [d for d, own in enumerate(digits) if any(x.chooses >= 0 or x.follows >= 0 for x in own)]
    roots = [Root((d,), _tree([digits[d]], (size,))) for d, size in enumerate(dims) if d not in joined]
    if joined:
        whole = _tree([digits[d] for d in joined], tuple(dims[d] for d in joined))
        roots.append(Root(tuple(joined), whole))
    return swizzle(offset), tuple(roots)


def _with(modes: tuple[Chain, ...], dims: tuple[int, ...]) -> list[tuple[Chain, int]]:
    return list(zip(modes, dims, strict=True))


def _pairs(swizzle: Swizzle) -> list[tuple[int, int]]:
    """The pairs (source, target) of bits of the offset."""
    up, down = max(0, swizzle.shift), max(0, -swizzle.shift)
    return [(swizzle.base + up + k, swizzle.base + down + k) for k in range(swizzle.bits)]


def _bits(dim: int, mode: Chain, extent: int, top: int) -> list[_SwizzledDigit] | None:
    """The digits of a mode that the extent uses, with one digit per bit below `top`; None if impossible."""
    out: list[_SwizzledDigit] = []
    weight = 1
    for place, (size, stride) in enumerate(mode):
        if weight >= extent or size == 1:
            continue
        left, step, at = size, stride, weight
        while step % top and left > 1 and at < extent:
            if step < 0 or step & (step - 1) or (left % 2 and place < len(mode) - 1):
                return None
            out.append(_SwizzledDigit(dim, at, step, step.bit_length() - 1))
            left, step, at = ceil_div(left, 2), 2 * step, 2 * at
        if left > 1 and at < extent:
            out.append(_SwizzledDigit(dim, at, step))
        weight *= size
    return out


def _owners(digits: list[_SwizzledDigit], fixed: int) -> dict[int, _SwizzledDigit] | None:
    """The digit of each bit, if no bit occurs twice and no digit carries into the next."""
    out: dict[int, _SwizzledDigit] = {}
    for digit in digits:
        if digit.bit >= 0:
            if digit.bit in out or fixed >> digit.bit & 1:
                return None
            out[digit.bit] = digit
    return out


def _mark(pairs: list[tuple[int, int]], owners: dict[int, _SwizzledDigit], offset: int) -> bool:
    """Give every digit its part in the swizzle; return whether there are few enough cases."""
    chosen = 0
    for number, (source, target) in enumerate(pairs):
        by, onto = owners.get(source), owners.get(target)
        if by and onto:
            low, high = 1 << target, 1 << source
            if (by.dim, -by.weight) < (onto.dim, -onto.weight):
                by.chooses, by.stride = number, high + low
                onto.follows, onto.turned = number, -low
            else:
                onto.chooses = number
                by.follows, by.stride, by.turned = number, high + low, high - low
            chosen += 1
        elif onto and offset >> source & 1:
            onto.stride = -onto.stride
        elif by:
            by.stride += -(1 << target) if offset >> target & 1 else 1 << target
    return chosen <= MAX_PAIRS


def _tree(dims: list[list[_SwizzledDigit]], extents: tuple[int, ...]) -> Tree:
    """One tree over the row-major index of the dimensions, with the digits of the first one on top."""
    inner = prod(extents[1:])
    return _below(dims, extents, len(dims[0]) - 1, extents[0], inner, frozenset())


def _below(
    dims: list[list[_SwizzledDigit]],
    extents: tuple[int, ...],
    place: int,
    extent: int,
    inner: int,
    turned: frozenset[int],
) -> Tree:
    """The tree of the digits from `place` of the first dimension down.

    Args:
        dims: the digits of each remaining dimension.
        extents: the sizes of these dimensions.
        place: the position of the most major digit in the first of them.
        extent: the number of indices that this digit and those below it cover.
        inner: the product of the sizes of the other dimensions.
        turned: the pairs whose more major digit is 1.
    """
    if place < 0:
        if len(dims) == 1:
            return Leaf(1, 0)
        return _below(
            dims[1:], extents[1:], len(dims[1]) - 1, extents[1], inner // max(extents[1], 1), turned
        )
    digit = dims[0][place]
    count, tile = ceil_div(extent, digit.weight), digit.weight * inner
    below = dims, extents, place - 1, digit.weight, inner
    if digit.chooses >= 0:
        cases = (_below(*below, turned), _below(*below, turned | {digit.chooses}))[:count]
        return Switch(extent * inner, tile, (0, digit.stride)[:count], cases)
    stride = digit.turned if digit.follows in turned else digit.stride
    if tile == 1:
        return Leaf(count, stride)
    return Split(extent * inner, tile, Leaf(count, stride), _below(*below, turned))
