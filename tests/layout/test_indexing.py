"""linear_index and multi_index: inverse to each other, as defined, and strict about their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilejit as tj
from codegen.maps.access import map_offset
from tests.tools.oracle import slots_of
from tests.tools.strategies import shapes
from tilejit.layout.indexing import access_map


@given(shapes())
def test_linear_index_is_the_definition(shape: tj.Shape) -> None:
    slots = slots_of(shape)
    index = tuple(np.indices(shape.dimensions, sparse=True)) if shape.rank else ()
    got = np.broadcast_to(np.asarray(tj.linear_index(shape, index)), shape.dimensions)
    assert slots[got.reshape(-1)].tolist() == list(range(got.size))
    offsets = np.broadcast_to(np.asarray(map_offset(access_map(shape), index)), shape.dimensions)
    if shape.rank and 0 not in shape.dimensions:
        assert offsets.tolist() == got.tolist()


@given(shapes())
def test_multi_index_is_the_definition(shape: tj.Shape) -> None:
    slots = slots_of(shape)[: shape.physical_size]
    index = tj.multi_index(shape, np.arange(shape.physical_size))
    assert len(index) == shape.rank
    for slot in range(0, len(slots), max(1, len(slots) // 60)):
        want = None if slots[slot] < 0 else tuple(map(int, np.unravel_index(slots[slot], shape.dimensions)))
        assert tj.multi_index(shape, slot) == want
        assert tuple(int(i[slot]) for i in index) == (want if want is not None else (-1,) * shape.rank)


@given(shapes(), st.sampled_from(["i1", "u1", "i2", "u4", "i8", "u8", ">i4"]))
def test_indices_are_int64_whatever_dtype_was_passed(shape: tj.Shape, dtype: str) -> None:
    """The index of one element is a Python int, with the range of int64."""
    if not shape.rank or 0 in shape.dimensions or max(shape.dimensions) > 127:
        return
    index = tuple(i.astype(dtype) for i in np.indices(shape.dimensions, sparse=True))
    slots = tj.linear_index(shape, index)
    assert slots.dtype == np.int64
    assert slots.shape == shape.dimensions
    last = tuple(n - 1 for n in shape.dimensions)
    assert type(tj.linear_index(shape, last)) is int
    assert tj.linear_index(shape, last) == slots[last]
    for part in tj.multi_index(shape, slots):
        assert part.dtype == np.int64


@pytest.mark.parametrize("layout", ["pred[1073741824,8589934592]{1,0:E(1)}", "s8[1152921504606846975]"])
def test_indices_beyond_int32(layout: str) -> None:
    shape = tj.Shape.parse(layout)
    last = tuple(n - 1 for n in shape.dimensions)
    assert tj.linear_index(shape, last) == shape.physical_size - 1
    slots = tj.linear_index(shape, tuple(np.array([0, n - 1]) for n in shape.dimensions))
    assert slots.tolist() == [0, shape.physical_size - 1]
    assert [part[1] for part in tj.multi_index(shape, slots)] == list(last)


@given(shapes())
def test_linear_and_multi_index_are_inverse(shape: tj.Shape) -> None:
    if not shape.rank or 0 in shape.dimensions:
        return
    index = np.unravel_index(np.arange(np.prod(shape.dimensions)), shape.dimensions)
    back = tj.multi_index(shape, tj.linear_index(shape, index))
    assert all((a == b).all() for a, b in zip(index, back, strict=True))


def test_shapes_of_results() -> None:
    shape = tj.Shape.parse("f32[3,5]{1,0:T(2,2)}")
    assert tj.linear_index(shape, (np.array([[0], [2]]), 3)).shape == (2, 1)
    assert tj.linear_index(shape, (np.int64(2), np.uint8(3))) == 17
    assert isinstance(tj.linear_index(shape, (2, 3)), int)
    assert tj.linear_index(shape, [2, 3]) == 17
    assert tj.linear_index(tj.Shape.parse("f32[]"), ()) == 0
    assert tj.multi_index(tj.Shape.parse("f32[]"), 0) == ()
    assert [part.shape for part in tj.multi_index(shape, np.zeros((2, 3), int))] == [(2, 3), (2, 3)]
    assert [part.tolist() for part in tj.multi_index(shape, [])] == [[], []]


@pytest.mark.parametrize(
    "index", [(3, 0), (0, 5), (-1, 0), (0, -1), (0,), (0, 0, 0), (2**70, 0), (np.array([0, 3]), 0)]
)
def test_indices_outside(index: tuple[object, ...]) -> None:
    shape = tj.Shape.parse("f32[3,5]{1,0:T(2,2)}")
    with pytest.raises(tj.LayoutIndexError) as caught:
        tj.linear_index(shape, index)
    assert "f32[3,5]" in str(caught.value)
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize(
    "slot", [-1, 24, 2**70, np.array([0, 24]), np.array([-1, 0]), np.array([2**63], np.uint64)]
)
def test_slots_outside(slot: object) -> None:
    with pytest.raises(tj.LayoutIndexError, match=r"slot|beyond"):
        tj.multi_index(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}"), slot)


@pytest.mark.parametrize(
    "index", [([0, 1], [0, 1, 2]), ([[0], [0, 1]], 0), (np.zeros((2, 3), int), np.zeros((3, 2), int))]
)
def test_indices_of_conflicting_shapes_are_refused(index: tuple[object, ...]) -> None:
    with pytest.raises(tj.LayoutIndexError):
        tj.linear_index(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}"), index)


def test_ragged_slots_are_refused() -> None:
    with pytest.raises(tj.LayoutIndexError, match="slot"):
        tj.multi_index(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}"), [[0], [1, 2]])


X = np.zeros((3, 5), np.float32)
TILED = tj.TiledArray.from_buffer(
    bytes(tj.as_layout("f32[3,5]{1,0:T(2,2)}").size_in_bytes), "f32[3,5]{1,0:T(2,2)}"
)
LAYOUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": ("f32[3,5]{1,0:T(2,2)}", {}),
    "layout": ("{1,0:T(2,2)}", {"dtype": "f32", "dims": X.shape}),
    "pattern": ("(m mi) (n ni) -> m n mi ni", {"dtype": "f32", "dims": X.shape, "mi": 2, "ni": 2}),
    "CuTe": ("((2,2),(2,3)):((2,12),(1,4))", {"dtype": "f32", "dims": X.shape}),
    "tiled array": (TILED, {}),
    "its layout": (TILED.layout, {}),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_layouts_in_every_form(case: str) -> None:
    layout, more = LAYOUTS[case]
    assert tj.linear_index(layout, (2, 3), **more) == 17
    assert tj.linear_index(layout, (np.array([2, 0]), 3), **more).tolist() == [17, 5]
    assert tj.multi_index(layout, 17, **more) == (2, 3)


@pytest.mark.parametrize("case", LAYOUTS)
def test_padding_is_none_or_minus_one(case: str) -> None:
    """None for one slot; -1 in arrays of slots, including those with one or no dimension."""
    layout, more = LAYOUTS[case]
    assert tj.multi_index(layout, 9, **more) is None
    assert tj.multi_index(layout, np.int64(9), **more) is None
    assert [part.tolist() for part in tj.multi_index(layout, [17, 9], **more)] == [[2, -1], [3, -1]]
    assert [part.tolist() for part in tj.multi_index(layout, np.array(9), **more)] == [-1, -1]


def test_keywords_belong_to_the_layout() -> None:
    tiled = LAYOUTS["tiled array"][0]
    for wrong in ({"mi": 2}, {"block": 2}):
        with pytest.raises(TypeError, match="no parameter"):
            tj.linear_index(tiled, (2, 3), **wrong)
    with pytest.raises(tj.LayoutError, match="expected an array of shape"):
        tj.multi_index(tiled, 3, dims=(5, 3))
    with pytest.raises(tj.LayoutError, match="dtype and dims"):
        tj.linear_index("tpu", (2, 3))


@pytest.mark.parametrize("layout", ["(f32[3])", "b(f32[3])", "tup", "f32[3]{1}"])
def test_texts_without_an_array_are_refused(layout: str) -> None:
    with pytest.raises(tj.LayoutError):
        tj.linear_index(layout, (1,))
    with pytest.raises(tj.LayoutError):
        tj.multi_index(layout, 1)


@pytest.mark.parametrize("layout", [None, 3, X])
def test_objects_that_are_not_layouts_are_refused(layout: object) -> None:
    with pytest.raises(TypeError, match="expected a layout"):
        tj.linear_index(layout, (1,))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a layout"):
        tj.multi_index(layout, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [(1.0, 2), ("1", 2), (True, 1), (None, 0), 3, "ab", (np.array([0.5]), 0)])
def test_indices_of_a_wrong_type(index: object) -> None:
    with pytest.raises(TypeError):
        tj.linear_index(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}"), index)  # type: ignore[arg-type]


def test_empty_shapes() -> None:
    shape = tj.Shape.parse("f32[0,5]{1,0:T(2,2)}")
    with pytest.raises(tj.LayoutIndexError, match="no elements"):
        tj.linear_index(shape, (0, 0))
    with pytest.raises(tj.LayoutIndexError, match="no slots"):
        tj.multi_index(shape, 0)


def test_huge_shapes_need_only_arithmetic() -> None:
    shape = tj.Shape.parse("f32[1000000000,700]{1,0:T(8,128)}")
    assert tj.multi_index(shape, tj.linear_index(shape, (999_999_999, 699))) == (999_999_999, 699)
