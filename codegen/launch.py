"""One box of a copy ready to run: a kernel, the table of its arguments, and tables that those point to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from codegen.ir import Gather, Transpose, group_table, line_table
from codegen.kernel import Step
from codegen.lazy import lazy
from codegen.passes.normalise import int_size
from codegen.refine import PairTable
from codegen.stretches import STRETCH_TABLES, Stretches
from codegen.threads import scratch
from codegen.tiles import AHEAD_BYTES, LINE_BYTES, Panel, TileGrid
from codegen.verify import check_bounds

TABLE_CHUNK = 1 << 12
"""Entries of a table that exist at one time: the memory of a copy stays flat."""

SMALL_TABLE = 1 << 12
"""Tables up to this extent are worked out once, not chunk by chunk."""

OFFSET_ARGUMENTS = ("src_offsets", "dst_offsets", "ahead", "ahead_low", "ahead_bytes")
"""What a kernel gets in front of all else where it loops over the entries of offset tables. The last three
say how many entries ahead it asks for source lines, from where on in an entry, and for how many bytes."""

MOST_AHEAD = 1 << 14
"""Entries that read more than this, or less than half of what they span, are not asked for ahead."""

GRID_ARGUMENTS = (
    "tiles",
    "tile_count",
    "row_offsets",
    "column_offsets",
    "places",
    "segments",
    "segment_columns",
    "scratch",
)
"""What a transpose gets behind those."""
SCRATCH = GRID_ARGUMENTS.index("scratch")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a kernel, but for the addresses of the two sides.

    held           what the table of arguments points to
    scratch_at     which argument is the address of a buffer of `scratch_bytes`, 0 for none
    """

    sizes: NDArray[np.int64]
    begin: int
    end: int
    held: tuple[NDArray[np.int64], ...]
    scratch_at: int
    scratch_bytes: int

    def with_scratch(self) -> NDArray[np.uint8] | None:
        """This thread's buffer, named in the arguments; hold it during the call."""
        if not self.scratch_bytes:
            return None
        buffer = scratch(self.scratch_bytes)
        self.sizes[self.scratch_at] = buffer.ctypes.data
        return buffer


