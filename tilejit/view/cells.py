"""The cells of a picture: slices of the array, and the first rows of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import multi_index
from tilejit.view.boards import (
    Grid,
    Tiling,
    board_extents,
    corner_index,
    drawn_dimensions,
    other_extents,
    padded_shape,
    prefixes,
    slice_name,
    slots_at,
    tile_lengths,
)
from tilejit.view.coloring import LARGE_TILE, Coloring, slot_runs
from tilejit.view.page import row_length, shorter_row

MAX_ROWS, MAX_COLUMNS, MAX_SLICES = 16, 32, 2
MAX_WIDTH = 620
"""The largest width of the array or of memory, in pixels."""
MAX_TILE = 64, 128
"""Rows and columns of the largest tile that is drawn completely, in cells without text."""
MAX_LOOKED_UP = 1 << 16
"""The most elements of a CuTe layout whose memory is drawn, which may require a table of all slots."""
CELL, CHARACTER = 22, 7.25
"""The height of a cell with text, and the width of a character, in pixels."""
LOW_CELL, HIGH_CELL, LOW_WIDTH = 10, 16, 600
"""The width and height of the largest cell without text, and the width of a row of them, in pixels."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a picture.

    Attributes:
        text: its text.
        color: its number in the palette; None for padding.
        tiles: the tile that it belongs to at each level, the outermost first.
        tip: its tooltip.
    """

    text: str
    color: int | None
    tiles: tuple[int, ...]
    tip: str


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of cells with a heading.

    Attributes:
        heading: the line above.
        rows: the cells, row by row.
        more: whether cells are omitted on the right, and at the bottom.
        row_names: the names left of the rows.
        column_names: the names above the columns.
        low: width and height of cells without text, in pixels; None for cells with text.
    """

    heading: str
    rows: tuple[tuple[Cell, ...], ...]
    more: tuple[bool, bool]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    low: tuple[int, int] | None = None

    @property
    def columns(self) -> int:
        """The number of cells in the longest row."""
        return max(map(len, self.rows), default=0)

    @property
    def cell_size(self) -> tuple[int, int]:
        """Width and height of a cell in pixels, by the longest text."""
        if self.low:
            return self.low
        return text_width(max((len(cell.text) for row in self.rows for cell in row), default=1)), CELL


def text_width(characters: int) -> int:
    """Pixels of a cell with that many characters."""
    return max(CELL, int(characters * CHARACTER) + 8)


