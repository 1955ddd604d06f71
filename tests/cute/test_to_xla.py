"""CuTe layouts as XLA shapes: the same slots at every index in few tiles, or an index that rules it out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen.support.errors import LayoutError
from tests.cute.tilings import MERGE, all_tilings, is_sum_of_chains, tiled_offsets
from tests.tools.extent import examples
from tests.tools.strategies import shapes
from tilejit import cute
from tilejit.layout.bridge.chains import cut_chain
from tilejit.layout.bridge.storage_order import Unplaced, storage_stages
from tilejit.layout.bridge.tile_search import State
from tilejit.layout.bridge.tile_sort import sorting_route

ROWS = [
    ("((2,2),(2,3)):((2,12),(1,4))", (3, 5), "f32[3,5]{1,0:T(2,2)}"),
    ("((2,4,2),(128,2)):((1,256,2048),(2,1024))", None, "f32[16,256]{1,0:T(8,128)(2,1)}"),
    ("((2,2),(128,2)):((1,256),(2,1024))", (3, 200), "f32[3,200]{1,0:T(8,128)(2,1)}"),
    ("((8,2,3),(128,2)):((256,1,4096),(2,2048))", (40, 256), "f32[40,256]{1,0:T(8,128)(2,1,1,1)}"),
    ("(8,4):(5,1)", None, "f32[8,4]{1,0:T(5)}"),
    ("((4,2),4):((1,16),4)", (6, 4), "f32[6,4]{1,0:T(4,1)}"),
    (
        "(2,7,(2,4),11,(3,4)):(7392,1056,(3,264),24,(1,6))",
        None,
        "f32[2,7,8,11,12]{4,3,2,1,0:T(2,1,3)}",
    ),
    ("((2,2,2),(2,2,2)):((2,8,32),(1,4,16))", None, "f32[8,8]{1,0:T(4,4)(2,2)}"),
    ("(2,3):(1,2)", None, "f32[2,3]{0,1}"),
    ("(2,3):(3,1)", None, "f32[2,3]{1,0}"),
    ("4:2", None, "f32[4]{0:T(2,1)}"),
    ("(4,1):(2,0)", None, "f32[4,1]{1,0:T(2)}"),
    ("((128,3)):((1,1024))", (300,), "f32[300]{0:T(8,128)}"),
    ("():()", None, "f32[]"),
    ("(0,3):(7,7)", None, "f32[0,3]{1,0}"),
    ("8:1", (5,), "f32[5]{0}"),
    ("(5,16,5):(5,32,1)", None, "f32[5,16,5]{2,0,1:T(*,32)}"),
    ("(2,2):(2,5)", None, "f32[2,2]{0,1:T(2,1,1)(*,*,*,5)}"),
    ("Sw<0,4,3> o 0 o (8,8):(8,1)", None, "f32[8,8]{1,0}"),
    ("Sw<2,0,4> o 0 o (2,8):(8,1)", None, "f32[2,8]{1,0}"),
]


def offsets_of(shape: tj.Shape) -> Any:
    """Slots by the definition, without TileJIT's indexing."""
    assert shape.layout is not None
    return tiled_offsets(shape.dimensions, shape.layout.minor_to_major, shape.layout.tiles)


