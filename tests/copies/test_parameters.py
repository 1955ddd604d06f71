"""Keywords of formats and patterns work in every call that reads a layout."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.copies.test_tiles import filled

X = np.arange(11 * 30, dtype=np.float32).reshape(11, 30)
PATTERN = "(m mi) (n ni) -> m n mi ni"
LAYOUTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("blis-a", {"mr": 4}, "{1,0:T(4,1)}"),
    ("tenstorrent", {"tile": (8, 16), "face": 4}, "{1,0:T(8,16)(4,4)}"),
    (PATTERN, {"mi": 8, "ni": 16}, "{1,0:T(8,16)}"),
)
by_layout = pytest.mark.parametrize(("layout", "parameters", "text"), LAYOUTS)


@by_layout
def test_every_call_accepts_parameters(layout: str, parameters: dict[str, Any], text: str) -> None:
    packed = tj.pack(X, text)
    data, array = packed.buffer.tobytes(), {"dims": X.shape, "dtype": "f32"}
    tiled = tj.TiledArray.from_buffer(data, layout, **array, **parameters)
    assert tiled.layout == packed.layout
    for got in (
        tj.unpack(data, layout, **array, **parameters),
        tj.unpack(packed, layout, **parameters),
        tj.unpack(tiled, out=np.empty_like(X)),
    ):
        assert np.array_equal(got, X)
    again = tj.relayout(tj.pack(X, "{0,1}"), layout, **parameters)
    assert again.layout == packed.layout
    assert again.buffer.tobytes() == data


@by_layout
def test_explain_passes_parameters_to_the_side_that_takes_them(
    layout: str, parameters: dict[str, Any], text: str
) -> None:
    full = f"f32[11,30]{text}"
    pairs = (
        ((full, None), tj.explain(layout, X, **parameters)),
        ((None, full), tj.explain(X, layout, **parameters)),
        ((full, "f32[11,30]{0,1}"), tj.explain(layout, "f32[11,30]{0,1}", **parameters)),
        (("f32[11,30]{1,0:T(8,128)}", full), tj.explain(tj.pack(X, "{1,0:T(8,128)}"), layout, **parameters)),
        ((full, "f32[11,30]{1,0:T(8,128)}"), tj.explain(layout, "tpu", **ARRAY, **parameters)),
    )
    for sides, explained in pairs:
        assert explained.nest == tj.explain(*sides).nest


ARRAY: dict[str, Any] = {"dims": (11, 30), "dtype": "f32"}


def test_explain_of_dims_and_dtype() -> None:
    assert tj.explain("tpu", None, **ARRAY).nest == tj.explain("tpu", X).nest
    assert tj.explain(None, None, **ARRAY).nest == tj.explain(X.copy(), X).nest


def test_a_buffer_of_narrow_elements_by_name() -> None:
    x = (np.arange(77).reshape(7, 11) % 15 - 7).astype(ml_dtypes.int4)
    t = tj.pack(x, "tpu")
    assert tj.unpack(t, "tpu").tolist() == x.tolist()
    assert tj.unpack(t.buffer, "tpu", dims=x.shape, dtype="s4").tolist() == x.tolist()


T = filled(tj.as_layout("blis-a", dims=X.shape, dtype="f32", mr=4))


def test_layouts_without_parameters_say_so() -> None:
    for layout, what in (
        ("{1,0}", "the text '{1,0}'"),
        (tj.Layout((1, 0)), "a Layout"),
        (T.layout, "a Shape"),
    ):
        with pytest.raises(TypeError, match=re.escape(f"{what} has no parameter 'foo'\n  omit it")):
            tj.relayout(T, layout, foo=1)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "unpack without a layout": (lambda: tj.unpack(T, mr=4), TypeError, "'mr'"),
    "unpack of another size": (lambda: tj.unpack(T, "blis-a", mr=5), tj.LayoutError, "not"),
    "unpack with other dims": (
        lambda: tj.unpack(T, "blis-a", dims=(2, 3)),
        TypeError,
        "does not take dims",
    ),
    "unpack of a buffer": (lambda: tj.unpack(T.buffer, "blis-a", mr=4), tj.LayoutError, "dtype and dims"),
    "a buffer without dtype": (
        lambda: tj.TiledArray.from_buffer(T.buffer, "blis-a", dims=(11, 30)),
        tj.LayoutError,
        "dtype",
    ),
    "a buffer and a full shape": (
        lambda: tj.TiledArray.from_buffer(T.buffer, "f32[11,30]{1,0}", mr=4),
        TypeError,
        "'mr'",
    ),
    "an unknown parameter": (lambda: tj.relayout(T, "blis-a", nr=4), TypeError, "it takes mr"),
    "a misspelled keyword": (
        lambda: tj.pack(X, "tenstorrent", thread=1),
        TypeError,
        r"no parameter 'thread'; it takes tile, face\n  did you mean threads, a keyword of pack",
    ),
    "a misspelled keyword of a layout without parameters": (
        lambda: tj.pack(X, "{1,0}", paddings=1),
        TypeError,
        r"omit it.*\n  did you mean padding, a keyword of pack",
    ),
    "a misspelled parameter": (
        lambda: tj.pack(X, "tenstorrent", tiles=16),
        TypeError,
        r"no parameter 'tiles'.*\n  did you mean tile\?$",
    ),
    "a misspelled keyword with a pattern": (
        lambda: tj.pack(X, PATTERN, mi=8, ni=2, thread=1),
        TypeError,
        r"no axis 'thread'; it has .*\n  did you mean threads,",
    ),
    "a layout of another shape": (
        lambda: tj.pack(X, "f32[300,100]{1,0}"),
        tj.LayoutError,
        r"expected an array of shape \[300,100\], got \[11,30\]\n  pass a layout",
    ),
    "relayout with a dtype": (
        lambda: tj.relayout(T, "blis-a", dtype="f32"),
        TypeError,
        "does not take dtype",
    ),
    "pack with a dtype": (
        lambda: tj.pack(X, "tpu", dtype="f4"),
        TypeError,
        "does not take dtype.*\n.*with astype",
    ),
    "pack with dims": (
        lambda: tj.pack(X, "tpu", dims=(2, 3)),
        TypeError,
        "does not take dims.*\n  omit dims$",
    ),
    "an empty text": (lambda: tj.pack(X, " "), tj.LayoutError, "expected a layout, got ' '\n  write"),
    "a size of an unknown axis": (lambda: tj.relayout(T, PATTERN, mi=8, k=2), TypeError, "no axis"),
    "a size too small": (lambda: tj.relayout(T, PATTERN, m=1, mi=8, ni=2), tj.LayoutError, "dimension 0"),
    "explain between arrays": (lambda: tj.explain(X.copy(), X, mr=4), TypeError, "'mr'"),
    "explain of a full shape": (lambda: tj.explain("f32[2,3]{1,0}", None, mr=4), TypeError, "'mr'"),
    "explain with too many dims": (lambda: tj.explain("tpu", X, dims=(11, 30)), TypeError, "already"),
    "explain without dtype": (lambda: tj.explain("tpu", None, dims=(11, 30)), tj.LayoutError, "dtype"),
    "explain with an unknown size": (
        lambda: tj.explain(None, None, dims=(-1, 3), dtype="f32"),
        tj.LayoutError,
        "size",
    ),
    "explain with overlapping arrays": (
        lambda: tj.explain("(11,30):(1,1)", X),
        tj.LayoutError,
        "slot|element",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_are_refused(case: str) -> None:
    call, error, says = REFUSED[case]
    with pytest.raises(error, match=says):
        call()
