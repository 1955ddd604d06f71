"""Blocks of an array cover the array, and each begins at its stated offset."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.lines import LINE_BYTES
from codegen.maps.block_grid import BlockGrid, block_offset
from codegen.schedule import choose_grid
from codegen.schedule.choose_grid import block_bytes, block_strides, common_grid
from codegen.schedule.machine import described, machine
from tilejit.arrays.memory import array_map
from tilejit.layout.indexing import access_map

GRIDS = [
    ((61, 83), (24, 16)),
    ((60, 80), (20, 80)),
    ((7,), (7,)),
    ((7,), (3,)),
    ((5, 1, 9, 4), (2, 1, 4, 3)),
]


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize(("dims", "extents"), GRIDS)
def test_blocks_cover_the_array_once(dims: tuple[int, ...], extents: tuple[int, ...], merges: bool) -> None:
    """Each element is in one block. Only the kinds that exist are listed."""
    grid, array = BlockGrid(dims, extents, merges), np.zeros(dims, np.int32)
    steps = grid.steps(array_map(array))
    assert steps is not None
    seen = set()
    for place, ends in grid.blocks():
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
    assert len(list(grid.blocks())) == int(np.prod(grid.counts))


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize(("dims", "extents"), GRIDS)
def test_all_blocks_at_once(dims: tuple[int, ...], extents: tuple[int, ...], merges: bool) -> None:
    """The offsets and kinds of all blocks equal those of the blocks one by one."""
    grid, kinds = BlockGrid(dims, extents, merges), list(BlockGrid(dims, extents, merges).ends())
    steps = tuple(7 * 10**k for k in range(len(dims)))
    blocks = list(grid.blocks())
    assert grid.offsets(steps).tolist() == [block_offset(place, steps) for place, _ in blocks]
    assert [kinds[k] for k in grid.kinds()] == [ends for _, ends in blocks]


@pytest.mark.parametrize("extents", [(3, 5), (24, 16), (7, 1), (2, 3, 64)])
@pytest.mark.parametrize("itemsize", [1, 4, 16])
def test_rows_of_blocks_share_no_cache_sets(extents: tuple[int, ...], itemsize: int) -> None:
    """They begin on lines, are an odd number of lines apart, and do not overlap."""
    strides = block_strides(extents, itemsize)
    assert strides[-1] == itemsize
    assert strides[-2] % (2 * LINE_BYTES) == LINE_BYTES
    assert strides[-2] >= extents[-1] * itemsize
    last = sum((n - 1) * step for n, step in zip(extents, strides, strict=True)) + itemsize
    assert last <= block_bytes(extents, itemsize)
    places = product(*map(range, extents[:-1]))
    rows = [sum(k * s for k, s in zip(at, strides, strict=False)) for at in places]
    assert len(set(rows)) == len(rows)


def grid_of(*texts: str, far: bool = False) -> BlockGrid | None:
    shapes = [tj.Shape.parse(text) for text in texts]
    maps = [access_map(s) for s in shapes]
    return common_grid(shapes[0].dimensions, maps, shapes[0].dtype.itemsize, far=far)


def test_blocks_of_two_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 2048)
    assert grid_of("f32[61,83]{1,0:T(8,16)}", "f32[61,83]{1,0:T(6,1)}") == BlockGrid((61, 83), (24, 16))
    assert grid_of("f32[61,83]{1,0:T(40,16)}", "f32[61,83]{1,0:T(6,1)}") is None, "120 rows"
    assert grid_of("pred[64,96]{1,0:T(3,5)E(1)}") is None, "blocks begin inside bytes"
    assert grid_of("f32[0,83]{1,0:T(8,16)}") is None, "no elements"
    monkeypatch.setattr(choose_grid, "MOST_KINDS", 3)
    assert grid_of("f32[61,83]{1,0:T(8,16)}", "f32[61,83]{1,0:T(6,1)}") is None, "four sorts"


def test_blocks_hold_full_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements that share lines stay together, along an outer dimension too, if there is room for them."""
    sides = "f32[16,32,9,9]{3,2,1,0:T(8,1,1)}", "f32[16,32,9,9]{3,2,1,0:T(16,16,1,1)(16,1,1,1)}"
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 1 << 15)
    assert grid_of(*sides) == BlockGrid((16, 32, 9, 9), (16, 16, 3, 9)), (
        "16 of the first dimension are a line"
    )
    monkeypatch.setattr(choose_grid, "BLOCK_BYTES", 1 << 9)
    assert grid_of(*sides) == BlockGrid((16, 32, 9, 9), (1, 16, 1, 8)), "no room for them"


@pytest.mark.parametrize(
    ("source", "target", "extents"),
    [
        ("{1,0:T(64,16)(4,1)}", "{0,1:T(32,1)}", (64, 256)),
        ("{0,1:T(32,8)(8,4)}", "{1,0:T(4,1)}", (64, 256)),
        ("{1,0:T(8,128)(4,1)}", "{0,1:T(32,1)}", None),
        ("{0,1:T(32,1)}", "{1,0:T(32,128)}", None),
    ],
)
def test_blocks_in_the_first_cache(source: str, target: str, extents: tuple[int, int] | None) -> None:
    """They are for sources in memory whose lines have few elements of a row."""
    sides = "s8[8192,8192]" + source, "s8[8192,8192]" + target
    with described(replace(machine(), first_cache_bytes=32 << 10, second_cache_bytes=1 << 20)):
        long, near = grid_of(*sides), grid_of(*sides, far=True)
    assert near == (BlockGrid((8192, 8192), extents) if extents else long)
    assert long
    assert long.extents[1] > 256, "rows are long where the source is in the last cache"


@pytest.mark.parametrize("far", [False, True])
def test_an_array_without_dimensions_has_no_blocks(far: bool) -> None:
    layout = access_map(tj.Shape.parse("f32[]"))
    assert common_grid((), (layout, layout), 4, far=far) is None
