"""gather_tiles and scatter_tiles against pad, reshape, transpose; ids of all kinds; refused calls."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.tools.extent import examples, few_by_default
from tests.tools.guard import Guarded, span_bytes, strided_view
from tests.tools.oracle import (
    MERGE,
    Array,
    packed_bits,
    random_elements,
    slots_by_definition,
    unpacked_bits,
    value_mask,
)
from tests.tools.strategies import Pick, shape, strides

TILED = "f32[37,131]{1,0:T(8,16)}"
GRID = 5, 9


def tile_and_grid(spec: tj.Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The extents of the grid of first-step tiles, and of a tile."""
    assert spec.layout
    tile = spec.layout.tiles[0]
    sizes = [(spec.padded_dimensions or spec.dimensions)[d] for d in reversed(spec.layout.minor_to_major)]
    sizes = [1] * (len(tile) - len(sizes)) + sizes
    grid, carry = sizes[: len(sizes) - len(tile)], 1
    for n, t in zip(sizes[len(sizes) - len(tile) :], tile, strict=True):
        carry *= n
        if t != MERGE:
            grid.append(-(-carry // t))
            carry = 1
    return tuple(grid), tuple(t for t in tile if t != MERGE)


def chunk_table_of(spec: tj.Shape) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The slot of every element of every tile [n, *tile], as later steps and the tail permute the tiles."""
    grid, tile = tile_and_grid(spec)
    extents = (*grid, *tile)
    assert spec.layout
    tail = spec.layout.tail_padding_alignment_in_elements
    slots = slots_by_definition(
        extents, tuple(reversed(range(len(extents)))), spec.layout.tiles[1:], None, tail
    )
    place = np.empty(prod(extents), np.int64)
    place[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    return place.reshape(-1, *tile)


def values_of(spec: tj.Shape, data: Array) -> Array:
    """The value in each slot of a buffer."""
    values = unpacked_bits(data, spec.bits)[:, None] if spec.bits < 8 else data.reshape(-1, spec.bits // 8)
    return np.ascontiguousarray(values).reshape(-1).view(spec.dtype)


def written(spec: tj.Shape, data: Array, ids: Any, tiles: Array) -> Array:
    """The buffer's bytes after NumPy assigned the tiles one after the other."""
    slots, places = values_of(spec, data).copy(), chunk_table_of(spec)
    for number, tile in zip(ids, tiles, strict=True):
        slots[places[number]] = tile
    raw = slots.view(np.uint8)
    return packed_bits(raw, spec.bits) if spec.bits < 8 else raw


def filled(spec: tj.Shape, seed: int = 3) -> tj.TiledArray:
    """A buffer with data everywhere, padding included."""
    slots = random_elements(
        np.random.default_rng(seed), spec.dtype, spec.size_in_bytes * 8 // spec.bits
    ).view(np.uint8)
    data = packed_bits(slots, spec.bits) if spec.bits < 8 else slots
    return tj.TiledArray.from_buffer(data if spec.packed else data.view(spec.dtype), spec)


def same(a: Array, b: Array, spec: tj.Shape) -> bool:
    """Equal bit for bit, in the bits that count."""
    x, y = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    mask = value_mask(spec) if spec.dtype.itemsize == 1 and not spec.packed else np.uint8(255)
    if spec.packed:
        mask = np.uint8((1 << spec.bits) - 1)
    return a.shape == b.shape and bool(((x & mask) == (y & mask)).all())


@st.composite
def tilings(draw: Any) -> tuple[tj.Shape, list[int], tuple[int, ...]]:
    """A tiled shape, numbers of its tiles, and the strides of an array of them."""
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    spec = shape(pick, most=120)
    assume(spec.layout and spec.layout.tiles and 0 not in spec.dimensions)
    grid, tile = tile_and_grid(spec)
    assume(prod(grid) * prod(tile) <= 4000)
    ids = [pick(0, prod(grid) - 1) for _ in range(pick(0, 5))]
    dims = (len(ids), *tile)
    return spec, ids, strides(pick, dims, spec.dtype.itemsize, broadcast=False)


@pytest.mark.full
@given(tilings())
@settings(max_examples=examples(5, full=50))
def test_gather_is_the_definition(case: tuple[tj.Shape, list[int], tuple[int, ...]]) -> None:
    spec, ids, steps = case
    t = filled(spec)
    before = t.buffer.tobytes()
    want = values_of(spec, t.buffer.view(np.uint8))[chunk_table_of(spec)[np.array(ids, np.int64)]]
    got = tj.gather_tiles(t, ids)
    assert got.dtype == spec.dtype
    assert got.flags.c_contiguous
    assert same(got, want, spec)
    room = np.full(span_bytes(spec.dtype.itemsize, want.shape, steps), 0x55, np.uint8)
    out = strided_view(room, spec.dtype, want.shape, steps)
    assert tj.gather_tiles(t, np.array(ids, np.int32), out, threads=2) is out
    assert same(out, want, spec)
    assert t.buffer.tobytes() == before


@pytest.mark.full
@given(tilings())
@settings(max_examples=examples(5, full=50))
def test_scatter_is_the_definition(case: tuple[tj.Shape, list[int], tuple[int, ...]]) -> None:
    spec, ids, steps = case
    t = filled(spec)
    dims = len(ids), *tile_and_grid(spec)[1]
    values = strided_view(
        np.zeros(span_bytes(spec.dtype.itemsize, dims, steps), np.uint8), spec.dtype, dims, steps
    )
    values[...] = random_elements(np.random.default_rng(9), spec.dtype, prod(dims)).reshape(dims)
    want = written(spec, t.buffer.view(np.uint8), ids, np.ascontiguousarray(values))
    tj.scatter_tiles(t, ids, values, duplicates="last", threads=2)
    mask = value_mask(spec) if spec.bits == 8 else np.uint8(255)
    assert ((t.buffer.view(np.uint8) & mask) == (want & mask)).all()


LAYOUTS = {
    "f32[37,131]": (
        "{1,0:T(8,128)(2,1)}",
        "{0,1:T(8,16)}",
        "{1,0:T(128)}",
        "{1,0:T(*,40)}",
        "{1,0:T(8,16)(*,4)}",
        "{1,0:T(8,16)L(1000)}",
    ),
    "bf16[5,37,31]": ("{2,1,0:T(8,16)(2,1)}", "{1,2,0:T(4,4)}", "{2,1,0:T(*,8,16)(2,2)}", "{0,1,2:T(2,3,5)}"),
    "u8[9]": ("{0:T(4,4)}", "{0:T(4)(2)}"),
    "s4[37,131]": ("{1,0:T(64,128)(8,1)E(4)}", "{1,0:T(3,5)E(4)}", "{1,0:T(8,16)(2,1)}"),
    "pred[37,131]": ("{1,0:T(32,128)(32,1)E(1)}", "{0,1:T(3,5)E(1)}"),
}
CASES = [array + layout for array, layouts in LAYOUTS.items() for layout in layouts]


def padded_tiles(x: Array, spec: tj.Shape, value: int) -> Array:
    """All tiles of the array itself: pad, reshape, transpose."""
    assert spec.layout
    tile = spec.layout.tiles[0]
    y = x.transpose(*reversed(spec.layout.minor_to_major))
    y = y.reshape((1,) * (len(tile) - y.ndim) + y.shape)
    lead, inner = y.shape[: y.ndim - len(tile)], y.shape[y.ndim - len(tile) :]
    if MERGE in tile:
        start = tile.index(MERGE)
        assert tile.count(MERGE) == 1
        inner = (*inner[:start], inner[start] * inner[start + 1], *inner[start + 2 :])
    sizes = [t for t in tile if t != MERGE]
    y = y.reshape(lead + inner)
    pads = [(0, 0)] * len(lead) + [(0, -n % t) for n, t in zip(inner, sizes, strict=True)]
    y = np.pad(y.astype(np.int64), pads, constant_values=value)
    split = [v for n, t in zip(y.shape[len(lead) :], sizes, strict=True) for v in (n // t, t)]
    y = y.reshape([*lead, *split])
    k = len(lead)
    axes = [*range(k), *range(k, y.ndim, 2), *range(k + 1, y.ndim, 2)]
    return y.transpose(axes).reshape(-1, *sizes).astype(x.dtype)


@pytest.mark.parametrize("text", few_by_default(CASES, 2))
def test_tiles_of_an_array(text: str) -> None:
    """Elements at their logical places, padding as stored, in layouts of every kind."""
    spec = tj.Shape.parse(text)
    x = random_elements(np.random.default_rng(1), np.dtype(np.uint8), prod(spec.dimensions))
    x = (x.reshape(spec.dimensions) % (2 if text.startswith("pred") else 7)).astype(spec.dtype)
    t = tj.pack(x, spec, padding=1)
    want = padded_tiles(x, spec, 1)
    count = len(want)
    assert same(tj.gather_tiles(t, range(count)), want, spec)
    ids = np.random.default_rng(2).integers(0, count, 9)
    assert same(tj.gather_tiles(t, ids), want[ids], spec)
    grid = tile_and_grid(spec)[0]
    assert prod(grid) == count
    places = np.stack(np.unravel_index(ids, grid), 1)
    assert same(tj.gather_tiles(t, places), want[ids], spec)

    before = t.buffer.tobytes()
    tj.scatter_tiles(t, np.arange(count)[::-1], want[::-1])
    assert t.buffer.tobytes() == before
    values = random_elements(np.random.default_rng(4), spec.dtype, want[ids].size).reshape(want[ids].shape)
    tj.scatter_tiles(t, ids, values, duplicates="last")
    for number, tile in zip(ids, values, strict=True):
        want[number] = tile
    assert same(tj.gather_tiles(t, np.arange(count)), want, spec)


@pytest.fixture
def t() -> tj.TiledArray:
    return filled(tj.Shape.parse(TILED))


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", "<u8", "intp")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ids_of_every_width(t: tj.TiledArray, dtype: str) -> None:
    ids = [4, 0, 44, 4, 13]
    want = tj.gather_tiles(t, ids)
    assert tj.gather_tiles(t, np.array(ids, dtype)).tobytes() == want.tobytes()
    places = np.stack(np.unravel_index(ids, GRID), 1).astype(dtype)
    assert tj.gather_tiles(t, places).tobytes() == want.tobytes()
    strided = np.zeros((5, 3), dtype)
    strided[:, 1] = ids
    assert tj.gather_tiles(t, strided[:, 1]).tobytes() == want.tobytes()


def test_ids_of_other_kinds(t: tj.TiledArray) -> None:
    want = tj.gather_tiles(t, [4, 0, 13])
    for ids in ((4, 0, 13), [np.int8(4), np.uint64(0), 13], [(0, 4), (0, 0), (1, np.uint64(4))]):
        assert tj.gather_tiles(t, ids).tobytes() == want.tobytes()
    assert tj.gather_tiles(t, range(3)).shape == (3, 8, 16)
    objects = np.array([4, np.uint64(0), 13], object)
    assert tj.gather_tiles(t, objects).tobytes() == want.tobytes()
    assert tj.gather_tiles(t, np.array([(0, 4), (0, 0), (1, 4)], object)).tobytes() == want.tobytes()
    assert tj.gather_tiles(t, objects[:0]).shape == (0, 8, 16)


@pytest.mark.parametrize(
    "ids",
    [[], (), np.zeros(0, np.uint8), np.zeros((0, 2), np.int16)],
    ids=["list", "tuple", "flat", "places"],
)
def test_no_ids(t: tj.TiledArray, ids: Any) -> None:
    before = t.buffer.tobytes()
    assert tj.gather_tiles(t, ids).shape == (0, 8, 16)
    tj.scatter_tiles(t, ids, np.zeros((0, 8, 16), np.float32))
    tj.scatter_tiles(t, ids, np.float32(1))
    assert t.buffer.tobytes() == before


OUTSIDE = [
    [2**70],
    [3, -(2**63), 2**64 - 1],
    [[0, np.uint64(2**63)]],
    [45],
    [-1],
    [0, 1, 45, -7],
    np.array([2**63], np.uint64),
    np.array([2**64 - 1, 0], np.uint64),
    np.array([-(2**63)]),
    np.array([-128], np.int8),
    [[5, 0]],
    [[0, 9]],
    [[0, 0], [-1, 3]],
    np.array([[0, 2**63]], np.uint64),
]


@pytest.mark.parametrize("ids", OUTSIDE, ids=repr)
def test_ids_out_of_range(t: tj.TiledArray, ids: Any) -> None:
    """They are refused before a byte is written."""
    before = t.buffer.tobytes()
    out = np.full((len(ids), 8, 16), 77, np.float32)
    with pytest.raises(tj.LayoutIndexError, match="is out of range"):
        tj.gather_tiles(t, ids, out)
    assert (out == 77).all()
    with pytest.raises(tj.LayoutIndexError, match="is out of range"):
        tj.scatter_tiles(t, ids, out, duplicates="last")
    assert t.buffer.tobytes() == before


def test_the_message_names_the_place(t: tj.TiledArray) -> None:
    with pytest.raises(
        tj.LayoutIndexError, match=r"tile 45 is out of range, at position 2 of ids\n.*\[5,9\] tiles"
    ):
        tj.gather_tiles(t, [0, 1, 45, 46])
    with pytest.raises(IndexError, match="tile 9 is out of range along axis 1, at position 1"):
        tj.gather_tiles(t, [[0, 1], [0, 9]])
    with pytest.raises(tj.LayoutIndexError, match="tile a number of 16610 bits is out of range"):
        tj.gather_tiles(t, [10**5000])


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([True, False], TypeError),
        (np.zeros(45, bool), TypeError),
        ([0.0], TypeError),
        (np.zeros(0), TypeError),
        ("04", TypeError),
        (None, TypeError),
        ([None], TypeError),
        ([2**70, 0.5], TypeError),
        (np.array([1, None]), TypeError),
        (np.array([0, 0.5], object), TypeError),
        (np.array([True, 0], object), TypeError),
        ([0 + 0j], TypeError),
        (np.array(["2020"], "M8[D]"), TypeError),
        (np.ma.masked_array([0, 1], [False, True]), TypeError),
        (3, tj.LayoutError),
        ([[[0, 1]]], tj.LayoutError),
        ([[0, 1, 2]], tj.LayoutError),
        ([[]], tj.LayoutError),
        ([[0, 1], [2]], tj.LayoutError),
    ],
    ids=repr,
)
def test_objects_that_are_not_ids_are_refused(t: tj.TiledArray, ids: Any, kind: type[Exception]) -> None:
    before = t.buffer.tobytes()
    with pytest.raises(kind):
        tj.gather_tiles(t, ids)
    with pytest.raises(kind):
        tj.scatter_tiles(t, ids, np.float32(1))
    assert t.buffer.tobytes() == before


def test_duplicate_ids(t: tj.TiledArray) -> None:
    """They are refused, or the last one is written, for grids that are small and large beside the ids."""
    before = t.buffer.copy()
    values = np.arange(4 * 128, dtype=np.float32).reshape(4, 8, 16)
    for ids in ([3, 7, 3, 1], [(0, 3), (0, 7), (0, 3), (0, 1)]):
        with pytest.raises(tj.LayoutError, match="tile 3 twice, at positions 0 and 2"):
            tj.scatter_tiles(t, ids, values)
        assert (t.buffer.view(np.uint8) == before.view(np.uint8)).all()
    tj.scatter_tiles(t, [3, 7, 3, 1], values, duplicates="last")
    assert (tj.gather_tiles(t, [3, 7, 1]) == values[[2, 1, 3]]).all()
    many = np.tile([5, 6], 200)
    tj.scatter_tiles(t, many, np.arange(400, dtype=np.float32)[:, None, None], duplicates="last")
    assert (tj.gather_tiles(t, [5, 6])[:, 0, 0] == [398, 399]).all()
    one = tj.TiledArray.from_buffer(np.zeros(1 << 12, np.uint8), "u8[4096]{0:T(1)}")
    tj.scatter_tiles(one, [7, 9, 7], np.uint8([[1], [2], [3]]), duplicates="last")
    assert one.buffer[[7, 8, 9]].tolist() == [3, 0, 2]


@pytest.mark.parametrize(
    ("duplicates", "kind"),
    [("first", tj.LayoutError), (None, TypeError), (3, TypeError), (b"last", TypeError)],
)
def test_wrong_values_of_duplicates_are_refused(
    t: tj.TiledArray, duplicates: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match='"error" or "last"'):
        tj.scatter_tiles(t, [0], np.float32(0), duplicates=duplicates)
    with pytest.raises(tj.LayoutError, match="duplicates="):
        tj.scatter_tiles(t, [0, 0], np.float32(0), duplicates="error")


@pytest.mark.full
def test_tiles_from_and_to_tiled_arrays(t: tj.TiledArray) -> None:
    """Gathered into one layout and scattered from another. The padding of `out` stays."""
    ids = [4, 0, 44]
    want = tj.gather_tiles(t, ids)
    out = filled(tj.Shape.parse("f32[3,8,16]{2,1,0:T(5,7)(5,1)}"))
    keep = tj.pack(want, out.layout, out=out.buffer.copy(), padding="keep").buffer
    assert tj.gather_tiles(t, ids, out) is out
    assert out.buffer.tobytes() == keep.tobytes()
    tj.scatter_tiles(t, [1, 2, 3], out)
    assert tj.gather_tiles(t, [1, 2, 3]).tobytes() == want.tobytes()
    tj.scatter_tiles(t, [1, 2, 1], out, duplicates="last")
    assert tj.gather_tiles(t, [1, 2]).tobytes() == want[[2, 1]].tobytes()


def test_values_broadcast_and_convert() -> None:
    t = tj.pack(np.zeros((16, 16), np.float32), "{1,0:T(8,16)}")
    for values, want in (
        (2, np.full((2, 8, 16), 2.0)),
        (np.arange(16), np.broadcast_to(np.arange(16.0), (2, 8, 16))),
        ([[[1.5]], [[2.5]]], np.array([1.5, 2.5])[:, None, None] * np.ones((2, 8, 16))),
        (np.ones((1, 1, 8, 16), np.float16), np.ones((2, 8, 16))),
    ):
        tj.scatter_tiles(t, [1, 0], values)
        assert (tj.gather_tiles(t, [1, 0]) == want).all()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.zeros((3, 8, 16), np.float32), tj.LayoutError),
        (np.zeros((2, 16, 8), np.float32), tj.LayoutError),
        (1j, TypeError),
        ("x", tj.LayoutError),
        (b"1", tj.LayoutError),
        (np.array(["x"], object), tj.LayoutError),
        (None, TypeError),
        (filled(tj.Shape.parse("f64[2,8,16]{2,1,0}")), tj.LayoutError),
        (filled(tj.Shape.parse("f32[2,8,15]{2,1,0}")), tj.LayoutError),
    ],
    ids=[
        "count",
        "tile",
        "complex",
        "text",
        "bytes",
        "object",
        "None",
        "dtype of tiles",
        "shape of tiles",
    ],
)
def test_values_that_do_not_fit(t: tj.TiledArray, values: Any, kind: type[Exception]) -> None:
    before = t.buffer.tobytes()
    with pytest.raises(kind) as refused:
        tj.scatter_tiles(t, [1, 0], values)
    assert kind is TypeError or re.search("\n  (give|pass|use)", str(refused.value))
    assert t.buffer.tobytes() == before


