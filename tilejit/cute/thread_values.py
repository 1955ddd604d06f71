"""Thread-value layouts: from a thread and the number of one of its values to an element of a tile."""

from __future__ import annotations

from typing import Any

from codegen import LayoutError, shown
from tilejit.cute.compose import composition
from tilejit.cute.composed_inverses import right_inverse
from tilejit.cute.construct import product_each
from tilejit.cute.coordinates import check_within
from tilejit.cute.division import zipped_divide
from tilejit.cute.int_tuple import limit_nesting
from tilejit.cute.layout import Layout, expect_layout, extent, of_inner
from tilejit.cute.modes import make_layout
from tilejit.cute.products import raked_product
from tilejit.cute.slicing import slice_and_offset
from tilejit.cute.underscore import _, has_underscore
from tilejit.support.tokens import named


def make_layout_tv(threads: Layout, values: Layout) -> tuple[tuple[int, ...], Layout]:
    """Find the tile that threads cover with several values each, and the element of each value.

    >>> make_layout_tv(Layout((4, 32), (32, 1)), Layout((4, 8), (8, 1)))  # adjacent values for each thread
    ((16, 256), Layout(((32, 4), (8, 4)), ((128, 4), (16, 1))))

    Args:
        threads: from coordinates among the threads to the number of a thread.
        values: from coordinates among the values of one thread to the number of a value.

    Returns:
        The sizes of the tile, in elements, and the layout from (thread, value) to the number of an element
        in it, the first dimension fastest. `partition_tv` takes both.

    Raises:
        LayoutError: threads or values are not numbered 0 to n - 1, each once.
        TypeError: an argument is not a Layout.

    Source: CuTe DSL's make_layout_tv.
    """
    for layout, what in ((threads, "thread"), (values, "value")):
        _check_numbers(expect_layout(layout), what)
    tile = raked_product(threads, values)
    counted = composition(right_inverse(tile), Layout((threads.size, values.size)))
    return product_each(tile.shape), counted


def _check_numbers(layout: Layout, what: str) -> None:
    if extent(layout) != (0, layout.size - 1) or right_inverse(layout).size != layout.size:
        raise LayoutError(
            f"{named(layout)} does not number {layout.size} {what}s from 0 to {layout.size - 1}, each once\n"
            f"  pass a compact layout of {what}s, such as {Layout(layout.shape)}"
        )


def partition(layout: Any, tiler: Any, layout_tv: Layout, thread: Any = None) -> tuple[Any, int]:
    """The layout as (values, rest, rest, …) of one thread, and the offset of the first.

    Without a thread, as (threads, values, rest, rest, …).

    Raises:
        LayoutIndexError: the thread does not exist.
        LayoutError: the layout of threads and values does not have two modes, or exceeds the end of the tile.
        NoLayoutError: as zipped_divide and composition.
        TypeError: an argument has another type.
    """
    check_layout_tv(layout_tv)
    whole = _divided(layout, tiler, layout_tv)
    if thread is None:
        return whole, 0
    limit_nesting(thread, "a thread")
    if has_underscore(thread):
        raise TypeError(
            "expected a thread as a number or a coordinate of numbers, got `_`\n  omit thread for all threads"
        )
    check_within(thread, layout_tv[0].shape, "thread")
    return slice_and_offset((thread, *(_ for _mode in range(whole.rank - 1))), whole)


@of_inner
def _divided(layout: Layout, tiler: Any, layout_tv: Layout) -> Layout:
    tile, rest = zipped_divide(layout, tiler)
    check_tile(layout_tv, tile.size)
    threads, values = composition(tile, layout_tv)
    return make_layout(threads, values, *(rest if isinstance(rest.shape, tuple) else (rest,)))


def check_layout_tv(layout_tv: object) -> None:
    """Check that a value is a layout of threads and values.

    Raises:
        LayoutError: it does not have two modes.
        TypeError: it is not a Layout.
    """
    layout = expect_layout(layout_tv)
    if layout.rank != 2:
        raise LayoutError(
            f"{named(layout)} has {layout.rank} mode(s), not one of threads and one of values\n"
            "  pass a layout (threads, values), such as make_layout_tv returns"
        )


def check_tile(layout_tv: Layout, size: int) -> None:
    """Check that a layout of threads and values stays within its tile.

    Raises:
        LayoutError: an offset lies outside the tile.
    """
    low, high = extent(layout_tv)
    if layout_tv.size and (low < 0 or high >= size):
        beyond = shown(low if low < 0 else high)
        raise LayoutError(
            f"{named(layout_tv)} reaches element {beyond} of a tile of {shown(size)}\n"
            "  pass the tiler that make_layout_tv returns with it"
        )
