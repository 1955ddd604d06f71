"""XLA's page "Shapes and layout": seed 002."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tilejit as tj

A, B, C, D = 2, 3, 5, 7
LETTERS = np.frombuffer(b"abcdef", np.uint8).reshape(2, 3)
"""The seed's array of 2 x 3."""

ORDERS = list(itertools.permutations(range(3)))


def in_memory(x: Any, layout: Any) -> str:
    """The buffer as the seed writes it; zero bytes are 0."""
    return " ".join(tj.pack(x, layout).buffer.tobytes().replace(b"\0", b"0").decode())


# --- Shapes ---


def test_a_shape_is_rank_sizes_and_dtype() -> None:
    """Of an array of N dimensions."""
    shape = tj.make_shape("f32", (A, B, C))
    assert (shape.rank, shape.dimensions, shape.primitive_type) == (3, (A, B, C), "f32")
    assert shape.dtype == np.float32


# --- Terms, notation, conventions ---


@pytest.mark.parametrize("rank", range(6))
def test_the_rank_is_the_number_of_dimensions(rank: int) -> None:
    """Sizes do not matter."""
    assert tj.make_shape("f32", (1,) * rank).rank == rank


@pytest.mark.parametrize(("d", "true_rank"), [((), 0), ((1, 1), 0), ((2, 1, 3), 2), ((2, 3, 4), 3)])
def test_the_true_rank_counts_sizes_above_1(d: tuple[int, ...], true_rank: int) -> None:
    """Dimensions of size 1 do not count."""
    assert tj.make_shape("f32", d).true_rank == true_rank


def test_dimensions_are_numbered_from_0() -> None:
    """Up to N - 1."""
    shape = tj.make_shape("f32", (A, B, C))
    assert [tj.normalize_dimension(shape, d) for d in range(3)] == [0, 1, 2]
    with pytest.raises(tj.LayoutIndexError):
        tj.normalize_dimension(shape, 3)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_dimension_numbers_imply_no_order_in_memory(order: tuple[int, ...]) -> None:
    """The layout alone says which is minor and which is major."""
    shape = tj.make_shape("f32", (A, B, C), order)
    assert tj.is_dim_minor(shape, order[0])
    assert tj.is_dim_major(shape, order[-1])
    x = np.arange(A * B * C, dtype=np.float32).reshape(A, B, C)
    t = tj.pack(x, shape)
    assert all(t[e] == x[e] for e in np.ndindex(x.shape))


def test_dimensions_are_listed_in_ascending_order() -> None:
    """[A x B x C]: dimension 0 has the size A."""
    shape = tj.Shape.parse(f"f32[{A},{B},{C}]{{0,2,1}}")
    assert [shape.dimensions[d] for d in range(3)] == [A, B, C]


def test_negative_numbers_count_from_the_end() -> None:
    """-1 is the last dimension, of size C, and -2 has the size B."""
    shape = tj.make_shape("f32", (A, B, C))
    assert tj.normalize_dimension(shape, -1) == shape.rank - 1
    assert [shape.dimensions[tj.normalize_dimension(shape, d)] for d in (-1, -2, -3)] == [C, B, A]
    assert tj.dimension_stride(shape, -2) == tj.dimension_stride(shape, 1) == C
    assert tj.make_shape("f32", (A, B), (-2, -1)) == tj.make_shape("f32", (A, B), (0, 1))


@pytest.mark.parametrize(("rank", "letters"), [(2, "yx"), (3, "zyx"), (4, "pzyx")])
def test_letters_of_dimensions(rank: int, letters: str) -> None:
    """Usual for two, three and four dimensions."""
    assert "".join(tj.axis_letters(rank)) == letters


def test_make_shape_takes_sizes_in_ascending_order() -> None:
    """As other calls that take dimensions do."""
    assert tj.make_shape("F32", (A, B, C, D)).dimensions == (A, B, C, D)
    shape = tj.as_layout("{3,2,1,0}", dtype="F32", dims=(A, B, C, D))
    assert shape == tj.make_shape("F32", (A, B, C, D))


# --- Layouts ---


def test_the_fields_of_a_layout() -> None:
    """minor_to_major, padded_dimensions and padding_value say how an array lies in memory."""
    shape = tj.make_shape("f32", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=1)
    assert (shape.minor_to_major, shape.padded_dimensions, shape.padding_value) == ((0, 1), (3, 5), 1.0)
    form = shape.to_json()
    assert form["layout"]["minor_to_major"] == [0, 1]
    assert (form["padded_dimensions"], form["padding_value"]) == ([3, 5], 1.0)
    assert tj.Shape.from_json(form) == shape


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ZERO_PAD", 0.0),
        ("ONE_PAD", 1.0),
        ("LOWEST_PAD", -math.inf),
        ("HIGHEST_PAD", math.inf),
        ("UNKNOWN_PAD", None),
    ],
)
def test_padding_value_is_one_of_an_enum(name: Any, value: float | None) -> None:
    """These are the values of XLA's PaddingValue, except its INVALID_PAD."""
    assert tj.make_shape("f32", (2, 3), padding_value=name).padding_value == value
    with pytest.raises(tj.LayoutError, match="INVALID_PAD"):
        tj.make_shape("f32", (2, 3), padding_value="INVALID_PAD")  # type: ignore[arg-type]


