"""Sizes of blocks that depend on the width of an element."""

from __future__ import annotations

from codegen import LayoutError
from tilejit.catalog.checks import checked_int
from tilejit.catalog.format import Element

TILES = (32, *((rows, 32) for rows in (16, 8, 4, 2, 1)), (32, 16), 16)
"""The tiles of Tenstorrent's cores, the most frequent first."""


def by_width(name: str, element: Element, rule: dict[int, int], fix: str) -> int:
    """The entry of a format's rule for elements of that width in bits.

    Raises:
        LayoutError: the rule has none.
    """
    # pred has one bit but is stored as a byte; types of 4 or 6 bits do not fill a byte.
    bits = 8 if element.name == "pred" else element.bits
    if bits not in rule:
        raise LayoutError(f"the format {name!r} has no rule for {element.name}\n  {fix}")
    return rule[bits]


def pair(sizes: object, name: str) -> tuple[int, int]:
    """Two sizes, or one for both.

    Raises:
        LayoutError: there are not one or two sizes, or one is not positive.
        TypeError: a size is not an integer.
    """
    if not isinstance(sizes, tuple | list):
        size = checked_int(name, sizes)
        return size, size
    if len(sizes) != 2:
        raise LayoutError(f"{name} has {len(sizes)} sizes\n  pass rows and columns, e.g. {name}=(32, 32)")
    rows, columns = sizes
    return checked_int(name, rows), checked_int(name, columns)
