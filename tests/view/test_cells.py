"""The cells of pictures agree with `linear_index` and `multi_index` and have the right color."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.strategies import cute_shape, picker, shape
from tilejit.view.boards import Tiling, board_extents
from tilejit.view.cells import MAX_COLUMNS, MAX_ROWS, MAX_TILE, Cell, Cells, cells_of
from tilejit.view.coloring import Coloring
from tilejit.view.page import subject

TIP = re.compile(r"(?:slot (\d+): )?(\[.*\]|padding)(?:: (?:slot (\d+)|padding))?")


def drawn(spec: Any, color: str | None = None) -> tuple[list[Cells], list[Cells], list[str]]:
    return cells_of(spec, Coloring.of(spec, color))


def every_cell(boards: list[Cells]) -> Iterator[Cell]:
    return (cell for board in boards for row in board.rows for cell in row)


def check(spec: Any, color: str | None = None) -> None:
    """Check every cell's tooltip, text, color and tiles."""
    coloring, levels = Coloring.of(spec, color), Tiling.levels(spec)
    arrays, memory, _ = drawn(spec, color)
    places: dict[tuple[int, ...], list[Cell]] = {}
    for cell in every_cell(arrays):
        _, index, slot = TIP.fullmatch(cell.tip).groups()  # type: ignore[union-attr]
        at = tuple(map(int, re.findall(r"\d+", index)))
        assert (slot is None) == (cell.color is None) == any(map(int.__ge__, at, spec.dimensions)), spec
        if slot is not None:
            assert int(slot) == tj.linear_index(spec, at), spec
            assert cell.text in ("", slot)
            places.setdefault(at, []).append(cell)
    for cell in every_cell(memory):
        slot, index, _ = TIP.fullmatch(cell.tip).groups()  # type: ignore[union-attr]
        held = tj.multi_index(spec, int(slot))
        assert (None if index == "padding" else list(held or ())) == (
            None if held is None else eval(index)
        ), spec
        assert (cell.color is None) == (held is None)
        if held is not None:
            assert cell.text in ("", ",".join(map(str, held)) or "()")
            places.setdefault(held, []).append(cell)
    for at, cells in places.items():
        slot = np.asarray([tj.linear_index(spec, at)], np.int64)
        numbers = [level.number(at) for level in levels]
        tile = np.asarray([levels[0].color(numbers[0]) if levels else 0], np.int64)
        (wanted,) = coloring.numbers(slot, tile).tolist()
        assert {cell.color for cell in cells} == {wanted}, spec
        assert {cell.tiles[: len(levels)] for cell in cells} == {tuple(numbers)} or not levels, spec


@pytest.mark.parametrize("color", [None, "tile", "order"])
@pytest.mark.parametrize(
    "text",
    [
        "f32[3,5]{1,0:T(2,2)}",
        "bf16[40,300]{1,0:T(8,128)(2,1)}",
        "bf16[64,33]{1,0:T(32,32)(16,16)}",
        "f32[5]{0:L(8)}",
        "f32[3,5]{1,0:T(8,128)}",
        "pred[40,1,33,1]{3,2,1,0:T(4,16)(4,1)E(1)}",
        "f32[6,3] ((2,4),(2,2)):((1,4),(2,16))",
        "u8[100,1,1] ((8,5,3),(2),(1)):((12,96,2),(6),(480))",
        "f32[]{:T(256)}",
    ],
)
def test_cells_are_exact(text: str, color: str | None) -> None:
    check(tj.as_layout(text), color)


@pytest.mark.parametrize("color", ["tile", "order", "bank", "row"])
@pytest.mark.parametrize(
    "text", ["Sw<3,0,3> o 0 o (8,8):(8,1)", "Sw<3,3,3> o 0 o (64,64):(64,1)", "Sw<1,2,-3> o 8 o (8,8):(8,1)"]
)
def test_cells_of_swizzles_are_exact(text: str, color: str) -> None:
    check(subject(tj.cute.parse(text))[0], color)


@pytest.mark.full
def test_cells_of_random_layouts_are_exact(seed: int) -> None:
    pick = picker(np.random.default_rng(seed))
    for _ in range(40):
        for spec in (shape(pick, most=400), cute_shape(pick, most=400, swizzled=bool(pick(0, 1)))):
            if 0 not in spec.dimensions:
                check(spec)


@pytest.mark.parametrize(
    ("text", "tile"),
    [
        ("bf16[4096,4096]{1,0:T(8,128)(2,1)}", (8, 128)),
        ("bf16[64,64]{1,0:T(32,32)(16,16)}", (32, 32)),
        ("f8e8m0fnu[128,8]{1,0:T(32,4)(4,1,1,4)}", (64, 8)),
        ("f16[64,64] Sw<3,3,3> o 0 o (64,64):(64,1)", (8, 64)),
    ],
)
def test_a_large_tile_is_complete(text: str, tile: tuple[int, int]) -> None:
    """Cells without text; small tiles with their neighbors, beside as many slots of memory."""
    (array,), (memory,), notes = drawn(tj.as_layout(text))
    assert (len(array.rows), array.columns) == tile
    assert len(memory.rows) * memory.columns == tile[0] * tile[1]
    for board in (array, memory):
        assert board.low is not None
        assert board.low[0] * board.columns <= 620
    assert any(note.startswith(f"the first {tile[0]} x {tile[1]} of") for note in notes)


@pytest.mark.parametrize(
    "text", ["f32[3,5]{1,0:T(8,128)}", "f32[1000,1000]{1,0:T(2,4)}", "f32[10,10]{1,0:T(512,512)}"]
)
def test_cells_with_room_for_text_have_text(text: str) -> None:
    spec = tj.as_layout(text)
    (array,), _, _ = drawn(spec)
    assert array.low is None
    assert len(array.rows) <= MAX_ROWS
    assert array.columns <= MAX_COLUMNS
    assert array.rows[0][0].text == "0"


def test_tiles_above_the_limit_show_a_corner() -> None:
    spec = tj.as_layout("f32[1000,1000]{1,0:T(512,512)}")
    assert board_extents(spec) > MAX_TILE
    (array,), _, _ = drawn(spec)
    assert array.low is None


def test_rows_and_columns_have_labels() -> None:
    (array,), (memory,), _ = drawn(tj.as_layout("f32[3,5]{1,0:T(2,2)}"))
    assert array.row_names == ("0", "1", "2", "3")
    assert array.column_names == ("0", "1", "2", "3", "4", "5")
    assert memory.row_names == ("0", "12")
    assert memory.column_names == tuple(map(str, range(12)))
