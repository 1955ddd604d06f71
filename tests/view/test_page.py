"""The explorer's page is self-contained, escapes text of layouts, and works in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

import tilejit as tj
from tests.cli.running import fails, refuses, run
from tilejit.view import page as page_module
from tilejit.view.boards import drawn_dimensions
from tilejit.view.page import SCRIPTS, asset, page, page_data, row_length, shorter_row

SMALL = "f32[3,5]{1,0:T(2,2)}"
LARGE = "bf16[4096,4096]{1,0:T(8,128)(2,1)}"
SET = """const field = document.getElementById(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event("change"));"""
"""A field of the page's template."""
HOSTILE = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>&quot;\u2028-->"


def data_of(text: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


@pytest.mark.full
@pytest.mark.parametrize("text", [SMALL, LARGE, "f32[]", "u8[1000000000,1000000000]"])
def test_the_page_is_ascii_and_loads_nothing(text: str) -> None:
    made = page(tj.as_layout(text))
    assert made.isascii()
    assert len(made) < len(page(tj.as_layout("f32[]"))) + 1000, "nothing is listed element by element"
    plain = made.replace("http://www.w3.org/2000/svg", "")  # the name of SVG's elements, not an address
    assert not re.search(r"https?:|src=|href=|@import|url\((?!#)", plain)
    assert made.count("<script") == made.count("</script>") == 2
    assert "@@" not in made
    assert data_of(made) == page_data(tj.as_layout(text))


def test_scripts_are_ascii_and_contain_no_end_tag() -> None:
    for name in (*(f"{script}.js" for script in SCRIPTS), "page.css"):
        assert "</" not in asset(name)
        assert "<!--" not in asset(name)


def test_integers_beyond_doubles_are_strings() -> None:
    data = page_data(tj.as_layout("u8[1152921504606846976]"))
    assert data["dims"] == ["1152921504606846976"]
    assert data["wide"]
    assert not page_data(tj.as_layout(LARGE))["wide"]


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        (SMALL, 12),
        (LARGE, 128),
        ("bf16[64,64]{1,0:T(32,32)(16,16)}", 32),
        ("f32[]", 1),
        ("f32[5,0]", 1),
        ("f32[1000]", 50),
        ("f32[8,8] (8,8):(1,8)", 8),
        ("s4[12,3,40]{2,1,0:T(2,2)E(4)}", 40),
        ("u8[1009,997]", 256),
    ],
)
def test_rows_of_memory_end_where_the_layout_does(text: str, slots: int) -> None:
    assert row_length(tj.as_layout(text)) == slots


SHORTER = [
    ((60, [3, 6, 222, 12432], 7), 6),
    ((60, [3, 6, 222, 12432], 5), 3),
    ((64, [16, 64], 13), 8),
    ((50, [1000], 13), 10),
    ((26, [26], 12), 12),
    ((16, [1, 53], 9), 8),
    ((12, [2, 4, 12], 13), 12),
    ((7, [7], 1), 1),
]


@pytest.mark.parametrize(("given", "slots"), SHORTER)
def test_shorter_rows_of_memory_end_where_the_layout_does(
    given: tuple[int, list[int], int], slots: int
) -> None:
    assert shorter_row(*given) == slots