def test_values_that_overlap_the_buffer_are_read_first(t: tj.TiledArray) -> None:
    """Nothing is written before that."""
    want = t.buffer[:256].reshape(2, 8, 16).copy()
    tj.scatter_tiles(t, [1, 0], t.buffer[:256].reshape(2, 8, 16))
    assert tj.gather_tiles(t, [1, 0]).tobytes() == want.tobytes()
    inside = tj.TiledArray.from_buffer(t.buffer[128:384], "f32[2,8,16]{2,1,0}")
    want = inside.unpack().copy()
    tj.scatter_tiles(t, [2, 1], inside)
    assert tj.gather_tiles(t, [2, 1]).tobytes() == want.tobytes()


def read_only() -> Array:
    out = np.full((2, 8, 16), 77, np.float32)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.full((3, 8, 16), 77, np.float32), "out is float32"),
        (np.full((2, 16, 8), 77, np.float32), "out is float32"),
        (np.full((2, 8, 16), 77.0), "float64"),
        (np.full((2, 8, 16), 77, ">f4"), "f4"),
        (read_only(), "read-only"),
        (np.broadcast_to(np.float32(77), (2, 8, 16)), "read-only"),
        (np.lib.stride_tricks.as_strided(np.full(500, 77, np.float32), (2, 8, 16), (4, 64, 4)), "share"),
        (tj.TiledArray.from_buffer(np.full(240, 77, np.float32), "f32[2,8,15]{2,1,0}"), "out is"),
    ],
    ids=["count", "tile", "dtype", "byte order", "read-only", "broadcast", "overlapping", "tiled"],
)
def test_out_that_cannot_be_used(t: tj.TiledArray, out: Any, words: str) -> None:
    with pytest.raises(tj.LayoutError, match=f"(?s){words}.*\n  pass"):
        tj.gather_tiles(t, [0, 1], out)
    assert (np.asarray(out) == 77).all()


