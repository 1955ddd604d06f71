"""Blocks of an array cover the array, and each begins at its stated offset."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from codegen import BlockGrid
from codegen.maps.block_grid import Dims, Ends, block_offset
from tilejit.arrays.memory import array_map

GRIDS = [
    ((61, 83), (24, 16)),
    ((60, 80), (20, 80)),
    ((7,), (7,)),
    ((7,), (3,)),
    ((5, 1, 9, 4), (2, 1, 4, 3)),
]


def blocks_of(grid: BlockGrid) -> list[tuple[Dims, Ends]]:
    """The position of each block, in C order, and its kind."""

    def kind(place: Dims) -> Ends:
        each = zip(grid.short, place, grid.counts, strict=True)
        return tuple(short and k == n - 1 for short, k, n in each)

    return [(place, kind(place)) for place in product(*map(range, grid.counts))]


@pytest.mark.parametrize(("dims", "extents"), GRIDS)
def test_blocks_cover_the_array_once(dims: tuple[int, ...], extents: tuple[int, ...]) -> None:
    """Each element is in one block. Only the kinds that exist are listed."""
    grid, array = BlockGrid(dims, extents), np.zeros(dims, np.int32)
    steps = grid.steps(array_map(array))
    assert steps is not None
    seen = set()
    for place, ends in blocks_of(grid):
        starts, cut = grid.box(ends)
        at = block_offset(place, steps)
        corner = [k * e for k, e in zip(place, extents, strict=True)]
        assert at == sum(k * step for k, step in zip(corner, array.strides, strict=True))
        if ends not in seen:
            assert tuple(corner) == starts, "the first block of a sort"
        array[tuple(slice(k, k + n) for k, n in zip(corner, cut, strict=True))] += 1
        seen.add(ends)
    assert (array == 1).all()
    assert seen == set(grid.ends())


@pytest.mark.parametrize(("dims", "extents"), GRIDS)
def test_all_blocks_at_once(dims: tuple[int, ...], extents: tuple[int, ...]) -> None:
    """The offsets and kinds of all blocks equal those of the blocks one by one."""
    grid, kinds = BlockGrid(dims, extents), list(BlockGrid(dims, extents).ends())
    steps = tuple(7 * 10**k for k in range(len(dims)))
    blocks = blocks_of(grid)
    assert grid.offsets(steps).tolist() == [block_offset(place, steps) for place, _ in blocks]
    assert [kinds[k] for k in grid.kinds()] == [ends for _, ends in blocks]
