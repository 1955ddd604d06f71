"""Draw docs/images/layout.svg, an array in tiles beside its memory: `python docs/layout_picture.py`."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import product
from pathlib import Path

import tilejit as tj

FILE = Path(__file__).parent / "images" / "layout.svg"
LAYOUT = "f32[3,5]{1,0:T(2,2)}"
TILE = (2, 2)

CELL = 46
WIDTH, HEIGHT = 640, 408
ARRAY, MEMORY = (30, 106), (412, 106)
"""The top left corners of the two grids."""
FILLS = ("#cfe3ff", "#ffdfb0", "#cdeec6", "#f8d0ef", "#c2ecec", "#efe39a")
"""A color for each tile, light enough for dark text."""
INK, MUTED, CARD = "#1f2328", "#59636e", "#d1d9e0"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def picture(text: str = LAYOUT) -> str:
    """The SVG. Each element has the color of its tile on both sides, and padding is hatched."""
    shape = tj.Shape.parse(text)
    rows, columns = shape.dimensions
    slots = TILE[0] * TILE[1]
    padded = [-(-n // tile) * tile for n, tile in zip((rows, columns), TILE, strict=True)]
    index_of = {tj.linear_index(shape, index): index for index in product(range(rows), range(columns))}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="{SANS}" font-size="17" fill="{INK}">',
        f"<title>{escape(text)}: the array in tiles of 2 x 2 and its memory, tile after tile</title>",
        '<defs><pattern id="padding" width="8" height="8" patternUnits="userSpaceOnUse">'
        '<rect width="8" height="8" fill="#f3f5f7"/>'
        '<path d="M-2 2L2 -2M0 8L8 0M6 10L10 6" stroke="#afb8c1" stroke-width="1.3"/></pattern></defs>',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" '
        f'fill="#fff" stroke="{CARD}"/>',
        f'<text x="30" y="44" font-family="{MONO}" font-size="21" font-weight="bold">{escape(text)}</text>',
        *_heading(ARRAY, f"Array, {rows} x {columns}"),
        *_heading(MEMORY, f"Memory, {padded[0] * padded[1]} slots"),
    ]
    for i, j in product(*map(range, padded)):
        inside = i < rows and j < columns
        tile = tj.linear_index(shape, (i, j)) // slots if inside else None
        parts += _cell(ARRAY, i, j, f"{i},{j}" if inside else "", tile)
    parts += _edges(ARRAY, *padded, *TILE)
    for slot in range(padded[0] * padded[1]):
        row, column = divmod(slot, slots)
        index = index_of.get(slot)
        parts += _cell(
            MEMORY, row, column, ",".join(map(str, index)) if index else "", row if index else None
        )
        if not column:
            x, y = MEMORY[0] - 10, MEMORY[1] + row * CELL + 29
            parts.append(
                f'<text x="{x}" y="{y}" text-anchor="end" font-size="14" fill="{MUTED}">{slot}</text>'
            )
    parts += _edges(MEMORY, padded[0] * padded[1] // slots, slots, 1, slots)
    parts += _notes(padded[0])
    return "\n".join([*parts, "</svg>", ""])


def _heading(corner: tuple[int, int], text: str) -> Iterator[str]:
    yield f'<text x="{corner[0]}" y="{corner[1] - 14}" font-weight="600">{text}</text>'


def _cell(corner: tuple[int, int], row: int, column: int, text: str, tile: int | None) -> Iterator[str]:
    x, y = corner[0] + column * CELL, corner[1] + row * CELL
    fill = "url(#padding)" if tile is None else FILLS[tile]
    box = f'x="{x}" y="{y}" width="{CELL}" height="{CELL}"'
    yield f'<rect {box} fill="{fill}" stroke="#fff" stroke-width="2"/>'
    if text:
        middle = f'x="{x + CELL / 2:g}" y="{y + CELL / 2 + 6:g}" text-anchor="middle"'
        yield f'<text {middle} font-family="{MONO}">{text}</text>'


def _edges(corner: tuple[int, int], rows: int, columns: int, high: int, wide: int) -> Iterator[str]:
    """Lines around the tiles."""
    for row, column in product(range(0, rows, high), range(0, columns, wide)):
        x, y = corner[0] + column * CELL, corner[1] + row * CELL
        size = f'width="{wide * CELL}" height="{high * CELL}"'
        yield f'<rect x="{x}" y="{y}" {size} fill="none" stroke="{INK}" stroke-width="1.6"/>'


def _notes(rows: int) -> Iterator[str]:
    """The legend below the array."""
    x, y = ARRAY[0], ARRAY[1] + rows * CELL + 34
    look = f'font-size="15" fill="{MUTED}"'
    yield f'<text x="{x}" y="{y}" {look}>T(2,2): tiles of 2 x 2, one after the other</text>'
    yield f'<rect x="{x}" y="{y + 16}" width="24" height="20" fill="url(#padding)" stroke="{CARD}"/>'
    yield f'<text x="{x + 34}" y="{y + 32}" {look}>padding, up to whole tiles</text>'


if __name__ == "__main__":
    FILE.write_text(picture())