@pytest.mark.parametrize(("layout", "dims", "shape"), ROWS)
def test_rows(layout: str, dims: tuple[int, ...] | None, shape: str) -> None:
    assert str(cute.to_xla(cute.parse(layout), dims=dims)) == shape


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("(2,3):(1,0)", r"index \(0, 1\) gives 0, and so does index \(0, 0\)"),
        ("(2,3):(1,-2)", r"index \(0, 1\) gives -2, and slots count from 0"),
        ("(3,2):(1,2)", r"index \(0, 1\) gives 2, and so does index \(2, 0\)"),
        (
            "(3,2):(2,3)",
            r"\(0, 1\) gives 3, within the range of smaller strides, which reach 4 at index \(2, 0\)",
        ),
        ("((2,3),2):((1,2),4)", r"index \(0, 1\) gives 4, and so does index \(4, 0\)"),
        ("Sw<1,0,1> o 0 o 4:1", "index 3 gives 2, but the indices before it require 4"),
        ("Sw<1,0,1> o 1 o 4:1", "index 0 gives 1, but a layout starts at 0"),
        ("2:4611686018427387904", "more than 2.63 bits"),
    ],
)
def test_refusals(layout: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        cute.to_xla(cute.parse(layout))


@pytest.mark.parametrize("dims", [(4,), (2, 4), (2, -1), (2, 3, 1)])
def test_dims_that_do_not_fit(dims: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match=r"does not fit the modes|pass dims within"):
        cute.to_xla(cute.Layout((2, 3)), dims=dims)


def test_other_objects() -> None:
    for wrong in ("4:1", None, 4, tj.Shape.parse("f32[4]{0}")):
        with pytest.raises(TypeError, match="to_xla: expected a Layout"):
            cute.to_xla(wrong)  # type: ignore[arg-type]
    for slots in (1.5, True, "8"):
        with pytest.raises(TypeError, match="slots: expected an integer, got"):
            cute.to_xla(cute.Layout(4), slots=slots)  # type: ignore[arg-type]


def test_slots_and_elements() -> None:
    """A bounded layout keeps the size of its buffer. The dtype and its width are the caller's."""
    shape = tj.Shape.parse("f32[3,128]{1,0:T(8,128)}")
    back = cute.to_xla(cute.bounded(shape))
    assert str(back) == "f32[3,128]{1,0:L(1024)}"
    assert back.physical_size == shape.physical_size
    packed = cute.to_xla(cute.parse("((8,8),128):((1,1024),8)"), dtype="s4", element_size_in_bits=4)
    assert str(packed) == "s4[64,128]{1,0:T(8,1)E(4)}"
    with pytest.raises(LayoutError, match="need 12 slots, not 11"):
        cute.to_xla(cute.Layout((3, 4)), slots=11)


@pytest.mark.full
@settings(max_examples=examples(55, full=500))
@given(shapes(most=200))
def test_round_trips(shape: tj.Shape) -> None:
    """Every shape that is a layout comes back with the same slots, without `*` in no larger buffer."""
    try:
        there = cute.bounded(shape)
    except LayoutError:
        return
    try:
        back = cute.to_xla(there.layout, dims=there.bound)
    except LayoutError:
        assert any(MERGE in tile for tile in shape.tiles), "only a * that cuts through digits may be refused"
        return
    assert any(MERGE in tile for tile in back.tiles) or back.physical_size <= shape.physical_size
    if 0 not in shape.dimensions:
        index = tuple(np.indices(shape.dimensions))
        assert np.array_equal(offsets_of(back), tj.linear_index(shape, index)), str(back)


SMALL_DIMS = [(4,), (6,), (2, 3), (4, 2), (3, 4), (2, 2, 2)]
LEVELS: dict[int, list[tuple[int, Sequence[int]]]] = {
    1: [(2, (1, 2, 3, 4, 6)), (3, (1, 2, 3, 4))],
    2: [(3, (1, 2, 3, 4, MERGE)), (3, (1, 2, 3))],
    3: [(3, (1, 2, 4, MERGE)), (3, (1, 2))],
}


@pytest.mark.full
@pytest.mark.parametrize("dims", SMALL_DIMS, ids=str)
def test_every_small_tiling(dims: tuple[int, ...]) -> None:
    """Everything that an exhaustive search over small tilings finds is found, in no more tiles.

    Everything else is refused for a reason, or found in larger tiles.
    """
    fewest: dict[bytes, int] = {}
    tables: dict[bytes, Any] = {}
    for order, tiles in all_tilings(dims, LEVELS[len(dims)]):
        table = tiled_offsets(dims, order, tiles)
        key = table.tobytes()
        tables[key] = table
        fewest[key] = min(fewest.get(key, 99), len(tiles))
    found = 0
    for key, table in tables.items():
        if not is_sum_of_chains(table, whole=False):
            continue
        found += 1
        layout = cute.from_offsets(table if table.ndim > 1 else table[:, None], boxed=True)
        shape = cute.to_xla(cute.Layout(layout.shape[: len(dims)], layout.stride[: len(dims)]), dims=dims)
        assert np.array_equal(offsets_of(shape), table)
        assert len(shape.tiles) <= fewest[key], f"{layout} as {shape}, {fewest[key]} tiles would do"
    assert found > 10
    refused = 0
    rng = np.random.default_rng(len(dims) * 100 + dims[0])
    for _ in range(300):
        layout = cute.Layout(dims, tuple(int(s) for s in rng.integers(-1, 9, len(dims))))
        table = cute.offsets(layout).reshape(dims, order="F")
        try:
            shape = cute.to_xla(layout)
        except LayoutError:
            refused += 1
            assert table.tobytes() not in tables, str(layout)
        else:
            assert np.array_equal(offsets_of(shape), table)
    assert refused > 30


@st.composite
def chains(
    draw: Any, *, most: int = 3000, uneven: bool = False
) -> tuple[tuple[tuple[tuple[int, int], ...], ...], tuple[int, ...]]:
    """Chains whose digits nest in storage in any order, with holes, and a bound within their box."""
    sizes: list[list[int]] = []
    left = most
    for _ in range(draw(st.integers(1, 4))):
        dim = []
        for _ in range(draw(st.integers(0, 4))):
            dim.append(draw(st.integers(1, max(1, min(5, left)))))
            left //= dim[-1]
        sizes.append(dim)
    places = [(d, k) for d, dim in enumerate(sizes) for k in range(len(dim))]
    stride = draw(st.sampled_from((1, 1, 1, 2)))
    strides: dict[tuple[int, int], int] = {}
    highest = 0
    for d, k in draw(st.permutations(places)):
        strides[d, k] = stride
        highest += stride * (sizes[d][k] - 1)
        stride *= sizes[d][k] + draw(st.sampled_from((0, 0, 0, 0, 1, 3)))
        if uneven and draw(st.integers(0, 3)) == 0:
            stride = highest + draw(st.integers(1, 7))
    whole = tuple(tuple((size, strides[d, k]) for k, size in enumerate(dim)) for d, dim in enumerate(sizes))
    bound = tuple(draw(st.integers(max(1, prod(dim) - 2), prod(dim))) for dim in sizes)
    return tuple(cut_chain(chain, n) for chain, n in zip(whole, bound, strict=True)), bound


def offsets_of_chains(parts: Sequence[Sequence[tuple[int, int]]], dims: tuple[int, ...]) -> Any:
    table = np.zeros(dims, np.int64)
    for index, chain in zip(np.indices(dims), parts, strict=True):
        rest = index
        for size, stride in chain:
            table += rest % size * stride
            rest = rest // size
    return table


def layout_of_chains(parts: Sequence[Sequence[tuple[int, int]]]) -> cute.Layout:
    return cute.Layout(
        tuple(tuple(s for s, _ in chain) for chain in parts),
        tuple(tuple(d for _, d in chain) for chain in parts),
    )


@pytest.mark.full
@settings(max_examples=examples(6, full=60))
@given(chains())
def test_digits_in_any_order(made: Any) -> None:
    """Nested digits always have tiles. The buffer is the smallest: the largest stride times its extent."""
    parts, dims = made
    layout = layout_of_chains(parts)
    shape = cute.to_xla(layout, dims=dims)
    assert np.array_equal(offsets_of(shape), offsets_of_chains(parts, dims)), f"{layout} as {shape}"
    assert shape.physical_size == max((size * stride for chain in parts for size, stride in chain), default=1)


@pytest.mark.full
@settings(max_examples=examples(8, full=80))
@given(chains(most=800, uneven=True))
def test_strides_that_do_not_divide(made: Any) -> None:
    """Nested digits with any strides: `*` makes one axis of all smaller ones."""
    parts, dims = made
    layout = layout_of_chains(parts)
    shape = cute.to_xla(layout, dims=dims)
    assert np.array_equal(offsets_of(shape), offsets_of_chains(parts, dims)), f"{layout} as {shape}"


@pytest.mark.full
@settings(max_examples=examples(44, full=400))
@given(chains())
def test_sorting_reaches_every_order(made: Any) -> None:
    """The method that is used if the search gives up."""
    parts, dims = made
    stages = storage_stages(parts)
    assert not isinstance(stages, Unplaced)
    assert len(stages) == 1
    tiles = sorting_route(stages[0].order, State(stages[0].order.axes)).tiles
    descending = tuple(reversed(range(len(dims))))
    assert np.array_equal(tiled_offsets(dims, descending, tiles), offsets_of_chains(parts, dims)), tiles


@settings(max_examples=examples(44, full=400))
@given(st.lists(st.tuples(st.integers(2, 4), st.integers(-2, 12)), min_size=1, max_size=4), st.integers(1, 2))
def test_refusals_are_proven(digits: list[tuple[int, int]], rank: int) -> None:
    """A twin has the same offset; a stride that does not divide is not a multiple of any other."""
    whole = tuple(tuple(digits[d::rank]) for d in range(rank))
    parts = tuple(cut_chain(chain, prod(size for size, _ in chain)) for chain in whole)
    dims = tuple(prod(size for size, _ in chain) for chain in parts)
    fault = storage_stages(parts)
    table = offsets_of_chains(parts, dims)
    values = sorted(table.flat)
    if not isinstance(fault, Unplaced):
        assert len(set(values)) == len(values)
        assert values[0] == 0
        return
    assert table[fault.index] == fault.offset
    if fault.twin is not None:
        assert table[fault.twin] == fault.offset
        assert fault.twin != fault.index
    else:
        assert fault.offset < 0 or 0 < fault.offset < fault.reach == table[fault.far]


FORMATS = [
    ("{1,0:T(8,128)}", (64, 256)),
    ("{1,0:T(8,128)(4,1)}", (64, 256)),
    ("{1,0:T(32,128)(4,1)}", (64, 256)),
    ("{1,0:T(64,128)(8,1)}", (128, 256)),
    ("{1,0:T(32,128)(32,1)}", (64, 256)),
    ("{1,0:T(32,32)(16,16)}", (64, 96)),
    ("{3,2,1,0:T(16,1,1)}", (2, 32, 5, 7)),
    ("{3,2,1,0:T(16,16,1,1)(16,1,1,1)}", (32, 48, 3, 3)),
    ("{3,2,1,0:T(16,16,1,1)(16,4,1,1)}", (32, 48, 3, 3)),
    ("{1,0:T(2,1)}", (64, 48)),
    ("{1,0:T(32,16)(2,1)}", (64, 48)),
    ("{1,0:T(64,16)(4,1)}", (128, 48)),
    ("{0,1:T(32,1)}", (64, 96)),
    ("{0,1:T(32,8)(32,2)(4,4,1)(8,1,4,4,1)}", (64, 96)),
    ("{0,1:T(32,32)(32,8)(32,2)(4,1,1,32,2)(32,1)}", (64, 96)),
    ("{1,0:T(128,4)(32,4)(4,1,1,4)}", (256, 16)),
    ("{1,0:T(16,8)}", (32, 64)),
    ("{0,1:T(16,16)(16,1)}", (64, 48)),
    ("{3,2,1,0:T(8,8,32)}", (2, 16, 16, 64)),
    ("{3,2,1,0:T(8,4,32)(2,1)}", (2, 16, 8, 64)),
    ("{0,1:T(6,1)}", (12, 36)),
    ("{1,0:T(4,4)(2,2)}", (8, 24)),
]


@pytest.mark.parametrize("less", [0, 1, 3], ids=lambda n: f"less{n}")
@pytest.mark.parametrize(("layout", "dims"), FORMATS, ids=str)
def test_formats_in_use(layout: str, dims: tuple[int, ...], less: int) -> None:
    """Complete and partial tiles go to CuTe and back, in no more tiles than they had."""
    shape = tj.as_layout(layout, dims=tuple(max(1, n - less) for n in dims[:2]) + dims[2:], dtype="f32")
    there = cute.from_xla(shape)
    slots = offsets_of(shape)
    assert np.array_equal(there(*np.indices(shape.dimensions)), slots)
    back = cute.to_xla(there, dims=shape.dimensions)
    assert np.array_equal(offsets_of(back), slots)
    assert len(back.tiles) <= len(shape.tiles)


def test_many_modes() -> None:
    """A thousand modes of one element, many of two, composed ones past NumPy's axes: all answered at once."""
    layout = cute.Layout((1,) * 1000 + (4,), (0,) * 1000 + (2,))
    assert cute.to_xla(layout).physical_size == 8
    order = tuple(int(k) for k in np.random.default_rng(3).permutation(56))
    layout = cute.Layout((2,) * 56, tuple(2**k for k in order))
    assert cute.to_xla(layout, dtype="uint1").tiles == ()
    chain = cute.Layout(
        ((2,) * 28, (2,) * 28), (tuple(2**k for k in order[:28]), tuple(2**k for k in order[28:]))
    )
    shape = cute.to_xla(chain, dtype="uint1")
    bits = np.random.default_rng(4).integers(0, 1 << 28, (2, 50))
    assert np.array_equal(tj.linear_index(shape, tuple(bits)), chain(*bits))
    with pytest.raises(LayoutError, match="compose at most 64"):
        cute.to_xla(cute.ComposedLayout(cute.Swizzle(0, 0, 0), 0, cute.Layout((1,) * 70)))
