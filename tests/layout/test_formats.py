from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.support.errors import LayoutError
from tilejit import make_shape, pack
from tilejit.layout.as_layout import as_layout, named_format
from tilejit.layout.formats import describe_format, formats
from tilejit.layout.shape import Layout, Shape


@pytest.mark.parametrize(
    ("dims", "dtype", "layout"),
    [
        ((), "f32", "{:T(128)}"),
        ((), "s8", "{:T(512)}"),
        ((), "s4", "{:T(1024)E(4)}"),
        ((5,), "f32", "{0:T(128)}"),
        ((129,), "f32", "{0:T(256)}"),
        ((5000,), "f32", "{0:T(1024)}"),
        ((5,), "bf16", "{0:T(256)(128)(2,1)}"),
        ((2048,), "bf16", "{0:T(1024)(128)(2,1)}"),
        ((100,), "pred", "{0:T(512)(128)(4,1)}"),
        ((100,), "s4", "{0:T(1024)(128)(8,1)E(4)}"),
        ((33, 300), "f32", "{1,0:T(8,128)}"),
        ((2, 300), "f32", "{1,0:T(2,128)}"),
        ((3, 300), "f32", "{1,0:T(4,128)}"),
        ((300, 3), "f32", "{0,1:T(4,128)}"),
        ((33, 300), "bf16", "{1,0:T(8,128)(2,1)}"),
        ((1, 300), "bf16", "{1,0:T(2,128)(2,1)}"),
        ((32, 128), "s8", "{1,0:T(32,128)(4,1)}"),
        ((40, 128), "s8", "{1,0:T(8,128)(4,1)}"),
        ((64, 128), "s4", "{1,0:T(64,128)(8,1)E(4)}"),
        ((64, 130), "s4", "{1,0:T(64,128)(8,1)E(4)}"),
        ((70, 130), "s4", "{0,1:T(8,128)(8,1)E(4)}"),  # 136 x 128 elements; {1,0} takes 72 x 256
        ((16, 128), "f64", "{1,0:T(8,128)}"),
        ((16, 128), "c64", "{1,0:T(8,128)}"),
        ((2, 3, 8, 128), "f32", "{3,2,1,0:T(8,128)}"),
        ((0, 128), "f32", "{1,0}"),
        ((128, 2, 8), "f32", "{0,2,1:T(8,128)}"),
    ],
)
def test_tpu(dims: tuple[int, ...], dtype: str, layout: str) -> None:
    assert str(named_format("tpu", dtype, dims).layout) == layout


@given(
    st.lists(
        st.sampled_from([1, 2, 3, 5, 7, 8, 12, 32, 33, 64, 100, 128, 130, 256, 300]), min_size=2, max_size=4
    ),
    st.sampled_from([("f32", 1), ("bf16", 2), ("s8", 4), ("s4", 8)]),
)
def test_tpu_takes_the_pair_with_the_least_padding(dims: list[int], dtype: tuple[str, int]) -> None:
    name, packing = dtype
    full = {1: 8, 2: 8, 4: 32, 8: 64}[packing]

    def height(n: int) -> int:
        return (
            full if n % full == 0 else next(packing * 2**k for k in range(9) if packing * 2**k >= min(n, 8))
        )

    def cost(minor: int, second: int) -> tuple[int, bool, int, int]:
        wide = list(dims)
        wide[minor] = -(-dims[minor] // 128) * 128
        wide[second] = -(-dims[second] // height(dims[second])) * height(dims[second])
        return math.prod(wide), (minor, second) != (len(dims) - 1, len(dims) - 2), -minor, -second

    pairs = [(m, s) for m in range(len(dims)) for s in range(len(dims)) if m != s]
    best = min(pairs, key=lambda pair: cost(*pair))
    shape = named_format("tpu", name, dims)
    assert shape.minor_to_major[:2] == best
    assert list(shape.minor_to_major[2:]) == sorted(shape.minor_to_major[2:], reverse=True)
    assert shape.tiles[0] == (height(dims[best[1]]), 128)
    assert shape.physical_size == cost(*best)[0]


def test_tpu_answers_quickly_at_any_rank() -> None:
    assert named_format("tpu", "f32", (1,) * 900 + (7, 9)).minor_to_major[:2] == (901, 899)
    with pytest.raises(LayoutError, match="1024"):
        named_format("tpu", "f32", (1,) * 20_000 + (7, 9))


@pytest.mark.parametrize(
    ("dims", "dtype", "layout"),
    [
        ((2, 300), "f32", "{1,0:T(2,128)}"),
        ((3, 300), "f32", "{1,0:T(4,128)}"),
        ((300, 3), "f32", "{1,0:T(8,128)}"),
        ((5, 300), "bf16", "{1,0:T(8,128)(2,1)}"),
        ((5, 300), "f8e4m3fn", "{1,0:T(8,128)(4,1)}"),
        ((5, 300), "pred", "{1,0:T(32,128)(32,1)E(1)}"),
        ((5, 300), "f64", "{1,0}"),
        ((300,), "bf16", "{0}"),
        ((), "f32", "{}"),
    ],
)
def test_tpu_doc(dims: tuple[int, ...], dtype: str, layout: str) -> None:
    assert str(named_format("tpu-doc", dtype, dims).layout) == layout


def test_formats_without_a_rule_say_so() -> None:
    for name, dtype in (("tpu", "s2"), ("tpu", "f6e2m3fn"), ("tpu-doc", "s4")):
        with pytest.raises(LayoutError, match="no rule"):
            named_format(name, dtype, (64, 128))
    with pytest.raises(LayoutError):
        named_format("tpu", "token", ())


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "dtype", "advice"),
    [
        *(("tpu", f"int{bits}", "convert to s8") for bits in (1, 2)),
        *(("tpu", f"uint{bits}", "convert to uint8") for bits in (1, 2)),
        *(("tpu", f"float6_e{e}m{5 - e}fn", "convert to f8e4m3fn") for e in (2, 3)),
        ("tpu-doc", "uint1", "convert to uint8"),
        ("tpu-doc", "uint4", "write 'tpu'"),
        ("tpu-doc", "float4_e2m1fn", "write 'tpu'"),
    ],
)
def test_the_advice_of_formats_without_a_rule_works(name: str, dtype: str, advice: str) -> None:
    for dims in ((5,), (70, 130), (2, 9, 140)) if name == "tpu" else ((70, 130), (2, 9, 140)):
        x = (np.arange(math.prod(dims)) % 2).reshape(dims).astype(getattr(ml_dtypes, dtype))
        with pytest.raises(LayoutError, match=f"(?s)no rule for .*, or {advice}$") as caught:
            pack(x, name)
        (layout,) = re.findall(r"e\.g\. (\S+), or", str(caught.value))
        assert (pack(x, layout).unpack() == x).all()
        other = advice.split()[-1].strip("'")
        if advice.startswith("write"):
            assert (pack(x, other).unpack() == x).all()
        else:
            assert (pack(x.astype(make_shape(other, ()).dtype), name).unpack() == x).all()