# --- The order of dimensions ---


def test_only_minor_to_major_is_required() -> None:
    """Everything else has a default."""
    layout = tj.Layout((1, 0))
    shape = tj.Shape("f32", (2, 3), layout)
    assert (shape.tiles, shape.padded_dimensions, shape.padding_value) == ((), None, None)
    with pytest.raises(TypeError):
        tj.Layout()  # type: ignore[call-arg]


@pytest.mark.parametrize("wrong", [(0,), (0, 0), (0, 2), (0, 1, 2)], ids=str)
def test_minor_to_major_orders_all_dimensions(wrong: tuple[int, ...]) -> None:
    """Each of 0 to N - 1 once."""
    with pytest.raises(tj.LayoutError, match="minor_to_major"):
        tj.make_shape("f32", (2, 3), wrong)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_first_is_most_minor_and_the_last_most_major(order: tuple[int, ...]) -> None:
    """Strides grow from the first to the last."""
    shape = tj.make_shape("f32", (A, B, C), order)
    strides = [tj.dimension_stride(shape, d) for d in order]
    assert strides[0] == 1
    assert strides == sorted(strides)
    assert strides[-1] * shape.dimensions[order[-1]] == A * B * C


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_most_minor_dimension_varies_fastest(order: tuple[int, ...]) -> None:
    """In memory order, it changes at each step."""
    shape = tj.make_shape("f32", (A, B, C), order)
    walk = np.stack(tj.multi_index(shape, np.arange(A * B * C)))
    changes = (np.diff(walk, axis=1) != 0).sum(axis=1)
    assert changes[order[0]] == A * B * C - 1
    assert changes[order[0]] > changes[order[1]] > changes[order[2]]


def test_2_by_3_with_dimension_0_minor() -> None:
    """minor_to_major [0, 1]: a d b e c f."""
    assert in_memory(LETTERS, "u8[2,3]{0,1}") == "a d b e c f"
    assert tj.is_dim_minor("u8[2,3]{0,1}", 0)
    assert tj.is_dim_major("u8[2,3]{0,1}", 1)


@pytest.mark.parametrize("d", [(2, 3), (A, B, C), (A, B, C, D)], ids=str)
def test_ascending_order_is_column_major(d: tuple[int, ...]) -> None:
    """0 to N - 1, also called "dim 0 is minor"."""
    shape = tj.make_shape("uint8", d, range(len(d)))
    assert tj.is_monotonic_with_dim0_minor(shape)
    assert tj.is_dim_minor(shape, 0)
    x = np.arange(np.prod(d), dtype=np.uint8).reshape(d)
    assert tj.pack(x, shape).buffer.tolist() == x.ravel(order="F").tolist()


def test_2_by_3_with_dimension_1_minor() -> None:
    """minor_to_major [1, 0]: a b c d e f."""
    assert in_memory(LETTERS, "u8[2,3]{1,0}") == "a b c d e f"


@pytest.mark.parametrize("d", [(2, 3), (A, B, C), (A, B, C, D)], ids=str)
def test_descending_order_is_row_major(d: tuple[int, ...]) -> None:
    """N - 1 to 0, also called "dim 0 is major"."""
    shape = tj.make_shape("uint8", d, reversed(range(len(d))))
    assert tj.is_monotonic_with_dim0_major(shape)
    assert tj.is_dim_major(shape, 0)
    x = np.arange(np.prod(d), dtype=np.uint8).reshape(d)
    assert tj.pack(x, shape).buffer.tolist() == x.ravel(order="C").tolist()


def test_new_shapes_are_row_major() -> None:
    """From the most major dimension to the most minor."""
    for shape in (tj.make_shape("f32", (A, B, C)), tj.Shape.parse(f"f32[{A},{B},{C}]")):
        assert shape.minor_to_major == (2, 1, 0)
        assert tj.is_monotonic_with_dim0_major(shape)


# --- Padding ---


