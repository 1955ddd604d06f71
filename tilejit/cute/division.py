"""Divide layouts by tilers, in CuTe's four arrangements."""

from __future__ import annotations

from typing import Any

from tilejit.cute.compose import compose_layouts
from tilejit.cute.exact.complement import complement
from tilejit.cute.layout import Layout, expect_layout, of_inner
from tilejit.cute.modes import make_layout
from tilejit.cute.tilers import each_mode, unpacked, zipped


@of_inner
def logical_divide(layout: Layout, tiler: Any) -> Layout:
    """Split a layout into (tile, rest): compose it with the tiler and with the tiler's complement.

    16:1, 4:2 -> (4,(2,2)):(2,(1,8))    (4,8):(1,4), <2,4> -> ((2,2),(4,2)):((1,2),(4,16))
    10:1, 4 -> (4,3):(1,4), which covers 12

    Args:
        layout: a Layout.
        tiler: a Layout, which divides the flat domain; an integer n for n:1; or a tuple of tilers or `_`, one
            for each of the first modes, which divide mode by mode.

    Raises:
        NoLayoutError: the tiler has no complement, or a part is not a layout.
        LayoutError: there are more tilers than modes.
    """
    expect_layout(layout)
    return each_mode(layout, tiler, _divide)


@of_inner
def zipped_divide(layout: Layout, tiler: Any) -> Layout:
    """logical_divide with all tiles in the first mode and all rests in the second: ((tiles), (rests)).

    (4,8):(1,4), <2,4> -> ((2,4),(2,2)):((1,4),(2,16))

    Raises:
        NoLayoutError, LayoutError: as logical_divide.
    """
    expect_layout(layout)
    return zipped(layout, tiler, _divide)


@of_inner
def tiled_divide(layout: Layout, tiler: Any) -> Layout:
    """zipped_divide with each rest as a mode of its own: ((tiles), rest, rest, …).

    Raises:
        NoLayoutError, LayoutError: as logical_divide.
    """
    return unpacked(zipped_divide(layout, tiler), tiles=False)


@of_inner
def flat_divide(layout: Layout, tiler: Any) -> Layout:
    """zipped_divide with each tile and each rest as a mode of its own: (tile, tile, …, rest, rest, …).

    Raises:
        NoLayoutError, LayoutError: as logical_divide.
    """
    return unpacked(zipped_divide(layout, tiler), tiles=True)


def _divide(layout: Layout, tiler: Layout) -> Layout:
    return compose_layouts(layout, make_layout(tiler, complement(tiler, layout.size)))
