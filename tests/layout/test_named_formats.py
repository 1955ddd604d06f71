"""Every named format against its recipe: pad, reshape and transpose in NumPy, as its users write it."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilejit as tj
from codegen.support.errors import LayoutError, TilejitError
from tests.tools.oracle import random_elements, same_elements, slots_of
from tilejit.layout.as_layout import recipe_of
from tilejit.layout.dtypes import PRIMITIVE_TYPES, lookup, primitive_type
from tilejit.layout.formats.calls import call_text, read_call
from tilejit.layout.formats.registry import find_format

PADDING = -1


@dataclass(frozen=True)
class Row:
    """r(...) t(...) as users write it.

    `split` is the part of each dimension below its first digit, `order` the axes.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    split: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        more = "".join(f" {key}={value}" for key, value in self.parameters.items())
        return f"{self.name}{more} {self.dtype}{list(self.dims)}"

    def slots(self, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """The number of the element in each slot. Leading dimensions beyond the recipe's come first."""
        lead = len(dims) - len(self.split)
        blocks = [math.prod(factors) for factors in self.split]
        padded = [*dims[:lead], *(-(-n // b) * b for n, b in zip(dims[lead:], blocks, strict=True))]
        box = np.full(padded, PADDING)
        box[tuple(map(slice, dims))] = np.arange(math.prod(dims)).reshape(dims)
        parts = [
            part
            for n, b, factors in zip(padded[lead:], blocks, self.split, strict=True)
            for part in (n // b, *factors)
        ]
        axes = [*range(lead), *(k + lead for k in self.order)]
        return box.reshape([*dims[:lead], *parts]).transpose(axes).reshape(-1)


VNNI, AMX, MX = (0, 2, 1), (0, 3, 1, 4, 2), (0, 3, 2, 1, 4)
NCHW_C = (0, 1, 3, 4, 2)
ROWS = (
    Row("tpu", "f32", (24, 300), ((8,), (128,)), (0, 2, 1, 3)),
    Row("tpu", "bf16", (24, 300), ((4, 2), (128,)), AMX),
    Row("tpu", "s8", (64, 200), ((8, 4), (128,)), AMX),
    Row("tpu-doc", "f8e5m2", (20, 200), ((2, 4), (128,)), AMX),
    Row("tenstorrent", "bf16", (96, 64), ((2, 16), (2, 16)), (0, 3, 1, 4, 2, 5)),
    Row("tenstorrent", "f32", (40, 70), ((1, 16), (2, 16)), (0, 3, 1, 4, 2, 5), {"tile": (16, 32)}),
    Row("tenstorrent", "u8", (40, 70), ((4, 8), (4, 8)), (0, 3, 1, 4, 2, 5), {"face": 8}),
    Row("nChw16c", "f32", (2, 48, 3, 5), ((), (16,), (), ()), NCHW_C),
    Row("nChw8c", "f32", (2, 24, 3, 5), ((), (8,), (), ()), NCHW_C),
    Row("NC1HWC0", "f16", (2, 48, 3, 5), ((), (16,), (), ()), NCHW_C),
    Row("NC1HWC0", "s8", (2, 64, 3, 5), ((), (32,), (), ()), NCHW_C),
    Row("NC1HWC0", "f32", (2, 24, 3, 5), ((), (8,), (), ()), NCHW_C, {"c0": 8}),
    Row("OIhw16i16o", "f32", (32, 48, 2, 3), ((16,), (16,), (), ()), (0, 2, 4, 5, 3, 1)),
    Row("OIhw4i16o4i", "s8", (32, 48, 2, 3), ((16,), (4, 4), (), ()), (0, 2, 5, 6, 3, 1, 4)),
    Row("vnni", "bf16", (20, 7), ((2,), ()), VNNI),
    Row("vnni", "u8", (20, 7), ((4,), ()), VNNI),
    Row("vnni", "s4", (24, 7), ((8,), ()), VNNI, {"pack": 8}),
    Row("amx-b", "bf16", (64, 48), ((16, 2), (16,)), AMX),
    Row("amx-b", "s8", (128, 48), ((16, 4), (16,)), AMX),
    Row("col32", "s8", (5, 96), ((), (32,)), (1, 0, 2)),
    Row("col4_4r2_8c", "s8", (24, 96), ((4, 2), (4, 2, 4)), (3, 0, 2, 4, 5, 1, 6)),
    Row("col32_2r_4r4", "s8", (96, 64), ((4, 4, 2), (32,)), (4, 0, 2, 1, 3, 5)),
    Row("nvfp4-scales", "f8e4m3fn", (256, 12), ((4, 32), (4,)), MX),
    Row("mx-scales", "u8", (256, 12), ((4, 32), (4,)), MX),
    Row("aiter-preshuffle", "f16", (48, 96), ((16,), (4, 8)), (0, 2, 3, 1, 4)),
    Row("aiter-preshuffle", "f8e4m3fnuz", (48, 96), ((16,), (2, 16)), (0, 2, 3, 1, 4)),
    Row("fractal_nz", "f16", (48, 64), ((16,), (16,)), (2, 0, 1, 3)),
    Row("fractal_nz", "f32", (48, 64), ((16,), (8,)), (2, 0, 1, 3), {"c0": 8}),
    Row("crouton", "u8", (2, 16, 24, 64), ((), (8,), (8,), (32,)), (0, 1, 3, 5, 2, 4, 6)),
    Row("crouton", "f16", (2, 16, 12, 64), ((), (8,), (2, 2), (32,)), (0, 1, 3, 6, 2, 4, 7, 5)),
    Row("blis-a", "f32", (24, 7), ((6,), ()), VNNI),
    Row("blis-a", "f64", (24, 7), ((8,), ()), VNNI, {"mr": 8}),
    Row("blis-b", "f32", (7, 48), ((), (16,)), (1, 0, 2)),
    Row("blis-b", "c64", (7, 40), ((), (8,)), (1, 0, 2)),
    Row("morton", "u32", (24, 32), ((2, 2, 2), (2, 2, 2)), (0, 4, 1, 5, 2, 6, 3, 7)),
    Row("morton", "u8", (8, 12), ((2, 2), (2, 2)), (0, 3, 1, 4, 2, 5), {"size": 4}),
    # more of oneDNN's tags, general and by kind of tensor
    Row("aBcd4b", "f32", (2, 12, 3, 5), ((), (4,), (), ()), NCHW_C),
    Row("BAc8a4b", "f32", (16, 12, 3), ((8,), (4,), ()), (2, 0, 4, 1, 3)),
    Row("ABcd8b16a2b", "bf16", (32, 32, 2, 3), ((16,), (8, 2), (), ()), (0, 2, 5, 6, 3, 1, 4)),
    Row("gOIw8o4i", "f32", (2, 16, 12, 3), ((), (8,), (4,), ()), (0, 1, 3, 5, 2, 4)),
    Row("nhwc", "f32", (2, 3, 4, 5), ((), (), (), ()), (0, 2, 3, 1)),
    Row("hwio", "f32", (2, 3, 4, 5), ((), (), (), ()), (2, 3, 1, 0)),
    Row("ldgoi", "f32", (2, 3, 4, 5, 6), ((),) * 5, (0, 1, 3, 4, 2)),
    Row("ba", "f32", (2, 3), ((), ()), (1, 0)),
)
OPEN_ENDED = tuple(row for row in ROWS if len(row.dims) == 2 and "tpu" not in row.name and row.name != "ba")


def uneven(row: Row) -> tuple[int, ...]:
    """Slightly smaller dimensions, so that blocks are partial.

    The rows of tpu stay, because its tiles depend on them.
    """
    if row.name.startswith("tpu"):
        return (row.dims[0], row.dims[1] - 1)
    return tuple(max(1, n - k - 1) for k, n in enumerate(row.dims))


def sizes(row: Row) -> tuple[tuple[int, ...], ...]:
    """Even and uneven dimensions, and some below a block, except for tpu, whose tiles depend on the size."""
    small = tuple(min(n, 3) for n in row.dims)
    return (row.dims, uneven(row)) if row.name.startswith("tpu") else (row.dims, uneven(row), small)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_format_is_its_recipe(row: Row) -> None:
    for dims in sizes(row):
        shape = tj.named_format(row.name, lookup(row.dtype), dims, **row.parameters)
        assert shape.dimensions == dims
        assert shape.primitive_type == row.dtype
        assert slots_of(shape).tolist() == row.slots(dims).tolist()
        assert tj.Shape.parse(str(shape)) == shape


@pytest.mark.parametrize("row", [row for row in ROWS if not row.name.startswith("tpu")], ids=str)
def test_the_tiles_are_the_same_at_any_size(row: Row) -> None:
    layouts = {
        tj.named_format(row.name, lookup(row.dtype), dims, **row.parameters).layout for dims in sizes(row)
    }
    assert len(layouts) == 1


@pytest.mark.parametrize("row", OPEN_ENDED, ids=str)
def test_leading_dimensions_stay_in_front(row: Row) -> None:
    dims = (2, 3, *uneven(row))
    shape = tj.named_format(row.name, lookup(row.dtype), dims, **row.parameters)
    assert slots_of(shape).tolist() == row.slots(dims).tolist()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_printed_recipe_is_the_format(row: Row) -> None:
    for dims in sizes(row):
        source: dict[str, Any] = {}
        exec(recipe_of(row.name, lookup(row.dtype), dims, **row.parameters), source)
        shape = tj.named_format(row.name, lookup(row.dtype), dims, **row.parameters)
        x = (np.arange(math.prod(dims)) + 1).reshape(dims)
        slots = row.slots(dims)
        assert source["pack"](x).tolist() == (slots + 1).tolist()
        assert source["pack"](x).size == shape.physical_size


@pytest.mark.parametrize("row", [row for row in ROWS if "tpu" not in row.name], ids=str)
def test_the_layout_depends_on_the_width_of_elements_alone(row: Row) -> None:
    want = tj.named_format(row.name, lookup(row.dtype), row.dims, **row.parameters).layout
    width = lookup(row.dtype).bits
    for element in PRIMITIVE_TYPES.values():
        if element.bits == width:
            shape = tj.named_format(row.name, element, row.dims, **row.parameters)
            assert shape.layout == want
            assert shape.primitive_type == element.name


@pytest.mark.full
@given(st.one_of(st.text(max_size=12), st.text("tpu-docblisvnmxax84=, _", max_size=12)))
def test_arbitrary_names_only_raise_layout_errors(name: str) -> None:
    for ask in (
        lambda: tj.as_layout(name, dims=(3, 4), dtype="f32"),
        lambda: tj.named_format(name, "f32", (3, 4)),
    ):
        with suppress(TilejitError):
            assert ask().dimensions == (3, 4)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "dtype", "dims"),
    [
        ("tenstorrent", "bf16", (40, 70)),
        ("nChw16c", "f32", (2, 20, 3, 5)),
        ("OIhw4i16o4i", "s8", (20, 20, 3, 3)),
        ("col32_2r_4r4", "s8", (40, 40)),
        ("nvfp4-scales", "f8e8m0fnu", (130, 5)),
        ("fractal_nz", "f16", (20, 20)),
        ("morton", "u32", (9, 9)),
    ],
    ids=str,
)
def test_pack_takes_names(name: str, dtype: str, dims: tuple[int, ...]) -> None:
    row = next(row for row in ROWS if row.name == name)
    element = primitive_type(dtype)
    assert element.numpy is not None
    x = random_elements(np.random.default_rng(7), element.numpy, math.prod(dims)).reshape(dims)
    tiled = tj.pack(x, name)
    slots = row.slots(dims)
    flat, held = x.reshape(-1).view(f"u{x.itemsize}"), tiled.buffer.view(f"u{x.itemsize}")
    assert np.array_equal(held, np.where(slots == PADDING, 0, flat[slots]))
    assert same_elements(tj.unpack(tiled), x, tiled.layout)


def test_pack_takes_parameters() -> None:
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    assert str(tj.pack(x, "blis-a", mr=4).layout) == "f32[5,7]{1,0:T(4,1)}"
    assert tj.pack(x, "blis-a", mr=4, threads=1).layout == tj.as_layout(
        "blis-a", dims=(5, 7), dtype="f32", mr=4
    )
    for text in ("blis-a, mr=4", " blis-a ,mr = 4 "):
        assert str(tj.as_layout(text, dims=(5, 7), dtype="f32")) == "f32[5,7]{1,0:T(4,1)}"
    for text, says in (
        ("blis-a,", "KEY=VALUE"),
        ("blis-a, mr", "KEY=VALUE"),
        ("blis-a, mr=x", "KEY=VALUE"),
        ("blis-a, mr=-4", "mr is -4"),
        ("blis-a, mr=" + "9" * 9999, "KEY=VALUE"),
        ("blis-a, mr=4, mr=4", "twice"),
        ("blis-a, mr=0", "mr is 0"),
        ("nope, mr=4", "unknown format 'nope'"),
    ):
        with pytest.raises(LayoutError, match=says):
            tj.as_layout(text, dims=(5, 7), dtype="f32")
    with pytest.raises(LayoutError, match="keyword"):
        tj.as_layout("blis-a, mr=4", dims=(5, 7), dtype="f32", mr=4)
    with pytest.raises(TypeError, match="'nr'"):
        tj.pack(x, "blis-a", nr=4)
    with pytest.raises(TypeError, match="mr"):
        tj.pack(x, "{1,0}", mr=4)
    for name in ("dims", "dtype"):
        with pytest.raises(TypeError, match=name):
            tj.pack(x, "blis-a", **{name: 3})


PARAMETERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gptq-checkpoint", {"group": -1}),
    ("bitsandbytes-nf4", {"nested": True, "blocksize": 128}),
    ("tenstorrent", {"tile": (16, 32)}),
    ("tenstorrent", {"tile": (16, 32), "face": 16}),
    ("one", {"tile": (8,)}),
    ("tpu", {}),
)


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS, ids=str)
def test_the_text_of_a_call_is_read_back(name: str, parameters: dict[str, Any]) -> None:
    found = read_call(call_text(name, parameters))
    assert found == (name, parameters)
    assert [*map(type, found[1].values())] == [*map(type, parameters.values())]


def test_text_with_several_numbers_is_the_name_of_a_format() -> None:
    want = tj.named_format("tenstorrent", "f32", (40, 70), tile=(16, 32))
    for text in ("tenstorrent, tile=(16,32)", "tenstorrent ,tile = ( 16 , 32 )"):
        assert tj.as_layout(text, dims=(40, 70), dtype="f32") == want
    for text in ("tenstorrent, tile=(16,", "tenstorrent, tile=()", "tenstorrent, tile=(16,32)x"):
        with pytest.raises(LayoutError):
            tj.as_layout(text, dims=(40, 70), dtype="f32")


def test_text_and_keywords_give_a_parameter_once() -> None:
    x = np.zeros((32, 4), np.uint8)
    for layout in ("gptq, bits=3", "gptq-act-order, bits=3"):
        with pytest.raises(LayoutError, match="bits is given both in the text and as a keyword"):
            tj.pack(x, layout, bits=8)
    with pytest.raises(LayoutError, match="has no parameter 'bit'"):
        tj.pack(x, "gptq-act-order, bit=3")


def test_layouts_of_one_array_take_a_width() -> None:
    x = np.arange(64, dtype=np.uint8).reshape(16, 4) % 16
    packed = tj.pack(x, "rope-rows", element_size_in_bits=4)
    assert packed.buffer.nbytes == 32
    np.testing.assert_array_equal(np.asarray(packed.unpack()).astype(np.uint8), x)
    with pytest.raises(TypeError, match="element_size_in_bits"):
        tj.pack(x, "gptq-act-order", element_size_in_bits=4)


@pytest.mark.parametrize(
    ("name", "dims", "dtype", "parameters", "says"),
    [
        ("tenstorrent", (5,), "f32", {}, r"2 or more dimensions, the last M, N; got an array \[5\]"),
        ("crouton", (5, 5, 5), "uint8", {}, "takes 4 dimensions, the last N, H, W, C"),
        ("NC1HWC0", (1, 2, 3, 4, 5), "f16", {}, "takes 4 dimensions"),
        ("nChw16c", (5, 5), "f32", {}, "takes 4 dimensions, the last n, C, h, w"),
        ("vnni", (4, 4), "f32", {}, "no rule for f32"),
        ("vnni", (4, 4), "s4", {}, "pack="),
        ("amx-b", (4, 4), "c64", {}, "no rule"),
        ("NC1HWC0", (1, 2, 3, 4), "f32", {}, "c0="),
        ("aiter-preshuffle", (4, 4), "f64", {}, "no rule"),
        ("nvfp4-scales", (4, 4), "f32", {}, "stores codes of 8 bits, got f32"),
        ("mx-scales", (4, 4), "f4e2m1fn", {}, "stores codes of 8 bits, got f4e2m1fn"),
        ("crouton", (4, 4, 4, 4), "f32", {}, "no rule"),
        ("tenstorrent", (4, 4), "f32", {"tile": (32, 24)}, "faces of"),
        ("tenstorrent", (4, 4), "f32", {"tile": (32, 32, 32)}, "3 sizes"),
        ("tenstorrent", (4, 4), "f32", {"tile": 32, "face": 64}, "faces of 64 x 64"),
        ("tenstorrent", (4, 4), "f32", {"tile": (16, 64), "face": 32}, "faces of 32 x 32"),
        ("blis-a", (4, 4), "f32", {"mr": 0}, "mr is 0"),
        ("blis-a", (4, 4), "f32", {"mr": 10**400}, "a number of"),
        ("blis-b", (4, 4), "f32", {"nr": 2**62}, r"2\^63 bits"),
        ("morton", (4, 4), "f32", {"size": 6}, "power of two"),
        ("morton", (4, 4), "f32", {"size": 2**40}, "power of two"),
        ("tenstorrent", (-1, 4), "f32", {}, "dimension is ?"),
        ("tenstorrent", (4, 2**70), "f32", {}, "71 bits"),
        ("tenstorrent", (4, 4), "token", {}, "cannot have the dtype token"),
    ],
    ids=str,
)
def test_arguments_that_formats_refuse(
    name: str, dims: tuple[int, ...], dtype: str, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(LayoutError, match=says):
        tj.named_format(name, dtype, dims, **parameters)


@pytest.mark.parametrize("value", ["8", 1.5, None, [8], b"8"], ids=str)
def test_parameters_are_integers(value: Any) -> None:
    with pytest.raises(TypeError, match="mr: expected an integer"):
        tj.named_format("blis-a", "f32", (4, 4), mr=value)


@pytest.mark.parametrize(("name", "flag"), [("bitsandbytes-nf4", "nested"), ("aiter-scale-a16w4", "gate_up")])
@pytest.mark.parametrize("value", [0, 2, None, "yes"])
def test_flags_are_true_or_false(name: str, flag: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{flag}: expected True or False"):
        tj.pack(np.zeros((64, 64), np.uint8), name, **{flag: value})


def test_empty_arrays_have_empty_buffers() -> None:
    for row in ROWS:
        dims = (0, *row.dims[1:])
        assert tj.named_format(row.name, lookup(row.dtype), dims, **row.parameters).physical_size == 0


def test_faces_shrink_with_the_tile_by_default() -> None:
    assert str(tj.named_format("tenstorrent", "f32", (64, 64), tile=(8, 32)).layout) == "{1,0:T(8,32)(8,16)}"
    assert str(tj.named_format("tenstorrent", "f32", (64, 64), tile=32, face=32).layout) == "{1,0:T(32,32)}"


@pytest.mark.parametrize(
    ("layout", "parameters"),
    [
        ("tenstorrent", {"tile": True}),
        ("tenstorrent", {"tile": (True, 32)}),
        ("tenstorrent", {"face": (16, 1.5)}),
        ("blis-a", {"mr": True}),
        ("(m mi) n -> m n mi", {"mi": True}),
    ],
    ids=str,
)
def test_sizes_that_are_not_integers_are_refused(layout: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="expected an integer, got"):
        tj.as_layout(layout, dims=(64, 64), dtype="f32", **parameters)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tenstorent", "write 'tenstorrent'"),
        ("nvfp4", "write 'nvfp4-scales'"),
        ("Blis A", "write 'blis-a'"),
        ("marlin", "write 'marlin-int4'"),
        ("exotic", "write one of"),
        ("t", "write one of"),
    ],
)
def test_only_similar_names_are_suggested(name: str, near: str) -> None:
    with pytest.raises(LayoutError, match=near):
        tj.named_format(name, "f32", (4, 4))


@pytest.mark.parametrize("name", ["tpu", "NC1HWC0", "hqq-3bit-32", "ggml-q4_0"])
def test_names_of_formats_may_be_in_upper_or_lower_case(name: str) -> None:
    for other in (name.upper(), name.lower(), name.title()):
        assert find_format(other) is find_format(name)
