"""Cases of the soak between two tiled buffers: relayout, and tiles gathered and scattered."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import tests.strategies as random_of
from tests.oracle import packed_by_definition, random_elements, slots_of, unpacked_by_definition, value_mask
from tilejit.layout.cute_shape import CuteShape
from tilejit.layout.shape import Shape, make_shape
from tilejit.relayout import relayout
from tilejit.tiled_array import TiledArray
from tilejit.tiles import gather_tiles, scatter_tiles

if TYPE_CHECKING:
    from tests.soak_cases import Case


def relay(case: Case, shape: Shape) -> None:
    """A buffer of one layout into another of the same array."""
    target = _other(case, shape)
    case.note(target=str(target) if isinstance(target, CuteShape) else repr(target))
    source = case.bench.source.place(shape.size_in_bytes, at_end=case.chance(2), gap=case.one_of(0, 0, 1, 8))
    source[:] = _noise(case, shape)
    data = case.bench.target.place(target.size_in_bytes, at_end=case.chance(2), gap=case.one_of(0, 0, 3, 8))
    data[:] = case.random_bytes(len(data))
    before, kept = data.copy(), source.copy()
    keep = case.chance(3)
    fill = random_elements(case.rng, shape.dtype, 1)
    threads = case.one_of(1, 1, 2, 3, None)
    case.note(threads=threads, keep=keep)
    t = TiledArray.from_buffer(source, shape)
    relayout(t, target, out=data, padding="keep" if keep else fill[0], threads=threads)
    want = packed_by_definition(unpacked_by_definition(kept, shape), target, None if keep else fill, before)
    mask = value_mask(target)
    wrong = np.flatnonzero((data & mask) != (want & mask))
    case.check(not len(wrong), f"{len(wrong)} wrong bytes, the first at {wrong[:1]}")
    case.check(bool((source == kept).all()), "the source changed")
    case.check(
        case.bench.target.untouched() and case.bench.source.untouched(), "bytes beside the buffers changed"
    )


def _noise(case: Case, shape: Any) -> Any:
    """Random bytes; narrow elements with a byte of their own stay narrow."""
    data = case.random_bytes(shape.size_in_bytes)
    if shape.packed:
        return data
    return data & (1 if shape.primitive_type == "pred" else value_mask(shape))


def _other(case: Case, shape: Shape) -> Any:
    """Another layout of the same array: XLA's, or a row of digits in another order as CuTe writes them."""
    dims = shape.dimensions
    order = random_of.permutation(case.pick, len(dims))
    width = shape.layout.element_size_in_bits if shape.layout else 0
    if dims and 0 not in dims and case.chance(3):
        strides, step = [0] * len(dims), 1
        for d in order:
            strides[d], step = step, step * (dims[d] + case.pick(0, 2))
        from tilejit.layout.cute.layout import Layout

        return CuteShape(shape.primitive_type, dims, Layout(dims, tuple(strides)), width)
    most = 8 * max(prod(dims), 100)
    tiles = random_of.tiles_for(case.pick, [dims[d] for d in reversed(order)], most)
    return make_shape(shape.primitive_type, dims, order, tiles, element_size_in_bits=width)


def gather(case: Case, shape: Shape) -> None:
    """Tiles in any order, and back; the definition is the first tile step alone, as rows and columns."""
    rows, columns = case.pick(1, 5), case.pick(1, 5)
    tile = case.one_of((2, 3), (4, 8), (8, 16), (1, 5), (16, 4))
    inner = case.one_of((), ((2, 1),), ((1, 2),), ((4, 2), (2, 1)))
    dims = rows * tile[0] - case.pick(0, tile[0] - 1), columns * tile[1] - case.pick(0, tile[1] - 1)
    spec = make_shape(shape.primitive_type, dims, (1, 0), (tile, *inner))
    data = case.bench.source.place(spec.size_in_bytes, at_end=case.chance(2))
    data[:] = _noise(case, spec)
    if inner:
        whole = make_shape(shape.primitive_type, (rows * tile[0], columns * tile[1]), (1, 0), (tile, *inner))
        if len(slots_of(whole)) != len(slots_of(spec)):
            return
    else:
        whole = make_shape(shape.primitive_type, (rows * tile[0], columns * tile[1]), (1, 0), (tile,))
    grid = unpacked_by_definition(data, whole).reshape(rows, tile[0], columns, tile[1]).swapaxes(1, 2)
    tiles = grid.reshape(-1, *tile)
    ids = case.rng.integers(0, rows * columns, case.pick(0, 6))
    case.note(tiled=str(spec), ids=ids.tolist())
    t = TiledArray.from_buffer(data, spec)
    got = gather_tiles(t, ids, threads=case.one_of(1, 2, None))
    case.check(got.tobytes() == tiles[ids].tobytes(), "other tiles than the definition's")
    values = random_elements(case.rng, spec.dtype, len(ids) * prod(tile)).reshape(-1, *tile)
    scatter_tiles(t, ids, values, last="wins")
    for number, value in zip(ids.tolist(), values, strict=True):
        tiles[number] = value
    again = gather_tiles(t, np.arange(rows * columns))
    case.check(again.tobytes() == tiles.tobytes(), "tiles were written elsewhere")
    case.check(case.bench.source.untouched(), "bytes beside the buffer changed")
