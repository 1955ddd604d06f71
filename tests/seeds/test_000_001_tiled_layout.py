"""XLA's page "Tiled layout": seed 000, and its later edition, seed 001.

Both have the same statements in the same order. Those marked "seed 001" are only in that seed: the first two
sections and the last.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.oracle import slots_by_definition, slots_of
from tilejit.layout.helpers import reshape_is_bitcast

STAR = "\u2217"
"""The asterisk as both seeds write it."""

CASES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((7,), (3,)),
    ((3, 5), (2, 2)),
    ((4, 8), (2, 4)),
    ((2, 7, 9), (2, 3, 4)),
    ((5, 6, 7), (1, 4, 3)),
    ((2, 3, 4, 5), (3, 2, 3, 2)),
]
"""Dimensions and a tile of the same rank."""
cases = pytest.mark.parametrize(("d", "t"), CASES, ids=str)


def linear_index(e: Sequence[int], d: Sequence[int]) -> int:
    """The seeds' sum of products."""
    return sum(e[k] * prod(d[k + 1 :]) for k in range(len(d)))


def quotients(e: Sequence[int], t: Sequence[int]) -> tuple[int, ...]:
    return tuple(a // b for a, b in zip(e, t, strict=True))


def remainders(e: Sequence[int], t: Sequence[int]) -> tuple[int, ...]:
    return tuple(a % b for a, b in zip(e, t, strict=True))


def counts(d: Sequence[int], t: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-a // b) for a, b in zip(d, t, strict=True))


def indices(d: Sequence[int]) -> Any:
    return itertools.product(*map(range, d))


def tiled(d: Sequence[int], *tiles: Sequence[int], dtype: str = "f32") -> tj.Shape:
    return tj.make_shape(dtype, d, tiles=tiles)


def numbers(d: Sequence[int], dtype: Any = np.float32) -> Any:
    return np.arange(1, prod(d) + 1).reshape(d).astype(dtype)


# --- Before the first section ---


def test_tpus_have_two_dimensional_tile_formats() -> None:
    """Seed 001: tile formats suit two-dimensional vector registers."""
    assert {"tpu", "tpu-doc"} <= set(tj.formats())
    for dtype in ("f32", "bf16", "s8"):
        shape = tj.named_format("tpu", dtype, (64, 512))
        assert isinstance(shape, tj.Shape)
        assert len(shape.tiles[0]) == 2


# --- Tiled format ---


@pytest.mark.parametrize(("d", "t", "grid"), [((10,), (4,), (3,)), ((3, 5), (2, 2), (2, 3))])
def test_a_format_breaks_a_shape_into_tiles(
    d: tuple[int, ...], t: tuple[int, ...], grid: tuple[int, ...]
) -> None:
    """Seed 001: tiles of one dimension, or of two."""
    assert tj.pack(numbers(d), tiled(d, t)).grid == grid


def test_tiles_lie_row_major() -> None:
    """Seed 001: from the most major to the most minor."""
    firsts = [tj.linear_index("f32[4,6]{1,0:T(2,2)}", (i, j)) for i in (0, 2) for j in (0, 2, 4)]
    assert firsts == [0, 4, 8, 12, 16, 20]


def test_elements_of_a_tile_lie_row_major() -> None:
    """Seed 001: inside a tile as well."""
    assert [tj.linear_index("f32[4,6]{1,0:T(2,3)}", e) for e in indices((2, 3))] == [0, 1, 2, 3, 4, 5]


# --- Figure 1 ---


def test_figure_1() -> None:
    """F32[3,5] in memory, in tiles of 2x2."""
    x = numbers((3, 5))
    memory = tj.pack(x, "F32[3,5]{1,0:T(2,2)}").buffer.astype(int).tolist()
    top = [1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0]
    assert memory == [*top, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0]


def test_the_text_of_figure_1() -> None:
    """The order of the dimensions, a colon, and the tile."""
    shape = tj.Shape.parse("F32[3,5]{1,0:T(2,2)}")
    assert (shape.primitive_type, shape.dimensions) == ("f32", (3, 5))
    assert (shape.minor_to_major, shape.tiles) == ((1, 0), ((2, 2),))


def test_tiles_are_of_physical_dimensions() -> None:
    """In {0,1}, the last size of the tile belongs to dimension 0."""
    shape = "f32[3,5]{0,1:T(2,3)}"
    assert [tj.linear_index(shape, (i, 0)) for i in range(3)] == [0, 1, 2]
    assert [tj.linear_index(shape, (0, j)) for j in range(3)] == [0, 3, 6]


@cases
def test_tiles_cover_the_shape(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Each tile is complete, although the bounds are not multiples of its sizes."""
    shape = tiled(d, t)
    assert shape.physical_size == prod(counts(d, t)) * prod(t)
    slots = [tj.linear_index(shape, e) for e in indices(d)]
    assert len(set(slots)) == prod(d)


def test_padding_needs_no_particular_value() -> None:
    """It is zero by default, and unpacking ignores it."""
    x = numbers((3, 5))
    padding = slots_by_definition((3, 5), (1, 0), [(2, 2)]) < 0
    assert (tj.pack(x, "{1,0:T(2,2)}").buffer[padding] == 0).all()
    kept = tj.pack(x, "{1,0:T(2,2)}", out=np.full(24, 9, np.float32), padding="keep")
    assert (kept.buffer[padding] == 9).all()
    assert (tj.unpack(kept) == x).all()


# --- The linear index of a tiled shape ---


@cases
def test_linear_index_without_tiles(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """The sum of products, in row-major order."""
    shape = tiled(d)
    assert all(tj.linear_index(shape, e) == linear_index(e, d) for e in indices(d))


@cases
def test_a_tile_of_fewer_dimensions(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """It covers the most minor physical dimensions, and leaves the most major ones unchanged."""
    for rank in range(1, len(t)):
        short, ones = t[-rank:], (1,) * (len(t) - rank)
        assert slots_of(tiled(d, short)).tolist() == slots_of(tiled(d, (*ones, *short))).tolist()
        same = [
            tj.linear_index(tiled(d, short), e) == tj.linear_index(tiled(d, (*ones, *short)), e)
            for e in indices(d)
        ]
        assert all(same)
    column_major = tj.make_shape("f32", d, range(len(d)), [t[-1:]])
    assert column_major.physical_size == counts(d[:1], t[-1:])[0] * t[-1] * prod(d[1:])


@cases
def test_linear_index_with_tile(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Quotients and remainders together, in counts and tile together."""
    shape = tiled(d, t)
    for e in indices(d):
        joined = linear_index((*quotients(e, t), *remainders(e, t)), (*counts(d, t), *t))
        assert tj.linear_index(shape, e) == joined


@cases
def test_linear_index_with_tile_as_two_parts(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """The index of the tile times the size of a tile, plus the index inside it."""
    shape = tiled(d, t)
    for e in indices(d):
        tile = linear_index(quotients(e, t), counts(d, t))
        assert tj.linear_index(shape, e) == tile * prod(t) + linear_index(remainders(e, t), t)


@pytest.mark.full
@cases
def test_quotients_number_the_tiles(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """They are an index into an array of tiles, and remainders are an index into a tile."""
    x = numbers(d)
    packed = tj.pack(x, tiled(d, t))
    assert packed.grid == counts(d, t)
    tiles = tj.gather_tiles(packed, np.arange(prod(packed.grid))).reshape(-1, *t)
    for e in indices(d):
        assert tiles[linear_index(quotients(e, t), packed.grid)][remainders(e, t)] == x[e]


@cases
def test_counts_are_rounded_up(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Tiles reach past the bounds of the array, and padding fills the rest."""
    shape = tiled(d, t)
    elements = sum(tj.multi_index(shape, slot) is not None for slot in range(shape.physical_size))
    assert elements == prod(d)
    assert shape.physical_size - elements == prod(c * s for c, s in zip(counts(d, t), t, strict=True)) - prod(
        d
    )


@cases
def test_tiles_and_their_elements_are_laid_out_without_tiles(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Tiles are laid out like the elements of an untiled array, and so are the elements of a tile."""
    shape, grid, tile = tiled(d, t), tiled(counts(d, t)), tiled(t)
    for e in indices(d):
        outer = tj.linear_index(grid, quotients(e, t))
        assert tj.linear_index(shape, e) == outer * prod(t) + tj.linear_index(tile, remainders(e, t))


def test_the_example_of_element_2_3() -> None:
    """Tile (1,1) of (2,3), element (0,1) of (2,2): slot 17."""
    e, d, t = (2, 3), (3, 5), (2, 2)
    assert (quotients(e, t), remainders(e, t), counts(d, t)) == ((1, 1), (0, 1), (2, 3))
    assert linear_index((1, 1, 0, 1), (2, 3, 2, 2)) == 17
    assert linear_index((1, 1), (2, 3)) * 2 * 2 + linear_index((0, 1), (2, 2)) == 17
    shape = tj.Shape.parse("F32[3,5]{1,0:T(2,2)}")
    assert tj.linear_index(shape, e) == 17
    assert tj.multi_index(shape, 17) == e
    x = numbers(d)
    assert tj.pack(x, shape).buffer[17] == x[e]


# --- Tiling as pad, reshape, transpose ---


def padded(x: Any, t: Sequence[int]) -> Any:
    return np.pad(x, [(0, -n % s) for n, s in zip(x.shape, t, strict=True)])


def split(x: Any, t: Sequence[int]) -> Any:
    return padded(x, t).reshape([n for pair in zip(counts(x.shape, t), t, strict=True) for n in pair])


def transposed(x: Any, t: Sequence[int]) -> Any:
    rank = len(t)
    return split(x, t).transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])


@cases
def test_the_array_is_padded(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """To a multiple of the tile in each dimension."""
    assert tiled(d, t).physical_size == padded(numbers(d), t).size
    assert tiled(padded(numbers(d), t).shape, t).padding_fraction == 0


@cases
def test_each_dimension_is_split_in_two(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """No element moves: the reshape is a bitcast."""
    before = tj.make_shape("f32", padded(numbers(d), t).shape)
    after = tj.make_shape("f32", split(numbers(d), t).shape)
    assert reshape_is_bitcast(before, after)


def test_a_bitcast_may_have_any_dimensions_of_as_many_elements() -> None:
    """The split is only one of them."""
    before = tj.make_shape("f32", (4, 6))
    assert all(
        reshape_is_bitcast(before, tj.make_shape("f32", d)) for d in [(24,), (2, 2, 2, 3), (3, 8), (1, 24)]
    )


@cases
def test_the_tile_becomes_most_minor(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """A transpose moves its dimensions to the end, in their order."""
    x = numbers(d)
    made = transposed(x, t)
    assert made.shape == (*counts(d, t), *t)
    assert tj.pack(x, tiled(d, t)).buffer.tobytes() == made.tobytes()


@cases
def test_the_recipe_is_pad_reshape_transpose(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Every shape can be printed as such NumPy code."""
    names: dict[str, Any] = {}
    exec(tiled(d, t).recipe(), names)
    assert names["pack"](numbers(d)).tobytes() == transposed(numbers(d), t).tobytes()


@cases
def test_the_final_shape_begins_with_the_number_of_tiles(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """One count for each dimension."""
    x = numbers(d)
    assert tj.pack(x, tiled(d, t)).grid == transposed(x, t).shape[: len(d)]


@cases
def test_elements_in_the_final_shape(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """At quotients, then remainders."""
    x = numbers(d)
    made = transposed(x, t)
    assert all(made[(*quotients(e, t), *remainders(e, t))] == x[e] for e in indices(d))


@cases
def test_the_final_shape_agrees_with_the_formula(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Its flat order is the linear index with tiles."""
    x = numbers(d)
    flat, shape = transposed(x, t).reshape(-1), tiled(d, t)
    assert all(flat[tj.linear_index(shape, e)] == x[e] for e in indices(d))


# --- Repeated tiling ---


@pytest.mark.parametrize(
    "text",
    [
        "F32[4,8]{1,0:T(2,4)(2,1)}",
        "bf16[33,300]{1,0:T(8,128)(2,1)}",
        "u8[33,300]{1,0:T(8,128)(4,1)}",
        "pred[33,300]{1,0:T(32,128)(32,1)}",
        "f32[3,5]{1,0:T(3,5)(4,1)}",
        "f32[1000]{0:T(1024)(128)(2,1)}",
        "f32[17,9,5]{0,2,1:T(4,2)(2,2,1)(3,1)}",
    ],
)
def test_tiles_apply_one_after_another(text: str) -> None:
    """Each tile applies to the result of the one before."""
    shape = tj.Shape.parse(text)
    slots = slots_of(shape)
    index = tj.multi_index(shape, np.arange(shape.physical_size))
    valid = index[0] >= 0
    flat = np.ravel_multi_index([np.maximum(i, 0) for i in index], shape.dimensions)
    assert np.where(valid, flat, -1).tolist() == slots.tolist()


FIGURE_2 = """
 0  2  4  6  8 10 12 14
 1  3  5  7  9 11 13 15
16 18 20 22 24 26 28 30
17 19 21 23 25 27 29 31
"""


def test_figure_2() -> None:
    """[4,8] by 2x4, then by 2x1: the numbers of the figure."""
    figure = [[int(n) for n in line.split()] for line in FIGURE_2.strip().splitlines()]
    shape = tj.Shape.parse("F32[4,8]{1,0:T(2,4)(2,1)}")
    assert np.array_equal(tj.linear_index(shape, tuple(np.indices((4, 8)))), figure)
    x = numbers((4, 8))
    assert tj.pack(x, shape).buffer[figure].tolist() == x.tolist()


def test_the_text_of_repeated_tiles() -> None:
    """The tiles are side by side, the first one outermost."""
    shape = tj.Shape.parse("F32[4,8]{1,0:T(2,4)(2,1)}")
    assert shape.tiles == ((2, 4), (2, 1))
    assert str(shape) == "f32[4,8]{1,0:T(2,4)(2,1)}"


def test_colors_and_boxes_of_figure_2() -> None:
    """Each tile of 2x4, and each of 2x1 inside, is one run of memory."""
    slots = tj.linear_index("f32[4,8]{1,0:T(2,4)(2,1)}", tuple(np.indices((4, 8))))
    for t in ((2, 4), (2, 1)):
        for tile in transposed(slots, t).reshape(-1, prod(t)):
            assert np.ptp(tile) == prod(t) - 1


def test_figure_2_is_the_format_of_bf16_on_tpus() -> None:
    """Except for a larger first tile: (8,128)(2,1)."""
    assert str(tj.named_format("tpu", "bf16", (64, 512))) == "bf16[64,512]{1,0:T(8,128)(2,1)}"


def test_the_second_tile_pairs_values_of_16_bits() -> None:
    """Two rows of a column are one 32-bit value."""
    x = np.arange(16 * 256, dtype=np.uint16).reshape(16, 256)
    words = tj.pack(x, "{1,0:T(8,128)(2,1)}").buffer.view(np.uint32)
    assert words[0] == (int(x[1, 0]) << 16 | int(x[0, 0]))
    assert words[1] == (int(x[1, 1]) << 16 | int(x[0, 1]))


def tile_of_each_slot(shape: tj.Shape, t: Sequence[int]) -> Any:
    """Which tile the element of each slot belongs to."""
    index = tj.multi_index(shape, np.arange(shape.physical_size))
    return np.ravel_multi_index([i // s for i, s in zip(index, t, strict=True)], counts(shape.dimensions, t))


def test_a_second_tile_may_rearrange_a_tile() -> None:
    """It only covers the dimensions inside a tile, so no element leaves its tile."""
    before, after = tiled((16, 256), (8, 128)), tiled((16, 256), (8, 128), (2, 1))
    assert (tile_of_each_slot(before, (8, 128)) == tile_of_each_slot(after, (8, 128))).all()
    assert slots_of(before).tolist() != slots_of(after).tolist()


def test_a_second_tile_may_reach_across_tiles() -> None:
    """It also covers a dimension that counts tiles, so two tiles interleave."""
    shape = tiled((4, 8), (2, 2), (2, 1, 2))
    assert shape.physical_size == 32
    tile = tile_of_each_slot(shape, (2, 2))
    assert tile[:4].tolist() == [0, 0, 1, 1]
    x = numbers((4, 8))
    packed = tj.pack(x, shape)
    assert packed.buffer.tolist() == x.reshape(-1)[slots_of(shape)].tolist()
    assert (tj.unpack(packed) == x).all()


# --- Combining dimensions ---

COMBINED = f"F32[2,7,8,11,10]{{4,3,2,1,0:T({STAR},{STAR},2,{STAR},3)}}"


def test_stars_combine_dimensions() -> None:
    """[2,7,8,11,10] becomes [112,110] before it is tiled by (2,3)."""
    combined, plain = tj.Shape.parse(COMBINED), tj.Shape.parse("F32[112,110]{1,0:T(2,3)}")
    assert combined.physical_size == plain.physical_size
    x = numbers((2, 7, 8, 11, 10))
    packed = tj.pack(x, combined)
    assert packed.buffer.tobytes() == tj.pack(x.reshape(112, 110), plain).buffer.tobytes()
    assert (tj.unpack(packed) == x).all()


def test_a_star_takes_the_next_more_minor_dimension() -> None:
    """Dimension 0 goes into dimension 1."""
    for e in indices((3, 5)):
        got = tj.linear_index(f"f32[3,5]{{1,0:T({STAR},4)}}", e)
        assert got == tj.linear_index("f32[15]{0:T(4)}", (linear_index(e, (3, 5)),))


def test_several_adjacent_dimensions_become_one() -> None:
    """A star for each of them."""
    for e in indices((2, 3, 5)):
        got = tj.linear_index(f"f32[2,3,5]{{2,1,0:T({STAR},{STAR},4)}}", e)
        assert got == tj.linear_index("f32[30]{0:T(4)}", (linear_index(e, (2, 3, 5)),))


def test_a_combined_dimension_is_minus_one() -> None:
    """The value that stands for `*`. It is not a valid size elsewhere."""
    assert tj.Shape.parse(COMBINED).tiles == ((-1, -1, 2, -1, 3),)
    assert tj.Shape.parse(COMBINED.replace(STAR, "-1")) == tj.Shape.parse(COMBINED)
    assert str(tj.make_shape("f32", (3, 5), tiles=[(-1, 4)])) == "f32[3,5]{1,0:T(*,4)}"
    for wrong in ((-2, 4), (0, 4), (4, -1)):
        with pytest.raises(tj.LayoutError, match="tile"):
            tj.make_shape("f32", (3, 5), tiles=[wrong])


def without_first_star(d: tuple[int, ...], t: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Drop a star's dimension from both, and multiply the next bound by its size."""
    k = t.index(-1)
    return (*d[:k], d[k] * d[k + 1], *d[k + 2 :]), (*t[:k], *t[k + 1 :])


def test_a_star_removes_its_dimension() -> None:
    """From the shape and from the tile. The bound of the next dimension grows by its factor."""
    d, t = (3, 4, 5), (2, -1, 3)
    assert without_first_star(d, t) == ((3, 20), (2, 3))
    assert slots_of(tiled(d, t)).tolist() == slots_of(tiled((3, 20), (2, 3))).tolist()
    for e in indices(d):
        assert tj.linear_index(tiled(d, t), e) == tj.linear_index(
            tiled((3, 20), (2, 3)), (e[0], e[1] * 5 + e[2])
        )


@pytest.mark.parametrize(
    ("d", "t"),
    [
        ((2, 7, 8, 11, 10), (-1, -1, 2, -1, 3)),
        ((2, 3, 4, 5), (-1, -1, -1, 7)),
        ((2, 3, 4, 5), (2, -1, -1, 7)),
    ],
)
def test_the_step_is_repeated_for_each_star(d: tuple[int, ...], t: tuple[int, ...]) -> None:
    """Until none is left."""
    flat = np.arange(prod(d))
    whole = np.asarray(tj.linear_index(tiled(d, t), np.unravel_index(flat, d)))
    while -1 in t:
        d, t = without_first_star(d, t)
        assert (tj.linear_index(tiled(d, t), np.unravel_index(flat, d)) == whole).all()


# --- Examples of formats (seed 001) ---


def test_untiled_format() -> None:
    """Outside TPUs, arrays are laid out as in C++."""
    x = numbers((3, 5))
    assert tj.pack(x, "f32[3,5]").buffer.tolist() == x.reshape(-1).tolist()


def test_tpu_format() -> None:
    """8x128 elements of 32 bits, as in a vector register."""
    for name in ("tpu", "tpu-doc"):
        shape = tj.named_format(name, "f32", (64, 512))
        assert str(shape) == "f32[64,512]{1,0:T(8,128)}"


@pytest.mark.parametrize(("rows", "tile"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8)])
def test_small_tile_format(rows: int, tile: int) -> None:
    """2x128 for one or two rows, 4x128 for three or four, which takes less memory than 8x128."""
    shape = tj.named_format("tpu-doc", "f32", (7, rows, 500))
    assert str(shape) == f"f32[7,{rows},500]{{2,1,0:T({tile},128)}}"
    assert isinstance(shape, tj.Shape)
    assert shape.size_in_bytes * 8 == tile * tiled((7, rows, 500), (8, 128)).size_in_bytes


def test_16_bit_format() -> None:
    """(8,128)(2,1) for bf16."""
    for name in ("tpu", "tpu-doc"):
        assert str(tj.named_format(name, "bf16", (64, 512))) == "bf16[64,512]{1,0:T(8,128)(2,1)}"


def test_packing_of_16_bit_values() -> None:
    """32 bits hold an even row and the odd row below it: two values of one column, not of one row."""
    shape = "bf16[64,512]{1,0:T(8,128)(2,1)}"
    for row, column in ((0, 0), (2, 1), (62, 511)):
        slot = tj.linear_index(shape, (row, column))
        assert slot % 2 == 0
        assert tj.multi_index(shape, slot + 1) == (row + 1, column)


def test_8_bit_format() -> None:
    """(8,128)(4,1): four rows in 32 bits."""
    shape = tj.named_format("tpu-doc", "s8", (64, 512))
    assert str(shape) == "s8[64,512]{1,0:T(8,128)(4,1)}"
    slot = tj.linear_index(shape, (4, 7))
    assert slot % 4 == 0
    assert [tj.multi_index(shape, slot + k) for k in range(4)] == [(4 + k, 7) for k in range(4)]


def test_pred_takes_a_byte() -> None:
    """A boolean has its own byte unless the layout packs it."""
    assert tj.Shape.parse("pred[32,128]{1,0:T(32,128)(32,1)}").size_in_bytes == 32 * 128


def test_1_bit_format() -> None:
    """(32,128)(32,1) with one bit per element: an eighth of the bytes, 32 rows of a column in 32 bits."""
    shape = tj.named_format("tpu-doc", "pred", (64, 256))
    assert str(shape) == "pred[64,256]{1,0:T(32,128)(32,1)E(1)}"
    assert isinstance(shape, tj.Shape)
    assert shape.size_in_bytes * 8 == 64 * 256
    x = np.zeros((64, 256), bool)
    x[:32, 5] = True
    words = tj.pack(x, shape).buffer.view(np.uint32)
    assert np.flatnonzero(words).tolist() == [5]
    assert words[5] == 2**32 - 1
    assert (tj.unpack(tj.pack(x, shape)) == x).all()