@dataclass(frozen=True)
class Launch:
    """One box ready to run.

    tables     offset tables that the kernel loops over, or none
    fill       the padding pattern as two numbers, where the box is padding
    bounds     what may be touched of either side, in units; `reach` what one entry of the tables touches
    misaligned what runs instead where the destination, or an entry of the tables, does not begin on a line
    """

    step: Step
    src_offset: int
    dst_offset: int
    trips: int
    tables: tuple[PairTable, ...] = ()
    fill: tuple[int, int] | None = None
    src_bounds: tuple[int, int] = (0, 0)
    dst_bounds: tuple[int, int] = (0, 0)
    reach: tuple[int, int, int, int] = (0, 0, 0, 0)
    serial: bool = False
    misaligned: Launch | None = None

    @lazy
    def sizes(self) -> NDArray[np.int64]:
        """The table of arguments; addresses of tables that are made for each call are still 0."""
        front: list[int] = [0, 0, *self._ahead] if self.tables else []
        if self.grid:
            front += self._grid_arguments(self.grid)
        if self.stretches:
            front += [0, self.stretches.pieces.ctypes.data, 0, self._pattern.ctypes.data]
            return np.array(front, np.int64)
        inner = self.step.vectorised.innermost
        lines, groups = line_table(inner), group_table(inner)
        if lines:
            front.append(lines.offsets.ctypes.data)
        if groups:
            front += [groups.offsets.ctypes.data, len(groups.offsets), groups.piece]
        values = [*front, *(self.fill or ()), *(value for _, value in self.step.sizes)]
        return np.array([v - (1 << 64) if v >= 1 << 63 else v for v in values], np.int64)

    @property
    def _ahead(self) -> tuple[int, int, int]:
        """How many entries ahead; the first unit, and the bytes from there on, that an entry reads."""
        low, stop, _, _ = self.reach
        loops = prod(int_size(loop.extent) for loop in self.step.scalar.loops)
        span = (stop - low) // self.units[0]
        read = loops * self.step.scalar.buffer("dst").element.bits // 8
        entries = -(-AHEAD_BYTES // max(read, 1))
        return entries, low - self.src_offset, span if read <= MOST_AHEAD and span <= 2 * read else 0

    @lazy
    def grid(self) -> TileGrid | None:
        """The tiles of a transpose."""
        inner = self.step.vectorised.innermost
        return inner.grid if isinstance(inner, Transpose) else None

    @lazy
    def stretches(self) -> Stretches | None:
        """The stretches of a gather."""
        inner = self.step.vectorised.innermost
        return inner.stretches if isinstance(inner, Gather) else None

    @lazy
    def _pattern(self) -> NDArray[np.uint8]:
        """A line of the padding pattern."""
        whole = b"".join(x.to_bytes(8, "little") for x in self.fill or (0, 0))
        return np.frombuffer(whole * (LINE_BYTES // len(whole)), np.uint8)

    @lazy
    def _panel(self) -> Panel | None:
        inner = self.step.vectorised.innermost
        if not isinstance(inner, Transpose) or inner.grid is None:
            return None
        match inner.stage:
            case "rows":
                return inner.grid.panel
            case "dense":
                return inner.grid.dense_panel
            case _:
                return None

    @lazy
    def _all_tiles(self) -> NDArray[np.int64] | None:
        """The whole table of tiles where it is small, or where another loop goes round it."""
        grid = self.grid
        if grid is None or (grid.count > TABLE_CHUNK and not self.tables):
            return None
        return grid.entries(0, grid.count)

    def _grid_arguments(self, grid: TileGrid) -> list[int]:
        tiles, panel = self._all_tiles, self._panel
        return [
            0 if tiles is None else tiles.ctypes.data,
            grid.count,
            grid.row_offsets.ctypes.data,
            grid.column_offsets.ctypes.data,
            panel.places.ctypes.data if panel else 0,
            panel.segments.ctypes.data if panel else 0,
            panel.segment_columns if panel else 0,
            0,
        ]

    @property
    def is_one_call(self) -> bool:
        """Whether the kernel is called once, with the same arguments each time."""
        made = self.tables or self._panel or self.stretches or (self.grid and self._all_tiles is None)
        return not made and self.misaligned is None

    def prepare(self) -> None:
        """Make the tables that all threads share, before there are several."""
        _ = self.sizes
        if self.stretches:
            _ = self.stretches.every_entry
        if self.misaligned:
            _ = self.misaligned.sizes

    @lazy
    def _tables_keep_lines(self) -> bool:
        """Whether every entry of the tables leaves the destination where it is within a line."""
        return not any(
            (table.dst(np.arange(start, min(start + TABLE_CHUNK, table.extent))) % LINE_BYTES).any()
            for table in self.tables
            for start in range(0, table.extent, TABLE_CHUNK)
        )

    @lazy
    def units(self) -> tuple[int, int]:
        """Units an address counts on either side: 1 for bytes, 8 for bits."""
        by_name = {b.name: 8 // b.unit_bits for b in self.step.vectorised.buffers}
        return by_name.get("src", 1), by_name["dst"]

    def run(self, src: int, dst: int, part: int, parts: int) -> None:
        """Do one part of `parts` of the box."""
        if self.serial and parts > 1:
            if part:
                return
            part, parts = 0, 1
        if self.misaligned and ((dst + self.dst_offset) % LINE_BYTES or not self._tables_keep_lines):
            self.misaligned.run(src, dst, part, parts)
            return
        begin, end = self.trips * part // parts, self.trips * (part + 1) // parts
        if begin == end:
            return
        src, dst = src * self.units[0] + self.src_offset, dst * self.units[1] + self.dst_offset
        if self.is_one_call:
            self.step.kernel.call(src, dst, self.sizes.ctypes.data, begin, end)
            return
        native = self.step.kernel.call
        for call in self._calls(begin, end):
            buffer = call.with_scratch()
            native(src, dst, call.sizes.ctypes.data, call.begin, call.end)
            del buffer

    def calls(self, *, aligned: bool) -> tuple[tuple[Launch, Call], ...]:
        """Every call of the whole box, and whose it is: `aligned` says whether the destination's address is
        that of a line. What `run` does, for whoever calls the kernel again and again.
        """
        on_line = aligned and self.dst_offset % LINE_BYTES == 0 and self._tables_keep_lines
        if self.misaligned and not on_line:
            return self.misaligned.calls(aligned=aligned)
        return tuple((self, call) for call in self._calls(0, self.trips)) if self.trips else ()

    def _calls(self, begin: int, end: int) -> Iterator[Call]:
        """The calls for a part of the box, one for each chunk of a table."""
        starts = [(k, min(k + TABLE_CHUNK, end)) for k in range(begin, end, TABLE_CHUNK)]
        if self.tables:
            panel = self._panel
            at, size = (len(OFFSET_ARGUMENTS) + SCRATCH, panel.size_bytes) if panel else (0, 0)
            for src_table, dst_table in self._chunks(begin, end):
                self._check_tables(src_table, dst_table)
                front = {0: src_table.ctypes.data, 1: dst_table.ctypes.data}
                yield Call(self._sized(front), 0, len(src_table), (src_table, dst_table), at, size)
        elif self.stretches:
            at, size = STRETCH_TABLES.index("scratch"), self.stretches.length + 3 * LINE_BYTES
            for first, last in starts:
                entries = self.stretches.entries(first, last)
                sizes = self._sized({0: entries.ctypes.data})
                yield Call(sizes, 0, len(entries), (entries,), at, size)
        else:
            at, size = (SCRATCH, self._panel.size_bytes) if self._panel else (0, 0)
            if self.grid is None or self._all_tiles is not None:
                yield Call(self._sized({}), begin, end, (), at, size)
                return
            for first, last in starts:
                tiles = self.grid.entries(first, last)
                yield Call(self._sized({0: tiles.ctypes.data}), 0, len(tiles), (tiles,), at, size)

    def _sized(self, values: dict[int, int]) -> NDArray[np.int64]:
        """A copy of the arguments with these in their places."""
        sizes = self.sizes.copy()
        for at, value in values.items():
            sizes[at] = value
        return sizes

    def _chunks(self, begin: int, end: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        starts = range(begin, end, TABLE_CHUNK)
        if len(self.tables) == 1:
            yield from (_entries(self.tables[0], np.arange(k, min(k + TABLE_CHUNK, end))) for k in starts)
            return
        small = {id(t): _entries(t, np.arange(t.extent)) for t in self.tables if t.extent <= SMALL_TABLE}
        for start in starts:
            entry = np.arange(start, min(start + TABLE_CHUNK, end))
            src, dst = np.zeros_like(entry), np.zeros_like(entry)
            for table in reversed(self.tables):
                index, entry = entry % table.extent, entry // table.extent
                if id(table) in small:
                    src += small[id(table)][0][index]
                    dst += small[id(table)][1][index]
                else:
                    src += table.src(index)
                    dst += table.dst(index)
            yield src, dst

    def _check_tables(self, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
        low, high, dst_low, dst_high = self.reach
        check_bounds("source", int(src.min()) + low, int(src.max()) + high, self.src_bounds)
        check_bounds("destination", int(dst.min()) + dst_low, int(dst.max()) + dst_high, self.dst_bounds)


def _entries(table: PairTable, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of both sides, side by side in memory as kernels read them."""
    src, dst = (np.ascontiguousarray(offsets(index), np.int64) for offsets in (table.src, table.dst))
    return src, dst
