"""The tiles of a transposed copy as tables of offsets: which rows, which columns, in which order.

A transposed copy has row digits, along which the destination is contiguous, column digits, along which the
source is contiguous, and others. Rows and columns are joined: row r starts `row_offsets[r]` bytes into the
source, and column c `column_offsets[c]` bytes into the destination, so that short digits fill long registers.
A tile is a range of rows by a range of columns for one value of each other digit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.support.caching import lazy

Digit: TypeAlias = tuple[int, int, int]
"""(extent, source stride, destination stride), strides in bytes."""

Table: TypeAlias = NDArray[np.int64]

Block: TypeAlias = Literal["line", "lane", "part", "band"]
"""The shape of a register block, in bytes of a result row x bytes of a source row: "line" is 64x64, "lane"
64x16, "part" 64 x the whole source row, if that is shorter than 16 bytes, and "band" 16x64. A part is loaded
as a full 16-byte lane: it reads beyond its row, but not beyond the last byte of the box."""

Stage: TypeAlias = Literal["", "rows", "dense"]
"""The staging buffer of a tile: none, one that holds long result rows separately ("rows"), or one that holds
short result rows contiguously ("dense")."""

BlockOrder: TypeAlias = Literal["columns", "rows", "diagonals"]
"""The order of the blocks of a tile: down the columns first, along the rows first, or diagonally."""

FIELDS = 12
"""Numbers per entry in the table of tiles."""
SRC, DST, ROW, ROWS, COLUMN, COLUMNS, NEXT_SRC, NEXT_ROW, *_LAST = range(FIELDS)
OPEN_ROWS, LAYERS, LAYER_SRC, LAYER_DST = _LAST
"""The number of leading rows for which reading a full lane is safe; the number of layers of a panel, and
their strides in the source and in the destination."""


INTERLEAVED_ROWS = (2, 3, 4, 8)
"""How many rows can be packed together in registers."""

MOST_GROUPED = 32
"""Maximum number of result rows that are deinterleaved at the same time: their buffer takes half of L1."""

CHUNK_BYTES = 256
"""Bytes of each result row in scratch at one time; there may be less than a line more."""


def block_shape(width: int, block: Block) -> tuple[int, int]:
    """Rows and columns of a block of elements of `width` bytes; for "part", the minimum number of columns.

    1, "line" -> 64, 64    1, "lane" -> 64, 16    1, "part" -> 64, 1    1, "band" -> 16, 64
    """
    line, lane = LINE_BYTES // width, max(LANE_BYTES // width, 1)
    return {"line": (line, line), "lane": (line, lane), "part": (line, 1), "band": (lane, line)}[block]


@dataclass(frozen=True)
class PackedLines:
    """The offsets of lines of packed rows that are joined from several digits, or of chunks of a line.

    digits  (count, stride in bytes), most minor first: lines of the first digit, then the digits that follow
            it; empty if a run-time table holds the offsets
    listed  the offsets one by one, if they are not a product of digits
    more    entries after the last one, which repeat it: prefetches read on
    """

    digits: tuple[tuple[int, int], ...] = ()
    listed: tuple[int, ...] = field(default=(), repr=False)
    more: int = field(default=0, repr=False)

    def __str__(self) -> str:
        return " x ".join(f"{count} at {stride}" for count, stride in self.digits) or "by a table"

    @lazy
    def offsets(self) -> Table:
        """The offset of each line."""
        offsets = np.array(self.listed, np.int64) if self.listed else _joined(list(self.digits))
        return _repeated(offsets, self.more)


@dataclass(frozen=True)
class RowGroups:
    """The offsets of groups of packed rows that are deinterleaved at the same time.

    digits  (count, source stride, destination stride), most minor first; empty if a run-time table holds the
            offsets
    columns rows of each group, packed together in the source
    width   bytes of an element
    run     elements of a row that are contiguous in the source, at least a line
    """

    digits: tuple[Digit, ...] = ()
    columns: int = 0
    width: int = 0
    run: int = 0

    def __str__(self) -> str:
        return " x ".join(f"{count} at {src} to {dst}" for count, src, dst in self.digits) or "by a table"

    @lazy
    def offsets(self) -> Table:
        """(source, destination) of each group."""
        return np.stack([_joined([(n, d[k]) for n, *d in self.digits]) for k in (0, 1)], axis=1)

    @lazy
    def ahead(self) -> Table:
        """(elements, bytes) that each result row prefetches ahead, CHUNK_BYTES after the row before it.

        The elements are full runs of all groups, which follow each other in the source.
        """
        rows = len(self.offsets) * self.columns
        run = min(self.run, CHUNK_BYTES // self.width)
        runs, within = np.divmod(np.arange(rows) * CHUNK_BYTES, rows * run * self.width)
        return np.stack([runs * run, within], axis=1)


@dataclass(frozen=True, slots=True)
class Panel:
    """A staging buffer: the offset of each column of a tile, and the runs in which the buffer is written out.

    places           offset in the buffer of each column
    segments         (offset from the tile's destination offset, offset in the buffer) of each run
    segment_columns  columns per run; 0 if the tile is one run
    """

    places: Table
    segments: Table
    segment_columns: int
    size_bytes: int


@dataclass(frozen=True)
class TileGrid:
    """How a box is split into tiles.

    rows, columns  digits, most minor first
    others         digits in any order
    tile           rows and columns per tile; the last of a row or column of tiles may be smaller
    block          rows and columns per block; tiles that are smaller than the box consist of full blocks
    layers         a digit along which several tiles share one buffer, the result rows of each after those of
                   the previous one; None if each tile is staged separately
    together       the number of layers that share the buffer
    lane_bytes     bytes that blocks read of each source row, if that may exceed the row; else 0
    """

    rows: tuple[Digit, ...]
    columns: tuple[Digit, ...]
    others: tuple[Digit, ...]
    source_width: int
    width: int
    tile: tuple[int, int]
    block: tuple[int, int]
    layers: Digit | None = None
    together: int = 1
    lane_bytes: int = 0

    def __post_init__(self) -> None:
        counts = self.row_count, self.column_count
        for count, tile, block in zip(counts, self.tile, self.block, strict=True):
            if tile < count and tile % block:
                raise AssertionError(f"expected a tile size that is a multiple of {block}, got {tile}")
        if self.layers and self.tile[1] < self.column_count:
            raise AssertionError("layers share a buffer, so a tile must take all columns")
        if self.column_count < self.block[1]:
            raise AssertionError(f"expected {self.block[1]} columns or more, got {self.column_count}")

    @property
    def row_count(self) -> int:
        """The number of joined rows."""
        return prod(d[0] for d in self.rows)

    @property
    def column_count(self) -> int:
        """The number of joined columns."""
        return prod(d[0] for d in self.columns)

    @lazy
    def row_offsets(self) -> Table:
        """Source offsets of the rows; the last one is repeated, so that full blocks may read past the end."""
        return _repeated(_joined([(n, s) for n, s, _ in self.rows]), self.tile[0] + self.block[0])

    @lazy
    def column_offsets(self) -> Table:
        """Destination offsets of the columns; the last one is repeated."""
        return _repeated(_joined([(n, d) for n, _, d in self.columns]), self.block[1])

    @lazy
    def _ranges(self) -> tuple[Table, Table]:
        """(start, count) of the ranges of rows, and of columns."""
        return (
            _cut(self.row_count, self.tile[0], self.block[0]),
            _cut(self.column_count, self.tile[1], self.block[1]),
        )

    @lazy
    def dense_panel(self) -> Panel:
        """The staging buffer for short result rows: its runs are runs of the destination.

        A block with more rows than the box also writes into the columns that follow in memory. These must be
        written later, so the digits of a run are in the order in which columns are processed, then layers.
        """
        digits = [(n, d) for n, _, d in self.columns]
        if self.tile[1] < self.column_count:
            digits = [(self.tile[1], digits[0][1])]
        run, inside = joined_run(self.row_count * self.width, digits, in_order=self.row_count < self.block[0])
        if self.layers and self.layers[2] != run:
            raise AssertionError(f"layers {self.layers[2]} bytes apart do not follow runs of {run}")
        run *= self.together
        lines = -(-run // LINE_BYTES) + 1
        lines += lines % 8 == 0  # otherwise the buffer's runs share L1 cache sets
        size = lines * LINE_BYTES
        placed, segments = [], []
        for k, (n, d) in enumerate(digits):
            placed.append((n, d if k in inside else size))
            if k not in inside:
                segments.append((n, d, size))
                size *= n
        table = np.stack([_joined([(n, x[k]) for n, *x in segments]) for k in (0, 1)], axis=1)
        together = prod(digits[k][0] for k in inside) if segments else 0
        return Panel(_joined(placed), table, together, size + 2 * LINE_BYTES)

    @property
    def count(self) -> int:
        """The number of tiles."""
        return prod(n for n, _ in self._axes)

    @lazy
    def _axes(self) -> tuple[tuple[int, int | str], ...]:
        """(extent, which) of the loops over tiles, outermost first: sorted by source stride.

        In this order, the next tile mostly follows the current one in memory.
        """
        row_ranges, column_ranges = self._ranges
        loops: list[tuple[int, int, int | str]] = [
            (abs(src), n, k) for k, (n, src, _) in enumerate(self.others)
        ]
        loops.append((self._row_step, len(row_ranges), "rows"))
        loops.append((self.tile[1] * self.source_width, len(column_ranges), "columns"))
        if self.layers:
            extent, src, _ = self.layers
            loops.append((abs(src) * self.together, -(-extent // self.together), "layers"))
        return tuple((n, which) for _, n, which in sorted(loops, key=lambda x: -x[0]))

    @property
    def _row_step(self) -> int:
        """The source stride from one tile of rows to the next."""
        joined = 1
        for extent, src, _ in self.rows:
            joined *= extent
            if joined > self.tile[0]:
                return abs(src) * self.tile[0] * extent // joined
        return max(abs(src) for _, src, _ in self.rows)

    def entries(self, begin: int, end: int) -> Table:
        """The entries [begin, end) of the table, each with the source offset of the next tile."""
        index = np.arange(begin, min(end + 1, self.count))
        out = np.zeros((len(index), FIELDS), np.int64)
        out[:, LAYERS] = 1
        ranges = dict(zip(("rows", "columns"), self._ranges, strict=True))
        for extent, which in reversed(self._axes):
            index, k = index // extent, index % extent
            if isinstance(which, int):
                _, src, dst = self.others[which]
                out[:, SRC] += k * src
                out[:, DST] += k * dst
                continue
            if which == "layers":
                self._put_layers(out, k)
                continue
            at = ROW if which == "rows" else COLUMN
            out[:, at : at + 2] = ranges[which][k]
        out[:, SRC] += out[:, COLUMN] * self.source_width
        out[:, DST] += out[:, ROW] * self.width
        out[:-1, NEXT_SRC], out[:-1, NEXT_ROW] = out[1:, SRC], out[1:, ROW]
        out[-1, NEXT_SRC], out[-1, NEXT_ROW] = out[-1, SRC], out[-1, ROW]
        out[:, OPEN_ROWS] = self._open_rows(out) if self.lane_bytes else out[:, ROWS]
        return out[: end - begin]

    def _put_layers(self, out: Table, k: Table) -> None:
        """Set the layers of the k-th panels."""
        extent, src, dst = self.layers or (1, 0, 0)
        first = k * self.together
        out[:, LAYERS] = np.minimum(self.together, extent - first)
        out[:, LAYER_SRC], out[:, LAYER_DST] = src, dst
        out[:, SRC] += first * src
        out[:, DST] += first * dst

    def _open_rows(self, tiles: Table) -> Table:
        """The number of leading rows of each tile for which a full lane ends no later than the box."""
        digits = [*self.rows, *self.columns, *self.others, *([self.layers] if self.layers else [])]
        stop = sum(max(0, (n - 1) * src) for n, src, _ in digits) + self.source_width
        last = tiles[:, SRC] + np.maximum(0, (tiles[:, LAYERS] - 1) * tiles[:, LAYER_SRC])
        room, out = stop - self.lane_bytes - last, np.zeros(len(tiles), np.int64)
        for row, rows in self._ranges[0]:
            furthest = np.maximum.accumulate(self.row_offsets[row : row + rows])
            selected = tiles[:, ROW] == row
            out[selected] = np.searchsorted(furthest, room[selected], side="right")
        return out


def joined_run(run: int, digits: list[tuple[int, int]], *, in_order: bool) -> tuple[int, set[int]]:
    """The contiguous bytes when digits (extent, stride) extend a run of `run` bytes, and the digits that do.

    36, [(4, 99), (16, 36), (2, 576)] -> 1152, {1, 2}

    With `in_order`, a digit extends the run only if the list has it after all digits of the run.
    """
    inside: set[int] = set()
    for k, (n, stride) in sorted(enumerate(digits), key=lambda x: x[1][1]):
        if stride == run and not (in_order and k < max(inside, default=0)):
            run, inside = run * n, inside | {k}
    return run, inside


def _joined(digits: list[tuple[int, int]]) -> Table:
    offsets = np.zeros(1, np.int64)
    for extent, stride in digits:
        offsets = (np.arange(extent)[:, None] * stride + offsets[None, :]).ravel()
    return offsets


def _repeated(offsets: Table, more: int) -> Table:
    return np.concatenate([offsets, np.full(more, offsets[-1])])


def _cut(count: int, most: int, block: int) -> Table:
    """(start, count) of ranges of at most `most`, about equally long; all but the last are full blocks.

    If the last one would be shorter than a block, it starts earlier and moves some elements again.
    """
    if count <= most:
        return np.array([[0, count]], np.int64)
    even = ceil(count / ceil(count / most))
    size = ceil(even / block) * block
    start = np.arange(0, count, size)
    out = np.stack([start, np.minimum(size, count - start)], axis=1)
    if out[-1, 1] < block:
        out[-1] = max(0, count - block), min(block, count)
    return out


LINE_TABLE = "line_offsets"
"""The argument of a kernel for the table of packed lines."""

GROUP_TABLES = GROUP_TABLE, GROUP_AHEAD = "group_offsets", "group_ahead"
"""The arguments of a kernel for the tables of row groups."""

GROUP_COUNT, GROUP_RUN = "group_count", "group_run"
GROUP_ARGUMENTS = (*GROUP_TABLES, GROUP_COUNT, GROUP_RUN)
"""All arguments of a kernel for row groups."""

PREFETCH_ARGUMENT = "prefetch_distance"
"""The argument of a conversion that prefetches: the distance in bytes ahead of its reads."""

PREFETCH_ELEMENTS = 64
"""Elements that it converts in vectors between one batch of prefetches and the next."""

GRID_TABLES = ("tiles", "row_offsets", "column_offsets")
"""The tables of a grid that a kernel receives, by argument name."""


def grid_tables(grid: TileGrid) -> tuple[Table, Table, Table]:
    """The tables of a grid with few tiles."""
    return grid.entries(0, grid.count), grid.row_offsets, grid.column_offsets
