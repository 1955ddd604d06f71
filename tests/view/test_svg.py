"""Pictures as SVG: goldens, well-formed XML, and notebooks."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tilejit as tj
from tests.cli.running import refuses, run
from tests.tools.goldens import GOLDEN, check_golden
from tests.tools.strategies import cute_shape, picker, shape
from tilejit.view import svg as svg_module
from tilejit.view.cells import cells_of
from tilejit.view.coloring import Coloring
from tilejit.view.notebook import layout_html, texts_html
from tilejit.view.page import subject
from tilejit.view.svg import GRADIENT, svg

SPACE = "{http://www.w3.org/2000/svg}"
GOLDENS = {
    "figure_1": "f32[3,5]{1,0:T(2,2)}",
    "large": "bf16[4096,4096]{1,0:T(8,128)(2,1)}",
    "slices": "s4[3,4,5]{2,1,0:T(2,2)E(4)}",
    "scalar": "f32[]",
    "empty": "f32[5,0,3]",
    "swizzled": "Sw<1,0,1> o 0 o ((2,2),(2,4)):((1,4),(2,8))",
}


def layout(text: str) -> Any:
    return tj.as_layout(text) if "[" in text else tj.cute.parse(text)


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    check_golden(GOLDEN / "view" / f"{name}.svg", svg(layout(GOLDENS[name])) + "\n", request)


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in (GOLDEN / "view").iterdir()} == set(GOLDENS)


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SPACE}text")]


def tips(picture: str) -> list[str]:
    groups = ElementTree.fromstring(picture).iter(f"{SPACE}g")
    return [group.findtext(f"{SPACE}title") or "" for group in groups]


def test_every_cell_has_a_tooltip() -> None:
    spec = layout(GOLDENS["figure_1"])
    found = tips(svg(spec))
    inside = {index: f"slot {tj.linear_index(spec, index)}" for index in np.ndindex(3, 5)}
    slots = [f"{list(index)}: {inside.get(index, 'padding')}" for index in np.ndindex(4, 6)]
    held = [tj.multi_index(spec, slot) for slot in range(24)]
    memory = [f"slot {k}: {'padding' if at is None else list(at)}" for k, at in enumerate(held)]
    assert found == slots + memory


@pytest.mark.full
def test_random_shapes_are_drawn(seed: int) -> None:
    pick = picker(np.random.default_rng(seed))
    for _ in range(60):
        for spec in (shape(pick, most=400), cute_shape(pick, most=400, swizzled=bool(pick(0, 1)))):
            picture = svg(spec)
            assert picture.isascii()
            root = ElementTree.fromstring(picture)
            assert root.findtext(f"{SPACE}title") == subject(spec)[1]
            assert int(root.get("width", "")) < 1500
            assert picture == svg(spec)


def test_a_large_layout_shows_a_corner() -> None:
    found = texts(svg(layout(GOLDENS["large"])))
    assert "the first 8 x 128 of 4096 x 4096" in found
    assert "…" in found
    assert len(svg(layout("u8[1000000000,1000000000]"))) < 200_000


@pytest.mark.parametrize("text", ["bf16[40,300]{1,0:T(8,128)(2,1)}", "bf16[64,20]{1,0:T(32,32)(16,16)}"])
def test_runs_of_one_color_are_exact(text: str) -> None:
    """Rectangles of cells without text: their position, and their shade in memory order."""
    spec = layout(text)
    (array,), (memory,), _ = cells_of(spec, Coloring.of(spec))
    assert array.low is not None
    wide, high = array.low
    rects = [
        (float(r.get("x", "")), float(r.get("y", "")), int(r.get("width", "")), r.get("fill"))
        for r in ElementTree.fromstring(svg(spec)).iter(f"{SPACE}rect")
    ]
    left, top = min(x for x, *_ in rects), min(y for _, y, *_ in rects)
    found: dict[tuple[int, int], str | None] = {}
    for x, y, width, fill in rects:
        for column in range(width // wide):
            found[round((y - top) / high), round((x - left) / wide) + column] = fill
    for (i, j), fill in found.items():
        if i >= len(array.rows) or j >= array.columns:
            continue
        inside = i < spec.dimensions[0] and j < spec.dimensions[1]
        shade = tj.linear_index(spec, (i, j)) % 1024 * 63 // 1023 if inside else None
        assert fill == (None if shade is None else GRADIENT[shade])
    assert {(i, j) for i in range(len(array.rows)) for j in range(array.columns)} <= set(found)
    assert len(memory.rows) * memory.columns == 1024


@pytest.mark.parametrize("text", [*GOLDENS.values(), "bf16[40,300]{1,0:T(8,128)(2,1)}"])
def test_pictures_without_tooltips_show_the_same(text: str) -> None:
    """Texts at their places, and the width of each color in each row."""
    spec = layout(text)
    whole, short = (ElementTree.fromstring(svg(spec, tips=tips)) for tips in (True, False))
    assert placed_texts(whole) == placed_texts(short)
    assert len(list(short.iter(f"{SPACE}title"))) == 1
    for key in ("width", "height"):
        assert whole.get(key) == short.get(key)
    colored: dict[tuple[str, float], int] = {}
    for r in whole.iter(f"{SPACE}rect"):
        if r.get("fill"):
            at = r.get("fill", ""), float(r.get("y", "")) + float(r.get("height", "")) / 2
            colored[at] = colored.get(at, 0) + int(r.get("width", ""))
    found: dict[tuple[str, float], int] = {}
    for path in short.iter(f"{SPACE}path"):
        if path.get("stroke-opacity") == "0.3":
            for y, width in re.findall(r"M\d+ ([\d.]+)h(\d+)", path.get("d", "")):
                at = path.get("stroke", ""), float(y)
                found[at] = found.get(at, 0) + int(width)
    assert found == colored


def placed_texts(root: ElementTree.Element) -> list[tuple[str, str, str]]:
    """Texts with their coordinates, whether they are elements of their own or parts of one."""
    out = []
    for element in root.iter(f"{SPACE}text"):
        parts = list(element) or [element]
        out += [(p.get("x", ""), element.get("y", ""), p.text or "") for p in parts]
    return sorted(out)


@pytest.mark.parametrize("color", ["order", "bank", "row"])
def test_colorings_can_be_selected(color: str) -> None:
    """In Python, in notebooks, and on the command line."""
    text = "u8[8,8] Sw<3,0,3> o 0 o (8,8):(8,1)"
    picture = tj.show(text, color=color)  # type: ignore[arg-type]
    assert picture.svg == svg(layout(text), color=color)
    assert f"{color}" in picture.svg
    assert run("show", text, "--svg", "--color", color).stdout == picture.svg + "\n"
    assert (picture.svg == tj.show(text).svg) == (color == "bank")
    assert picture._repr_html_() == layout_html(layout(text), color=color)
    assert "add --svg" in refuses("show", text, "--color", color)
    with pytest.raises(tj.LayoutError, match="color: expected one of"):
        tj.show(text, color="red")  # type: ignore[arg-type]


def test_text_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "</svg><script>alert(1)</script>&\"'\u2028"
    plain = svg_module.subject
    monkeypatch.setattr(svg_module, "subject", lambda given: (plain(given)[0], hostile))
    root = ElementTree.fromstring(svg(layout("f32[2]")))
    assert not list(root.iter(f"{SPACE}script"))
    assert root.findtext(f"{SPACE}title") == hostile
    assert "<b>" not in texts_html("<b>", [("<b>", "<b>")])


def test_show_prints_the_picture() -> None:
    text = GOLDENS["figure_1"]
    assert run("show", text, "--svg").stdout == svg(layout(text)) + "\n"
    assert "--json and --svg" in refuses("show", text, "--svg", "--json")


@pytest.mark.parametrize("text", GOLDENS.values())
def test_notebooks_show_layouts(text: str) -> None:
    shown = layout(text)._repr_html_()
    assert shown.count("<svg") == 1
    assert "<style" not in shown, "it would affect the whole notebook"
    assert " id=" not in shown
    ElementTree.fromstring(shown)


def test_notebooks_show_tiled_arrays() -> None:
    tiled = tj.pack(np.zeros((3, 5), np.float32), "{1,0:T(2,2)}")
    shown = tiled._repr_html_()
    assert repr(tiled) in shown
    assert "<svg" in shown


@pytest.mark.parametrize(
    "value", [tj.Shape.parse("f32[?,3]"), tj.cute.parse("4:-1"), tj.Shape.parse("token[]")]
)
def test_values_without_a_picture_are_shown_as_text(value: Any) -> None:
    assert value._repr_html_() is None
    assert layout_html(value) is None


def scaled(a, b):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * 2.0 if a[i, j] < 3.0 else 0.0


def test_notebooks_show_kernels() -> None:
    kernel = tj.kernel(scaled)
    assert "not specialized yet" in kernel._repr_html_()
    kernel.specialize(np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32))
    shown = kernel._repr_html_()
    picture = re.search(r"<svg.*?</svg>", shown, re.DOTALL)
    assert picture
    assert [text.split(",")[1].split(":")[0].strip() for text in texts(picture[0])] == ["loop i", "loop j"]
    assert len(list(ElementTree.fromstring(picture[0]).iter(f"{SPACE}rect"))) == 2
    assert "&lt; " in shown, "comparisons are escaped"
    ElementTree.fromstring(shown)


def test_notebooks_show_copies() -> None:
    explanation = tj.explain("f32[100,30]{1,0:T(8,128)}", None)
    for value in (explanation, explanation.kernel):
        shown = value._repr_html_()
        assert shown.count("<details") >= 2
        ElementTree.fromstring(shown)
