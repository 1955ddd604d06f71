"""The tiles of a transposed copy as tables of offsets: which rows, which columns, in which order.

A transposed copy has row digits, along which the destination is contiguous, column digits, along which the
source is contiguous, and others. Rows and columns are joined: row r starts `row_offsets[r]` bytes into the
source, and column c `column_offsets[c]` bytes into the destination, so that short digits fill long registers.
A tile is a range of rows by a range of columns for one value of each other digit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import Digit
from codegen.support.caching import lazy

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


def _joined(digits: list[tuple[int, int]]) -> Table:
    offsets = np.zeros(1, np.int64)
    for extent, stride in digits:
        offsets = (np.arange(extent)[:, None] * stride + offsets[None, :]).ravel()
    return offsets


def _repeated(offsets: Table, more: int) -> Table:
    return np.concatenate([offsets, np.full(more, offsets[-1])])


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
