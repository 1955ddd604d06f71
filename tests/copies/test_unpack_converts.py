"""`unpack` into other dtypes gives the bits of NumPy's astype on the unpacked array."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded
from tilejit.layout.dtypes import lookup

LAYOUTS = ("{1,0:T(8,128)}", "{0,1:T(2,2)}", "(5,7):(1,5)", "Sw<1,1,2> o 0 o (8,8):(8,1)")
PAIRS = [
    *(("f32", "f64"), ("f64", "f32"), ("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("s8", "f32")),
    *(("s32", "s64"), ("s64", "s16"), ("u8", "f16"), ("f32", "s32"), ("c64", "c128"), ("pred", "s32")),
    *(("s4", "s8"), ("s4", "f32"), ("u4", "u8"), ("f8e4m3fn", "f32"), ("c64", "f32"), ("f16", "pred")),
]


def dtype_of(name: str) -> np.dtype[Any]:
    found = tj.make_shape(lookup(name), (1,)).dtype
    assert found is not None
    return found


@pytest.mark.full
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("have", "want"), PAIRS)
def test_conversions_agree_with_astype(layout: str, have: str, want: str) -> None:
    rng = np.random.default_rng(23)
    x = rng.integers(0, 7, (5, 7)).astype(dtype_of(have))
    t = tj.pack(x, layout)
    real = x.real if x.dtype.kind == "c" and want[0] != "c" else x
    expected = real.astype(dtype_of(want))
    got = tj.unpack(t, dtype=expected.dtype, casting="unsafe")
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()
    out = np.zeros((7, 5), expected.dtype).T
    assert t.unpack(out=out, casting="unsafe") is out
    assert np.ascontiguousarray(out).tobytes() == expected.tobytes()


@pytest.mark.full
@pytest.mark.parametrize("name", ["f32", "s16", "c64", "u8", "f64"])
def test_either_byte_order(name: str) -> None:
    rng = np.random.default_rng(23)
    x = rng.integers(0, 99, (37, 300)).astype(dtype_of(name))
    for layout in LAYOUTS[:2]:
        t = tj.pack(x, layout)
        out = np.zeros(x.shape, x.dtype.newbyteorder(">"))
        tj.unpack(t, out=out)
        assert np.array_equal(out, x)
        assert tj.unpack(t, dtype=out.dtype).tobytes() == out.tobytes()


def test_large_conversions_go_through_numpy() -> None:
    """No kernel converts packed elements, so NumPy converts them in pieces."""
    rng = np.random.default_rng(23)
    x = rng.integers(-8, 8, (700, 1100)).astype(ml_dtypes.int4)
    t = tj.pack(x, "{1,0:T(8,128)E(4)}")
    assert np.array_equal(tj.unpack(t, dtype="f32", casting="unsafe"), x.astype(np.float32))
    assert np.array_equal(tj.unpack(t, dtype="s8", casting="safe"), x.astype(np.int8))


def test_between_guard_pages() -> None:
    rng = np.random.default_rng(23)
    x = rng.random((37, 300)).astype(np.float32)
    t = tj.pack(x, LAYOUTS[0])
    memory = Guarded(x.size * 2)
    for at_end in (False, True):
        out = memory.place(x.size * 2, at_end=at_end).view(np.float16).reshape(x.shape)
        tj.unpack(t, out=out, casting="same_kind")
        assert np.array_equal(out, x.astype(np.float16))
        assert memory.untouched()


def test_wrong_arguments_are_refused() -> None:
    x = np.zeros((3, 5), np.float32)
    t = tj.pack(x, "{1,0:T(2,2)}")
    out = np.full((3, 5), 7, np.float64)
    for call in (
        lambda: tj.unpack(t, out=out),
        lambda: tj.unpack(t, out=out, dtype="f32", casting="unsafe"),
        lambda: tj.unpack(t, dtype="f64"),
        lambda: tj.unpack(t, dtype="token"),
        lambda: tj.unpack(t, dtype=np.dtype([("a", "f4")]), casting="unsafe"),
        lambda: tj.unpack(t, dtype=np.dtype(object), casting="unsafe"),
        lambda: tj.unpack(t, dtype="nothing"),
        lambda: tj.unpack(t, casting="any"),
    ):
        with pytest.raises(tj.LayoutError):
            call()
    for wrong in (lambda: tj.unpack(t, dtype=3), lambda: tj.unpack(t, casting=3)):
        with pytest.raises(TypeError):
            wrong()
    assert (out == 7).all()


def test_a_plain_buffer_has_the_dtype_of_its_layout() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    t = tj.pack(x, "blis-a", mr=2)
    assert np.array_equal(tj.unpack(t.buffer, "blis-a", dims=(3, 5), dtype="f32", mr=2), x)
    wide = tj.unpack(t.buffer, str(t.layout), dtype="f64", casting="safe")
    assert wide.dtype == np.float64
    assert np.array_equal(wide, x)


def test_masked_results_are_refused() -> None:
    """A write under a mask would not be visible."""
    t = tj.pack(np.ones((3, 5), np.float32), "{1,0:T(2,2)}")
    out = np.ma.masked_array(np.zeros((3, 5), np.float32), mask=True)
    with pytest.raises(TypeError, match="masked"):
        tj.unpack(t, out=out)
    assert not out.data.any()
