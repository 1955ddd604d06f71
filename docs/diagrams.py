"""Diagrams of strips of labeled boxes, for pages where the picture of a layout isn't enough.

`DIAGRAMS` has all of them by name. They use the colors of the pictures of layouts. Text has the page's color,
so it is readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from tilejit.view.svg import CELL, FILLS, LINE, svg_element

WIDE = 7.4
"""Width of a character in pixels."""


class Box(NamedTuple):
    """A part of a strip: its text, color (None: hatched if without text), and minimum width in cells."""

    text: str
    color: int | None = 0
    cells: int = 1


class Strip(NamedTuple):
    """A label, and a row of boxes after it."""

    label: str
    boxes: Sequence[Box]


def diagram(title: str, strips: Sequence[Strip]) -> str:
    """Draw strips one below the other as one <svg> element."""
    parts: list[str] = []
    left = 24 + int(max(len(strip.label) for strip in strips) * WIDE)
    right = 0
    for row, strip in enumerate(strips):
        y = 8 + row * (CELL + 14)
        parts.append(f'<text x="8" y="{y + 15}" fill-opacity="0.8">{escape(strip.label)}</text>')
        x = left
        for box in strip.boxes:
            width = max(box.cells * CELL, int(len(box.text) * WIDE) + 12)
            parts += _box(box, x, y, width)
            x += width
        right = max(right, x)
    return svg_element(right + 8, len(strips) * (CELL + 14) + LINE // 2, title, parts)


def _box(box: Box, x: int, y: int, width: int) -> Iterator[str]:
    look = 'fill-opacity="0"' if box.color is None else f'fill="{FILLS[box.color]}" fill-opacity="0.3"'
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{CELL}" {look} stroke="currentColor"/>'
    if box.color is None and not box.text:
        lines = "".join(
            f"M{x + max(0, k - CELL)} {y + min(k, CELL)}L{x + min(k, width)} {y + max(0, k - width)}"
            for k in range(6, width + CELL, 6)
        )
        yield f'<path d="{lines}" stroke="currentColor" stroke-opacity="0.45"/>'
    yield f'<text x="{x + width / 2:g}" y="{y + 15}" text-anchor="middle">{escape(box.text)}</text>'


def _row(number: int, columns: int = 5, color: int = 0) -> list[Box]:
    return [Box(f"{number},{column}", color) for column in range(columns)]


DIAGRAMS = {
    "notation_levels": diagram(
        "D(D,D): both dimensions are dense, so that every index has a slot",
        [
            Strip("D(D,D)", [Box("dimension 0: D, dense", 0), Box("dimension 1: D, dense", 1)]),
            Strip("memory", [*_row(0), *_row(1, color=1), *_row(2, color=2)]),
        ],
    ),
    "notation_space": diagram(
        "S(1): the same slots, in memory space 1 instead of memory space 0",
        [
            Strip("memory space 0", [Box("", None, 15)]),
            Strip("memory space 1", [*_row(0), *_row(1, color=1), *_row(2, color=2)]),
        ],
    ),
    "notation_split": diagram(
        "SC(0:2): the array is split in two along dimension 0, before index 2",
        [
            Strip("indices 0 to 1", [*_row(0), *_row(1)]),
            Strip("indices 2 to 3", [*_row(2, color=1), *_row(3, color=1)]),
        ],
    ),
    "notation_physical": diagram(
        "P(s32[10,20]{1,0}): the logical array, and the array in memory that stands for it",
        [
            Strip("logical", [Box("f32[100,200]", 0, 14)]),
            Strip("physical", [Box("s32[10,20]{1,0}", 1, 7)]),
        ],
    ),
    "notation_prefix": diagram(
        "M(8): eight bytes of metadata, then the elements",
        [
            Strip("bytes", [Box("0 … 7", None), Box("8 … 67", None, 15)]),
            Strip("f32[<=3,5], M(8)", [Box("metadata", 3), *_row(0), *_row(1, color=1), *_row(2, color=2)]),
        ],
    ),
    "buffer": diagram(
        "pack writes an array into a buffer; the library gets the address of the buffer",
        [
            Strip("x", [Box("array, any strides", 0, 12)]),
            Strip("t.buffer", [Box("tile 0", 1), Box("tile 1", 2), Box("tile 2", 3), Box("tile 3", 4)]),
            Strip("the library", [Box("t.buffer.ctypes.data", None), Box("t.nbytes", None)]),
        ],
    ),
    "zarr": diagram(
        "An array in four chunks; each chunk is a file of tiles",
        [
            Strip(
                "array", [Box("chunk 0,0", 0), Box("chunk 0,1", 1), Box("chunk 1,0", 2), Box("chunk 1,1", 3)]
            ),
            Strip("file c/0/0", [Box("tile 0", 0), Box("tile 1", 0), Box("tile 2", 0), Box("...", 0)]),
            Strip("zarr.json", [Box('"name": "tilejit.tile", "layout": "tpu"', None)]),
        ],
    ),
    "safetensors": diagram(
        "A safetensors file before and after pack",
        [
            Strip("model", [Box("header", None), Box("weight, row-major", 0, 8), Box("bias", 1)]),
            Strip("packed", [Box("header + layouts", None), Box("weight, in tiles", 0, 10), Box("bias", 1)]),
        ],
    ),
    "super_vector": diagram(
        "A super-vector of 64 floats: 4 registers of AVX-512, or 8 of AVX2; and a tail of 40",
        [
            Strip("super-vector", [Box("64 x f32", 0, 32)]),
            Strip("AVX-512", [Box(f"{k}..{k + 15}", 1, 8) for k in range(0, 64, 16)]),
            Strip("AVX2", [Box(f"{k}..{k + 7}", 2, 4) for k in range(0, 64, 8)]),
            Strip("tail of 40", [Box("40 active lanes", 0, 20), Box("", None, 12)]),
        ],
    ),
}
