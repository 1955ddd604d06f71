"""Packs, unpacks and assignments warn as NumPy's casts do, obey np.errstate, and spare `out` if it raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj

TILES = "{1,0:T(2,2)}"
OVERFLOW, INVALID = "overflow encountered in cast", "invalid value encountered in cast"
Array = np.ndarray[Any, np.dtype[Any]]


def spoiled(value: float, dtype: Any, shape: tuple[int, int] = (5, 7)) -> Array:
    """Ones with one other value, between rows and columns that no result may depend on."""
    wide = np.full((shape[0] + 2, shape[1] + 9), np.nan, dtype)
    x = wide[1:-1, 4:-5]
    x[...] = 1
    x[-1, -1] = value
    return x


def said(action: Callable[[], object]) -> list[str]:
    """The messages of the warnings, each once; all of them name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


CASTS = [
    (np.nan, "f32", "s8", INVALID),
    (3e9, "f32", "s32", INVALID),
    (1e300, "f64", "f32", OVERFLOW),
    (1e300, "f64", "bf16", OVERFLOW),
    (7e4, "f32", "f16", OVERFLOW),
    (2**62, "f32", "f8e4m3fn", ""),  # ml_dtypes converts f32 in integer arithmetic
    (1e-300, "f64", "f32", ""),
    (np.inf, "f64", "f32", ""),
    (np.nan, "f32", "s4", ""),
]


@pytest.mark.full
@pytest.mark.parametrize(("value", "have", "want", "words"), CASTS)
def test_packs_and_unpacks_say_what_astype_says(value: float, have: str, want: str, words: str) -> None:
    x = spoiled(value, tj.parse_shape(f"{have}[1]").dtype)
    dtype = tj.parse_shape(f"{want}[1]").dtype
    t = tj.pack(x, f"{have}[5,7]{TILES}")
    t.buffer.view(np.uint8)[-x.itemsize :] = 0xFF  # NaN in the padding
    expected = [words] if words else []
    assert said(lambda: x.astype(dtype)) == expected
    for _ in range(3):  # later calls have a native fast path
        assert said(lambda: tj.pack(x, f"{want}[5,7]{TILES}", casting="unsafe")) == expected
        assert said(lambda: tj.unpack(t, dtype=want, casting="unsafe")) == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_leave_out_untouched(threads: int) -> None:
    x = spoiled(1e300, np.float64, (260, 300))
    layout = f"f32[260,300]{TILES}"
    packed = tj.pack(np.full(x.shape, 7, np.float32), layout, padding=3)
    array = np.full((520, 600), 7, np.float32)
    source, old = tj.pack(x, f"f64[260,300]{TILES}"), packed.buffer.tobytes()
    for errors in ("raise", "call", "error"):
        with warnings.catch_warnings(), np.errstate(over="warn" if errors == "error" else errors, call=fail):
            warnings.simplefilter("error")
            for action in (
                lambda: tj.pack(x, layout, out=packed, casting="unsafe", threads=threads),
                lambda: tj.pack(x, layout, out=packed, padding="keep", casting="unsafe", threads=threads),
                lambda: tj.unpack(source, out=array[::2, ::-2], casting="unsafe", threads=threads),
            ):
                with pytest.raises((FloatingPointError, RuntimeWarning), match="overflow"):
                    action()
                assert packed.buffer.tobytes() == old
                assert (array == 7).all()
    with np.errstate(over="ignore"):
        tj.pack(x, layout, out=packed, casting="unsafe", threads=threads)
    assert packed[259, 299] == np.inf


def fail(words: str, flag: int) -> None:
    raise FloatingPointError(words)


def test_values_that_numpy_ignores_raise_nothing() -> None:
    """Neither padding nor the neighbors of a view count, and underflow is ignored by default."""
    x = spoiled(1e-300, np.float64, (60, 130))
    with np.errstate(over="raise", invalid="raise"):
        t = tj.pack(x, "f32[60,130]{1,0:T(8,128)}", casting="same_kind")
    assert np.array_equal(np.asarray(t), x.astype(np.float32))
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        tj.pack(x, "f32[60,130]{1,0:T(8,128)}", casting="same_kind")


@pytest.mark.full
def test_f16_reports_underflow_if_asked() -> None:
    x = spoiled(1e-9, np.float32)
    target = tj.pack(np.zeros((5, 7), np.float16), f"f16[5,7]{TILES}")
    with np.errstate(under="raise"):
        for action in (
            lambda: tj.pack(x, f"f16[5,7]{TILES}", casting="same_kind"),
            lambda: tj.pack(x, target.layout, out=target, casting="same_kind"),
            lambda: target.__setitem__(np.s_[:], x),
        ):
            with pytest.raises(FloatingPointError, match="underflow encountered in cast"):
                action()
    assert not np.asarray(target).any()
    assert said(lambda: tj.pack(x, f"f16[5,7]{TILES}", casting="same_kind")) == []


@pytest.mark.full
def test_discarded_imaginary_parts_warn() -> None:
    x = np.full((5, 7), 1 + 2j)
    words = ["Casting complex values to real discards the imaginary part"]
    assert said(lambda: tj.pack(x, f"f32[5,7]{TILES}", casting="unsafe")) == words
    assert said(lambda: tj.pack(x, f"bf16[5,7]{TILES}", casting="unsafe")) == words
    assert said(lambda: tj.pack(x, f"c64[5,7]{TILES}", casting="same_kind")) == []


@pytest.mark.full
@pytest.mark.parametrize("value", [1e300, np.full((2, 7), 1e300), np.float64(1e300), [1e300] * 7], ids=str)
def test_assignments_warn(value: Any) -> None:
    t = tj.pack(np.ones((5, 7), np.float32), TILES)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match=OVERFLOW):
        t[1:3] = value
    assert (np.asarray(t) == 1).all()
    assert said(lambda: t.__setitem__(np.s_[1:3], value)) == [OVERFLOW]
    assert np.asarray(t)[1:3].tolist() == [[np.inf] * 7] * 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("have", "want", "is_same_kind"),
    [
        ("f32", "s4", False),
        ("bf16", "s8", False),
        ("f32", "uint4", False),
        ("c64", "bf16", False),
        ("s8", "uint8", False),
        ("bf16", "f16", True),
        ("f8e4m3fn", "f16", True),
        ("f32", "f4e2m1fn", True),
        ("s64", "bf16", True),
        ("s64", "s4", True),
        ("u4", "s8", True),
        ("pred", "s4", True),
    ],
)
def test_kinds_include_the_types_of_ml_dtypes(have: str, want: str, is_same_kind: bool) -> None:
    """np.can_cast allows float32 to int4, complex64 to bfloat16, and not bfloat16 to float16."""
    x = np.ones((2, 2), tj.parse_shape(f"{have}[1]").dtype)
    if is_same_kind:
        assert (np.asarray(tj.pack(x, f"{want}[2,2]", casting="same_kind")).astype(np.float32) == 1).all()
        return
    with pytest.raises(tj.LayoutError, match="pass casting='unsafe'"):
        tj.pack(x, tj.make_shape(want, (2, 2)), casting="same_kind")
    with pytest.raises(tj.LayoutError, match="pass casting='unsafe'"):
        tj.unpack(tj.pack(x, f"{have}[2,2]"), dtype=want, casting="same_kind")


def test_copies_of_custom_types_warn_as_ml_dtypes_does() -> None:
    x = np.full((4, 6), 1e300)
    want = said(lambda: x.astype(ml_dtypes.float4_e2m1fn))
    assert said(lambda: tj.pack(x, "f4e2m1fn[4,6]", casting="same_kind")) == want
