from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilejit as tj
from codegen.support.errors import LayoutError, LayoutIndexError
from tilejit.layout.from_parts import make_shape
from tilejit.layout.helpers import (
    axis_letters,
    bump_indices,
    byte_strides,
    dimension_stride,
    in_bounds,
    is_dim_major,
    is_dim_minor,
    is_monotonic_with_dim0_major,
    is_monotonic_with_dim0_minor,
    normalize_dimension,
    reshape_is_bitcast,
)
from tilejit.layout.shape import Shape


def parsed(text: str) -> Shape:
    return Shape.parse(text)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_bump_walks_all_elements_in_memory_order(order: tuple[int, ...]) -> None:
    shape = make_shape("f32", (2, 3, 4), order)
    index: tuple[int, ...] | None = (0, 0, 0)
    walked = []
    while index is not None:
        walked.append(index)
        index = bump_indices(shape, index)
    strides = [dimension_stride(shape, d) for d in range(3)]
    assert [sum(i * s for i, s in zip(index, strides, strict=True)) for index in walked] == list(range(24))


def test_bump_refuses() -> None:
    assert bump_indices(parsed("f32[]"), ()) is None
    with pytest.raises(LayoutIndexError):
        bump_indices(parsed("f32[2]"), (2,))
    with pytest.raises(LayoutIndexError):
        bump_indices(parsed("f32[2]"), (0, 0))
    with pytest.raises(LayoutIndexError):
        bump_indices(parsed("f32[0]"), (0,))
    with pytest.raises(LayoutError):
        bump_indices(parsed("f32[?]"), (0,))


def test_in_bounds() -> None:
    shape = parsed("f32[2,<=3,?]")
    assert in_bounds(shape, (1, 2, 10**30))
    assert not in_bounds(shape, (2, 0, 0))
    assert not in_bounds(shape, (0, 3, 0))
    assert not in_bounds(shape, (-1, 0, 0))
    with pytest.raises(LayoutIndexError):
        in_bounds(shape, (0, 0))
    with pytest.raises(TypeError):
        in_bounds(shape, (0, 0, 0.0))  # type: ignore[arg-type]


def test_dimension_numbers() -> None:
    shape = parsed("f32[2,3,5]{1,0,2}")
    assert [normalize_dimension(shape, d) for d in (-3, -2, -1, 0, 1, 2)] == [0, 1, 2, 0, 1, 2]
    assert normalize_dimension(4, -1) == 3
    for wrong in (3, -4, 10**5000):
        with pytest.raises(LayoutIndexError):
            normalize_dimension(shape, wrong)
    with pytest.raises(LayoutIndexError):
        normalize_dimension(0, 0)
    assert is_dim_minor(shape, 1)
    assert is_dim_minor(shape, -2)
    assert is_dim_major(shape, -1)
    assert not is_dim_major(shape, 0)


def test_monotonic_orders() -> None:
    orders = {"{0,1,2}": (True, False), "{2,1,0}": (False, True), "{1,0,2}": (False, False)}
    for order, found in orders.items():
        shape = f"f32[2,3,5]{order}"
        assert (is_monotonic_with_dim0_minor(shape), is_monotonic_with_dim0_major(shape)) == found
    for either in ("f32[]", "f32[3]"):
        assert is_monotonic_with_dim0_minor(either)
        assert is_monotonic_with_dim0_major(either)
    assert is_monotonic_with_dim0_major(make_shape("f32", (2, 3)).without_layout())


HELPERS: dict[str, Callable[[Any], object]] = {
    "normalize_dimension": lambda layout: normalize_dimension(layout, -1),
    "is_dim_minor": lambda layout: is_dim_minor(layout, 0),
    "is_dim_major": lambda layout: is_dim_major(layout, 0),
    "is_monotonic_with_dim0_minor": is_monotonic_with_dim0_minor,
    "is_monotonic_with_dim0_major": is_monotonic_with_dim0_major,
    "in_bounds": lambda layout: in_bounds(layout, (2, 1)),
    "bump_indices": lambda layout: bump_indices(layout, (2, 1)),
    "dimension_stride": lambda layout: dimension_stride(layout, 1),
}


@pytest.mark.parametrize("ask", HELPERS.values(), ids=HELPERS)
def test_helpers_accept_shapes_texts_and_tiled_arrays(ask: Callable[[Any], object]) -> None:
    text = "f32[3,5]{0,1}"
    tiled = tj.pack(np.zeros((3, 5), np.float32), text)
    assert ask(text) == ask(parsed(text)) == ask(tiled)
    cute = tj.pack(np.zeros((3, 5), np.float32), "(3,5):(1,3)")
    for wrong in (cute, cute.layout):
        with pytest.raises(LayoutError, match=r"CuTe layout.*\n  pass a Shape"):
            ask(wrong)
    for wrong in ("f32[3,5", "tpu", "(f32[3,5])"):
        with pytest.raises(LayoutError):
            ask(wrong)
    for other in (None, 2.5, np.zeros((3, 5)), [3, 5], True):
        with pytest.raises(TypeError):
            ask(other)