def test_out_with_two_elements_in_a_slot(t: tj.TiledArray) -> None:
    folded = tj.TiledArray.from_buffer(
        np.full(128, 77, np.float32), tj.cute.Layout((2, 8, 16), (0, 16, 1)), dims=(2, 8, 16), dtype="f32"
    )
    with pytest.raises(tj.LayoutError, match="share slot"):
        tj.gather_tiles(t, [0, 1], folded)
    assert (folded.buffer == 77).all()


@pytest.mark.parametrize("out", [[0.0], bytearray(1024), 3, "x"], ids=repr)
def test_out_of_a_wrong_type(t: tj.TiledArray, out: Any) -> None:
    with pytest.raises(TypeError, match="out"):
        tj.gather_tiles(t, [0, 1], out)


def test_out_that_overlaps(t: tj.TiledArray) -> None:
    before = t.buffer.tobytes()
    view = t.buffer[:256].reshape(2, 8, 16)
    for out in (view, tj.TiledArray.from_buffer(t.buffer[:256], "f32[2,8,16]{2,1,0}")):
        with pytest.raises(tj.LayoutError, match="overlap"):
            tj.gather_tiles(t, [3, 4], out)
    assert t.buffer.tobytes() == before


def test_a_buffer_that_is_read_only(t: tj.TiledArray) -> None:
    data = np.frombuffer(t.buffer.tobytes(), np.float32)
    frozen = tj.TiledArray.from_buffer(data, TILED)
    assert tj.gather_tiles(frozen, [7]).tobytes() == tj.gather_tiles(t, [7]).tobytes()
    with pytest.raises(tj.LayoutError, match="read-only"):
        tj.scatter_tiles(frozen, [7], np.float32(0))


