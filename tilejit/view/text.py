"""The text picture of a layout: what lies where in memory, tiles told apart by colour or by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from codegen.records import dataclass
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import linear_index, multi_index
from tilejit.layout.tiling import tile_steps

MAX_ROWS = 24
MAX_SLICES = 4
MAX_SLOTS = 256
"""Buffers up to so many slots are drawn whole, in the order of memory."""
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
"""Names that a terminal of sixteen colours has too; eight, as `paint` counts on."""

Grid = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw: the columns there are, and colours for tiles or, without, lines of plain ASCII."""

    width: int = 80
    colour: bool = False

    @property
    def more(self) -> str:
        """What stands for all that is left out."""
        return " …" if self.colour else " ..."


@dataclass(frozen=True, slots=True)
class Board:
    """A rectangle of cells: the slot of each, the tile each belongs to, and whether more lies beyond."""

    slots: Grid
    tiles: Grid
    more_columns: bool = False
    more_rows: bool = False


def picture(shape: Spec, style: Style) -> Text:
    """The logical array, each cell showing its linear index in the buffer.

    f32[3,5]{1,0:T(2,2)} ->   0  1| 4  5| 8
                              2  3| 6  7|10
                             -----+-----+---
                             12 13|16 17|20

    Arrays of more than two dimensions are drawn slice by slice, each along the last two that have more than
    one index; what does not fit is left out.

    Raises:
        LayoutError: the buffer has no size known here.
    """
    if 0 in shape.dimensions:
        return Text("no elements")
    parts: list[Text] = []
    tiling = _Tiling.of(shape)
    drawn = _drawn(shape.dimensions)
    others = [n for d, n in enumerate(shape.dimensions) if d not in drawn]
    count = prod(others)
    for prefix in islice(_prefixes(others), MAX_SLICES):
        if others:
            rest = iter(prefix)
            names = (":" if d in drawn else str(next(rest)) for d in range(shape.rank))
            parts.append(_fitted(f"[{', '.join(names)}]", style))
        board = _slice_board(shape, tiling, prefix, style)
        parts.append(_draw(board, tiling, style))
    if board.more_columns or board.more_rows:
        whole, part = _extents(shape), board.slots.shape
        parts.append(_fitted(f"the first {part[0]} x {part[1]} of {whole[0]} x {whole[1]}", style))
    if count > MAX_SLICES:
        parts.append(_fitted(f"{style.more.strip()} {count - MAX_SLICES} more slices", style))
    return Text("\n").join(parts)