def test_letters() -> None:
    assert [axis_letters(rank) for rank in (1, 2, 3, 4)] == [
        ("x",),
        ("y", "x"),
        ("z", "y", "x"),
        ("p", "z", "y", "x"),
    ]
    for rank in (5, -1, 10**5000):
        with pytest.raises(LayoutError, match="pass a rank from 0 to 4"):
            axis_letters(rank)
    with pytest.raises(TypeError):
        axis_letters("f32[2]")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "strides"),
    [
        ("f32[3,5,7]", (35, 7, 1)),
        ("f32[3,5,7]{0,2,1}", (1, 21, 3)),
        ("f32[16,128]{1,0:T(8,128)}", (128, 1)),
        ("f32[16,256]{1,0:T(8,128)}", (None, None)),
        ("f32[5,100]{1,0:T(8,128)}", (128, 1)),
        ("f32[8,256]{1,0:T(8,1)}", (1, 8)),
        ("f32[1000]{0:T(1024)(128)}", (1,)),
        ("f32[3,5]{1,0:T(*,16)}", (5, 1)),
        ("f32[2,4]{1,0:T(*,3)}", (4, 1)),
        ("f32[3,1]{1,0:T(2,2)}", (2, 1)),
        ("f32[3,2]{1,0:T(2,2)}", (2, 1)),
        ("f32[0,5]{1,0:T(2,2)}", (5, 1)),
        ("f32[3,3]{1,0:T(2,2)}", (None, None)),
    ],
)
def test_dimension_stride(text: str, strides: tuple[int | None, ...]) -> None:
    shape = parsed(text)
    for dimension, stride in enumerate(strides):
        if stride is None:
            with pytest.raises(LayoutError, match="without a single stride"):
                dimension_stride(shape, dimension)
        else:
            assert dimension_stride(shape, dimension) == stride


@st.composite
def small_shapes(draw: st.DrawFn) -> Shape:
    dims = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    sizes = st.integers(1, 4)
    tile = st.lists(st.just(-1) | sizes, max_size=3).flatmap(lambda t: sizes.map(lambda last: (*t, last)))
    return make_shape("s32", dims, draw(st.permutations(range(len(dims)))), draw(st.lists(tile, max_size=2)))


@given(small_shapes())
def test_a_stride_is_right_for_every_element(shape: Shape) -> None:
    names: dict[str, object] = {}
    exec(shape.recipe(), names)
    numbers = np.arange(1, 1 + math.prod(shape.dimensions)).reshape(shape.dimensions)
    buffer = names["pack"](numbers)  # type: ignore[operator]
    slot = np.empty(numbers.size + 1, np.int64)
    slot[buffer] = np.arange(buffer.size)
    slots = slot[numbers]
    for dimension in range(shape.rank):
        steps = np.unique(np.diff(slots, axis=dimension))
        try:
            stride = dimension_stride(shape, dimension)
        except LayoutError:
            continue
        assert steps.size == 0 or steps.tolist() == [stride]


def test_byte_strides() -> None:
    assert byte_strides(parsed("f64[3,5]{0,1}")) == (8, 24)
    assert byte_strides(parsed("s4[3,5]")) == (5, 1)
    assert byte_strides(parsed("f32[16,256]{1,0:T(8,128)}")) is None
    assert byte_strides(make_shape("f32", (2, 3), (0, 1), padded_dimensions=(3, 5))) == (4, 12)
    with pytest.raises(LayoutError):
        byte_strides(parsed("f32[?]"))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("f32[6,4]", "f32[24]", True),
        ("f32[6,4]{0,1}", "f32[24]", False),
        ("f32[6,1,4]{0,1,2}", "f32[6,4]{0,1}", True),
        ("f32[16,128]{1,0:T(8,128)}", "f32[2048]", True),
        ("f32[16,256]{1,0:T(8,128)}", "f32[4096]", False),
        ("f32[16,256]{1,0:T(8,128)}", "f32[16,256]{1,0:T(8,128)}", True),
        ("f32[0,4]", "f32[3,0]{0,1}", True),
        ("f32[4]", "f64[4]", False),
    ],
)
def test_reshape_is_bitcast(a: str, b: str, same: bool) -> None:
    assert reshape_is_bitcast(parsed(a), parsed(b)) is same