def test_layouts_without_tiles_are_refused() -> None:
    for text in ("f32[3,5]", "f32[3,5]{0,1}", "f32[]"):
        plain = tj.TiledArray.from_buffer(np.zeros(prod(tj.Shape.parse(text).dimensions), np.float32), text)
        with pytest.raises(tj.LayoutError, match="no tiles"):
            tj.gather_tiles(plain, [0])
        with pytest.raises(tj.LayoutError, match="no tiles"):
            assert plain.grid
    for wrong in (np.zeros((3, 5)), None, b"x"):
        with pytest.raises(TypeError, match="TiledArray"):
            tj.gather_tiles(wrong, [0])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["f32[0,8]{1,0:T(4,8)}", "f32[0,8]{1,0:T(*,8)}", "s4[0,8]{1,0:T(4,8)E(4)}"])
def test_an_array_without_elements_has_no_tiles(text: str) -> None:
    spec = tj.Shape.parse(text)
    empty = tj.TiledArray.from_buffer(b"", spec)
    tile = tile_and_grid(spec)[1]
    assert tj.gather_tiles(empty, []).shape == (0, *tile)
    assert tj.gather_tiles(empty, []).dtype == spec.dtype
    with pytest.raises(tj.LayoutIndexError, match="tile 0 is out of range"):
        tj.gather_tiles(empty, [0])
    writeable = tj.pack(np.zeros((0, 8), spec.dtype), spec)
    tj.scatter_tiles(writeable, [], np.zeros((0, *tile), spec.dtype))
    assert not writeable.nbytes


