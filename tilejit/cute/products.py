"""Multiply layouts by layouts: CuTe's four arrangements, blocked and raked products, and tile_to_shape."""

from __future__ import annotations

import operator
from typing import Any

from codegen import LayoutError
from tilejit.cute.compose import compose_layouts
from tilejit.cute.construct import make_ordered_layout
from tilejit.cute.exact.complement import complement
from tilejit.cute.int_tuple import as_int_tuple, modes, product
from tilejit.cute.layout import Layout, cosize, expect_layout, of_inner
from tilejit.cute.modes import append, layout_like, make_layout
from tilejit.cute.tilers import each_mode, gathered, unpacked, zipped
from tilejit.support.tokens import named


@of_inner
def logical_product(block: Layout, tiler: Any) -> Layout:
    """Repeat a block over a tiler: (block, complement(block) o tiler).

    >>> print(logical_product(parse("(2,2):(4,1)"), parse("6:1")), logical_product(parse("4:1"), 3))
    ((2,2),(2,3)):((4,1),(2,8)) (4,3):(1,4)

    Args:
        block: a Layout.
        tiler: a Layout, an integer n for n:1, or a tuple of these or `_`, one for each of the first modes.

    Returns:
        A layout with two modes, the block and its copies; for a tuple, such a pair in each mode.

    Raises:
        NoLayoutError: the block has no complement, or no layout is such a product.
        LayoutError: the tuple has more parts than the block has modes.
        TypeError: an argument has the wrong type.

    Source: CuTe's logical_product.
    """
    expect_layout(block)
    return each_mode(block, tiler, _multiply)


@of_inner
def zipped_product(block: Layout, tiler: Any) -> Layout:
    """Repeat a block and group all block modes first and all copies second.

    >>> print(zipped_product(parse("(2,5):(5,1)"), (3, 4)))
    ((2,5),(3,4)):((5,1),(1,5))

    Args:
        block: a Layout.
        tiler: as in `logical_product`.

    Returns:
        A layout with the modes ((blocks), (copies)).

    Raises:
        NoLayoutError: as `logical_product`.
        LayoutError: as `logical_product`.
        TypeError: an argument has the wrong type.

    Source: CuTe's zipped_product.
    """
    expect_layout(block)
    return zipped(block, tiler, _multiply)


@of_inner
def tiled_product(block: Layout, tiler: Any) -> Layout:
    """Repeat a block, with each mode of copies as a mode of its own: ((blocks), copies, copies, …).

    >>> print(tiled_product(parse("(2,5):(5,1)"), (3, 4)))
    ((2,5),3,4):((5,1),1,5)

    Args:
        block: a Layout.
        tiler: as in `logical_product`.

    Returns:
        The layout.

    Raises:
        NoLayoutError: as `logical_product`.
        LayoutError: as `logical_product`.
        TypeError: an argument has the wrong type.

    Source: CuTe's tiled_product.
    """
    return unpacked(zipped_product(block, tiler), tiles=False)


@of_inner
def flat_product(block: Layout, tiler: Any) -> Layout:
    """Repeat a block, with each mode of blocks and of copies as a mode of its own.

    >>> print(flat_product(parse("(2,5):(5,1)"), (3, 4)))
    (2,5,3,4):(5,1,1,5)

    Args:
        block: a Layout.
        tiler: as in `logical_product`.

    Returns:
        The layout.

    Raises:
        NoLayoutError: as `logical_product`.
        LayoutError: as `logical_product`.
        TypeError: an argument has the wrong type.

    Source: CuTe's flat_product.
    """
    return unpacked(zipped_product(block, tiler), tiles=True)


@of_inner
def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """Replace every element of a tiler by a block, mode by mode (block, copies).

    >>> print(blocked_product(parse("(2,5):(5,1)"), parse("(3,4):(1,3)")))
    ((2,3),(5,4)):((5,10),(1,30))

    Args:
        block: a Layout.
        tiler: a Layout.

    Returns:
        A layout in which each mode is a pair of a block mode and its copies.

    Raises:
        NoLayoutError: as `logical_product`.
        TypeError: an argument is not a Layout.

    Source: CuTe's blocked_product.
    """
    expect_layout(block)
    inner, outer = _ranked(block, layout_like(tiler))
    return _paired(inner, outer)


@of_inner
def raked_product(block: Layout, tiler: Layout) -> Layout:
    """Interleave copies of a block over a tiler, mode by mode (copies, block).

    >>> print(raked_product(parse("(2,5):(5,1)"), parse("(3,4):(1,3)")))
    ((3,2),(4,5)):((10,5),(30,1))

    Args:
        block: a Layout.
        tiler: a Layout.

    Returns:
        A layout in which each mode is a pair of copies and a block mode.

    Raises:
        NoLayoutError: as `logical_product`.
        TypeError: an argument is not a Layout.

    Source: CuTe's raked_product.
    """
    expect_layout(block)
    inner, outer = _ranked(block, layout_like(tiler))
    return _paired(outer, inner)


@of_inner
def tile_to_shape(block: Layout, shape: object, order: object = None) -> Layout:
    """Repeat a block until it fills a shape.

    >>> print(tile_to_shape(parse("(2,2):(1,2)"), (4, 6)))
    ((2,2),(2,3)):((1,4),(2,8))

    Args:
        block: a Layout.
        shape: an IntTuple of sizes in elements.
        order: the order in which blocks fill the modes, as in `make_ordered_layout`. None fills the first
            mode first.

    Returns:
        A layout of that shape.

    Raises:
        LayoutError: the block does not divide the shape, or has more modes.
        NoLayoutError: as `logical_product`.
        TypeError: an argument has the wrong type.

    Source: CuTe's tile_to_shape.
    """
    expect_layout(block)
    wanted = tuple(map(product, modes(as_int_tuple(shape, "a shape"))))
    padded = append(block, rank=len(wanted))
    sizes = tuple(map(product, modes(padded.shape)))
    copies = tuple(whole // part if part else 0 for whole, part in zip(wanted, sizes, strict=True))
    if tuple(map(operator.mul, copies, sizes)) != wanted:
        raise LayoutError(
            f"blocks of {named(sizes)} do not divide {named(wanted)}\n  use a shape of whole blocks"
        )
    return blocked_product(padded, make_ordered_layout(copies, order))


def _multiply(block: Layout, tiler: Layout) -> Layout:
    rest = complement(block, block.size * cosize(tiler))
    return make_layout(block, compose_layouts(rest, tiler))


def _ranked(block: Layout, tiler: Layout) -> tuple[Layout, Layout]:
    """Block and copies, both with the same number of modes."""
    rank = max(block.rank, tiler.rank)
    split = _multiply(_of_rank(block, rank), _of_rank(tiler, rank))
    return split[0], split[1]


def _of_rank(layout: Layout, rank: int) -> Layout:
    """The layout with that many modes, in a tuple even if there is only one, so that composition keeps it."""
    return gathered(list(append(layout, rank=rank)))


def _paired(first: Layout, second: Layout) -> Layout:
    pairs = zip(first, second, strict=True)
    return gathered([make_layout(a, b) for a, b in pairs])
