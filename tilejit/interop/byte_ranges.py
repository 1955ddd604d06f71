"""The byte ranges of a buffer that hold a selection's elements, to request them from a store."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import AccessMap, Root, evaluate_tree, logical_roots, offset_range
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map

GAP_BYTES = 4096
"""Ranges at most this far apart are merged, because a request costs more than a page of bytes."""

MOST_SUMS = 1 << 20
"""The most pairs of ranges to combine; if there are more, all bytes are requested."""

Ranges: TypeAlias = list[tuple[int, int]]
_Indices: TypeAlias = NDArray[np.int64]
_Spans: TypeAlias = tuple[_Indices, _Indices]


def box_ranges(spec: Spec, picks: tuple[_Indices, ...], gap_bytes: int = GAP_BYTES) -> Ranges | None:
    """Bytes [begin, end) that hold the elements at all combinations of indices, one array per dimension.

    f32[16,256]{1,0:T(8,128)}, ([3], [0, 1]), 0 -> [(1536, 1544)]

    Returns:
        The ranges, ascending and more than `gap_bytes` apart; None if requesting all bytes is as cheap.
    """
    if any(len(pick) == 0 for pick in picks):
        return []
    access = access_map(spec)
    gap = gap_bytes * 8 // access.unit_bits
    low = np.array([access.base], np.int64)
    spans = low, low + access.width
    # Add the root with the shortest range first, because that gives the fewest ranges.
    for root in sorted(logical_roots(access), key=lambda r: int(np.ptp(offset_range(r.tree)))):
        offsets = _offsets(access, root, picks)
        if offsets is None:
            return None
        more = _joined((offsets, offsets + 1), gap)
        if len(spans[0]) * len(more[0]) > MOST_SUMS:
            return None
        sums = np.add.outer(spans[0], more[0]), np.add.outer(spans[1], more[1] - 1)
        spans = _joined((sums[0].reshape(-1), sums[1].reshape(-1)), gap)
    return _in_bytes(spec, access, spans, gap_bytes)


def slot_ranges(spec: Spec, slots: NDArray[np.int64], gap_bytes: int = GAP_BYTES) -> Ranges | None:
    """Bytes [begin, end) that hold the elements in some slots, counted as by `linear_index`.

    f32[16,256]{1,0:T(8,128)}, [0, 1, 512], 0 -> [(0, 8), (2048, 2052)]
    """
    access = access_map(spec)
    units = np.unique(slots) * access.width
    if not len(units):
        return []
    spans = _joined((units, units + access.width), gap_bytes * 8 // access.unit_bits)
    return _in_bytes(spec, access, spans, gap_bytes)


def _offsets(access: AccessMap, root: Root, picks: tuple[_Indices, ...]) -> _Indices | None:
    """A root's offsets at the selected indices of its dimensions; None if there are too many."""
    merged = np.zeros(1, np.int64)
    for d in root.dims:
        if len(merged) * len(picks[d]) > MOST_SUMS:
            return None
        merged = np.add.outer(merged * access.dims[d], picks[d]).reshape(-1)
    return np.asarray(evaluate_tree(root.tree, merged), np.int64)


def _joined(spans: _Spans, gap: int) -> _Spans:
    """Ranges in ascending order, with those at most `gap` apart merged."""
    order = np.argsort(spans[0], kind="stable")
    low, high = spans[0][order], np.maximum.accumulate(spans[1][order])
    cut = np.flatnonzero(low[1:] - high[:-1] > gap)
    return low[np.concatenate(([0], cut + 1))], high[np.concatenate((cut, [len(high) - 1]))]


def _in_bytes(spec: Spec, access: AccessMap, spans: _Spans, gap_bytes: int) -> Ranges | None:
    """Ranges of units as ranges of whole bytes, unless the requests cost as much as all bytes."""
    bits = access.unit_bits
    # Ranges of bits that share a byte become one range.
    begin, end = _joined((spans[0] * bits // 8, -(-spans[1] * bits // 8)), gap_bytes)
    if int((end - begin).sum()) + gap_bytes * (len(begin) - 1) >= spec.size_in_bytes:
        return None
    return [(int(a), int(b)) for a, b in zip(begin, end, strict=True)]


def indices_of(part: Any, extent: int) -> _Indices:
    """The indices that an integer or a slice selects in a dimension."""
    if isinstance(part, slice):
        return np.arange(*part.indices(extent), dtype=np.int64)
    return np.array([int(part)], np.int64) % max(extent, 1)