def test_padding_is_optional() -> None:
    """Neither field is set by default, and each may be set alone."""
    plain = tj.make_shape("uint8", (2, 3))
    assert plain.physical_size == 6
    assert tj.make_shape("uint8", (2, 3), padded_dimensions=(3, 5)).padding_value is None
    assert tj.make_shape("uint8", (2, 3), padding_value=7).physical_size == 6


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
def test_padded_dimensions_are_widths(order: tuple[int, ...]) -> None:
    """One per dimension, by its number, whatever the order in memory."""
    shape = tj.make_shape("uint8", (2, 3), order, padded_dimensions=(3, 5))
    assert shape.physical_size == 15
    assert tj.dimension_stride(shape, order[1]) == (3, 5)[order[0]]


@pytest.mark.parametrize("wrong", [(), (3,), (3, 5, 1)], ids=str)
def test_there_are_as_many_widths_as_dimensions(wrong: tuple[int, ...]) -> None:
    """The rank of the shape."""
    with pytest.raises(tj.LayoutError, match="padded_dimensions"):
        tj.make_shape("uint8", (2, 3), padded_dimensions=wrong)


def test_2_by_3_padded_to_3_by_5() -> None:
    """Column-major, filled with 0."""
    for zero in (0, "ZERO_PAD"):
        shape = tj.make_shape("uint8", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=zero)
        assert in_memory(LETTERS, shape) == "a d 0 b e 0 c f 0 0 0 0 0 0 0"
        assert str(shape) == "u8[2,3]{0,1}, padded to [3,5], filled with 0"


def test_it_is_stored_like_the_padded_array() -> None:
    """In the same order of dimensions."""
    shape = tj.make_shape("uint8", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=0)
    padded = np.pad(LETTERS, ((0, 1), (0, 2)))
    assert in_memory(LETTERS, shape) == in_memory(padded, "u8[3,5]{0,1}")


# --- Indexing into arrays ---

LAYOUTS = ["f32[2,3,5]{0,2,1}", "f32[5,7]{1,0:T(2,4)}", "bf16[33,300]{1,0:T(8,128)(2,1)}"]


@pytest.mark.parametrize("text", LAYOUTS)
def test_indices_are_converted_both_ways(text: str) -> None:
    """A multi-index and a linear index, for a shape and its layout."""
    d = tj.Shape.parse(text).dimensions
    index = tuple(np.indices(d))
    back = tj.multi_index(text, tj.linear_index(text, index))
    assert all((a == b).all() for a, b in zip(index, back, strict=True))
    last = tuple(n - 1 for n in d)
    assert tj.multi_index(text, tj.linear_index(text, last)) == last


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_multi_index_has_an_int64_for_each_dimension(text: str) -> None:
    """A Python int per dimension for one element."""
    shape = tj.Shape.parse(text)
    arrays = tj.multi_index(shape, np.arange(3, dtype=np.uint8))
    assert [part.dtype for part in arrays] == [np.dtype(np.int64)] * shape.rank
    one = tj.multi_index(shape, 0)
    assert one is not None
    assert [type(i) for i in one] == [int] * shape.rank


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_linear_index_is_one_int64_into_the_buffer(text: str) -> None:
    """It counts elements of the buffer."""
    d = tj.Shape.parse(text).dimensions
    x = np.arange(np.prod(d)).reshape(d).astype(np.uint16)
    slots = tj.linear_index(text, tuple(np.indices(d, dtype=np.uint16)))
    assert slots.dtype == np.int64
    layout = text.partition("{")[1] + text.partition("{")[2]
    assert (tj.pack(x, layout).buffer[slots] == x).all()
    assert type(tj.linear_index(text, (0,) * len(d))) is int


def test_the_walk_of_index_util() -> None:
    """bump_indices, in_bounds and dimension_stride go with the conversions."""
    shape = tj.Shape.parse("f32[2,3,5]{0,2,1}")
    index: tuple[int, ...] | None = (0, 0, 0)
    strides = [tj.dimension_stride(shape, d) for d in range(3)]
    for slot in range(30):
        assert index is not None
        assert tj.in_bounds(shape, index)
        assert tj.linear_index(shape, index) == slot
        assert sum(i * s for i, s in zip(index, strides, strict=True)) == slot
        index = tj.bump_indices(shape, index)
    assert index is None
    assert not tj.in_bounds(shape, (0, 3, 0))


def test_utilities_make_shapes_and_layouts() -> None:
    """The functions of shape_util and layout_util."""
    shape = tj.make_shape("f32", (2, 3), (0, 1))
    assert shape == tj.Shape("f32", (2, 3), tj.Layout((0, 1))) == tj.parse_shape("f32[2,3]{0,1}")
    assert tj.Shape("f32", (2, 3), tj.Layout.parse("{0,1}")) == shape
    assert str(shape.without_layout()) == "f32[2,3]"
    assert tj.Shape.from_json(shape.to_json()) == shape