def memory_picture(shape: Spec, style: Style) -> Text | None:
    """The buffer in the order of memory, each slot showing the index it holds; None when large.

    f32[3,5]{1,0:T(2,2)} ->  0: 0,0 0,1 1,0 1,1|0,2 0,3 1,2 1,3|0,4   . 1,4   .

    Raises:
        LayoutError: the buffer has no size known here.
    """
    size = shape.physical_size
    if not 0 < size <= MAX_SLOTS:
        return None
    held, tiling = list(_slots(shape)), _Tiling.of(shape)
    blank = "·" if style.colour else "."
    names = [blank if index is None else ",".join(map(str, index)) or "()" for index in held]
    cell, label = max(map(len, names)), len(str(size - 1)) + 1
    line = _line_length((style.width - label) // (cell + 1), tiling.unit, size)
    text = Text()
    for start in range(0, size, line):
        if start == MAX_ROWS * line:
            return text.append(f"\n{style.more}")
        text.append("\n" if start else "").append(f"{start:>{label - 1}}:", "dim")
        for slot in range(start, min(start + line, size)):
            edge = not style.colour and slot > start and slot % tiling.unit == 0 and bool(tiling.counts)
            index = held[slot]
            paint = "" if index is None else tiling.paint(_tile_of(tiling, index), style)
            text.append(("|" if edge else " ") + names[slot].rjust(cell), paint)
    return text


def _tile_of(tiling: _Tiling, index: tuple[int, ...]) -> int:
    return int(tiling.numbers(np.asarray(linear_index(tiling.alone, index), np.int64)))


def _drawn(dims: Sequence[int]) -> tuple[int, ...]:
    """The dimensions of a board: the last two of more than one index, or the last two where these are fewer.

    (2, 5, 7) -> 1, 2    (32, 32, 1, 1) -> 0, 1    (1, 5, 1) -> 1, 2
    """
    long = [d for d, n in enumerate(dims) if n > 1][-2:]
    return tuple(long) if len(long) == 2 else tuple(range(len(dims)))[-2:]


def _extents(shape: Spec) -> tuple[int, int]:
    """Rows and columns of a board."""
    *_, rows, columns = 1, 1, *(shape.dimensions[d] for d in _drawn(shape.dimensions))
    return rows, columns


def _prefixes(others: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Indices of the other dimensions in row-major order, one by one: there may be more than memory holds."""
    for number in range(prod(others)):
        index = []
        for extent in reversed(others):
            number, digit = divmod(number, extent)
            index.append(digit)
        yield tuple(reversed(index))


def _slice_board(shape: Spec, tiling: _Tiling, prefix: tuple[int, ...], style: Style) -> Board:
    """The drawn dimensions at an index of the others, cut to what fits."""
    rows, columns = _extents(shape)
    shown = min(rows, MAX_ROWS), min(columns, max(1, style.width // 2))
    slots = _block(shape, prefix, *shown)
    fit = shown[1]
    while fit > 1 and _board_width(slots[:, :fit], fit < columns, style) > style.width:
        fit -= 1
    slots = slots[:, :fit]
    tiles = tiling.numbers(_block(tiling.alone, prefix, shown[0], fit))
    return Board(slots, tiles, fit < columns, shown[0] < rows)


def _board_width(slots: Grid, more: bool, style: Style) -> int:
    return (len(str(int(slots.max()))) + 1) * int(slots.shape[1]) + (len(style.more) if more else 0)


def _block(shape: Spec, prefix: tuple[int, ...], rows: int, columns: int) -> Grid:
    """The linear indices of a corner of the drawn dimensions."""
    if not shape.rank:
        return np.full((1, 1), linear_index(shape, ()), np.int64)
    i, j = np.indices((rows, columns))
    drawn, rest = _drawn(shape.dimensions), iter(prefix)
    along = dict(zip(drawn, (i, j)[-len(drawn) :], strict=True))
    index = tuple(along[d] if d in along else np.full_like(i, next(rest)) for d in range(shape.rank))
    return np.asarray(linear_index(shape, index), np.int64)


@dataclass(frozen=True, slots=True)
class _Tiling:
    """The first tile of a shape: which tile holds what, and its colour.

    Attributes:
        alone: the shape with its first tile only; there the tiles lie one after the other.
        unit: elements of the tile; without tiles, the run that is contiguous.
        counts: how many tiles there are along each axis, most major first; empty without tiles.
    """

    alone: Spec
    unit: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, shape: Spec) -> _Tiling:
        if isinstance(shape, CuteShape):
            return cls(shape, 1, ())
        steps, extents = tile_steps(shape)
        if shape.layout is None or not steps:
            return cls(shape, max(1, (extents[-1] or (1,))[-1]), ())
        alone = replace(shape, layout=replace(shape.layout, tiles=shape.layout.tiles[:1]))
        return cls(alone, prod(steps[0].tile), extents[1][: -len(steps[0].tile)])

    def numbers(self, slots: Grid) -> Grid:
        """The tile of each element, given its slot in `alone`; all 0 without tiles."""
        return slots // self.unit if self.counts else np.zeros_like(slots)

    def paint(self, number: int, style: Style) -> str:
        """A tile's colour: its coordinates times 1, 3, 5, ... so that no two neighbours are alike."""
        if not style.colour:
            return ""
        colour, weight = 0, 1
        for count in reversed(self.counts):
            number, digit = divmod(number, count)
            colour += weight * digit
            weight += 2
        return f"black on {PALETTE[colour % len(PALETTE)]}"


def _draw(board: Board, tiling: _Tiling, style: Style) -> Text:
    cell = len(str(board.slots.max()))
    text = Text()
    above: list[int] | None = None
    for slots, tiles in zip(board.slots.tolist(), board.tiles.tolist(), strict=True):
        if above is not None:
            text.append("\n")
            if not style.colour and tiles != above:
                text.append(_rule(tiles, cell) + "\n")
        for c, slot in enumerate(slots):
            edge = not style.colour and c > 0 and tiles[c] != tiles[c - 1]
            text.append(("|" if edge else " ") + str(slot).rjust(cell), tiling.paint(tiles[c], style))
        text.append(style.more if board.more_columns else "")
        above = tiles
    if board.more_rows:
        text.append("\n" + style.more)
    return text


def _rule(tiles: Sequence[int], cell: int) -> str:
    """The line between two rows of tiles."""
    corners = ("+" if c and tiles[c] != tiles[c - 1] else "-" for c in range(len(tiles)))
    return "".join(corner + "-" * cell for corner in corners)


def _slots(shape: Spec) -> Iterator[tuple[int, ...] | None]:
    """The index that each slot holds, None for padding."""
    return (multi_index(shape, slot) for slot in range(shape.physical_size))


def _line_length(fits: int, unit: int, size: int) -> int:
    """Slots in a line: whole tiles, else a part that divides one."""
    fits = max(1, min(fits, size))
    if unit <= fits:
        return fits // unit * unit
    return max(d for d in range(1, fits + 1) if unit % d == 0)


def _fitted(line: str, style: Style) -> Text:
    """A line cut to the width."""
    if len(line) <= style.width:
        return Text(line)
    return Text(line[: max(0, style.width - len(style.more))] + style.more)
