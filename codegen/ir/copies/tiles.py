"""The tiles of a transposed copy as tables of offsets: which rows, which columns, in which order.

A transposed copy has row digits, along which the destination is contiguous, column digits, along which the
source is, and others. Rows and columns are joined: row r starts `row_offsets[r]` bytes into the source, and
column c `column_offsets[c]` bytes into the destination, so that short digits fill long registers. A tile is
a range of rows by a range of columns at one place of the other digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.support.caching import lazy

Digit: TypeAlias = tuple[int, int, int]
"""(extent, source stride, destination stride), strides in bytes."""

Table: TypeAlias = NDArray[np.int64]

Block: TypeAlias = Literal["line", "lane", "part", "band"]
"""What registers move at one time: 64 bytes each way, 16 bytes of each source row, all of source rows shorter
than that, or 16 bytes of each result row by a line of each source row. A part is loaded as a whole lane: it
reads on behind its row, but not behind the last byte of the box."""

Stage: TypeAlias = Literal["", "rows", "dense"]
"""The buffer that tiles go through: none, one of long result rows each by itself, or one of short result rows
that follow each other."""

FIELDS = 12
"""Numbers in one entry of the table of tiles."""
SRC, DST, ROW, ROWS, COLUMN, COLUMNS, NEXT_SRC, NEXT_ROW, *_LAST = range(FIELDS)
OPEN_ROWS, LAYERS, LAYER_SRC, LAYER_DST = _LAST
"""The leading rows behind which a whole lane may be read; and of how many layers a panel is, and how far
apart those lie in the source and in the destination."""


LINE_BYTES = 64
LANE_BYTES = 16
PAGE_PREFETCH_BYTES = 4096
"""How far ahead of a run's source lines are asked for where the place of the next run is known: the memory's
latency times what one core moves in a nanosecond. Measured on tiles in random order: 0.7 of memcpy without,
0.8 at 2048, 1.1 at 4096 (Zen 5, 2026-11)."""
MOST_GROUPED = 32
"""Result rows that are taken apart at the same time: their buffer has half of the first cache."""


def block_shape(width: int, block: Block) -> tuple[int, int]:
    """Rows and columns of a block of elements of so many bytes; of "part" the fewest columns.

    1, "line" -> 64, 64    1, "lane" -> 64, 16    1, "part" -> 64, 1    1, "band" -> 16, 64
    """
    line, lane = LINE_BYTES // width, max(LANE_BYTES // width, 1)
    return {"line": (line, line), "lane": (line, lane), "part": (line, 1), "band": (lane, line)}[block]


@dataclass(frozen=True)
class PackedLines:
    """Where the lines of rows that are packed together lie, when those rows are joined from several digits;
    or pieces of a line that are far from each other.

    digits  (count, stride in bytes), most minor first: lines of the first digit, then the digits that follow
            it; none where a table at run time says it
    listed  one by one, where they are no digits
    """

    digits: tuple[tuple[int, int], ...] = ()
    listed: tuple[int, ...] = field(default=(), repr=False)

    @lazy
    def offsets(self) -> Table:
        """Where each line starts."""
        return np.array(self.listed, np.int64) if self.listed else _joined(list(self.digits))


@dataclass(frozen=True)
class RowGroups:
    """Where groups of rows that are packed together begin, which are taken apart side by side.

    digits  (count, source stride, destination stride), most minor first; none where a table at run time says
            it
    piece   elements of a row that lie together in the source
    """

    digits: tuple[Digit, ...] = ()
    piece: int = 0

    @lazy
    def offsets(self) -> Table:
        """(source, destination) of each group."""
        return np.stack([_joined([(n, d[k]) for n, *d in self.digits]) for k in (0, 1)], axis=1)


@dataclass(frozen=True, slots=True)
class Panel:
    """A buffer for staging: where each column of a tile begins in it, and the runs it goes out in.

    segments         (offset from the tile's place in the destination, offset in the buffer) of each run
    segment_columns  columns of one run; 0 where the whole tile is one
    """

    places: Table
    segments: Table
    segment_columns: int
    size_bytes: int


@dataclass(frozen=True)
class TileGrid:
    """How a box is cut into tiles.

    rows, columns  digits, most minor first
    others         digits in any order
    tile           rows and columns of one tile; the last of a row or column of tiles may be smaller
    block          tiles that do not take all are whole blocks of that many rows and columns
    layers         a digit along which tiles go through one buffer together, the result rows of one behind
                   those of the one before; None where each goes by itself
    together       so many of those at one time
    lines          of each long result row in the buffer at one time, where tiles are staged by those
    lane_bytes     what blocks read of each source row where that may be more than all columns; else 0
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
    lines: int = 1
    lane_bytes: int = 0

    def __post_init__(self) -> None:
        counts = self.row_count, self.column_count
        for count, tile, block in zip(counts, self.tile, self.block, strict=True):
            if tile < count and tile % block:
                raise AssertionError(f"tiles of {tile} are no whole blocks of {block}: buffers would not do")
        if self.layers and self.tile[1] < self.column_count:
            raise AssertionError("layers go through a buffer that takes all columns")
        if self.column_count < self.block[1]:
            raise AssertionError(f"{self.column_count} columns fill no block of {self.block[1]}")

    @property
    def row_count(self) -> int:
        """All rows, joined."""
        return prod(d[0] for d in self.rows)

    @property
    def column_count(self) -> int:
        """All columns, joined."""
        return prod(d[0] for d in self.columns)

    @lazy
    def row_offsets(self) -> Table:
        """Where rows start in the source; the last one repeated, so that whole blocks may read on."""
        return _repeated(_joined([(n, s) for n, s, _ in self.rows]), self.tile[0] + self.block[0])

    @lazy
    def column_offsets(self) -> Table:
        """Where columns start in the destination, with repetitions at the end."""
        return _repeated(_joined([(n, d) for n, _, d in self.columns]), self.block[1])

    @lazy
    def _pieces(self) -> tuple[Table, Table]:
        """(start, count) of the ranges of rows, and of columns."""
        return (
            _cut(self.row_count, self.tile[0], self.block[0]),
            _cut(self.column_count, self.tile[1], self.block[1]),
        )

    @lazy
    def panel(self) -> Panel:
        """The buffer that a tile is staged in when its result rows are long: each row by itself."""
        pitch = (self.lines + 1) * LINE_BYTES
        columns = min(self.tile[1], self.column_count)
        return Panel(np.arange(columns) * pitch, np.zeros((0, 2), np.int64), 0, (columns + 1) * pitch)

    @lazy
    def dense_panel(self) -> Panel:
        """The buffer of short result rows: runs of it are runs of the destination.

        A block of rows too few for it writes on into columns that are next in memory, which must then come
        later: the digits of a run are in the order in which columns are taken, layers behind them.
        """
        digits = [(n, d) for n, _, d in self.columns]
        if self.tile[1] < self.column_count:
            digits = [(self.tile[1], digits[0][1])]
        run, inside = joined_run(self.row_count * self.width, digits, in_order=self.row_count < self.block[0])
        if self.layers and self.layers[2] != run:
            raise AssertionError(f"layers {self.layers[2]} bytes apart do not follow runs of {run}")
        run *= self.together
        lines = -(-run // LINE_BYTES) + 1
        lines += lines % 8 == 0  # or runs of one buffer share sets of the first cache
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
        """Tiles."""
        return prod(n for n, _ in self._axes)

    @lazy
    def _axes(self) -> tuple[tuple[int, int | str], ...]:
        """(extent, which) of the loops over tiles, outermost first: by the source's strides.

        Reading in order, the next tile is mostly what follows this one in memory.
        """
        row_pieces, column_pieces = self._pieces
        loops: list[tuple[int, int, int | str]] = [
            (abs(src), n, k) for k, (n, src, _) in enumerate(self.others)
        ]
        loops.append((self._row_step, len(row_pieces), "rows"))
        loops.append((self.tile[1] * self.source_width, len(column_pieces), "columns"))
        if self.layers:
            extent, src, _ = self.layers
            loops.append((abs(src) * self.together, -(-extent // self.together), "layers"))
        return tuple((n, which) for _, n, which in sorted(loops, key=lambda x: -x[0]))

    @property
    def _row_step(self) -> int:
        """The source's stride of the digit in which tiles of rows follow each other."""
        joined = 1
        for extent, src, _ in self.rows:
            joined *= extent
            if joined > self.tile[0]:
                return abs(src) * self.tile[0] * extent // joined
        return max(abs(src) for _, src, _ in self.rows)

    def entries(self, begin: int, end: int) -> Table:
        """The tiles [begin, end) of the table, each with where the one behind it reads."""
        index = np.arange(begin, min(end + 1, self.count))
        out = np.zeros((len(index), FIELDS), np.int64)
        out[:, LAYERS] = 1
        pieces = dict(zip(("rows", "columns"), self._pieces, strict=True))
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
            out[:, at : at + 2] = pieces[which][k]
        out[:, SRC] += out[:, COLUMN] * self.source_width
        out[:, DST] += out[:, ROW] * self.width
        out[:-1, NEXT_SRC], out[:-1, NEXT_ROW] = out[1:, SRC], out[1:, ROW]
        out[-1, NEXT_SRC], out[-1, NEXT_ROW] = out[-1, SRC], out[-1, ROW]
        out[:, OPEN_ROWS] = self._open_rows(out) if self.lane_bytes else out[:, ROWS]
        return out[: end - begin]

    def _put_layers(self, out: Table, k: Table) -> None:
        """Which layers the k-th panels take."""
        extent, src, dst = self.layers or (1, 0, 0)
        first = k * self.together
        out[:, LAYERS] = np.minimum(self.together, extent - first)
        out[:, LAYER_SRC], out[:, LAYER_DST] = src, dst
        out[:, SRC] += first * src
        out[:, DST] += first * dst

    def _open_rows(self, tiles: Table) -> Table:
        """The leading rows of each tile whose lanes, read whole, end no later than the box does."""
        digits = [*self.rows, *self.columns, *self.others, *([self.layers] if self.layers else [])]
        stop = sum(max(0, (n - 1) * src) for n, src, _ in digits) + self.source_width
        last = tiles[:, SRC] + np.maximum(0, (tiles[:, LAYERS] - 1) * tiles[:, LAYER_SRC])
        room, out = stop - self.lane_bytes - last, np.zeros(len(tiles), np.int64)
        for row, rows in self._pieces[0]:
            furthest = np.maximum.accumulate(self.row_offsets[row : row + rows])
            mine = tiles[:, ROW] == row
            out[mine] = np.searchsorted(furthest, room[mine], side="right")
        return out


def joined_run(run: int, digits: list[tuple[int, int]], *, in_order: bool) -> tuple[int, set[int]]:
    """Bytes side by side when digits (extent, stride) follow a run of so many, and which digits do.

    36, [(4, 99), (16, 36), (2, 576)] -> 1152, {1, 2}

    `in_order` takes a digit only behind those that come before it in the list.
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
    """Ranges of at most `most`, about equally long, whole blocks but for the last.

    The last one starts earlier where it would be shorter than a block: it moves some elements again.
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
"""What a kernel gets of packed lines, by the name of its argument."""

GROUP_ARGUMENTS = GROUP_TABLE, GROUP_COUNT, GROUP_CHUNK = "group_offsets", "group_count", "piece"
"""What it gets of groups of rows."""

PREFETCH_ARGUMENT = "prefetch_distance"
"""The argument of a conversion that prefetches: how many bytes behind what it reads."""

PREFETCH_ELEMENTS = 64
"""Elements that it converts in vectors between one batch of such questions and the next."""

GRID_TABLES = ("tiles", "row_offsets", "column_offsets")
"""What a kernel gets of a grid, by the names of its arguments."""


def grid_tables(grid: TileGrid) -> tuple[Table, Table, Table]:
    """The tables of a grid whose tiles are few."""
    return grid.entries(0, grid.count), grid.row_offsets, grid.column_offsets
