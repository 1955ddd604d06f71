from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.support.errors import LayoutError
from tilejit.copies.convert import pack
from tilejit.layout.dtypes import PRIMITIVE_TYPES, lookup
from tilejit.layout.from_parts import make_shape
from tilejit.layout.padding import checked_padding_value, padding_bytes, padding_value_of
from tilejit.layout.shape import BufferShape, Layout, Shape, TupleShape, parse_shape
from tilejit.layout.tiling import TileStep, tile_steps


def parsed(text: str) -> Shape:
    return Shape.parse(text)


def packed_by_definition(x: Any, shape: Shape) -> Any:
    """The flat buffer by pad, reshape and transpose. Padding is the shape's value."""
    fill = shape.padding_value or 0
    wide = shape.padded_dimensions or shape.dimensions
    if x.ndim:
        x = np.pad(x, [(0, w - n) for n, w in zip(x.shape, wide, strict=True)], constant_values=fill)
    x = x.transpose(shape.minor_to_major[::-1])
    for tile in shape.tiles:
        x = x.reshape((1,) * (len(tile) - x.ndim) + x.shape)
        lead, rest, merged = x.shape[: x.ndim - len(tile)], x.shape[x.ndim - len(tile) :], [1]
        for size, t in zip(rest, tile, strict=True):
            merged[-1] *= size
            merged += [1] if t != -1 else []
        sizes = [t for t in tile if t != -1]
        x = x.reshape(*lead, *merged[:-1])
        x = np.pad(
            x,
            [(0, 0)] * len(lead) + [(0, -n % t) for n, t in zip(merged, sizes, strict=False)],
            constant_values=fill,
        )
        split = [n for whole, t in zip(x.shape[len(lead) :], sizes, strict=True) for n in (whole // t, t)]
        k, r = len(lead), len(lead) + len(split)
        x = x.reshape(*lead, *split).transpose(*range(k), *range(k, r, 2), *range(k + 1, r, 2))
    return np.pad(x.reshape(-1), (0, shape.physical_size - x.size), constant_values=fill)


def run(recipe: str, x: Any) -> Any:
    names: dict[str, Any] = {}
    exec(recipe, names)
    return names["pack"](x)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    rank = draw(st.integers(0, 4))
    dims = draw(st.lists(st.integers(0, 9), min_size=rank, max_size=rank))
    tile = st.lists(st.sampled_from([-1, 1, 2, 3, 4]), max_size=5).flatmap(
        lambda head: st.integers(1, 5).map(lambda last: (*head, last))
    )
    padded = [n + draw(st.integers(0, 2)) for n in dims] if draw(st.booleans()) else None
    return make_shape(
        draw(st.sampled_from(["s32", "f32", "uint8"])),
        dims,
        draw(st.permutations(range(rank))),
        draw(st.lists(tile, max_size=3)),
        padded_dimensions=padded,
        padding_value=draw(st.sampled_from([None, 0, 7])),
        tail_padding_alignment_in_elements=draw(st.sampled_from([1, 5, 16])),
    )


@given(shapes())
def test_recipe_is_the_definition(shape: Shape) -> None:
    x = np.arange(1, 1 + math.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
    buffer = run(shape.recipe(), x)
    np.testing.assert_array_equal(buffer, packed_by_definition(x, shape))
    assert buffer.size == shape.physical_size
    assert buffer.nbytes == shape.size_in_bytes
    if shape.untiled and shape.padded_dimensions is None:
        plain = x.transpose(shape.minor_to_major[::-1]).reshape(-1)
        np.testing.assert_array_equal(buffer[: plain.size], plain)


@given(shapes())
def test_untiled_is_exact_on_small_shapes(shape: Shape) -> None:
    """No shape that moves an element may claim to be untiled, and the common ones that move none must."""
    shape = replace(shape, layout=replace(shape.layout, tail_padding_alignment_in_elements=1))
    plain = replace(shape, layout=replace(shape.layout, tiles=()))
    if 0 in shape.dimensions or shape.padded_dimensions is not None:
        return
    x = np.arange(1, 1 + math.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
    if shape.untiled:
        np.testing.assert_array_equal(packed_by_definition(x, shape), packed_by_definition(x, plain))
    elif len(shape.tiles) == 1 and -1 not in shape.tiles[0] and shape.physical_size == plain.physical_size:
        full = replace(shape, primitive_type="s32", padding_value=None)
        x = np.arange(1, 1 + x.size).reshape(x.shape)
        same = packed_by_definition(x, full)
        assert (same[: x.size] != x.transpose(shape.minor_to_major[::-1]).reshape(-1)).any()


@given(shapes())
def test_shapes_survive_json_pickle_copies_and_repr(shape: Shape) -> None:
    form = json.loads(json.dumps(shape.to_json(), allow_nan=False))
    assert Shape.from_json(form) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert copy.deepcopy(shape) == shape
    assert hash(copy.deepcopy(shape)) == hash(shape)
    assert eval(repr(shape)) == shape
    assert eval(repr(shape.layout)) == shape.layout
    assert eval(repr(shape.without_layout())) == shape.without_layout()
    held = replace(Layout((0,)), physical_shape=shape)
    assert eval(repr(held)) == held


def test_reprs_are_short_code() -> None:
    shape = Shape.parse("f32[3,<=5]{1,0:T(2,2)}")
    assert repr(shape) == "Shape.parse('f32[3,<=5]{1,0:T(2,2)}')"
    assert repr(shape.layout) == "Layout.parse('{1,0:T(2,2)}')"
    assert repr(shape.without_layout()) == "Shape('f32', (3, 5), dynamic=(False, True))"
    padded = make_shape("f32", (3, 5), (0, 1), padded_dimensions=(4, 8), padding_value=0.0)
    assert repr(padded) == (
        "Shape('f32', (3, 5), Layout.parse('{0,1}'), padded_dimensions=(4, 8), padding_value=0.0)"
    )
    assert repr(TupleShape((shape,))) == f"TupleShape(shapes=({shape!r},))"
    assert repr(Shape("token", ())) == "Shape.parse('token[]')"


def test_seed_padding() -> None:
    shape = make_shape("s32", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=0)
    x = np.arange(1, 7).reshape(2, 3)
    assert run(shape.recipe(), x).tolist() == [1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0]
    assert shape.physical_size == 15
    assert shape.padding_fraction == 0.6
    assert "padded_dimensions=(3, 5)" in repr(shape)


def test_text_with_padding_is_not_read() -> None:
    """XLA's text cannot express it, so a reader would lose it."""
    shape = make_shape("s32", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=0)
    assert str(shape) == "s32[2,3]{0,1}, padded to [3,5], filled with 0"
    assert str(replace(shape, padding_value=None)) == "s32[2,3]{0,1}, padded to [3,5]"
    filled = replace(shape, padded_dimensions=None)
    assert str(filled) == "s32[2,3]{0,1}, filled with 0"
    assert str(TupleShape((filled, BufferShape(filled)))) == f"({filled}, b({filled}))"
    floats = [make_shape("f32", (2, 3), padding_value=value) for value in (0.5, -math.inf, math.nan, -1e-30)]
    for padded in (shape, filled, *floats):
        with pytest.raises(LayoutError, match=r"words cannot be read\n.*\n {15}\^\n  .*make_shape"):
            Shape.parse(str(padded))
        for held in (TupleShape((padded,)), BufferShape(padded)):
            with pytest.raises(LayoutError, match="words cannot be read"):
                parse_shape(str(held))


@pytest.mark.parametrize(
    ("text", "slots", "size"),
    [
        ("f32[3,5]{1,0:T(2,2)}", 24, 96),
        ("f32[4,8]{1,0:T(2,4)(2,1)}", 32, 128),
        ("f32[3,5]{1,0:T(3,5)(4,1)}", 20, 80),
        ("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", 112 * 111, 4 * 112 * 111),
        ("s4[3]{0:E(4)}", 3, 2),
        ("s4[3]{0}", 3, 3),
        ("pred[9]{0:E(1)}", 9, 2),
        ("f32[3,5]{1,0:L(100)}", 100, 400),
        ("f32[0,5]{1,0:T(8,128)L(100)}", 0, 0),
        ("f32[<=3]{0}", 3, 12),
        ("f6e3m2fn[4]{0:E(6)}", 4, 3),
        ("f32[]{:T(256)}", 256, 1024),
        ("u1[4611686018427387904,2]{1,0:E(1)}", 2**63, 2**60),
        ("f32[0,9223372036854775807,9223372036854775807]", 0, 0),
    ],
)
def test_sizes(text: str, slots: int, size: int) -> None:
    assert parsed(text).physical_size == slots
    assert parsed(text).size_in_bytes == size


@pytest.mark.parametrize("text", ["f32[?]", "f32[3]{0:M(8)}", "token[]", "opaque[]"])
def test_shapes_without_a_size(text: str) -> None:
    shape = parsed(text)
    for ask in ("physical_size", "size_in_bytes", "padding_fraction", "xla_array_size"):
        with pytest.raises(LayoutError, match="\n"):
            getattr(shape, ask)
    with pytest.raises(LayoutError):
        tile_steps(shape)
    with pytest.raises(LayoutError):
        shape.recipe()


def test_tile_steps() -> None:
    assert tile_steps(parsed("f32[3,5]{1,0:T(2,2)}")) == (
        (TileStep(0, ((0,), (1,)), (2, 2), 0),),
        ((3, 5), (2, 3, 2, 2)),
    )
    assert tile_steps(parsed("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"))[0] == (
        TileStep(0, ((0, 1, 2), (3, 4)), (2, 3), 0),
    )
    assert tile_steps(parsed("f32[5]{0:T(8,128)}")) == (
        (TileStep(1, ((0,), (1,)), (8, 128), 0),),
        ((5,), (1, 1, 8, 128)),
    )
    assert tile_steps(make_shape("f32", (2, 3), (0, 1), ((4,),), padded_dimensions=(3, 5)))[1] == (
        (5, 3),
        (5, 1, 4),
    )
    assert tile_steps(parsed("f32[4,6]{1,0:T(2,1)(6,1,1)}"))[0][1] == TileStep(
        0, ((1,), (2,), (3,)), (6, 1, 1), 1
    )


@pytest.mark.parametrize(
    ("text", "untiled"),
    [
        ("f32[24,128]{1,0:T(8,128)}", True),
        ("f32[24,256]{1,0:T(8,128)}", False),
        ("f32[24,256]{1,0:T(1,128)}", True),
        ("f32[1024]{0:T(1024)(128)}", True),
        ("f32[1024]{0:T(1024)(128)(2,1)}", False),
        ("f32[1000]{0:T(1024)}", False),
        ("f32[4,6]{1,0:T(2,1)(6,1,1)}", True),
        ("f32[4,6]{1,0:T(*,8)}", True),
        ("f32[1,8]{1,0:T(1,4)}", True),
        ("f32[0,8]{1,0:T(8,128)}", True),
    ],
)
def test_untiled(text: str, untiled: bool) -> None:
    assert parsed(text).untiled is untiled


def test_recipe_packs_bits() -> None:
    shape = make_shape("s4", (3,), element_size_in_bits=4)
    assert run(shape.recipe(), np.array([1, -2, 3], np.int8)).tolist() == [0xE1, 0x03]
    assert run(shape.recipe(), np.array([1, -2, 3], ml_dtypes.int4)).tolist() == [0xE1, 0x03]
    pred = make_shape("pred", (10,), element_size_in_bits=1)
    assert run(pred.recipe(), np.arange(10) % 3 == 0).tolist() == [0b01001001, 0b10]
    with pytest.raises(LayoutError, match=r"E\(6\)"):
        parsed("f6e2m3fn[4]{0:E(6)}").recipe()
    with pytest.raises(LayoutError, match=r"E\(4\)"):
        parsed("f32[4]{0:E(4)}").recipe()


@pytest.mark.parametrize(
    ("dtype", "tile", "bits", "value"),
    [
        ("f8e8m0fnu", 4, 0, None),
        ("f8e8m0fnu", 4, 0, 2.0),
        ("pred", 0, 1, True),
        ("pred", 0, 1, None),
        ("pred", 4, 1, True),
        ("s4", 0, 4, -3),
        ("uint2", 5, 2, 3),
        ("f4e2m1fn", 0, 4, -6.0),
        ("f4e2m1fn", 2, 4, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [0, 1, 3, 9, 16])
def test_recipe_pads_as_pack_does(dtype: str, tile: int, bits: int, value: Any, size: int) -> None:
    shape = make_shape(
        dtype, (size,), tiles=((tile,),) if tile else (), element_size_in_bits=bits, padding_value=value
    )
    x = np.ones(size, shape.dtype)
    buffer = run(shape.recipe(), x)
    assert buffer.view(np.uint8).tolist() == pack(x, shape).buffer.view(np.uint8).tolist()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 1.5])
def test_recipe_fills_with_the_value(value: float) -> None:
    shape = make_shape("f32", (1,), padded_dimensions=(3,), padding_value=value)
    expect = np.array([9, value, value], np.float32)
    assert run(shape.recipe(), np.array([9], np.float32)).tobytes() == expect.tobytes()
    twice = make_shape("c64", (1,), padded_dimensions=(2,), padding_value=complex(value, -1))
    filled = run(twice.recipe(), np.array([9], np.complex64))
    np.testing.assert_array_equal(filled, np.array([9, complex(value, -1)], np.complex64))


@pytest.mark.parametrize(
    ("dtype", "value", "kept"),
    [
        ("s32", 0.0, 0),
        ("pred", 1, True),
        ("bf16", ml_dtypes.bfloat16(2), 2.0),
        ("u8", np.uint8(255), 255),
        ("s4", ml_dtypes.int4(-8), -8),
        ("c64", 1, 1 + 0j),
        ("f32", np.float64("inf"), math.inf),
        ("s8", np.array(3), 3),
    ],
)
def test_padding_value_takes_the_elements_kind(dtype: str, value: Any, kept: Any) -> None:
    shape = make_shape(lookup(dtype), (2,), padding_value=value)
    assert repr(shape.padding_value) == repr(kept)
    assert Shape.from_json(json.loads(json.dumps(shape.to_json(), allow_nan=False))) == shape


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *(
            ("u8", 256),
            ("u8", -1),
            ("s4", 8),
            ("pred", 2),
            ("s32", 1.5),
            ("s32", math.nan),
            ("s32", math.inf),
        ),
        *(("f32", 1j), ("f32", 10**5000), ("s64", 10**5000), ("c64", 10**5000)),
        *(("f32", 1e300), ("f32", -(10**39)), ("bf16", 3.4e38), ("f16", 65520), ("c64", 1e39j)),
        *(("f8e4m3fn", 1e9), ("f8e4m3fn", math.inf), ("f8e5m2fnuz", -math.inf), ("f8e8m0fnu", 0)),
        *(("f8e8m0fnu", -1), ("f4e2m1fn", 7), ("f4e2m1fn", 1e9), ("f4e2m1fn", math.inf)),
        *(("f4e2m1fn", math.nan), ("f6e2m3fn", 7.75), ("f6e3m2fn", -30), ("f6e3m2fn", math.nan)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_padding_value_that_does_not_fit(dtype: str, value: Any) -> None:
    with pytest.raises(LayoutError, match="padding_value"):
        make_shape(lookup(dtype), (2,), padding_value=value)


FLOATS = [row.name for row in PRIMITIVE_TYPES.values() if row.kind == "float"]


@pytest.mark.parametrize("name", FLOATS)
def test_every_float_accepts_its_values_and_those_that_round_to_them(name: str) -> None:
    row = PRIMITIVE_TYPES[name]
    finest = np.array(range(1 << min(row.bits, 16)), np.uint16 if row.bits >= 16 else np.uint8)
    values = finest.view(row.numpy) if row.bits <= 16 else finest.astype(row.numpy)
    for value in values[:: max(1, len(values) // 300)]:
        number = float(value)
        assert repr(checked_padding_value(value, row)) == repr(number)
        assert math.isnan(number) or padding_bytes(value, row) == value.tobytes()
    largest = float(ml_dtypes.finfo(row.numpy).max)
    # Halfway to the next value: the first value that would not round to the largest.
    for factor in (1.0001, 1.01) if row.bits < 8 else (1.0,):
        assert np.frombuffer(padding_bytes(largest * factor, row), row.numpy)[0] == largest
    if largest < 1e300:
        with pytest.raises(LayoutError, match="does not fit"):
            padding_bytes(2.5 * largest, row)


@pytest.mark.parametrize(
    ("dtype", "zero", "one", "lowest", "highest"),
    [
        ("pred", False, True, False, True),
        ("s4", 0, 1, -8, 7),
        ("u2", 0, 1, 0, 3),
        ("s64", 0, 1, -(2**63), 2**63 - 1),
        ("bf16", 0.0, 1.0, -math.inf, math.inf),
        ("f64", 0.0, 1.0, -math.inf, math.inf),
        ("f8e4m3fn", 0.0, 1.0, -448.0, 448.0),
        ("f4e2m1fn", 0.0, 1.0, -6.0, 6.0),
        ("f8e8m0fnu", None, 1.0, 2.0**-127, 2.0**127),
        ("c64", 0j, 1 + 0j, None, None),
        ("s1", 0, None, -1, 0),
    ],
)
def test_padding_by_xlas_names(dtype: str, zero: Any, one: Any, lowest: Any, highest: Any) -> None:
    """None if the type has no such value."""
    wanted = {"ZERO_PAD": zero, "ONE_PAD": one, "LOWEST_PAD": lowest, "HIGHEST_PAD": highest}
    for name, value in wanted.items():
        if value is None:
            with pytest.raises(LayoutError, match=f"padding_value .*{dtype}.*\n  "):
                make_shape(lookup(dtype), (2,), padding_value=name)  # type: ignore[arg-type]
            continue
        shape = make_shape(lookup(dtype), (2,), padding_value=name)  # type: ignore[arg-type]
        assert repr(shape.padding_value) == repr(value)
        assert shape == make_shape(lookup(dtype), (2,), padding_value=value)
    assert make_shape(lookup(dtype), (2,), padding_value="UNKNOWN_PAD") == make_shape(lookup(dtype), (2,))


@pytest.mark.parametrize("name", [row.name for row in PRIMITIVE_TYPES.values() if row.is_array_element])
def test_lowest_and_highest_bound_every_value(name: str) -> None:
    row = PRIMITIVE_TYPES[name]
    if row.bits > 8 or row.kind == "complex":
        return
    low, high = padding_value_of("LOWEST_PAD", row), padding_value_of("HIGHEST_PAD", row)
    values = np.arange(1 << row.bits, dtype=np.uint8).view(row.numpy) if row.bits == 8 else None
    numbers = [float(v) for v in values] if values is not None else [low, high]
    assert min(n for n in numbers if not math.isnan(n)) == low
    assert max(n for n in numbers if not math.isnan(n)) == high


def test_padding_names_without_a_value() -> None:
    with pytest.raises(LayoutError, match=r"INVALID_PAD.*not set\n  .*UNKNOWN_PAD"):
        make_shape("f32", (2,), padding_value="INVALID_PAD")  # type: ignore[arg-type]
    for wrong in ("0", "zero_pad", "", "x" * 1000):
        with pytest.raises(LayoutError, match=r"is not a padding name\n  .*ZERO_PAD") as caught:
            Shape("f32", (2,), padding_value=wrong)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 200


def test_wide_integers_become_the_nearest_floats() -> None:
    assert make_shape("f32", (3,), padding_value=-(10**30)).padding_value == -1e30
    assert padding_bytes(-(10**30), PRIMITIVE_TYPES["f32"]) == np.float32(-1e30).tobytes()


def test_zeros_of_different_signs_make_different_shapes() -> None:
    plus, minus = (make_shape("f32", (2,), padding_value=v) for v in (0.0, -0.0))
    assert plus != minus
    assert plus != make_shape("f32", (2,))
    assert make_shape("f32", (2,), padding_value=math.nan) == make_shape(
        "f32", (2,), padding_value=float("nan")
    )


def test_properties() -> None:
    shape = parsed("bf16[1,<=300,0]{1,0,2:T(8,128)(2,1)E(16)}")
    assert (shape.rank, shape.true_rank, shape.bits, shape.packed) == (3, 1, 16, False)
    assert shape.dtype == ml_dtypes.bfloat16
    assert not shape.descending
    assert shape.dynamic == (False, True, False)
    assert parsed("u4[3]{0:E(4)}").packed
    assert parsed("f32[3,?]").true_rank == 2
    assert str(shape.without_layout()) == "bf16[1,<=300,0]"
    assert Shape("f32", (2, 3)).size_in_bytes == 24
    with pytest.raises(LayoutError):
        _ = parsed("token[]").dtype
    with pytest.raises(FrozenInstanceError):
        shape.dimensions = ()  # type: ignore[misc]


def test_make_shape() -> None:
    assert str(make_shape(np.float32, [3, np.int64(5)], (-1, -2), [[2, 2]])) == "f32[3,5]{1,0:T(2,2)}"
    assert str(make_shape(np.dtype(">i2"), ())) == "s16[]"
    text = "s4[8]{0:T(8)L(16)E(4)S(2)}"
    more = {"element_size_in_bits": 4, "tail_padding_alignment_in_elements": 16, "memory_space": 2}
    assert str(make_shape("s4", (8,), tiles=((8,),), **more)) == text


@pytest.mark.parametrize(("space", "kept"), [(128, -128), (255, -1), (256, 0), (300, 44)])
def test_memory_spaces_that_xla_wraps(space: int, kept: int) -> None:
    assert str(make_shape("f32", (2,), memory_space=127)) == "f32[2]{0:S(127)}"
    wrapped = rf"S\({space}\) does not fit XLA's 8 signed bits, which wrap it to S\({kept}\)\n"
    with pytest.raises(LayoutError, match=wrapped):
        make_shape("f32", (2,), memory_space=space)
    with pytest.raises(LayoutError, match=wrapped + rf"  f32\[2\]{{0:S\({space}\)}}\n {{13}}\^"):
        Shape.parse(f"f32[2]{{0:S({space})}}")


def test_physical_shapes_belong_to_sparse_arrays() -> None:
    """XLA prints and parses them in layouts, and refuses them in dense shapes."""
    layout = Layout.parse("{0:P(s32[4]{0})}")
    assert str(layout) == "{0:P(s32[4]{0})}"
    for build in (
        lambda: Shape("f32", (3,), layout),
        lambda: Shape.parse("f32[3]{0:P(s32[4])}"),
        lambda: Layout.parse("{0:P(s32[4]{0:P(s32[4])})}"),
    ):
        with pytest.raises(LayoutError, match=r"sparse(.|\n)*omit P"):
            build()


HUGE = 10**5000
WRONG = {
    "dim below zero": lambda: make_shape("f32", (-2,)),
    "dim past 2^63": lambda: make_shape("f32", (2**63,)),
    "dim of 5000 digits": lambda: make_shape("f32", (HUGE,)),
    "order too short": lambda: make_shape("f32", (2, 3), (0,)),
    "order twice": lambda: make_shape("f32", (2, 3), (0, -2)),
    "order of 5000 digits": lambda: make_shape("f32", (2,), (HUGE,)),
    "empty tile": lambda: make_shape("f32", (2,), tiles=((),)),
    "tile of zero": lambda: make_shape("f32", (2,), tiles=((0,),)),
    "tile of 5000 digits": lambda: make_shape("f32", (2,), tiles=((HUGE,),)),
    "merge last": lambda: make_shape("f32", (2,), tiles=((2, -1),)),
    "too many tiles": lambda: make_shape("f32", (2,), tiles=((2,),) * 65),
    "too many axes": lambda: make_shape("f32", (2,), tiles=((1,) * 2000,)),
    "tiles past 2^63": lambda: make_shape("f32", (2,), tiles=((2**62, 2),)),
    "padding past 2^63": lambda: make_shape("f32", (2,), padded_dimensions=(2**62,)),
    "tail past 2^63": lambda: make_shape("f32", (2,), tail_padding_alignment_in_elements=2**62),
    "tail of zero": lambda: make_shape("f32", (2,), tail_padding_alignment_in_elements=0),
    "padded too short": lambda: make_shape("f32", (2, 3), padded_dimensions=(3,)),
    "padded below": lambda: make_shape("f32", (2, 3), padded_dimensions=(2, 2)),
    "padded ?": lambda: Shape("f32", (-1,), Layout((0,)), padded_dimensions=(4,)),
    "dynamic too long": lambda: Shape("f32", (2,), dynamic=(True, False)),
    "token with dims": lambda: Shape("token", (2,)),
    "token with layout": lambda: Shape("token", (), Layout(())),
    "unknown dtype": lambda: Shape("f33", (2,)),
    "object array": lambda: make_shape(np.dtype("O"), (2,)),
    "float index type": lambda: Layout((0,), index_type="f32"),
    "empty split": lambda: Layout((0,), split_configs=((0, ()),)),
    "empty split config": lambda: Layout((0,), split_configs=((),)),
    "split config of three": lambda: Layout((0,), split_configs=((0, (1,), 2),)),
    "buffer of a token": lambda: BufferShape(Shape("token", ())),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    with pytest.raises(LayoutError, match="\n  "):
        WRONG[name]()


WRONG_TYPES = {
    "float dims": lambda: make_shape("f32", (2.0,)),
    "str dims": lambda: make_shape("f32", "23"),
    "int dims": lambda: make_shape("f32", 3),
    "no dtype": lambda: make_shape(None, (2,)),
    "layout text": lambda: Shape("f32", (2,), "{0}"),
    "float tile": lambda: make_shape("f32", (2,), tiles=((2.5,),)),
    "float S": lambda: make_shape("f32", (2,), memory_space=1.5),
    "int dtype": lambda: Shape(5, ()),
    "None dtype": lambda: Shape(None, ()),
    "list dtype": lambda: Shape(["f32"], ()),
    "number split": lambda: Layout((0,), split_configs=(3,)),
    "dict split": lambda: Layout((0,), split_configs=({},)),
    "list padding": lambda: make_shape("f32", (2,), padding_value=[[1], [2, 3]]),
    "array padding": lambda: make_shape("f32", (2,), padding_value=np.array([1.0])),
    "members": lambda: TupleShape(("f32[]",)),
    "buffer": lambda: BufferShape("f32[]"),
    "physical": lambda: Layout((0,), physical_shape="f32[]"),
    "json": lambda: Shape.from_json("f32[2]"),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_wrong_types(name: str) -> None:
    with pytest.raises(TypeError):
        WRONG_TYPES[name]()


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": [2]},
        {"dimensions": 3},
        {"dimensions": ["2"]},
        {"primitive_type": None},
        {"primitive_type": "f33"},
        {"layout": [0]},
        {"layout": {}},
        {"layout": {"minor_to_major": [0], "tile": []}},
        {"layout": {"minor_to_major": [0], "tiles": 3}},
        {"layout": {"minor_to_major": [0], "split_configs": [3]}},
        {"padding_value": "zero"},
        {"padding_value": [1, "x"]},
        {"padding_value": {}},
        {"dynamic": 3},
    ],
    ids=str,
)
def test_json_is_read_strictly(change: dict[str, Any]) -> None:
    with pytest.raises(LayoutError):
        Shape.from_json({**make_shape("f32", (2,)).to_json(), **change})


def test_nesting_is_bounded() -> None:
    def tuples() -> None:
        shape: Any = TupleShape(())
        for _ in range(1000):
            shape = TupleShape((shape,))

    def form() -> None:
        data: dict[str, Any] = make_shape("f32", (2,)).to_json()
        for _ in range(1000):
            data = {**data, "layout": {**data["layout"], "physical_shape": data}}
        Shape.from_json(data)

    for build in (tuples, form):
        with pytest.raises(LayoutError, match="deep"):
            build()


@pytest.mark.parametrize("tiles", [None, 2, (2, 2), "(2,2)", (None,)])
def test_tiles_of_a_wrong_type(tiles: object) -> None:
    with pytest.raises(TypeError, match="sequence of"):
        make_shape("f32", (3, 5), tiles=tiles)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sequence of"):
        Layout((1, 0), tiles=tiles)  # type: ignore[arg-type]