def test_the_script_shortens_rows_in_the_same_way(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    ask = """return arguments[0].map(([row, runs, fit]) =>
      row <= fit ? row : FirstView.prototype.shorterRow.call({explorer: {data: {runs}}}, row, fit))"""
    assert browser.execute_script(ask, [given for given, _ in SHORTER]) == [slots for _, slots in SHORTER]


def test_layouts_without_a_picture_are_an_error() -> None:
    with pytest.raises(tj.LayoutError):
        page(tj.Shape.parse("f32[?]"))
    with pytest.raises(tj.LayoutError, match="below 0"):
        page(tj.cute.parse("4:-1"))
    with pytest.raises(TypeError):
        page("f32[3]")  # type: ignore[arg-type]


def test_view_writes_the_page(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("view", SMALL).stdout.startswith("wrote 'tilejit-view.html', ")
    assert (tmp_path / "tilejit-view.html").read_text() == page(tj.as_layout(SMALL))
    assert run("view", "(4,8):(8,1)", "-o", "cute.html").exit_code == 0
    assert (tmp_path / "cute.html").read_text() == page(tj.cute.parse("(4,8):(8,1)"))
    assert run("view", "bf16[33,300]", "--layout", "tpu", "-o", "-").stdout == page(
        tj.as_layout("bf16[33,300]{1,0:T(8,128)(2,1)}")
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cute.html", "tilejit-view.html"]


def test_view_writes_nothing_if_it_fails(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ("f32[3",),
        ("f32[?]",),
        ("(4:-1",),
        ("4:-1",),
        ("tpu",),
        ("Sw<1,0,1>",),
        ("<2:1,4:1>",),
        ("(2,3)",),
        ("5",),
        ("_",),
        ("(4,8):(8,1)", "--layout", "tpu"),
    ):
        refuses("view", *arguments, "-o", "page.html")
    assert 'tilejit view "f32[33,300]" --layout "tpu"' in refuses("view", "tpu")
    assert "No such file" in fails("view", SMALL, "-o", "none/page.html")
    assert "not a regular file" in fails("view", SMALL, "-o", "/dev/null")
    assert not list(tmp_path.iterdir())


def test_text_of_a_layout_never_becomes_markup(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layouts print no such text. If one ever does, it stays text."""
    plain = page_module.subject
    monkeypatch.setattr(page_module, "subject", lambda layout: (plain(layout)[0], HOSTILE))
    made = page(tj.as_layout(SMALL))
    assert made.count("<script") == 2
    assert "<img" not in made
    assert data_of(made)["title"] == HOSTILE
    browser = opened(tj.as_layout(SMALL))
    assert browser.execute_script("return window.hurt") is None
    assert browser.execute_script("return document.querySelector('h1').textContent") == HOSTILE
    assert browser.execute_script("return document.images.length") == 0


def test_the_policy_refuses_other_scripts_and_the_network(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    browser.execute_async_script(
        """const done = arguments[0], script = document.createElement("script");
        script.textContent = "window.hurt = 1"; document.body.append(script);
        fetch("http://127.0.0.1:9/").catch(() => done());"""
    )
    assert browser.execute_script("return window.hurt") is None
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    refused = [entry["message"] for entry in browser.get_log("browser")]
    assert len(refused) >= 2
    assert all("Content Security Policy" in message or "127.0.0.1:9" in message for message in refused)


def keys(browser: Any, *pressed: str, shift: bool = False, ctrl: bool = False) -> None:
    """Send keys to the focused element, as a person presses them."""
    from selenium.webdriver import ActionChains, Keys

    chain = ActionChains(browser, duration=0)
    held = [key for key, down in ((Keys.SHIFT, shift), (Keys.CONTROL, ctrl)) if down]
    for key in held:
        chain.key_down(key)
    for name in pressed:
        chain.send_keys(getattr(Keys, name, name))
    for key in held:
        chain.key_up(key)
    chain.perform()


def said(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('selected').textContent"))


def focus(browser: Any, name: str) -> None:
    browser.execute_script("document.getElementById(arguments[0]).focus()", name)


def test_the_keyboard_reaches_everything(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    focus(browser, "array")
    keys(browser, "HOME", ctrl=True)
    keys(browser, "ARROW_DOWN", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_RIGHT")
    assert said(browser) == "Element [2, 3] is in slot 17, bytes 68 to 71, tile (1, 1)."
    keys(browser, "ARROW_DOWN")
    assert said(browser) == "Slot 19, bytes 76 to 79, is padding, at [3, 3] beyond the array."
    keys(browser, "ARROW_DOWN")
    assert "[3, 3]" in said(browser), "the edge holds"
    keys(browser, "HOME", ctrl=True)
    assert "Element [0, 0] " in said(browser)
    keys(browser, "ARROW_RIGHT", shift=True)
    assert "Element [0, 2] " in said(browser), "to the next tile"
    keys(browser, "TAB", "TAB", "TAB")
    assert browser.switch_to.active_element.get_attribute("id") == "memory"
    keys(browser, "ARROW_RIGHT", "ARROW_DOWN")
    assert said(browser).startswith("Element [2, 3] is in slot 17,")
    keys(browser, "END", ctrl=True)
    assert said(browser).startswith("Slot 23, ")


def test_the_digits_split_one_level_at_a_time(opened: Any) -> None:
    browser = opened(tj.as_layout("bf16[16,256]{1,0:T(8,128)(2,1)}"))
    titles = "return [...document.querySelectorAll('#digits .title')].map((e) => e.textContent)"
    complete = ["index", "tile (8,128)", "tile (2,1)", "digits times strides"]
    assert browser.execute_script(titles) == complete
    focus(browser, "array")
    keys(browser, "BACKSPACE", "BACKSPACE")
    assert browser.execute_script(titles) == complete[:2]
    keys(browser, "ENTER")
    assert browser.execute_script(titles) == complete[:3]
    browser.execute_script("document.getElementById('more').click()")
    assert browser.execute_script(titles) == complete
    browser.execute_script("tilejit.explorer.select(tilejit.explorer.ofIndex([9, 130]))")
    slot = tj.linear_index(tj.as_layout("bf16[16,256]{1,0:T(8,128)(2,1)}"), (9, 130))
    sums = "return [...document.querySelectorAll('#digits .sum')].map((e) => e.textContent)"
    assert browser.execute_script(sums) == [f"1 × 2048 + 1 × 1024 + 0 × 256 + 2 × 2 + 1 × 1 = {slot}"]
    boxes = """const text = (e) => [...e.children].map((part) => part.textContent).join(" ");
    const items = [...document.querySelectorAll("#digits li")];
    return items.map((item) => [...item.querySelectorAll(".digit")].map(text))"""
    assert browser.execute_script(boxes)[1:3] == [
        [
            "row of tiles 1 i0/8 of 2",
            "column of tiles 1 i1/128 of 2",
            "row in tile 1 i0%8 of 8",
            "column in tile 2 i1%128 of 128",
        ],
        ["row of tiles 0 i0%8/2 of 4", "column of tiles 2 i1%128 of 128", "row in tile 1 i0%8%2 of 2"],
    ]
    focus(browser, "memory")
    keys(browser, "BACKSPACE", "BACKSPACE", "BACKSPACE")
    assert browser.execute_script(titles) == ["index"]


def pixel(browser: Any, name: str, row: int, column: int) -> list[int]:
    """The color at the upper left of a cell, beside its text."""
    return browser.execute_script(
        """const board = tilejit.explorer.boards[arguments[0]], N = board.N;
        board.draw();
        const box = board.box({row: N(arguments[1]), column: N(arguments[2])});
        const ratio = window.devicePixelRatio;
        return [...board.context.getImageData((box.x + 5) * ratio, (box.y + 4) * ratio, 1, 1).data];""",
        name,
        row,
        column,
    )


def test_tiles_have_the_same_color_in_both_pictures(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    browser.execute_script("tilejit.explorer.select(tilejit.explorer.ofIndex([2, 4]))")
    first, second = pixel(browser, "array", 0, 0), pixel(browser, "array", 0, 2)
    assert first != second
    assert pixel(browser, "array", 1, 1) == first
    assert pixel(browser, "memory", 0, 3) == first
    assert pixel(browser, "memory", 0, 4) == second


def test_hovering_links_an_element_to_its_slot(opened: Any) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(tj.as_layout(SMALL))
    canvas = browser.find_element("id", "memory")
    box = browser.execute_script(
        "const b = tilejit.explorer.boards.memory; return b.box({row: 1, column: 4})"
    )
    dx = box["x"] + box["width"] / 2 - canvas.size["width"] / 2
    dy = box["y"] + box["height"] / 2 - canvas.size["height"] / 2
    ActionChains(browser, duration=0).move_to_element_with_offset(canvas, int(dx), int(dy)).perform()
    assert browser.execute_script("return tilejit.explorer.boards.array.hover") == {"row": 2, "column": 2}
    assert "Element [2, 3] " in said(browser), "hovering chooses nothing"
    ActionChains(browser, duration=0).click().perform()
    assert "Element [2, 2] " in said(browser)


def test_zoom_and_drag_keep_the_element_under_the_pointer(opened: Any) -> None:
    browser = opened(tj.as_layout(LARGE))
    at = """const b = tilejit.explorer.boards.array; b.row = 1000; b.column = 2000; b.clamp();
    const before = b.at(200, 150); b.zoomBy(arguments[0], 200, 150); return [before, b.at(200, 150)]"""
    for steps in (1, 3, -2):
        before, after = browser.execute_script(at, steps)
        assert before == after
    moved = "const b = tilejit.explorer.boards.array, row = b.row; b.pan(0, 3 * b.height); return b.row - row"
    assert browser.execute_script(moved) == 3


def test_a_large_array_can_be_seen_completely_and_its_end_reached(opened: Any) -> None:
    browser = opened(tj.as_layout(LARGE))
    drawn = """const b = tilejit.explorer.boards[arguments[0]]; b.zoomBy(-99);
    const g = new Drawing(b, b.context).grid();
    return [g.rows * g.columns, g.first.row, b.height * Number(b.cells.rows) <= b.tall]"""
    for name in ("array", "memory"):
        cells, first, fits = browser.execute_script(drawn, name)
        assert cells < 250_000, "only what is visible"
        assert (first, fits) == (0, name == "array") or fits is False
    focus(browser, "array")
    keys(browser, "END", ctrl=True)
    assert "Element [4095, 4095] is in slot 16777215," in said(browser)
    visible = "const b = tilejit.explorer.boards[arguments[0]]; return b.box(b.cursor) !== null"
    assert browser.execute_script(visible, "array")
    assert browser.execute_script(visible, "memory")


def test_dimensions_are_selected_and_stepped_through(opened: Any) -> None:
    spec = tj.as_layout("f32[4,3,5,6]{3,2,1,0:T(2,2)}")
    browser = opened(spec)
    browser.execute_script(SET, "rowDim", "0")
    browser.execute_script(SET, "columnDim", "2")
    shown = "const e = tilejit.explorer; return [e.cells.array.rows, e.cells.array.columns]"
    assert browser.execute_script(shown) == [4, 6], "of dimension 2, padding included"
    browser.execute_script(SET, "element", "0, 0, 0, 0")
    plus = "return document.querySelector('[aria-label=\"dimension 3: next index\"]')"
    for _ in range(9):
        browser.execute_script(plus).click()
    assert f"Element [0, 0, 0, 5] is in slot {tj.linear_index(spec, (0, 0, 0, 5))}," in said(browser)
    browser.execute_script(SET, "slot", str(tj.linear_index(spec, (3, 2, 4, 1))))
    assert "Element [3, 2, 4, 1] " in said(browser)
    assert browser.execute_script("return tilejit.explorer.fixed.slice(1, 2)") == [2]
    browser.execute_script(SET, "element", "9, 9, 9, 9")
    assert said(browser) == "Enter 4 indices, separated by commas, inside [4, 3, 5, 6]."
    browser.execute_script(SET, "element", "1, 2, 3, 4")
    assert "Element [1, 2, 3, 4] " in said(browser)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("f32[4,3,5,6]{3,2,1,0:T(2,2)}", [2, 3]),
        ("f32[2,20,3,5]{3,2,1,0:T(16,1,1)}", [1, 3]),
        ("f32[64,32,3,3]{1,0,3,2:T(16,16)}", [0, 1]),
        ("f32[7,5,3]", [1, 2]),
        ("f32[5,1,3]", [0, 2]),
        ("f32[1,1]", [0, 1]),
        ("f32[7]{0:T(4)}", [None, 0]),
        ("f32[]", [None, None]),
        ("f32[5,0,3]", [0, 2]),
    ],
)
def test_the_first_view_has_the_dimensions_that_tiles_cut(opened: Any, text: str, drawn: list[Any]) -> None:
    spec = tj.as_layout(text)
    browser = opened(spec)
    assert browser.execute_script("const e = tilejit.explorer; return [e.rowDim, e.columnDim]") == drawn
    assert list(drawn_dimensions(spec)) == [d for d in drawn if d is not None]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("f32[]", "1 element \u00b7 1 slot of 32 bits \u00b7 4 bytes \u00b7 0.0% padding"),
        ("pred[8]{0:E(1)}", "8 elements \u00b7 8 slots of 1 bit \u00b7 1 byte \u00b7 0.0% padding"),
    ],
)
def test_the_sizes_are_told(opened: Any, text: str, facts: str) -> None:
    browser = opened(tj.as_layout(text))
    assert browser.execute_script("return document.getElementById('facts').textContent") == facts


def test_choices_of_dimensions_do_not_touch(opened: Any) -> None:
    browser = opened(tj.as_layout("f32[4,3,5,6]{3,2,1,0:T(2,2)}"))
    gaps = browser.execute_script(
        """document.querySelector("details").open = true;
        const found = [...document.querySelectorAll('.stepper, .options label')];
        const boxes = found.map((e) => e.getBoundingClientRect());
        return boxes.slice(1).map((b, k) => b.top >= boxes[k].bottom || b.left - boxes[k].right)"""
    )
    assert len(gaps) == 4
    assert all(gap is True or gap >= 8 for gap in gaps)


@pytest.mark.parametrize(
    "text", ["f32[]", "f32[7]{0:T(4)}", "f32[5,0,3]", "u8[1152921504606846976]", "f32[1,1,9]"]
)
def test_every_rank_and_size_has_a_page(opened: Any, text: str) -> None:
    browser = opened(tj.as_layout(text))
    focus(browser, "array")
    keys(browser, "END", ctrl=True)
    last = {
        "f32[]": "Element [] is in slot 0,",
        "f32[7]{0:T(4)}": "Slot 7, bytes 28 to 31, is padding, at [7]",
        "f32[5,0,3]": "The array has no elements.",
        "u8[1152921504606846976]": "Element [1152921504606846975] is in slot 1152921504606846975,",
        "f32[1,1,9]": "Element [0, 0, 8] is in slot 8,",
    }
    assert last[text] in said(browser)


def test_the_width_of_memory_rows_can_be_set(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    browser.execute_script(SET, "width", "5")
    shown = "const c = tilejit.explorer.cells.memory; return [c.rows, c.columns]"
    assert browser.execute_script(shown) == [5, 5]
    browser.execute_script(SET, "width", "0")
    assert said(browser).startswith("Enter the number of slots")
    assert browser.execute_script(shown) == [5, 5]


def test_light_and_dark_follow_the_system_and_the_button(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    media = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    try:  # the page learns about it before a frame
        browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        dark, tile = browser.execute_script(ground), pixel(browser, "array", 0, 2)
        browser.execute_script("const b = document.getElementById('theme'); b.click(); b.click()")
        assert browser.execute_script("return document.documentElement.dataset.theme") == "light"
        assert browser.execute_script(ground) != dark
        assert pixel(browser, "array", 0, 2) != tile
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_frame_gets_its_colors_from_the_address(opened: Any) -> None:
    """As in the documentation, whose reader chooses them."""
    browser = opened(tj.as_layout(SMALL))
    for theme in ("theme=dark", "theme=light", "theme=none", "%E0=%E0&theme"):
        browser.execute_async_script(
            "addEventListener('hashchange', () => requestAnimationFrame(arguments[1]), {once: true});"
            "location.hash = arguments[0]",
            theme,
        )
        paper = browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
        assert paper == ("rgb(20, 22, 27)" if theme == "theme=dark" else "rgb(255, 255, 255)")
        label = browser.execute_script("return document.getElementById('theme').textContent")
        assert label == ("Colors: dark" if theme == "theme=dark" else "Colors: light")


def test_a_frame_follows_the_colors_of_the_surrounding_page(opened: Any) -> None:
    browser = opened(tj.as_layout(SMALL))
    theme = "return document.documentElement.dataset.theme"
    tell = (
        """addEventListener("message", () => arguments[1](), {once: true}); postMessage(arguments[0], "*");"""
    )
    for said, now in (
        ({"theme": "dark"}, "dark"),
        ({"theme": "red"}, "dark"),
        (None, "dark"),
        ("light", "dark"),
    ):
        browser.execute_async_script(tell, said)
        assert browser.execute_script(theme) == now


def luminance(color: str) -> float:
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("part", [0, 1, 2], ids=["light", "dark by the system", "dark"])
def test_text_is_readable_on_every_tile(part: int) -> None:
    """WCAG's contrast: 4.5 for text, 3 for the mark of the selected cell and the edges of tiles."""
    block = re.findall(r"(--paper.*?)\}", asset("page.css"), re.DOTALL)[part]
    colors = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", block))

    def contrast(a: str, b: str) -> float:
        low, high = sorted((luminance(colors[a]), luminance(colors[b])))
        return (high + 0.05) / (low + 0.05)

    tiles = [*(f"tile-{k}" for k in range(8)), *(f"order-{k}" for k in range(4))]
    assert all(contrast("ink", ground) >= 7 for ground in (*tiles, "paper", "panel"))
    assert all(contrast("quiet", ground) >= 4.5 for ground in ("paper", "panel"))
    assert all(contrast(mark, ground) >= 3 for mark in ("mark", "edge") for ground in (*tiles, "paper"))


def test_a_padding_value_changes_only_the_title() -> None:
    spec = tj.as_layout(SMALL)
    data, own = page_data(replace(spec, padding_value=2.0)), page_data(spec)
    assert data["title"] == "f32[3,5]{1,0:T(2,2)}, filled with 2.0"
    assert {**data, "title": own["title"]} == own
