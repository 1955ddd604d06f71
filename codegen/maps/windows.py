"""The access map of a slice: a box of an array, with steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from codegen.maps.access import AccessMap, Root, logical_roots, map_offset, map_range
from codegen.maps.digit_trees import Offsets, Opaque, Window, coalesce_tree, evaluate_tree, offset_range


def window_map(
    access: AccessMap, starts: tuple[int, ...], steps: tuple[int, ...], extents: tuple[int, ...]
) -> AccessMap:
    """The map of a box of the array: element k of dimension d is element starts[d] + steps[d]*k.

    The box has no slots of its own: padding belongs to the complete array. Merged dimensions that
    it does not take in full become one opaque root.
    """
    if 0 in extents:
        return replace(access, dims=extents, roots=(), slots=None, tail=0)
    roots: list[Root] = []
    for root in logical_roots(access):
        if len(root.dims) == 1:
            d = root.dims[0]
            roots.append(Root((d,), coalesce_tree(Window(extents[d], root.tree, starts[d], steps[d]))))
        elif all(starts[d] == 0 and steps[d] == 1 and extents[d] == access.dims[d] for d in root.dims):
            roots.append(root)
        else:
            roots.append(_merged_window(root, access.dims, starts, steps, extents))
    base = int(map_offset(access, starts))
    return replace(access, dims=extents, roots=tuple(roots), base=base, slots=None, tail=0)


def tight_map(access: AccessMap) -> AccessMap:
    """The map with its bounds reduced to its own elements."""
    low, high = map_range(access)
    return replace(access, bounds=(low, high + access.width))


def moved_map(access: AccessMap, by: int) -> AccessMap:
    """The map of a storage whose elements lie `by` units further on, together with its bounds."""
    low, stop = access.bounds
    return replace(access, base=access.base + by, bounds=(low + by, stop + by))


def _merged_window(
    root: Root,
    dims: tuple[int, ...],
    starts: tuple[int, ...],
    steps: tuple[int, ...],
    extents: tuple[int, ...],
) -> Root:
    def outer_index(index: Offsets) -> Offsets:
        merged = np.zeros_like(index)
        rest, digits = index, []
        for d in reversed(root.dims):
            digits.append((d, rest % extents[d]))
            rest = rest // extents[d]
        for d, k in reversed(digits):
            merged = merged * dims[d] + (starts[d] + steps[d] * k)
        return merged

    first = int(evaluate_tree(root.tree, int(outer_index(np.zeros(1, np.int64))[0])))
    lowest, highest = offset_range(root.tree)
    extent = 1
    for d in root.dims:
        extent *= extents[d]
    offsets: Callable[[Offsets], Offsets] = lambda index: evaluate_tree(root.tree, outer_index(index)) - first  # noqa: E731
    return Root(root.dims, Opaque(extent, offsets, lowest - first, highest - first))
