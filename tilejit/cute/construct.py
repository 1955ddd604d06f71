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
    """What stands behind each integer, multiplied: the strides of a compact layout, last mode fastest.

    ((2, 3), 4) -> ((12, 4), 1)
    """
    sizes = as_int_tuple(shape, "a shape")
    out: list[int] = []
    current = integer(start)
    for size in reversed(flatten(sizes)):
        out.append(current)
        current *= size
    return unflatten(reversed(out), sizes)  # type: ignore[no-any-return]


def LayoutLeft(shape: object) -> Layout:  # noqa: N802 - CuTe's name
    """The compact layout, first mode fastest.

    (4, 8) -> (4,8):(1,4)
    """
    return Layout(shape)


def LayoutRight(shape: object) -> Layout:  # noqa: N802 - CuTe's name
    """The compact layout, last mode fastest, as NumPy's C order.

    (4, 8) -> (4,8):(8,1)
    """
    return Layout(shape, suffix_product(shape))


def make_identity_layout(shape: object) -> Layout:
    """The layout that gives a coordinate its colexicographic number.

    (4, 8) -> (4,8):(1,4)
    """
    return Layout(shape)


def make_ordered_layout(shape: object, order: object = None) -> Layout:
    """The compact layout whose modes grow slower in the order of the numbers in `order`, ties from the left.

    (2, 2, 2, 2), (0, 2, 3, 1) -> (2,2,2,2):(1,4,8,2)

    A number over a tuple of the shape is for all of it.

    Raises:
        LayoutError: the order does not nest like the shape.
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
    """Parts of the shape, each with its place in the order."""
    if not isinstance(order, tuple):
        yield shape, order
        return
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(
            f"the order {named(order)} does not nest like the shape {named(shape)}\n  give one number a mode"
        )
    for part, place in zip(shape, order, strict=True):
        yield from _blocks(part, place)


def make_layout_like(layout: Layout) -> Layout:
    """The compact layout of the same shape whose modes are in the order of the given strides; 0 stays 0.

    (2,2,2,2):(0,2,4,1) -> (2,2,2,2):(0,2,4,1)    (3,5):(10,2) -> (3,5):(5,1)
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
    """The size of each mode.

    ((2, 3), 4) -> (6, 4)
    """
    sizes = shape.shape if hasattr(shape, "shape") else as_int_tuple(shape, "a shape")
    return tuple(map(product, sizes)) if isinstance(sizes, tuple) else (sizes,)