def cells_of(spec: Spec, coloring: Coloring) -> tuple[list[Cells], list[Cells], list[str]]:
    """The array's slices, memory, and notes on omitted parts; the shape must have elements.

    Memory is omitted if finding the elements of its slots requires a large table.
    """
    drawing = _Drawing.of(spec, coloring)
    large = isinstance(spec, CuteShape) and prod(spec.dimensions) > MAX_LOOKED_UP
    return drawing.arrays(), [] if large else [drawing.memory()], drawing.notes()


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A layout with the data that its pictures share.

    Attributes:
        spec: the layout.
        padded: the same with the padding of the outermost tiles.
        levels: its tiles.
        coloring: the meaning of the colors.
        low: rows and columns of cells without text, if only these show a complete tile.
        shown: rows and columns of a slice that are drawn.
    """

    spec: Spec
    padded: Spec
    levels: tuple[Tiling, ...]
    coloring: Coloring
    low: tuple[int, int] | None
    shown: tuple[int, int]

    @classmethod
    def of(cls, spec: Spec, coloring: Coloring) -> _Drawing:
        try:
            padded = padded_shape(spec)
            levels = Tiling.levels(padded)
        except LayoutError:  # modes of stride 0 may have more tiles than 64-bit integers can count
            padded, levels = spec, ()
        rows, columns = board_extents(padded, spec)
        shown = min(rows, MAX_ROWS), min(columns, MAX_COLUMNS)
        drawing = cls(spec, padded, levels, coloring, None, shown)
        if tile := drawing.low_tile():
            low = _enlarged(tile, (rows, columns))
            return replace(drawing, low=low, shown=low)
        highest = max(int(drawing.slots(prefix, *shown).max()) for prefix in drawing.prefixes())
        fit = max(1, MAX_WIDTH // text_width(len(str(highest))))
        return replace(drawing, shown=(shown[0], min(shown[1], fit)))

    def low_tile(self) -> tuple[int, int] | None:
        """Rows and columns of the outermost tile if only cells without text show all of its elements."""
        rows, columns = board_extents(self.padded, self.spec)
        origin = (0,) * len(other_extents(self.spec))
        if self.levels:
            first = self.tiles(0, origin, min(rows, MAX_TILE[0] + 1), min(columns, MAX_TILE[1] + 1))
            high, wide = int((first[:, 0] == first[0, 0]).sum()), int((first[0] == first[0, 0]).sum())
        else:
            high, wide = min(rows, self.coloring.block[0]), min(columns, self.coloring.block[1])
        if not high or high > MAX_TILE[0] or wide > MAX_TILE[1]:
            return None
        whole = board_extents(self.spec)
        used = min(high, whole[0]), min(wide, whole[1])
        fit = MAX_WIDTH // text_width(len(str(int(self.slots(origin, *used).max()))))
        return None if used[0] <= MAX_ROWS and used[1] <= min(MAX_COLUMNS, fit) else (high, wide)

    def slots(self, prefix: tuple[int, ...], rows: int, columns: int) -> Grid:
        """The slots of a corner of a slice, including padding."""
        return slots_at(self.padded, corner_index(self.spec, prefix, rows, columns))

    def tiles(self, level: int, prefix: tuple[int, ...], rows: int, columns: int) -> Grid:
        """The tiles of a corner of a slice at a level."""
        tiling = self.levels[level]
        return tiling.numbers(slots_at(tiling.alone, corner_index(self.spec, prefix, rows, columns)))

    def prefixes(self) -> list[tuple[int, ...]]:
        """The slices that are drawn."""
        return list(islice(prefixes(other_extents(self.spec)), MAX_SLICES))

    def notes(self) -> list[str]:
        """Notes on omitted parts."""
        whole, shown, notes = board_extents(self.spec), self.shown, []
        part = min(shown[0], whole[0]), min(shown[1], whole[1])
        if part != whole:
            notes.append(f"the first {part[0]} x {part[1]} of {whole[0]} x {whole[1]}")
        left = prod(other_extents(self.spec)) - MAX_SLICES
        if left > 0:
            notes.append(f"{left} more slice{'s' * (left > 1)}")
        return notes

    def arrays(self) -> list[Cells]:
        """The first slices of the array, padding included."""
        return [self._slice(prefix) for prefix in self.prefixes()]

    def _slice(self, prefix: tuple[int, ...]) -> Cells:
        rows, columns = self.shown
        whole, padded = board_extents(self.spec), board_extents(self.padded, self.spec)
        slots = self.slots(prefix, rows, columns)
        numbers = [self.tiles(level, prefix, rows, columns) for level in range(len(self.levels))]
        colors, tiles = self._painted(slots, numbers)
        index = [part.tolist() for part in corner_index(self.spec, prefix, rows, columns)]
        named, low = slots.tolist(), self.low is not None

        def cell(i: int, j: int) -> Cell:
            at = [part[i][j] for part in index]
            if i >= whole[0] or j >= whole[1]:
                return Cell("", None, tuple(tiles[i][j]), f"{at}: padding")
            text = "" if low else str(named[i][j])
            return Cell(text, colors[i][j], tuple(tiles[i][j]), f"{at}: slot {named[i][j]}")

        drawn = len(drawn_dimensions(self.spec))
        name = slice_name(self.spec, prefix) if prefix else ""
        return Cells(
            f"array {name}".strip(),
            tuple(tuple(cell(i, j) for j in range(columns)) for i in range(rows)),
            (columns < padded[1], rows < padded[0]),
            tuple(map(str, range(rows))) if drawn > 1 else (),
            tuple(map(str, range(columns))) if drawn else (),
            _low_cell(rows, columns) if low else None,
        )

    def memory(self) -> Cells:
        """The first rows of the buffer."""
        spec, size = self.spec, self.spec.physical_size
        line, rows = row_length(spec), MAX_ROWS
        if self.low:
            line = max(line, self.low[1])
            rows = -(-prod(self.low) // line)
        else:
            longest = len(",".join(str(n - 1) for n in spec.dimensions))
            line = shorter_row(line, slot_runs(spec), min(MAX_COLUMNS, MAX_WIDTH // text_width(longest)))
        starts = range(0, min(size, rows * line), line)
        drawn = tuple(self._slots(range(start, min(start + line, size))) for start in starts)
        return Cells(
            f"memory, rows of {line} slots" if size > line else "memory",
            drawn,
            (False, rows * line < size),
            tuple(map(str, starts)),
            tuple(map(str, range(len(drawn[0])))),
            _low_cell(rows, line) if self.low else None,
        )

    def _slots(self, run: range) -> tuple[Cell, ...]:
        """The cells of adjacent slots."""
        held = [multi_index(self.spec, slot) for slot in run]
        slots = np.arange(run.start, run.stop)
        colors, tiles = self._painted(slots, self._tiles_of_slots(slots, held))
        cells = []
        for k, (slot, index) in enumerate(zip(run, held, strict=True)):
            text = "" if index is None or self.low else ",".join(map(str, index)) or "()"
            what = "padding" if index is None else str(list(index))
            cells.append(
                Cell(text, None if index is None else colors[k], tuple(tiles[k]), f"slot {slot}: {what}")
            )
        return tuple(cells)

    def _tiles_of_slots(self, slots: Grid, held: Sequence[tuple[int, ...] | None]) -> list[Grid]:
        """The tile of each slot at each level; -1 for padding whose tile is not known, and for no tile."""
        lengths = tile_lengths(self.spec, self.levels)
        out = []
        for level, length in zip(self.levels, lengths, strict=True):
            if length is None:
                own = [-1 if index is None else level.number(index) for index in held]
            else:
                own = [
                    slot // length if slot < length * prod(level.counts) else -1 for slot in slots.tolist()
                ]
            out.append(np.asarray(own, np.int64))
        return out

    def _painted(self, slots: Grid, numbers: Sequence[Grid]) -> tuple[Any, Any]:
        """The color of each slot, and its tiles; a bank or a row counts as one more inner level."""
        own = np.zeros_like(slots)
        if self.levels:
            own = np.vectorize(self.levels[0].color, otypes=[np.int64])(numbers[0])
        colors = self.coloring.numbers(slots, own)
        levels = [*(numbers or [own]), colors] if self.coloring.color in ("bank", "row") else list(numbers)
        tiles = np.stack(levels, -1) if levels else np.zeros((*slots.shape, 0), np.int64)
        return colors.tolist(), tiles.tolist()


def _enlarged(tile: tuple[int, int], whole: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of a block of tiles about the size of a large tile; the shorter side grows first.

    (32, 4) of (128, 8) -> (64, 8)    (8, 128) of (40, 384) -> (8, 128)
    """
    rows, columns = tile
    while True:
        grown = (min(2 * rows, whole[0]), columns), (rows, min(2 * columns, whole[1]))
        found = [
            (high, wide)
            for high, wide in (grown if rows <= columns else grown[::-1])
            if (high, wide) != (rows, columns)
            and high * wide <= LARGE_TILE
            and high <= MAX_TILE[0]
            and wide <= MAX_TILE[1]
        ]
        if not found:
            return rows, columns
        rows, columns = found[0]


def _low_cell(rows: int, columns: int) -> tuple[int, int]:
    """Width and height of cells without text: square in square tiles, higher if there are few rows."""
    width = max(2, min(LOW_CELL, LOW_WIDTH // columns))
    return width, max(width, min(4 * width, HIGH_CELL, LOW_CELL * 32 // rows))
