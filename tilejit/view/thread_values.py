"""The picture of a thread-value layout: the thread and the value that hold each element of a tile."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass, shown
from tilejit.cute.layout import Layout, offsets
from tilejit.cute.modes import layout_like
from tilejit.cute.thread_values import check_layout_tv, check_tile
from tilejit.view.cells import Cell, Cells
from tilejit.view.svg import FILLS, document

MAX_TEXT = 64, 32
MAX_SVG = 32, 32
"""Rows and columns of a picture."""


@dataclass(frozen=True, repr=False, slots=True)
class LayoutTVPicture:
    """The picture of a thread-value layout: text at a prompt, SVG in a notebook.

    >>> tiler, layout_tv = make_layout_tv(Layout((2, 2), (2, 1)), Layout((1, 2)))
    >>> show_layout_tv(layout_tv, tiler).svg.startswith("<svg")
    True

    Attributes:
        layout_tv: the layout from (thread, value) to the number of an element in the tile.
        sizes: the rows and columns of the tile, in elements.
    """

    layout_tv: Layout
    sizes: tuple[int, int]

    @property
    def text(self) -> str:
        """The picture in ASCII."""
        rows, columns, cells = self._corner(*MAX_TEXT)
        names = [[name for _, name in line] for line in cells]
        heads = [str(j) for j in range(columns)]
        width = max((len(text) for line in [heads, *names] for text in line), default=1)
        label = len(str(max(rows - 1, 0)))
        edge = " " * (label + 3) + ("+" + "-" * (width + 2)) * columns + "+"
        across = " " * (label + 3) + "".join(f"  {head:>{width}} " for head in heads)
        lines = [self._title, across.rstrip(), edge]
        for number, line in enumerate(names):
            lines += [f" {number:>{label}}  " + "".join(f"| {name:>{width}} " for name in line) + "|", edge]
        return "\n".join([*lines, *self._notes(rows, columns)])

    @property
    def svg(self) -> str:
        """The picture as one <svg> element, each thread in a color, for a file or a page."""
        return self._svg(standalone=True)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The picture, as notebooks show it."""
        return f'<div style="overflow-x:auto;max-width:100%">{self._svg(standalone=False)}</div>'

    def _svg(self, *, standalone: bool) -> str:
        rows, columns, cells = self._corner(*MAX_SVG)
        threads = self.layout_tv[0].size

        def cell(i: int, j: int) -> Cell:
            holder, name = cells[i][j]
            held_by = f"thread {holder % threads}, value {holder // threads}" if name else "no thread"
            color = holder % threads % len(FILLS) if name else None
            return Cell(name, color, (holder % threads if name else -1,), f"element [{i}, {j}]: {held_by}")

        board = Cells(
            "tile",
            tuple(tuple(cell(i, j) for j in range(columns)) for i in range(rows)),
            (columns < self.sizes[1], rows < self.sizes[0]),
            tuple(map(str, range(rows))),
            tuple(map(str, range(columns))),
        )
        notes = self._notes(rows, columns)
        return document(self._title, notes, [[board]] if rows and columns else [], standalone)

    @property
    def _title(self) -> str:
        threads, values = self.layout_tv
        sizes = " x ".join(map(str, self.sizes))
        return f"{self.layout_tv}, {threads.size} threads of {values.size} values in {sizes}"

    def _corner(self, most_rows: int, most_columns: int) -> tuple[int, int, list[list[tuple[int, str]]]]:
        """Rows and columns that are drawn, and each cell's holder and text."""
        rows, columns = min(self.sizes[0], most_rows), min(self.sizes[1], most_columns)
        holders, counts = (table[:rows, :columns].tolist() for table in self._holders())
        cells = [
            [(holder, self._name(holder, count)) for holder, count in zip(*line, strict=True)]
            for line in zip(holders, counts, strict=True)
        ]
        return rows, columns, cells

    def _name(self, holder: int, count: int) -> str:
        """T3V1 for thread 3 and its value 1; "T3V1+2" if two more hold the element; "" if no thread does."""
        if not count:
            return ""
        value, thread = divmod(holder, self.layout_tv[0].size)
        return f"T{thread}V{value}" + (f"+{count - 1}" if count > 1 else "")

    def _holders(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first (thread, value) that holds each element, as a number, and how many hold it."""
        table = offsets(self.layout_tv)
        first = np.zeros(prod(self.sizes), np.int64)
        first[table[::-1]] = np.arange(len(table))[::-1]  # for equal indices, NumPy assigns the last value
        counts = np.bincount(table, minlength=len(first))
        return first.reshape(self.sizes, order="F"), counts.reshape(self.sizes, order="F")

    def _notes(self, rows: int, columns: int) -> list[str]:
        if (rows, columns) == self.sizes:
            return []
        return [f"the first {rows} x {columns} of {self.sizes[0]} x {self.sizes[1]}"]


def show_layout_tv(layout_tv: Layout, tiler: Any) -> LayoutTVPicture:
    """Draw which thread holds each element of a tile, and as which value.

    >>> tiler, layout_tv = make_layout_tv(Layout((2, 2), (2, 1)), Layout((1, 2)))
    >>> show_layout_tv(layout_tv, tiler)
    ((2,2),2):((4,1),2), 4 threads of 2 values in 2 x 4
             0      1      2      3
        +------+------+------+------+
     0  | T0V0 | T0V1 | T1V0 | T1V1 |
        +------+------+------+------+
     1  | T2V0 | T2V1 | T3V0 | T3V1 |
        +------+------+------+------+

    Args:
        layout_tv: a layout of two modes, (threads, values), to the number of an element in the tile, the
            first dimension fastest: as from `make_layout_tv`.
        tiler: the tile: a size or a layout, or a tuple of one or two.

    Returns:
        The picture, as `.text` and as `.svg`. T3V1+2 means that an element is value 1 of thread 3, and that
        two other values hold it too. Only a part of a large tile is drawn.

    Raises:
        LayoutError: layout_tv does not have two modes or exceeds the tile, or the tile has more than two
            dimensions.
        TypeError: an argument has the wrong type.

    Source: CuTe's print_latex of a thread-value layout.
    """
    check_layout_tv(layout_tv)
    parts = tuple(tiler) if isinstance(tiler, tuple | list) else (tiler,)
    sizes = tuple(layout_like(part).size for part in parts)
    if len(sizes) > 2:
        raise LayoutError(
            f"the tile has {shown(len(sizes))} dimensions, but a picture has two\n  draw two of them"
        )
    rows, columns = (1, 1, *sizes)[-2:]
    check_tile(layout_tv, rows * columns)
    offsets(layout_tv)  # raises here rather than when the picture is printed
    return LayoutTVPicture(layout_tv, (rows, columns))
