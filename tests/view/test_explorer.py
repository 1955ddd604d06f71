"""The explorer's first view, colors, links, copies and animation, in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tilejit as tj
from tilejit.view.boards import Tiling
from tilejit.view.coloring import Coloring
from tilejit.view.page import page, subject

FIRST = {
    "two levels": "bf16[40,300]{1,0:T(8,128)(2,1)}",
    "faces": "bf16[64,64]{1,0:T(32,32)(16,16)}",
    "swizzle": "Sw<3,0,3> o 0 o (8,8):(8,1)",
    "padded": "f32[3,5]{1,0:T(2,2)}",
}
OTHERS = {
    "wide swizzle": "f16[64,64] Sw<3,3,3> o 0 o (64,64):(64,1)",
    "nested": "((2,2,2),(2,2,2)):((1,4,16),(2,8,32))",
    "merged": "f32[2,3,5]{2,1,0:T(*,2,2)}",
    "plain": "f32[1000,1000]",
    "huge": "u8[1000000007,1000000009]{0,1:T(8,128)(4,1)}",
    "tail": "f32[5]{0:L(8)}",
}
LAYOUTS = {**FIRST, **OTHERS}
GRID = """
const [name, color] = arguments, explorer = tilejit.explorer, board = explorer.boards[name];
explorer.color = explorer.colorings.find((coloring) => coloring.name === color);
const grid = new Drawing(board, board.context).grid();
return {
  cells: Array.from({length: grid.rows * grid.columns}, (_, k) => {
    const at = {row: grid.first.row + board.N(Math.floor(k / grid.columns) * grid.step),
      column: grid.first.column + board.N((k % grid.columns) * grid.step)};
    const found = explorer.cells[name].select(at);
    const index = found && !found.padding && !found.unknown ? found.index.map(String) : null;
    return [index, grid.states[k], grid.colors[k], grid.keys.map((keys) => keys[k])];
  }),
  depth: explorer.color.depth,
};
"""
"""Each visible cell: its index, its state, its color, and its tiles."""
MOST_CHECKED = 100
DOCS = Path(__file__).parents[2] / "docs"


def parsed(text: str) -> Any:
    return tj.as_layout(text) if "[" in text else tj.cute.parse(text)


def resize(browser: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def sized(opened: Any) -> Any:
    """A function that opens a layout in a window of a given size, which is reset after the test."""
    browsers = []

    def sized(text: str, width: int, height: int) -> Any:
        browser = opened(tj.as_layout("f32[]"))
        browsers.append(browser)
        resize(browser, width, height)
        return opened(parsed(text))

    yield sized
    for browser in browsers:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("size", [(1400, 900), (1000, 800), (400, 860)], ids=str)
@pytest.mark.parametrize("name", FIRST)
def test_the_first_view(sized: Any, name: str, size: tuple[int, int]) -> None:
    """A complete tile, an element with some digits, and the digits without scrolling."""
    browser = sized(FIRST[name], *size)
    index = browser.execute_script("return tilejit.explorer.selection.index")
    assert all(index)
    shown = browser.execute_script(
        """const e = tilejit.explorer, [rows, columns] = e.firstView.tileExtents();
        return ["array", "memory"].map((name) => {
          const b = e.boards[name], last = {row: rows - 1, column: columns - 1};
          const box = b.box(name === "array" ? last : b.cursor);
          return box && [box.x + box.width <= b.left + b.width + 1, box.y + box.height <= b.top + b.tall + 1];
        })"""
    )
    assert shown == [[True, True], [True, True]]
    bottom = "return document.getElementById('digits').getBoundingClientRect().bottom <= innerHeight"
    assert browser.execute_script(bottom)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script("return tilejit.explorer.level + 1 === tilejit.explorer.levels.length")


@pytest.mark.full
@pytest.mark.parametrize("name", LAYOUTS)
def test_drawn_cells_are_exact(opened: Any, name: str) -> None:
    """State, color and tiles of the visible cells, in every coloring."""
    layout = parsed(LAYOUTS[name])
    spec = subject(layout)[0]
    levels = Tiling.levels(spec)
    browser = opened(layout)
    names = browser.execute_script("return tilejit.explorer.colorings.map(({name}) => name)")
    assert set(Coloring.of(spec).choices) - {"tile"} == {by for by in names if not by.startswith("tile")}
    for board in ("array", "memory"):
        for color in names:
            drawn = browser.execute_script(GRID, board, color)
            cells = drawn["cells"][:: -(-len(drawn["cells"]) // MOST_CHECKED)]
            assert cells
            for index, state, shade, keys in cells:
                assert (state == 0) == (index is not None)
                if index is None:
                    continue
                at = tuple(map(int, index))
                numbers = [level.number(at) for level in levels]
                assert keys[: len(levels)] == [number % 2**48 for number in numbers], (board, at)
                depth = drawn["depth"]
                tile = levels[depth - 1].color(numbers[depth - 1]) if depth else 0
                by = "tile" if depth else color
                slot = np.asarray([tj.linear_index(spec, at)], np.int64)
                assert [shade] == Coloring.of(spec, by).numbers(slot, np.asarray([tile])).tolist(), (
                    board,
                    at,
                )


def test_a_link_restores_the_view(opened: Any) -> None:
    browser = opened(tj.as_layout("f32[4,3,50,600]{3,2,1,0:T(8,128)(2,1)}"))
    browser.execute_script(
        """const e = tilejit.explorer;
        e.state.apply({rows: "0", columns: "3", color: "tile2", width: "64", slot: "4000", theme: "dark"});
        e.boards.array.zoomBy(2);
        e.boards.array.pan(400, 0);
        e.select(e.ofIndex([3, 2, 41, 500]));
        e.changeLevel(-2);
        e.state.write();"""
    )
    told = """const e = tilejit.explorer, views = ["array", "memory"].map((name) => {
      const b = e.boards[name];
      return [b.moved, ZOOMS[b.zoom], b.row, b.column];
    });
    return [e.state.text(), views, e.fixed, e.level, e.depth, e.rowDim, e.columnDim, e.cells.memory.width,
      document.documentElement.dataset.theme, document.getElementById("selected").textContent,
      document.getElementById("color").value];"""
    sent = browser.execute_script(told)
    address = browser.current_url
    assert "at=3,2,41,500&color=tile2&rows=0&columns=3&slice=3,2,41,500&width=64" in address
    assert sent[9].startswith("Element [3, 2, 41, 500] is in slot ")
    browser.get("about:blank")
    browser.get(address)
    assert browser.execute_script(told) == sent
    browser.execute_script("document.getElementById('theme').click()")
    assert "theme=light" in browser.execute_script("return tilejit.explorer.state.text()")


def test_links_to_padding_and_to_invalid_places(opened: Any) -> None:
    browser = opened(tj.as_layout("f32[3,5]{1,0:T(2,2)}"))
    address = browser.current_url.split("#")[0]
    said = "return document.getElementById('selected').textContent"
    first = browser.execute_script(said)
    for part, selected in (
        ("slot=23", "Slot 23, bytes 92 to 95, is padding."),
        ("at=9,9&color=blue&rows=7&columns=0&width=0&level=99&array=3,3,3&memory=20,1,x,y&slot=24", first),
        ("at=&=&%&color&width=1e3&rows=1&columns=1&slice=1", first),
    ):
        browser.get("about:blank")
        browser.get(f"{address}#{part}")
        assert browser.execute_script(said) == selected


def test_the_address_follows_the_selection(opened: Any) -> None:
    browser = opened(tj.as_layout("f32[3,5]{1,0:T(2,2)}"))
    browser.execute_script("tilejit.explorer.select(tilejit.explorer.ofIndex([1, 4]))")
    browser.execute_async_script("setTimeout(arguments[0], WRITE_AFTER + 200)")
    assert "#at=1,4&color=tile" in browser.current_url
    count = browser.execute_script("return history.length")
    browser.execute_script("tilejit.explorer.select(tilejit.explorer.ofIndex([0, 0]))")
    browser.execute_async_script("setTimeout(arguments[0], WRITE_AFTER + 200)")
    assert browser.execute_script("return history.length") == count, "Back leaves the page"


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_picture_is_copied_as_svg(opened: Any, name: str) -> None:
    browser = opened(parsed(LAYOUTS[name]))
    text = browser.execute_script("return pictureSvg(tilejit.explorer)")
    assert text.isascii()
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == str(subject(parsed(LAYOUTS[name]))[1])
    array, memory = (list(board.iter(f"{space}text")) for board in root.findall(f"{space}svg"))
    assert array
    assert memory
    if name == "padded":
        slots = [int(node.text or "") for node in array if node.get("font-size") != "10"]
        assert slots == [tj.linear_index(parsed(FIRST[name]), index) for index in np.ndindex(3, 5)]
        held = [node.text for node in memory if node.get("font-size") != "10"]
        assert held[:5] == ["0,0", "0,1", "1,0", "1,1", "0,2"]


def test_buttons_copy(opened: Any) -> None:
    """After a real click, which the clipboard requires."""
    browser = opened(tj.as_layout("f32[3,5]{1,0:T(2,2)}"))
    for button, said in (
        ("copy-svg", "Copied the picture as SVG."),
        ("copy-link", "Copied a link to what you see."),
    ):
        browser.find_element("id", button).click()
        browser.execute_async_script("setTimeout(arguments[0], 100)")
        assert browser.execute_script("return document.getElementById('note').textContent") == said
        assert browser.switch_to.active_element.get_attribute("id") == button


def test_elements_move_to_memory(opened: Any) -> None:
    browser = opened(tj.as_layout("f32[3,5]{1,0:T(2,2)}"))
    state = """const {flight} = tilejit.explorer.controls, {veil} = tilejit.explorer.boards.memory;
    return [flight.running, flight.canvas.hidden, veil !== null, flight.button.textContent]"""
    assert browser.execute_script(state) == [False, True, False, "Play"]
    browser.find_element("id", "play").click()
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert browser.execute_script(state) == [True, False, True, "Stop"]
    order = browser.execute_script("return tilejit.explorer.controls.flight.flying.map(({slot}) => slot)")
    spec = tj.as_layout("f32[3,5]{1,0:T(2,2)}")
    assert order == sorted(tj.linear_index(spec, index) for index in np.ndindex(3, 5))
    browser.find_element("id", "play").click()
    assert browser.execute_script(state) == [False, True, False, "Play"]
    ended = """const {flight} = tilejit.explorer.controls, done = arguments[0];
    flight.start();
    flight.begun -= 2 * flight.total + FLIGHT;
    requestAnimationFrame(() => requestAnimationFrame(() => done(flight.running)))"""
    assert browser.execute_async_script(ended) is False
    assert browser.execute_script(state) == [False, True, False, "Play"]


def test_reduced_motion_disables_the_animation(opened: Any) -> None:
    browser = opened(tj.as_layout("f32[3,5]{1,0:T(2,2)}"))
    media = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    try:
        browser.find_element("id", "play").click()
        state = """const {flight} = tilejit.explorer.controls, {veil} = tilejit.explorer.boards.memory;
        return [flight.running, flight.frame, flight.canvas.hidden, veil]"""
        assert browser.execute_script(state) == [True, None, True, {"row": 0, "column": 0}]
        browser.execute_script("dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
        assert browser.execute_script(state) == [False, None, True, None]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_legend_explains_colors(opened: Any) -> None:
    browser = opened(tj.cute.parse(FIRST["swizzle"]))
    said = "return document.getElementById('selected').textContent"
    assert browser.execute_script(said) == "Element [5, 4] is in slot 41, bank 1, row 5."
    legend = "return document.getElementById('colors').textContent"
    assert browser.execute_script(legend) == "bank, bits 0 to 2 of the slot: "
    choose = """const select = document.getElementById("color");
    select.value = arguments[0];
    select.dispatchEvent(new Event("change"));"""
    browser.execute_script(choose, "order")
    assert re.fullmatch(r"memory order: 0\s+63", browser.execute_script(legend))
    browser.execute_script(choose, "row")
    assert browser.execute_script(legend) == "row, bits 3 to 5 of the slot: "


@pytest.mark.parametrize("width", [966, 366])
@pytest.mark.parametrize("name", FIRST)
def test_a_frame_in_the_documentation_is_as_high_as_its_page(
    chromium: Any, tmp_path: Path, name: str, width: int
) -> None:
    (tmp_path / "page.html").write_text(page(parsed(FIRST[name])), "ascii")
    script, style = ((DOCS / name).read_text() for name in ("explorer.js", "extra.css"))
    frame = '<iframe class="explorer" src="page.html"></iframe>'
    body = f'<body class="md-typeset" style="width: {width}px">{frame}<script>{script}</script>'
    text = f"<!DOCTYPE html><style>{style}</style>{body}"
    (tmp_path / "docs.html").write_text(text, "utf-8")
    chromium.get((tmp_path / "docs.html").as_uri())
    settled = """const frame = document.querySelector("iframe"), done = arguments[0];
    const end = () => done(frame.clientHeight);
    const look = () => (frame.style.height ? setTimeout(end, 100) : setTimeout(look, 20));
    look();"""
    height = chromium.execute_async_script(settled)
    chromium.switch_to.frame(0)
    try:
        fits = "return [innerHeight, document.documentElement.scrollHeight, document.body.offsetHeight]"
        assert chromium.execute_script(fits) == [height] * 3
    finally:
        chromium.switch_to.default_content()


@pytest.mark.parametrize("name", ["padded", "faces", "nested"])
def test_the_legend_has_every_color_of_the_tiles(opened: Any, name: str) -> None:
    layout = parsed(LAYOUTS[name])
    spec = subject(layout)[0]
    browser = opened(layout)
    show = """const e = tilejit.explorer;
    e.color = e.colorings.find(({name}) => name === arguments[0]);
    e.refresh();
    return [...document.querySelectorAll("#colors .sample")].map((sample) => sample.style.background)"""
    for depth, level in enumerate(Tiling.levels(spec), 1):
        used = {level.color(level.number(index)) for index in np.ndindex(spec.dimensions)}
        shown = browser.execute_script(show, f"tile{depth}" if depth > 1 else "tile")
        assert shown == [f"var(--tile-{color})" for color in sorted(used)]


def test_the_swizzle_is_a_sentence(opened: Any) -> None:
    browser = opened(tj.cute.parse(FIRST["swizzle"]))
    said = "return [...document.querySelectorAll('#digits .sum')].map((e) => e.textContent)"
    assert browser.execute_script(said) == [
        "5 \u00d7 8 + 4 \u00d7 1 = 44",
        "44 is 101100 in binary: row 101, bank 100. "
        "The bank becomes 100 xor 101 = 001, which gives 101001 = 41",
    ]


def test_two_taps_show_the_pairs_of_a_tile_on_a_phone(sized: Any) -> None:
    """Lines between the columns of pairs need cells of five pixels."""
    browser = sized(FIRST["two levels"], 400, 860)
    button = browser.find_element("css selector", '[data-zoom="1"][data-board="array"]')
    button.click()
    button.click()
    assert browser.execute_script("return tilejit.explorer.boards.array.cellWidth") >= 5
    back = browser.find_element("css selector", '[data-zoom="-1"][data-board="array"]')
    back.click()
    back.click()
    assert browser.execute_script("return tilejit.explorer.boards.array.cellWidth") < 3


def test_resizing_the_window_resets_the_first_view(sized: Any) -> None:
    """Unless the reader has moved or zoomed a picture."""
    browser = sized(FIRST["two levels"], 400, 860)
    seen = """const {array, memory} = tilejit.explorer.boards;
    return [array.cellWidth, memory.cellWidth, document.querySelector("main").className]"""
    narrow = browser.execute_script(seen)
    resize(browser, 1400, 900)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    wide = browser.execute_script(seen)
    assert wide[0] > narrow[0]
    assert wide[1] > narrow[1]
    assert wide[2] == "stacked"
    browser.execute_script("tilejit.explorer.boards.array.zoomBy(1)")
    zoomed = browser.execute_script(seen)
    resize(browser, 1300, 900)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.execute_script(seen) == zoomed


def test_a_finger_selects_and_moves(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionBuilder
    from selenium.webdriver.common.actions.interaction import POINTER_TOUCH
    from selenium.webdriver.common.actions.pointer_input import PointerInput

    browser = opened(tj.as_layout("f32[1000,1000]"))
    box = browser.execute_script(
        """const b = tilejit.explorer.boards.array, corner = b.canvas.getBoundingClientRect();
        const {x, y, width, height} = b.box({row: 2, column: 1});
        return {x: Math.round(corner.x + x + width / 2), y: Math.round(corner.y + y + height / 2), height};"""
    )
    finger = PointerInput(POINTER_TOUCH, "finger")
    actions = ActionBuilder(browser, mouse=finger, duration=0)
    actions.pointer_action.move_to_location(box["x"], box["y"]).pointer_down().pointer_up()
    actions.perform()
    said = "return document.getElementById('selected').textContent"
    assert browser.execute_script(said).startswith("Element [2, 1] ")
    actions = ActionBuilder(browser, mouse=finger, duration=0)
    start = actions.pointer_action.move_to_location(box["x"], box["y"] + 4 * box["height"]).pointer_down()
    start.move_to_location(box["x"], box["y"] + box["height"]).pointer_up()
    actions.perform()
    assert browser.execute_script("return tilejit.explorer.boards.array.row") == 3
    assert browser.execute_script(said).startswith("Element [2, 1] "), "moving selects nothing"
