"""Swizzled layouts as digit trees: if bits of the offset are digits, XOR reverses some of them.

Sw<B,M,S> XORs source bits of the offset into target bits. If each of those bits is a digit of its own, a pair
of bits is a pair of digits. With the digits s and t at the bits of weights S and T,

    s S + (s ^ t) T  =  s (S + T) + t T - 2 s t T

so the more major of the two digits selects the stride of the other one. The rest is affine. Runs of 2^M
elements stay contiguous.
"""

from __future__ import annotations

from dataclasses import field
from math import prod

from codegen import Leaf, Root, Split, Switch, Tree, ceil_div, compiler_lock, dataclass, mode_tree
from tilejit.cute.digits import Chain
from tilejit.cute.function import Function
from tilejit.cute.swizzle import Swizzle

MAX_CHOICES = 5
"""The most digits that select strides; five digits give 32 cases."""

Pairs = tuple[tuple[int, int], ...]
"""Bits (source, target) of the offset."""


@dataclass(slots=True, eq=False)
class _SwizzledDigit:
    """A digit of a dimension, and its part in the swizzle.

    Attributes:
        dim: the dimension.
        weight: the index of the dimension at which it is 1.
        stride: its stride while all more major digits that it follows are 0.
        bit: the bit of the offset that it represents, or -1.
        chooses: whether it selects the stride of a less major digit.
        follows: what is added to its stride for each more major digit that is 1.
    """

    dim: int
    weight: int
    stride: int
    bit: int = -1
    chooses: bool = False
    follows: dict[_SwizzledDigit, int] = field(default_factory=dict)


def swizzled_roots(function: Function, dims: tuple[int, ...]) -> tuple[int, tuple[Root, ...]] | None:
    """The base and the roots of a function on [0, dims); None if bits of the offset are not digits.

    Without a swizzle, the result is never None unless a dimension is 0.
    """
    found = function.permutations
    if found is None or 0 in dims:
        return None
    offset, steps = found
    swizzles = tuple(step for step in steps if isinstance(step, Swizzle))
    if len(swizzles) < len(steps):
        with compiler_lock:  # few layouts have steps
            from tilejit.cute.stepped import stepped_roots
        return stepped_roots(function.modes, dims, offset, steps)
    if not swizzles:
        return offset, tuple(
            Root((d,), mode_tree(m, n)) for d, (m, n) in enumerate(_with(function.modes, dims))
        )
    pairs = _pairs(swizzles)
    if pairs is None:
        return None
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
    joined = [d for d, own in enumerate(digits) if any(x.chooses or x.follows for x in own)]
    roots = [Root((d,), _tree([digits[d]], (size,))) for d, size in enumerate(dims) if d not in joined]
    if joined:
        whole = _tree([digits[d] for d in joined], tuple(dims[d] for d in joined))
        roots.append(Root(tuple(joined), whole))
    for swizzle in swizzles:
        offset = swizzle(offset)
    return offset, tuple(roots)


def _with(modes: tuple[Chain, ...], dims: tuple[int, ...]) -> list[tuple[Chain, int]]:
    return list(zip(modes, dims, strict=True))


def _pairs(swizzles: tuple[Swizzle, ...]) -> Pairs | None:
    """The pairs of bits of all swizzles; None if one reads or changes what an earlier one has changed."""
    out: list[tuple[int, int]] = []
    for swizzle in swizzles:
        up, down = max(0, swizzle.shift), max(0, -swizzle.shift)
        own = [(swizzle.base + up + k, swizzle.base + down + k) for k in range(swizzle.bits)]
        if {target for _, target in out} & {bit for pair in own for bit in pair}:
            return None
        out += own
    return tuple(out)


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


def _mark(pairs: Pairs, owners: dict[int, _SwizzledDigit], offset: int) -> bool:
    """Give every digit its part in the swizzle; return whether there are few enough cases."""
    for source, target in pairs:
        by, onto, weight = owners.get(source), owners.get(target), 1 << target
        if by and onto:
            first, second = (by, onto) if (by.dim, -by.weight) < (onto.dim, -onto.weight) else (onto, by)
            first.chooses, second.follows[first] = True, -2 * weight
            by.stride += weight
        elif onto and offset >> source & 1:
            onto.stride -= 2 * weight
        elif by:
            by.stride += -weight if offset >> target & 1 else weight
    return sum(digit.chooses for digit in {*owners.values()}) <= MAX_CHOICES


def _tree(dims: list[list[_SwizzledDigit]], extents: tuple[int, ...]) -> Tree:
    """One tree over the row-major index of the dimensions, with the digits of the first one on top."""
    inner = prod(extents[1:])
    return _below(dims, extents, len(dims[0]) - 1, extents[0], inner, ())


def _below(
    dims: list[list[_SwizzledDigit]],
    extents: tuple[int, ...],
    place: int,
    extent: int,
    inner: int,
    ones: tuple[_SwizzledDigit, ...],
) -> Tree:
    """The tree of the digits from `place` of the first dimension down.

    Args:
        dims: the digits of each remaining dimension.
        extents: the sizes of these dimensions.
        place: the position of the most major digit in the first of them.
        extent: the number of indices that this digit and those below it cover.
        inner: the product of the sizes of the other dimensions.
        ones: the more major digits that are 1, of those that select strides.
    """
    if place < 0:
        if len(dims) == 1:
            return Leaf(1, 0)
        return _below(dims[1:], extents[1:], len(dims[1]) - 1, extents[1], inner // max(extents[1], 1), ones)
    digit = dims[0][place]
    count, tile = ceil_div(extent, digit.weight), digit.weight * inner
    below = dims, extents, place - 1, digit.weight, inner
    stride = digit.stride + sum(digit.follows.get(one, 0) for one in ones)
    if digit.chooses:
        cases = (_below(*below, ones), _below(*below, (*ones, digit)))[:count]
        return Switch(extent * inner, tile, (0, stride)[:count], cases)
    if tile == 1:
        return Leaf(count, stride)
    return Split(extent * inner, tile, Leaf(count, stride), _below(*below, ones))
