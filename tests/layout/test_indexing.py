"""linear_index and multi_index: inverse to each other, as defined, strict about what they take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

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


@given(shapes())
def test_there_and_back(shape: tj.Shape) -> None:
    if not shape.rank or 0 in shape.dimensions:
        return
    index = np.unravel_index(np.arange(np.prod(shape.dimensions)), shape.dimensions)
    back = tj.multi_index(shape, tj.linear_index(shape, index))
    assert all((a == b).all() for a, b in zip(index, back, strict=True))


def test_shapes_of_the_answers() -> None:
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
def test_indices_that_do_not_go_together(index: tuple[object, ...]) -> None:
    with pytest.raises(tj.LayoutIndexError):
        tj.linear_index(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}"), index)


def test_ragged_slots() -> None:
    with pytest.raises(tj.LayoutIndexError, match="slot"):
        tj.multi_index(tj.Shape.parse("f32[3,5]{1,0:T(2,2)}"), [[0], [1, 2]])


@pytest.mark.parametrize("shape", ["f32[3]", None, tj.Shape.parse("(f32[3])"), tj.Shape.parse("b(f32[3])")])
def test_what_is_no_shape(shape: object) -> None:
    with pytest.raises(TypeError, match="Shape"):
        tj.linear_index(shape, (1,))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Shape"):
        tj.multi_index(shape, 1)  # type: ignore[arg-type]


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


def test_huge_shapes_are_only_arithmetic() -> None:
    shape = tj.Shape.parse("f32[1000000000,700]{1,0:T(8,128)}")
    assert tj.multi_index(shape, tj.linear_index(shape, (999_999_999, 699))) == (999_999_999, 699)
