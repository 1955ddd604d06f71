"""Operations on composed layouts, checked against the composed layout at the same coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilejit import cute
from tilejit.cute import Layout, _, parse

COMPOSED = [
    "Sw<3,4,3> o 0 o (8,64):(64,1)",
    "Sw<2,1,3> o 5 o (8,(4,6)):(7,(1,60))",
    "(100,100):(3,7) o 2 o (8,12):(12,1)",
    "Sw<1,0,2> o 1 o Sw<2,1,2> o 3 o (8,12):(12,1)",
]


@pytest.mark.parametrize("text", COMPOSED)
@pytest.mark.parametrize(
    "operation",
    [
        lambda layout: cute.logical_divide(layout, (2, 4)),
        lambda layout: cute.logical_divide(layout, 16),
        lambda layout: cute.zipped_divide(layout, (parse("2:4"), 4)),
        lambda layout: cute.tiled_divide(layout, (4, 2)),
        lambda layout: cute.flat_divide(layout, (4, _)),
        lambda layout: cute.select(layout, 1, 0),
        lambda layout: cute.group(layout, 0, 2),
        lambda layout: cute.flatten(layout),
        lambda layout: cute.coalesce(layout),
        lambda layout: cute.coalesce(layout, (1, 1)),
        lambda layout: cute.slice_((_, _), layout),
    ],
)
def test_operations_on_coordinates_apply_to_offsets(text: str, operation: Callable[[Any], Any]) -> None:
    """An operation on the numbers of coordinates has the same effect on the offsets."""
    composed = parse(text)
    found = operation(composed)
    chosen = cute.offsets(operation(Layout(composed.shape)))
    assert isinstance(found, cute.ComposedLayout)
    assert cute.offsets(found).tolist() == cute.offsets(composed)[chosen].tolist()


@pytest.mark.parametrize("text", COMPOSED)
def test_tiles_and_slices_begin_at_their_offsets(text: str) -> None:
    composed = parse(text)
    columns = cute.size(composed.shape) // 8
    table = cute.offsets(composed).reshape(8, columns, order="F")
    for i, j in np.ndindex(2, 3):
        tile, begin = cute.local_tile(composed, (4, 4), (i, j))
        assert begin == 0
        part = table[4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
        assert cute.offsets(tile).tolist() == part.reshape(-1, order="F").tolist()
    row, begin = cute.slice_and_offset((3, _), composed)
    assert (begin, cute.offsets(row).tolist()) == (0, table[3].tolist())
    assert cute.slice_((3, _), composed) == composed(3, _) == row
    later, begin = cute.domain_offset((2, 1), composed)
    assert (begin, later(1, 2)) == (0, composed(3, 3))
    threads = Layout((2, 2))
    for index in range(4):
        mine, begin = cute.local_partition(composed, threads, index)
        part = table[index % 2 :: 2, index // 2 :: 2]
        assert (begin, cute.offsets(mine).tolist()) == (0, part.reshape(-1, order="F").tolist())


def test_swizzled_blocks_fill_a_shape() -> None:
    """Copies of a block whose swizzle stays inside it are the same block, further on."""
    block = parse("Sw<3,4,3> o 0 o (8,128):(128,1)")
    whole = cute.tile_to_shape(block, (16, 384), (1, 0))
    assert whole == parse(f"Sw<3,4,3> o 0 o {cute.tile_to_shape(block.inner, (16, 384), (1, 0))}")
    for i, j in np.ndindex(16, 384):
        copy = i // 8 * 3 + j // 128
        assert whole(i, j) == block(i % 8, j % 128) + 1024 * copy
    raked = cute.raked_product(block, Layout((2, 3)))
    for i, j in np.ndindex(16, 384):
        assert raked(i, j) == block(i // 2, j // 3) + 1024 * (i % 2 + 2 * (j % 3))


@pytest.mark.parametrize(
    "ask",
    [
        lambda composed: cute.upcast(composed, 2),
        lambda composed: cute.complement(composed, 9),
        lambda composed: cute.max_common_layout(Layout(4), composed),
        lambda composed: cute.blocked_product(Layout(4), composed),
    ],
)
def test_unsupported_operations_say_what_to_do(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"pass its \.inner"):
        ask(parse(COMPOSED[0]))
