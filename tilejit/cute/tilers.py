"""Helpers for divides and products: a tiler is a layout, a size, or a tuple of tilers, one for each mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilejit.cute.layout import Layout, trusted
from tilejit.cute.modes import EMPTY_MODE, by_mode, layout_like, make_layout
from tilejit.cute.underscore import is_underscore

Split = Callable[[Layout, Layout], Layout]


def each_mode(layout: Layout, tiler: Any, split: Split) -> Layout:
    """Split a layout by a tiler: as a whole, or mode by mode if the tiler is a tuple."""
    if isinstance(tiler, Layout):
        return split(layout, tiler)
    if isinstance(tiler, tuple | list):
        return by_mode(layout, tiler, lambda mode, part: each_mode(mode, part, split))
    return layout if is_underscore(tiler) else split(layout, Layout(tiler))


def zipped(layout: Layout, tiler: Any, split: Split) -> Layout:
    """(tiles, rests), nested like the tiler; `_` takes 1:0 and leaves the whole mode."""
    if is_underscore(tiler):
        return make_layout(EMPTY_MODE, layout)
    if not isinstance(tiler, tuple | list):
        return split(layout, layout_like(tiler))
    parts = by_mode(layout, tiler, lambda mode, part: zipped(mode, part, split))
    pairs, others = list(parts)[: len(tiler)], list(parts)[len(tiler) :]
    return make_layout(
        gathered([pair[0] for pair in pairs]), gathered([*(pair[1] for pair in pairs), *others])
    )


def unpacked(split: Layout, *, tiles: bool) -> Layout:
    """Unnest the rest of a split, and the tile if requested: (tile, rest, rest, …)."""
    tile, rest = split
    return gathered([*(tile if tiles else (tile,)), *rest])


def gathered(parts: list[Layout]) -> Layout:
    """Combine layouts as the modes of one; there may be none."""
    return trusted(tuple(part.shape for part in parts), tuple(part.stride for part in parts))