def test_unknown_names_list_the_formats() -> None:
    assert formats()[:2] == ("tpu", "tpu-doc")
    assert all("\n" not in describe_format(name).description for name in formats())
    with pytest.raises(LayoutError, match="write 'tpu-doc'"):
        named_format("tpu_doc", "f32", (2,))
    with pytest.raises(LayoutError, match=f"and {len(formats()) - 6} more, which tilejit.formats") as caught:
        named_format("x" * 10_000, "f32", (2,))
    assert f"write one of {', '.join(formats()[:6])} and" in str(caught.value)
    with pytest.raises(TypeError, match="takes none"):
        named_format("tpu", "f32", (2,), block=3)
    assert describe_format("tpu").parameters == ()


@pytest.mark.parametrize(
    ("obj", "more", "text"),
    [
        ("bf16[5,7]{1,0:T(8,128)(2,1)}", {}, "bf16[5,7]{1,0:T(8,128)(2,1)}"),
        ("bf16[5,7]", {"dims": [5, 7], "dtype": "f32"}, "bf16[5,7]{1,0}"),
        (" /* c */ {0,1:T(2,2)}", {"dims": (5, 7), "dtype": np.float32}, "f32[5,7]{0,1:T(2,2)}"),
        (Layout((0, 1)), {"dims": (5, 7), "dtype": ml_dtypes.bfloat16}, "bf16[5,7]{0,1}"),
        (
            "{1,0:T(8,128)}",
            {"dims": np.zeros((5, 7)).shape, "dtype": np.dtype(">f8")},
            "f64[5,7]{1,0:T(8,128)}",
        ),
        (" tpu ", {"dims": (5, 7), "dtype": "bool"}, "pred[5,7]{1,0:T(8,128)(4,1)}"),
        ("f32[?,7]", {"dims": (5, 7)}, "f32[?,7]{1,0}"),
        ("f32[<=5]", {"dims": (5,)}, "f32[<=5]{0}"),
    ],
)
def test_as_layout(obj: Any, more: dict[str, Any], text: str) -> None:
    shape = as_layout(obj, **more)
    assert str(shape) == text
    assert as_layout(shape, dims=more.get("dims")) is shape


@pytest.mark.parametrize(
    ("obj", "more", "says"),
    [
        ("{1,0}", {"dims": (2, 3)}, "dtype"),
        ("{1,0}", {"dtype": "f32"}, "dims"),
        ("tpu", {}, "dtype and dims"),
        ("tup", {}, "unknown format"),
        ("{1,0}", {"dims": (2,), "dtype": "f32"}, "2 dimensions, but the shape has 1"),
        ("f32[2,3]", {"dims": (3, 2)}, r"\[2,3\].*\[3,2\]"),
        ("f32[2,3]", {"dims": (6,)}, r"\[2,3\].*\[6\]"),
        ("(f32[2])", {}, "tuple"),
        ("b(f32[2])", {}, "buffer"),
        ("token[]", {}, "token"),
        ("", {}, "expected a layout, got ''"),
        ("f32[2", {}, "missing"),
        ("x" * 100_000, {}, "unknown format"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_as_layout_refuses(obj: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        as_layout(obj, **more)


@pytest.mark.parametrize("obj", [None, 3, b"tpu", ("tpu",), np.float32])
def test_as_layout_wrong_types(obj: Any) -> None:
    with pytest.raises(TypeError):
        as_layout(obj, dims=(2,), dtype="f32")


def test_parameters_belong_to_formats() -> None:
    with pytest.raises(TypeError, match="block"):
        as_layout("f32[2]", block=3)
    assert isinstance(as_layout("tpu", dims=(2,), dtype="f32"), Shape)