@pytest.mark.parametrize(("threads", "kind"), [(0, tj.TilejitError), (-1, tj.TilejitError), ("2", TypeError)])
def test_threads(t: tj.TiledArray, threads: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        tj.gather_tiles(t, [0], threads=threads)
    with pytest.raises(kind):
        tj.scatter_tiles(t, [0], np.float32(0), threads=threads)


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "f32[37,131]{1,0:T(8,16)}",
        "bf16[37,131]{1,0:T(8,16)(2,1)}",
        "s4[37,131]{1,0:T(8,16)(2,1)E(4)}",
        "f32[2048,1000]{1,0:T(8,128)}",
        "bf16[2048,2100]{1,0:T(16,128)(2,1)}",
    ],
)
def test_nothing_outside_the_arrays_is_touched(text: str) -> None:
    """Between guard pages, with first and last tiles among the ids. The last two are past the cache."""
    spec = tj.Shape.parse(text)
    data = filled(spec).buffer.view(np.uint8)
    places = chunk_table_of(spec)
    ids = np.random.default_rng(5).permutation(len(places))
    want = values_of(spec, data)[places[ids]]
    tiles, logical = Guarded(len(data) + 64), Guarded(want.nbytes + 64)
    for at_end, gap in ((False, 0), (True, 0), (True, 4), (False, 60)):
        buffer = tiles.place(len(data), at_end=at_end, gap=gap)
        room = logical.place(want.nbytes, at_end=at_end, gap=gap)
        out = room.view(spec.dtype).reshape(want.shape)
        buffer[:] = data
        t = tj.TiledArray.from_buffer(buffer if spec.packed else buffer.view(spec.dtype), spec)
        tj.gather_tiles(t, ids, out, threads=2)
        assert same(out, want, spec)
        buffer[:] = 0
        tj.scatter_tiles(t, ids, out)
        assert same(tj.gather_tiles(t, ids), want, spec)
        assert tiles.untouched()
        assert logical.untouched()


def test_a_paged_cache() -> None:
    """Blocks of tokens by a block table, as in the docstring."""
    blocks = np.random.default_rng(0).standard_normal((40, 16, 128)).astype(ml_dtypes.bfloat16)
    cache = tj.pack(blocks.reshape(640, 128), "{1,0:T(16,128)(2,1)}")
    table = np.array([[3, 39, 0, 3], [7, 8, 9, 10]], np.int32)
    for row in table:
        assert (tj.gather_tiles(cache, row) == blocks[row]).all()
