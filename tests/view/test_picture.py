"""show: the picture of a layout, as text and as SVG."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cli.running import run
from tilejit.view.svg import svg

X = np.zeros((33, 300), np.float32)
FULL = "f32[33,300]{1,0:T(8,128)}"
TILED = tj.TiledArray.from_buffer(bytes(tj.as_layout(FULL).size_in_bytes), FULL)
LAYOUTS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "text": (FULL, {}, FULL),
    "shape": (tj.Shape.parse(FULL), {}, FULL),
    "layout": ("{1,0:T(8,128)}", {"dtype": "f32", "dims": X.shape}, FULL),
    "format": ("tpu", {"dtype": "bf16", "dims": X.shape}, "bf16[33,300]{1,0:T(8,128)(2,1)}"),
    "parameters": ("blis-a", {"dtype": "f32", "dims": X.shape, "mr": 4}, "f32[33,300]{1,0:T(4,1)}"),
    "pattern": ("(m mi) n -> m n mi", {"dtype": "f32", "dims": X.shape, "mi": 4}, "f32[33,300]{1,0:T(4,1)}"),
    "tiled array": (TILED, {}, FULL),
    "CuTe": ("f32[3,5] (4,8):(8,1)", {}, "f32[3,5] (4,8):(8,1)"),
    "swizzle": (
        "Sw<1,0,1> o 0 o (2,4):(4,1)",
        {"dtype": "uint8", "dims": (2, 4)},
        "u8[2,4] Sw<1,0,1> o 0 o (2,4):(4,1)",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", LAYOUTS)
def test_show_accepts_every_layout(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is that of the command line, and the picture is that of `--svg`."""
    layout, more, text = LAYOUTS[case]
    shown = tj.show(layout, **more)
    monkeypatch.setenv("COLUMNS", "70")
    printed = run("show", text, columns=70).stdout
    assert str(shown) == repr(shown) == shown.text
    assert shown.text.splitlines()[0] == text
    assert f"{shown}\n" == printed
    assert f"{shown.svg}\n" == run("show", text, "--svg").stdout
    html = shown._repr_html_()
    assert html is not None
    assert "<svg" in html
    assert html == tj.as_layout(text)._repr_html_()


def test_slices_have_the_dimensions_that_tiles_cut() -> None:
    shown = tj.show("nChw16c", dtype="f32", dims=(1, 32, 3, 4))
    assert "[0, :, 0, :]" in shown.text
    assert "[0, :, 0, :]" in shown.svg


@pytest.mark.parametrize(
    "text", ["(4,8):(8,1)", "((2,2),(2,3)):((2,12),(1,4))", "Sw<1,0,1> o 0 o (2,4):(4,1)"]
)
def test_cute_layouts_need_no_array(text: str) -> None:
    layout = tj.cute.parse(text)
    for shown in (tj.show(text), tj.show(layout)):
        assert shown.layout == layout
        assert shown.text.splitlines()[0] == text
        assert "bits" not in shown.text
        assert "bytes" not in shown.text
        assert shown.svg == svg(layout)
        assert shown._repr_html_() == layout._repr_html_()


def test_small_arrays_have_a_picture_of_memory() -> None:
    text = tj.show("f32[3,5]{1,0:T(2,2)}").text
    assert "  0  1| 4  5| 8\n  2  3| 6  7|10\n------+-----+--\n 12 13|16 17|20" in text
    assert "\nmemory\n 0: 0,0 0,1 1,0 1,1|0,2" in text
    assert "memory" not in tj.show(FULL).text


@pytest.mark.parametrize(
    ("layout", "more", "error", "says"),
    [
        ("tpu", {}, tj.LayoutError, "dtype and dims"),
        ("tpu", {"dims": (3, 5)}, tj.LayoutError, "dtype"),
        ("(4,8):(8,1)", {"dims": (3, 5)}, tj.LayoutError, "dtype"),
        ("(4,8):(8,", {}, tj.LayoutError, "a number is missing"),
        ("(4,8)", {}, tj.LayoutError, "dtype"),
        ("f32[?,5]{1,0}", {}, tj.LayoutError, "size"),
        ("(4,8):(-8,1)", {}, tj.LayoutError, "below 0"),
        (FULL, {"mr": 4}, TypeError, "no parameter"),
        (TILED, {"mr": 4}, TypeError, "no parameter"),
        (TILED, {"dims": (3, 5)}, tj.LayoutError, "expected an array of shape"),
        (X, {}, TypeError, "expected a layout"),
        (None, {}, TypeError, "expected a layout"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_arguments_are_refused(
    layout: Any, more: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        tj.show(layout, **more)
