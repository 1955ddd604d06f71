"""The picture of a layout as text: the position of each element, with tiles marked by color or by lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import prod

from rich.text import Text

from codegen import dataclass
from tilejit.layout.cute_shape import Spec
from tilejit.support.units import counted, human_bytes
from tilejit.view.boards import (
    Grid,
    Tiling,
    board_extents,
    corner,
    held,
    other_extents,
    prefixes,
    slice_name,
)
from tilejit.view.page import CuteLayout, subject

MAX_ROWS = 24
MAX_SLICES = 4
MAX_SLOTS = 256
"""Buffers of up to this many slots are drawn completely, in memory order."""
PALETTE = (
    "bright_cyan",
    "bright_yellow",
    "bright_green",
    "bright_magenta",
    "cyan",
    "yellow",
    "green",
    "white",
)
"""The COLORS colors of tiles, which terminals with sixteen colors support."""


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw: the width in columns, and whether tiles are marked by color or by ASCII lines."""

    width: int = 80
    color: bool = False

    @property
    def more(self) -> str:
        """The mark for omitted parts."""
        return " …" if self.color else " ..."


@dataclass(frozen=True, slots=True)
class Board:
    """A rectangle of cells: the slot and the tile of each, and whether more lies beyond."""

    slots: Grid
    tiles: Grid
    more_columns: bool = False
    more_rows: bool = False


def layout_text(layout: Spec | CuteLayout, style: Style) -> Text:
    """A layout's sizes, its picture, and the buffer if it is small.

    f32[3,5]{1,0:T(2,2)} -> "f32[3,5]{1,0:T(2,2)}", "elements  15", ..., the two pictures below

    A CuTe layout alone has no dtype, so no size in bytes.

    Raises:
        LayoutError: the size of the buffer is unknown, or a CuTe layout has offsets below 0.
        TypeError: the layout is neither a Shape nor a CuTe layout.
    """
    spec, title = subject(layout)
    elements, slots = prod(spec.dimensions), spec.physical_size
    board, memory = picture(spec, style), memory_picture(spec, style)
    sizes = [
        f"slots     {slots} of {counted(spec.bits, 'bit')}",
        f"size      {human_bytes(spec.size_in_bytes)}",
    ]
    lines = [
        title,
        f"elements  {elements}",
        *(sizes if spec is layout else [f"slots     {slots}"]),
        f"padding   {counted(slots - elements, 'slot')}, {spec.padding_fraction:.1%}",
    ]
    parts = [Text("\n".join(lines)), Text(), board]
    parts += [] if memory is None else [Text(), Text("memory"), memory]
    return Text("\n").join(parts)


def picture(shape: Spec, style: Style) -> Text:
    """The logical array, each cell showing its linear index in the buffer.

    f32[3,5]{1,0:T(2,2)} ->   0  1| 4  5| 8
                              2  3| 6  7|10
                             -----+-----+---
                             12 13|16 17|20

    Arrays of more than two dimensions are drawn slice by slice, each along the last two that have more than
    one index. Parts that do not fit are omitted.

    Raises:
        LayoutError: the size of the buffer is unknown.
    """
    if 0 in shape.dimensions:
        return Text("no elements")
    parts: list[Text] = []
    tiling = Tiling.of(shape)
    others = other_extents(shape)
    count = prod(others)
    for prefix in islice(prefixes(others), MAX_SLICES):
        if others:
            parts.append(_fitted(slice_name(shape, prefix), style))
        board = _slice_board(shape, tiling, prefix, style)
        parts.append(_draw(board, tiling, style))
    if board.more_columns or board.more_rows:
        whole, part = board_extents(shape), board.slots.shape
        parts.append(_fitted(f"the first {part[0]} x {part[1]} of {whole[0]} x {whole[1]}", style))
    if count > MAX_SLICES:
        parts.append(_fitted(f"{style.more.strip()} {count - MAX_SLICES} more slices", style))
    return Text("\n").join(parts)


