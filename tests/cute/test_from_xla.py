"""XLA's shapes as CuTe layouts: the slots at every index, the smallest box, or a witness."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen.support.errors import LayoutError
from tests.cute.tilings import MERGE, all_tilings, chains_of, is_sum_of_chains, text, tiled_offsets
from tests.tools.extent import examples
from tests.tools.strategies import shapes
from tilejit import cute
from tilejit.cute.witness import Witness
from tilejit.layout.bridge import xla_chains as by_shape

TABLE = [
    ("f32[3,5]{1,0:T(2,2)}", "((2,2),(2,3)):((2,12),(1,4))", (4, 6), 24),
    ("bf16[16,256]{1,0:T(8,128)(2,1)}", "((2,4,2),(128,2)):((1,256,2048),(2,1024))", (16, 256), 4096),
    ("bf16[3,200]{1,0:T(8,128)(2,1)}", "((2,2),(128,2)):((1,256),(2,1024))", (4, 256), 2048),
    ("f32[40,256]{1,0:T(8,128)(2,1,1,1)}", "((8,2,3),(128,2)):((256,1,4096),(2,2048))", (48, 256), 12288),
    ("f32[8,4]{1,0:T(5)}", "(8,4):(5,1)", (8, 4), 40),
    ("f32[6,4]{1,0:T(6,4)(4,1)}", "((4,2),4):((1,16),4)", (8, 4), 32),
    ("f32[3,5]{1,0:T(3,5)(4,1)}", "(3,5):(1,4)", (3, 5), 20),
    (
        "f32[2,7,8,11,12]{4,3,2,1,0:T(*,*,2,*,3)}",
        "(2,7,(2,4),11,(3,4)):(7392,1056,(3,264),24,(1,6))",
        (2, 7, 8, 11, 12),
        14784,
    ),
    ("s4[64,128]{1,0:T(64,128)(8,1)E(4)}", "((8,8),128):((1,1024),8)", (64, 128), 8192),
    ("f32[5000]{0:T(1024)(128)(2,1)}", "((128,2,20)):((2,1,256))", (5120,), 5120),
    ("f32[8]{0}", "(8):(1)", (8,), 8),
    ("f32[2,3]{0,1}", "(2,3):(1,2)", (2, 3), 6),
    ("f32[]{:T(256)}", "():()", (), 256),
    ("f32[0,3]{1,0:T(2,2)}", "(0,3):(0,0)", (0, 3), 0),
    ("f32[2,1,3]{2,1,0}", "(2,1,3):(3,0,1)", (2, 1, 3), 6),
]


@pytest.mark.parametrize(("shape", "layout", "box", "slots"), TABLE)
def test_rows(shape: str, layout: str, box: tuple[int, ...], slots: int) -> None:
    parsed = tj.Shape.parse(shape)
    found = cute.bounded(parsed)
    assert str(found.layout) == layout
    assert cute.from_xla(parsed) == found.layout == cute.parse(layout)
    assert (found.box, found.bound, found.slots) == (box, parsed.dimensions, slots)
    assert found.exact == (box == parsed.dimensions)


def test_the_text_of_a_bounded_layout() -> None:
    assert (
        str(cute.bounded(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}")))
        == "((2,2),(2,3)):((2,12),(1,4)), box [4,6] of [3,5], 24 slots"
    )


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("f32[12,4]{1,0:T(6,4)(4,1)}", r"index \(6, 0\) gives 32, but the indices before it require 18"),
        (
            "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
            r"index \(0, 0, 0, 1, 2\) gives 24, but the indices before it require 21",
        ),
        ("f32[130]{0:T(4,12)(8)(8,6)}", "index 8 gives 6, but the indices before it require 50"),
        (
            "f32[8,31,2]{1,0,2:T(3,12)(8)(2,5)}",
            r"index \(0, 8, 0\) gives 5, but the indices before it require 13",
        ),
        ("f32[?,4]{1,0}", "a dimension is '[?]'"),
    ],
)
def test_refusals(shape: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        cute.from_xla(tj.Shape.parse(shape))


@pytest.mark.parametrize("shape", ["f32[3]{0}", None, 3, cute.Layout(3)])
def test_other_objects(shape: object) -> None:
    fix = r"\n  read text with tilejit\.as_layout\(\.\.\.\)"
    with pytest.raises(TypeError, match=f"^from_xla: expected a Shape, got .*{fix}"):
        cute.from_xla(shape)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"^bounded: expected a Shape, got .*{fix}"):
        cute.bounded(shape)  # type: ignore[arg-type]


@pytest.mark.full
@settings(max_examples=examples(66, full=600))
@given(shapes(most=200))
def test_every_index(shape: tj.Shape) -> None:
    """Padding, `*`, nested tiles, sub-byte types: the slots of linear_index, or no layout has them."""
    if 0 in shape.dimensions:
        assert cute.from_xla(shape).size == 0
        return
    index = tuple(np.indices(shape.dimensions))
    slots = np.asarray(tj.linear_index(shape, index))
    try:
        found = cute.bounded(shape)
    except LayoutError:
        assert not is_sum_of_chains(slots, whole=False)
        return
    assert np.array_equal(found.layout(*index) if index else found.layout(()), slots)
    assert found.slots == shape.physical_size
    assert all(extent >= n for extent, n in zip(found.box, found.bound, strict=True))


@pytest.mark.full
def test_every_small_tiling() -> None:
    """All shapes with up to two small tiles: a layout is found exactly if an exhaustive search finds one."""
    layouts = refusals = 0
    seen: set[bytes] = set()
    for dims in [(7,), (12,), (4, 3), (2, 5), (2, 3, 2)]:
        levels = [(min(2, len(dims)), (1, 2, 3, 4, 6, MERGE)), (2, (1, 2, 3, 4))]
        for order, tiles in all_tilings(dims, levels):
            slots = tiled_offsets(dims, order, tiles)
            if (key := bytes(dims) + slots.tobytes()) in seen:
                continue
            seen.add(key)
            try:
                found = cute.from_xla(tj.Shape.parse(text(dims, order, tiles)))
            except LayoutError:
                refusals += 1
                assert not is_sum_of_chains(slots, whole=False), text(dims, order, tiles)
                continue
            layouts += 1
            assert np.array_equal(found(*np.indices(dims)), slots), text(dims, order, tiles)
    assert layouts > 200
    assert refusals > 30


@given(st.integers(2, 40), st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_the_box_is_minimal(size: int, sizes: list[int]) -> None:
    """No chain with these offsets ends sooner than the mode does."""
    shape = tj.make_shape("f32", (size, 3), (0, 1), [(1, t) for t in sizes])
    try:
        found = cute.bounded(shape)
    except LayoutError:
        return
    line = [int(v) for v in np.asarray(tj.linear_index(shape, (np.arange(size), 0)))]
    assert found.box[0] == min(prod(n for n, _ in chain) for chain in chains_of(line, whole=False))


def test_numbers_that_are_merged_again() -> None:
    """A `*` splits an axis and a later one merges it: the layout has the slots, or no layout has them."""
    random, found = np.random.default_rng(20261122), 0
    for _ in range(400):
        dims = tuple(int(n) for n in random.choice([2, 3, 4, 6, 8], random.integers(1, 4)))
        tiles = [(*random.choice([MERGE, MERGE, 2, 3, 5], random.integers(1, 3)), t) for t in (3, 2, 5)]
        shape = tj.make_shape(
            "uint8", dims, None, [tuple(map(int, tile)) for tile in tiles[: random.integers(2, 4)]]
        )
        index = tuple(np.indices(dims))
        slots = np.asarray(tj.linear_index(shape, index))
        try:
            layout = cute.from_xla(shape)
        except LayoutError:
            assert not is_sum_of_chains(slots, whole=False), str(shape)
            continue
        found += 1
        assert np.array_equal(layout(*index), slots), str(shape)
    assert found > 100


def test_huge_shapes_are_not_listed() -> None:
    """2^50 elements, and a witness far into 2^32."""
    shape = tj.make_shape("uint8", (1 << 25, 1 << 25), (1, 0), [(8, 128), (4, 1)])
    assert str(cute.from_xla(shape)) == "((4,2,4194304),(128,262144)):((1,512,268435456),(4,1024))"
    shape = tj.make_shape("uint8", (1 << 30, 4), (1, 0), [(3 << 20, 4), (1 << 21, 1)])
    found = by_shape.xla_chains(shape)
    assert isinstance(found, Witness)
    assert found.index == (3 << 20, 0)
    assert found.value == tj.linear_index(shape, found.index)
    assert found.expected == tj.linear_index(shape, (1 << 20, 0)) + tj.linear_index(shape, (1 << 21, 0))


MERGED = [
    ([(MERGE, 7), (2, 1)], (1 << 20, 100), None),
    ([(MERGE, MERGE, 3, 7)], (1 << 12, 1 << 10, 100, 15), None),
    ([(4, 5), (MERGE, 7), (2, 1)], (1 << 12, 1 << 12), None),
    ([(MERGE, 64), (2, 1)], (1 << 20, 128), "(1048576,(64,2)):(128,(2,1))"),
    ([(MERGE, 3), (MERGE, 2)], (1 << 12, 1 << 12), "(4096,4096):(4096,1)"),
    ([(MERGE, 5), (MERGE, MERGE, 3)], (1 << 12, 1 << 12), "(4096,4096):(4096,1)"),
    ([(MERGE, 3), (2, MERGE, 2)], (1 << 12, 1 << 12), "(4096,(2,2048)):(8192,(1,4))"),
    ([(MERGE, 5), (8, MERGE, 3)], (1 << 12, 1 << 12), None),
    ([(MERGE, 3), (MERGE, 5), (64, 2)], (1 << 12, 1 << 12), None),
]


@pytest.mark.parametrize(("tiles", "dims", "layout"), MERGED)
def test_merges_of_many_elements(
    tiles: list[tuple[int, ...]], dims: tuple[int, ...], layout: str | None
) -> None:
    """A `*` whose tile cuts through rows of a shape too large to list: one index refutes it."""
    shape = tj.make_shape("uint8", dims, None, tiles)
    found = by_shape.xla_chains(shape)
    assert isinstance(found, Witness) == (layout is None)
    if isinstance(found, Witness):
        units = [tuple(i if d == axis else 0 for d in range(len(dims))) for axis, i in enumerate(found.index)]
        assert found.value == tj.linear_index(shape, found.index)
        assert found.expected == sum(tj.linear_index(shape, unit) for unit in units) != found.value
    else:
        assert str(cute.from_xla(shape)) == layout
