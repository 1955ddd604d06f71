"""Layouts made from a shape and an order, or like another layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen import LayoutError
from tilejit.cute.checked import integer
from tilejit.cute.int_tuple import (
    IntTuple,
    as_int_tuple,
    flatten,
    prefix_product,
    product,
    unflatten,
)
from tilejit.cute.layout import Layout, expect_layout, trusted
from tilejit.support.tokens import named


def suffix_product(shape: object, start: int = 1) -> IntTuple:
    """Multiply the integers after each one: the strides of a compact layout, last mode fastest.

    >>> suffix_product(((2, 3), 4))
    ((12, 4), 1)

    Args:
        shape: an IntTuple.
        start: the last product.

    Returns:
        An IntTuple that nests like the shape.

    Raises:
        LayoutError: `start` is not an integer.
        TypeError: an argument is not made of integers.

    Source: CuTe's compact_row_major.
    """
    sizes = as_int_tuple(shape, "a shape")
    out: list[int] = []
    current = integer(start)
    for size in reversed(flatten(sizes)):
        out.append(current)
        current *= size
    return unflatten(reversed(out), sizes)  # type: ignore[no-any-return]


def LayoutLeft(shape: object) -> Layout:  # noqa: N802 - CuTe's name
    """Create the compact layout of a shape, first mode fastest.

    >>> print(LayoutLeft((4, 8)))
    (4,8):(1,4)

    Args:
        shape: an IntTuple of sizes in elements.

    Returns:
        The layout.

    Raises:
        LayoutError: a size is negative, or the layout exceeds 64 bits.
        TypeError: the shape is not made of integers.

    Source: CuTe's LayoutLeft.
    """
    return Layout(shape)


def LayoutRight(shape: object) -> Layout:  # noqa: N802 - CuTe's name
    """Create the compact layout of a shape, last mode fastest, like NumPy's C order.

    >>> print(LayoutRight((4, 8)))
    (4,8):(8,1)

    Args:
        shape: an IntTuple of sizes in elements.

    Returns:
        The layout.

    Raises:
        LayoutError: a size is negative, or the layout exceeds 64 bits.
        TypeError: the shape is not made of integers.

    Source: CuTe's LayoutRight.
    """
    return Layout(shape, suffix_product(shape))


def make_identity_layout(shape: object) -> Layout:
    """Create the layout that maps a coordinate to its colexicographic number.

    >>> print(make_identity_layout((4, 8)))
    (4,8):(1,4)

    Args:
        shape: an IntTuple of sizes in elements.

    Returns:
        The layout.

    Raises:
        LayoutError: a size is negative, or the layout exceeds 64 bits.
        TypeError: the shape is not made of integers.

    Source: CuTe's make_identity_layout, which returns the coordinates themselves.
    """
    return Layout(shape)


def make_ordered_layout(shape: object, order: object = None) -> Layout:
    """Create the compact layout whose strides grow in a given order.

    >>> print(make_ordered_layout((2, 2, 2, 2), (0, 2, 3, 1)))
    (2,2,2,2):(1,4,8,2)

    Args:
        shape: an IntTuple of sizes in elements.
        order: an IntTuple that nests like the shape, or less deeply. The mode with the smallest number varies
            fastest, and the left one of equal numbers. None is the order of the modes.

    Returns:
        The layout.

    Raises:
        LayoutError: the order does not nest like the shape, or a size is negative.
        TypeError: an argument is not made of integers.

    Source: CuTe's make_ordered_layout.
    """
    sizes = as_int_tuple(shape, "a shape")
    if order is None:
        return Layout(sizes)
    blocks = list(_blocks(sizes, as_int_tuple(order, "an order")))
    strides: list[tuple[int, ...]] = [()] * len(blocks)
    current = 1
    for place in sorted(range(len(blocks)), key=lambda k: blocks[k][1]):
        block = blocks[place][0]
        strides[place] = flatten(prefix_product(block, current))
        current *= product(block)
    return Layout(sizes, unflatten(iter([step for block in strides for step in block]), sizes))


def _blocks(shape: IntTuple, order: IntTuple) -> Iterator[tuple[IntTuple, int]]:
    """Parts of the shape, each with its position in the order."""
    if not isinstance(order, tuple):
        yield shape, order
        return
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(
            f"the order {named(order)} does not nest like the shape {named(shape)}\n"
            "  pass one number for each mode"
        )
    for part, place in zip(shape, order, strict=True):
        yield from _blocks(part, place)


def make_layout_like(layout: Layout) -> Layout:
    """Create the compact layout of the same shape with the same order of strides; strides of 0 stay 0.

    >>> print(make_layout_like(parse("(2,2,2,2):(0,2,4,1)")), make_layout_like(parse("(3,5):(10,2)")))
    (2,2,2,2):(0,2,4,1) (3,5):(5,1)

    Args:
        layout: a Layout.

    Returns:
        The compact layout.

    Raises:
        TypeError: the argument is not a Layout.

    Source: CuTe's make_layout_like.
    """
    expect_layout(layout)
    sizes, steps = flatten(layout.shape), flatten(layout.stride)
    out = [0] * len(sizes)
    current = 1
    for place in sorted(range(len(sizes)), key=lambda k: abs(steps[k])):
        if steps[place]:
            out[place] = current
            current *= sizes[place]
    return trusted(layout.shape, unflatten(iter(out), layout.shape))


def product_each(shape: Any) -> tuple[int, ...]:
    """Multiply the integers of each mode.

    >>> product_each(((2, 3), 4))
    (6, 4)

    Args:
        shape: an IntTuple, or a layout.

    Returns:
        The size of each mode.

    Raises:
        TypeError: the shape is not made of integers.

    Source: CuTe's product_each.
    """
    sizes = shape.shape if hasattr(shape, "shape") else as_int_tuple(shape, "a shape")
    return tuple(map(product, sizes)) if isinstance(sizes, tuple) else (sizes,)