def memory_picture(shape: Spec, style: Style) -> Text | None:
    """The buffer in memory order, each slot showing the index it holds; None if it is large.

    f32[3,5]{1,0:T(2,2)} ->  0: 0,0 0,1 1,0 1,1|0,2 0,3 1,2 1,3|0,4   . 1,4   .

    Raises:
        LayoutError: the size of the buffer is unknown.
    """
    size = shape.physical_size
    if not 0 < size <= MAX_SLOTS:
        return None
    contents, tiling = list(held(shape)), Tiling.of(shape)
    blank = "·" if style.color else "."
    names = [blank if index is None else ",".join(map(str, index)) or "()" for index in contents]
    cell, label = max(map(len, names)), len(str(size - 1)) + 1
    line = _line_length((style.width - label) // (cell + 1), tiling.unit, size)
    text = Text()
    for start in range(0, size, line):
        if start == MAX_ROWS * line:
            return text.append(f"\n{style.more}")
        text.append("\n" if start else "").append(f"{start:>{label - 1}}:", "dim")
        for slot in range(start, min(start + line, size)):
            edge = not style.color and slot > start and slot % tiling.unit == 0 and bool(tiling.counts)
            index = contents[slot]
            paint = "" if index is None else _paint(tiling, tiling.number(index), style)
            text.append(("|" if edge else " ") + names[slot].rjust(cell), paint)
    return text


def _slice_board(shape: Spec, tiling: Tiling, prefix: tuple[int, ...], style: Style) -> Board:
    """The drawn dimensions at an index of the others, cut to what fits."""
    rows, columns = board_extents(shape)
    shown = min(rows, MAX_ROWS), min(columns, max(1, style.width // 2))
    slots = corner(shape, prefix, *shown)
    fit = shown[1]
    while fit > 1 and _board_width(slots[:, :fit], fit < columns, style) > style.width:
        fit -= 1
    slots = slots[:, :fit]
    tiles = tiling.numbers(corner(tiling.alone, prefix, shown[0], fit))
    return Board(slots, tiles, fit < columns, shown[0] < rows)


def _board_width(slots: Grid, more: bool, style: Style) -> int:
    return (len(str(int(slots.max()))) + 1) * int(slots.shape[1]) + (len(style.more) if more else 0)


def _paint(tiling: Tiling, number: int, style: Style) -> str:
    """A tile's style on a terminal with colors."""
    return f"black on {PALETTE[tiling.color(number)]}" if style.color else ""


def _draw(board: Board, tiling: Tiling, style: Style) -> Text:
    cell = len(str(board.slots.max()))
    text = Text()
    above: list[int] | None = None
    for slots, tiles in zip(board.slots.tolist(), board.tiles.tolist(), strict=True):
        if above is not None:
            text.append("\n")
            if not style.color and tiles != above:
                text.append(_rule(tiles, cell) + "\n")
        for c, slot in enumerate(slots):
            edge = not style.color and c > 0 and tiles[c] != tiles[c - 1]
            text.append(("|" if edge else " ") + str(slot).rjust(cell), _paint(tiling, tiles[c], style))
        text.append(style.more if board.more_columns else "")
        above = tiles
    if board.more_rows:
        text.append("\n" + style.more)
    return text


def _rule(tiles: Sequence[int], cell: int) -> str:
    """The line between two rows of tiles."""
    corners = ("+" if c and tiles[c] != tiles[c - 1] else "-" for c in range(len(tiles)))
    return "".join(corner + "-" * cell for corner in corners)


def _line_length(fits: int, unit: int, size: int) -> int:
    """Slots in a line: complete tiles, or a divisor of one."""
    fits = max(1, min(fits, size))
    if unit <= fits:
        return fits // unit * unit
    return max(d for d in range(1, fits + 1) if unit % d == 0)


def _fitted(line: str, style: Style) -> Text:
    """A line cut to the width."""
    if len(line) <= style.width:
        return Text(line)
    return Text(line[: max(0, style.width - len(style.more))] + style.more)
