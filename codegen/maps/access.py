"""Access maps: where each element of a logical array lives, as a sum over digit trees.

An `AccessMap` is a base plus one offset per root. A root is one logical dimension, or several merged
row-major into one index m. Its tree maps m to an offset: see `digit_trees`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from codegen.maps.digit_trees import (
    Leaf,
    Opaque,
    Tree,
    coalesce_tree,
    evaluate_tree,
    offset_range,
    scaled,
    split_tree,
    truncate_tree,
)
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Root:
    """A tree over the row-major index of `dims`; `dims` is empty for a leading axis of extent 1."""

    dims: tuple[int, ...]
    tree: Tree


@dataclass(frozen=True, slots=True)
class AccessMap:
    """Where each element of an array of extents `dims` lives, in units of `unit_bits` bits.

    roots         the complete storage trees, padding included
    element_bits  the width of one element in this storage
    bounds        the offsets that may be touched, [low, stop) in units; known independently of the roots,
                  because kernels are proven against them
    slots         the number of elements in the storage; None for a caller's strided array, where padding has
                  no meaning
    tail          the number of slots after the last tile
    compact       whether the storage trees, which begin at the first slot, hit every slot before the tail
                  once; the padding is then every slot outside their bounds
    """

    dims: tuple[int, ...]
    roots: tuple[Root, ...]
    base: int
    unit_bits: int
    element_bits: int
    bounds: tuple[int, int]
    slots: int | None = None
    tail: int = 0
    compact: bool = True

    @property
    def width(self) -> int:
        """Units per element."""
        return self.element_bits // self.unit_bits

    @property
    def byte_bounds(self) -> tuple[int, int]:
        """The bytes that may be touched, [low, stop)."""
        low, stop = self.bounds
        return low * self.unit_bits // 8, -(-stop * self.unit_bits // 8)

    @property
    def elements(self) -> int:
        """Elements of the logical array."""
        return prod(self.dims)

    @property
    def is_opaque(self) -> bool:
        """Whether some offsets are known only point by point."""
        return any(isinstance(root.tree, Opaque) for root in self.roots)

    def in_units(self, unit_bits: int) -> AccessMap:
        """The same map in other units; every stride must be a multiple of the new unit."""
        if unit_bits == self.unit_bits:
            return self
        roots = tuple(replace(r, tree=scaled(r.tree, self.unit_bits, unit_bits)) for r in self.roots)
        scale = self.unit_bits
        bounds = self.bounds[0] * scale // unit_bits, self.bounds[1] * scale // unit_bits
        base = self.base * scale // unit_bits
        return replace(self, roots=roots, base=base, unit_bits=unit_bits, bounds=bounds)


def in_common_units(src: AccessMap, dst: AccessMap) -> tuple[AccessMap, AccessMap]:
    """The maps of a copy in the same units: bits if one side is packed, else bytes."""
    unit = 1 if min(src.element_bits, dst.element_bits) < 8 else 8
    return src.in_units(unit), dst.in_units(unit)


def strided_map(
    dims: tuple[int, ...], strides: tuple[int, ...], bounds: tuple[int, int], *, element_bits: int
) -> AccessMap:
    """The map of a strided array such as NumPy's: one leaf per dimension, strides and bounds in bytes.

    strided_map((3, 5), (20, 4), (0, 60), element_bits=32) is a C-ordered f32[3,5].
    """
    roots = tuple(
        Root((d,), Leaf(n, s if n > 1 else 0)) for d, (n, s) in enumerate(zip(dims, strides, strict=True))
    )
    return AccessMap(dims, roots, 0, 8, element_bits, bounds)


def map_offset(access: AccessMap, index: tuple[Any, ...]) -> Any:
    """The offset of a multi-index (ints, or broadcast int64 arrays), in the map's units."""
    offset: Any = access.base
    for root in access.roots:
        if not root.dims:
            continue
        merged: Any = 0
        for d in root.dims:
            merged = merged * access.dims[d] + index[d]
        offset = offset + evaluate_tree(root.tree, merged)
    return offset


def map_range(access: AccessMap) -> tuple[int, int]:
    """The lowest and the highest offset of any element; the map must have elements."""
    ranges = [offset_range(root.tree) for root in access.roots]
    return access.base + sum(r[0] for r in ranges), access.base + sum(r[1] for r in ranges)


def logical_roots(access: AccessMap) -> tuple[Root, ...]:
    """The roots truncated to their logical bounds and coalesced, merged dimensions split where possible."""
    out: list[Root] = []
    for root in access.roots:
        if root.dims:
            out += _unmerge(root.dims, coalesce_tree(truncate_tree(root.tree, root.tree.extent)), access.dims)
    return tuple(out)


def _unmerge(dims: tuple[int, ...], tree: Tree, extents: tuple[int, ...]) -> list[Root]:
    for k in range(len(dims) - 1, 0, -1):
        inner = 1
        for d in dims[k:]:
            inner *= extents[d]
        pair: tuple[Tree, Tree] | None
        if inner == 1:
            pair = tree, Leaf(1, 0)
        elif inner == tree.extent:
            pair = Leaf(1, 0), tree
        else:
            pair = split_tree(tree, inner)
        if pair:
            high, low = pair
            return _unmerge(dims[:k], coalesce_tree(high), extents) + _unmerge(
                dims[k:], coalesce_tree(low), extents
            )
    return [Root(dims, tree)]
