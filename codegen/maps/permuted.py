"""Layouts with permuted storage: every period of memory is permuted in the same way.

    offset(index) = period * (o // period) + base + tree(o % period),  o = the sum of the index's digits

A swizzle is such a permutation. The layout below has plain digits.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from codegen.maps.access import AccessMap, Root
from codegen.maps.block_grid import Dims
from codegen.maps.digit_trees import Leaf, Mode, Tree, mode_tree
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PermutedMap:
    """A permuted layout of an array.

    modes   the digits of each dimension in the layout below; adjacent ones that walk memory as one are joined
    period  elements
    base    offset of the first element of a period, in elements
    tree    offsets of all elements of a period from there
    """

    modes: tuple[Mode, ...]
    period: int
    base: int
    tree: Tree

    def grains(self) -> Dims:
        """The fewest elements along each dimension after which the layout below repeats."""
        return tuple(prod(n for n, _ in mode[:-1]) for mode in self.modes)


@dataclass(frozen=True, slots=True)
class BlockDigit:
    """A digit of a dimension of a block: its extent, its strides in the block and in the storage."""

    dim: int
    extent: int
    near: int
    far: int


def block_digits(layout: PermutedMap, extents: Dims) -> tuple[BlockDigit, ...] | None:
    """The digits of a block, the most minor one first, as dense in the block as possible.

    None if the block's extents cut a digit unevenly, or if it does not fill periods.
    """
    found: list[tuple[int, int, int]] = []
    for dim, (mode, extent) in enumerate(zip(layout.modes, extents, strict=True)):
        for size, stride in mode:
            count = min(size, extent)
            if extent % count or stride <= 0:
                return None
            extent //= count
            found += [(stride, dim, count)] if count > 1 else []
        if extent > 1:
            return None
    period, out = layout.period, list[BlockDigit]()
    near = reach = 1
    for stride, dim, count in sorted(found):
        if stride < period:
            fits = stride == reach
        else:
            fits = stride >= reach and not (stride % period or near % period)
        if not fits:
            return None
        out.append(BlockDigit(dim, count, near, stride))
        near, reach = near * count, stride * count
        if reach > period and reach % period:
            return None
    return tuple(out) if near % period == 0 else None


def unpermuted_map(
    layout: PermutedMap, extents: Dims, digits: tuple[BlockDigit, ...], bits: int
) -> AccessMap:
    """A dense block in cache: the layout below, its digits close together."""
    roots = []
    for dim, extent in enumerate(extents):
        own = {d.far: (d.extent, d.near) for d in digits if d.dim == dim}
        mode = tuple(own[stride] for _, stride in layout.modes[dim] if stride in own)
        roots.append(Root((dim,), mode_tree(mode, extent)))
    return AccessMap(extents, tuple(roots), 0, bits, bits, (0, prod(extents)))


def period_maps(
    layout: PermutedMap, digits: tuple[BlockDigit, ...], bits: int
) -> tuple[AccessMap, AccessMap]:
    """The block in cache and its storage as arrays of periods: adjacent there, permuted here."""
    period = layout.period
    outer = [_above(run, period) for run in _runs(digits) if run[0] * run[2] > period][::-1]
    rank = len(outer)
    dims = (*(n for n, _, _ in outer), period)
    near, far = ([Root((k,), Leaf(run[0], run[side])) for k, run in enumerate(outer)] for side in (1, 2))
    stop = sum((n - 1) * step for n, _, step in outer) + period
    return (
        AccessMap(dims, (*near, Root((rank,), Leaf(period, 1))), 0, bits, bits, (0, prod(dims))),
        AccessMap(dims, (*far, Root((rank,), layout.tree)), layout.base, bits, bits, (0, stop)),
    )


_Run: TypeAlias = tuple[int, int, int]
"""(extent, stride in the block, stride in the storage), in elements."""


def _runs(digits: tuple[BlockDigit, ...]) -> list[_Run]:
    """The digits, joined where they are adjacent in the storage, as all of them are in the block.

    A period is then one run, though perhaps no single digit ends where a period does.
    """
    out: list[_Run] = []
    for digit in digits:
        if out and digit.far == out[-1][0] * out[-1][2]:
            out[-1] = out[-1][0] * digit.extent, *out[-1][1:]
        else:
            out.append((digit.extent, digit.near, digit.far))
    return out


def _above(run: _Run, period: int) -> _Run:
    """The part of a run outside a period."""
    extent, near, far = run
    inside = max(period // far, 1)
    return extent // inside, near * inside, far * inside
