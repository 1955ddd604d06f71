"""Single tiles of packed elements, copied as defined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.copies.test_tiles import chunk_table_of, filled, tile_and_grid, values_of, written
from tests.tools.guard import Guarded, span_bytes, strided_view

SPECS = (
    "s4[130,260]{1,0:T(64,128)(8,1)E(4)}",
    "u4[37,131]{1,0:T(8,16)E(4)}",
    "s4[37,131]{0,1:T(8,16)(2,1)E(4)}",
    "u2[37,131]{1,0:T(8,16)E(2)}",
    "pred[70,300]{1,0:T(32,128)(32,1)E(1)}",
    "s4[9,20,33]{2,0,1:T(4,8)(4,1)E(4)}",
)


def some_ids(spec: tj.Shape) -> Any:
    """Every tile in some order, the first one twice."""
    grid, _ = tile_and_grid(spec)
    order = np.random.default_rng(5).permutation(int(np.prod(grid)))
    return np.append(order, order[0])


def strides_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Strides in order; in reverse order with holes; with the tiles innermost."""
    dense = tuple(int(np.prod(shape[d + 1 :], dtype=int)) for d in range(len(shape)))
    turned = tuple(-3 * s for s in dense)
    inner = int(np.prod(shape[1:], dtype=int))
    innermost = (1, *(s * shape[0] for s in dense[1:]))
    assert inner
    return [dense, turned, innermost]


@pytest.mark.full
@pytest.mark.parametrize("text", SPECS)
def test_copies_to_and_from_arrays(text: str) -> None:
    """Between guard pages, on one thread and on three."""
    spec = tj.Shape.parse(text)
    t, ids = filled(spec), some_ids(spec)
    want = values_of(spec, t.buffer.view(np.uint8))[chunk_table_of(spec)[ids]]
    want = want.reshape(len(ids), *tile_and_grid(spec)[1])
    source = Guarded(t.nbytes)
    for strides in strides_of(want.shape):
        size = span_bytes(1, want.shape, strides)
        arena = Guarded(size + 64)
        for gap, at_end, threads in ((0, False, 1), (5, True, 3), (0, True, 1)):
            held = strided_view(arena.place(size, at_end=at_end, gap=gap), spec.dtype, want.shape, strides)
            buffer = source.place(t.nbytes, at_end=at_end)
            buffer[:] = t.buffer.view(np.uint8)
            guarded = tj.TiledArray.from_buffer(buffer, spec)
            tj.gather_tiles(guarded, ids, held, threads=threads)
            assert (held == want).all()
            assert arena.untouched()
            buffer[:] = 0
            tj.scatter_tiles(guarded, ids[:-1], held[:-1], threads=threads)
            zeros = np.zeros(t.nbytes, np.uint8)
            assert buffer.tobytes() == written(spec, zeros, ids[:-1], want[:-1]).tobytes()
            assert source.untouched()


@pytest.mark.parametrize("text", SPECS)
@pytest.mark.parametrize("layout", ["", "(3,5)", "packed"])
def test_copies_to_and_from_tiled_arrays(text: str, layout: str) -> None:
    """With unpacked elements and with packed ones. The padding of `out` stays."""
    spec = tj.Shape.parse(text)
    t, ids = filled(spec), some_ids(spec)
    want = tj.gather_tiles(t, ids)
    dims = ",".join(map(str, want.shape))
    order = ",".join(map(str, reversed(range(want.ndim))))
    tiles = {"": "", "(3,5)": ":T(3,5)", "packed": f":T(8,16)(4,1)E({spec.bits})"}[layout]
    out = filled(tj.Shape.parse(f"{spec.primitive_type}[{dims}]{{{order}{tiles}}}"))
    keep = tj.pack(want, out.layout, out=out.buffer.copy(), padding="keep").buffer
    tj.gather_tiles(t, ids, out)
    assert out.buffer.tobytes() == keep.tobytes()
    again = tj.TiledArray.from_buffer(np.zeros(t.nbytes, np.uint8), spec)
    tj.scatter_tiles(again, ids, out, duplicates="last")
    assert (tj.gather_tiles(again, ids) == want).all()


@pytest.mark.parametrize("layout", ["(2,8,8):(2,24,3)", "(2,8,8):(64,8,1)", "(2,8,8):(1,2,16)"])
def test_threads_whose_tiles_share_bytes(layout: str) -> None:
    """Each tile has half of a byte, and writes the other half back unchanged."""
    t = filled(tj.Shape.parse("s4[16,8]{1,0:T(8,8)E(4)}"))
    want = tj.gather_tiles(t, [1, 0])
    held = tj.as_layout(layout, dims=(2, 8, 8), dtype="s4", element_size_in_bits=4)
    out = tj.TiledArray.from_buffer(np.zeros(held.size_in_bytes, np.uint8), held)
    for _ in range(20):
        out.buffer[...] = 0
        tj.gather_tiles(t, [1, 0], out, threads=2)
        assert (out.unpack() == want).all()


def test_values_that_are_all_equal() -> None:
    """A broadcast array is read repeatedly, whatever its strides."""
    spec = tj.Shape.parse(SPECS[0])
    t = filled(spec)
    tj.scatter_tiles(t, [2, 0], np.array(5, spec.dtype))
    assert (tj.gather_tiles(t, [0, 2]) == np.array(5, spec.dtype)).all()
