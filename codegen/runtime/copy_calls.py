"""Calls with tables of their own, which are built while the copy runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from codegen.analysis.ranges import check_range
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import StridedBox
from codegen.maps.refine import PairTable
from codegen.runtime.calls import Calls, Chunk, Pattern, PlainCall
from codegen.runtime.step import Step
from codegen.schedule.call_limits import MOST_PREFETCHED_BYTES
from codegen.schedule.limits import PAGE_PREFETCH_BYTES
from codegen.schedule.offset_tables import ENTRIES_ARGUMENT, OFFSET_TABLES, Table
from codegen.schedule.segments import SEGMENT_ARGUMENTS, Segments
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass

TABLE_CHUNK = 1 << 12
"""Table entries that exist at a time, so that the memory of a copy stays flat."""

SMALL_TABLE = 1 << 12
"""Tables up to this extent are computed once, not chunk by chunk."""

OFFSET_ARGUMENTS = (*OFFSET_TABLES, ENTRIES_ARGUMENT, "prefetch_low", "prefetch_bytes")
"""First arguments of a kernel that loops over the entries of offset tables.

The last three are the prefetch distance in entries, the offset in an entry where it begins, and its bytes.
"""


@dataclass(frozen=True)
class TableCalls(Calls):
    """Calls over the entries of offset tables, one per chunk of entries; the last table is the most minor.

    prefetch  the last three of OFFSET_ARGUMENTS
    bounds    [low, stop) that may be touched of source and destination, in units
    reach     units that one entry touches: [low, stop) of the source, then of the destination
    """

    tables: tuple[PairTable, ...]
    prefetch: tuple[int, int, int]
    bounds: tuple[tuple[int, int], tuple[int, int]]
    reach: tuple[int, int, int, int]

    @property
    def looped(self) -> tuple[PairTable, ...]:
        """The tables."""
        return self.tables

    @property
    def given(self) -> dict[str, int]:
        """The prefetch arguments."""
        return dict(zip(OFFSET_ARGUMENTS, (0, 0, *self.prefetch), strict=True))

    @property
    def is_one(self) -> bool:
        """Always false: tables are made for each call."""
        return False

    @lazy
    def keeps_lines(self) -> bool:
        """Whether every entry begins at the same offset in a line as the destination."""
        return not any(
            (table.dst(np.arange(start, min(start + TABLE_CHUNK, table.extent))) % LINE_BYTES).any()
            for table in self.tables
            for start in range(0, table.extent, TABLE_CHUNK)
        )

    def chunks(self, begin: int, end: int) -> Iterator[Chunk]:
        """The entries as tables, each checked before the kernel reads it.

        Raises:
            KernelError: an entry leaves the storages.
        """
        for src, dst in self.offsets(begin, end):
            low, high, dst_low, dst_high = self.reach
            check_range("source", int(src.min()) + low, int(src.max()) + high, self.bounds[0])
            check_range("destination", int(dst.min()) + dst_low, int(dst.max()) + dst_high, self.bounds[1])
            yield dict(zip(OFFSET_TABLES, (src, dst), strict=True)), 0, len(src)

    def offsets(self, begin: int, end: int) -> Iterator[tuple[Table, Table]]:
        """(source, destination) of the entries [begin, end), chunk by chunk."""
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


@dataclass(frozen=True)
class SegmentCalls(Calls):
    """Calls over the segments of a gather, one per chunk of segments; `fill` is their padding."""

    segments: Segments
    fill: Pattern | None

    @lazy
    def pattern(self) -> NDArray[np.uint8]:
        """A line of the padding pattern."""
        pattern = b"".join(x.to_bytes(8, "little") for x in self.fill or (0, 0))
        return np.frombuffer(pattern * (LINE_BYTES // len(pattern)), np.uint8)

    @property
    def given(self) -> dict[str, int]:
        """The moves of all parts, and the padding."""
        addresses = 0, self.segments.moves.ctypes.data, self.pattern.ctypes.data
        return dict(zip(SEGMENT_ARGUMENTS, addresses, strict=True))

    @property
    def is_one(self) -> bool:
        """Always false: entries are made for each call."""
        return False

    def prepare(self) -> None:
        """Make all entries, if they are few."""
        _ = self.segments.every_entry

    def chunks(self, begin: int, end: int) -> Iterator[Chunk]:
        """The segments' entries as tables."""
        for start in range(begin, end, TABLE_CHUNK):
            entries = self.segments.entries(start, min(start + TABLE_CHUNK, end))
            yield {"segments": entries}, 0, len(entries)


def calls_for(
    step: Step,
    tables: tuple[PairTable, ...],
    bounds: tuple[tuple[int, int], tuple[int, int]],
    reach: tuple[int, int, int, int],
) -> Calls:
    """The calls of a box's kernel, in a loop over `tables`, if any."""
    return TableCalls(tables, _prefetch(step.box, reach), bounds, reach) if tables else PlainCall()


def _prefetch(box: StridedBox, reach: tuple[int, int, int, int]) -> tuple[int, int, int]:
    """Prefetch distance in entries, first unit that an entry reads, bytes to prefetch from there or 0."""
    low, stop, _, _ = reach
    span = (stop - low) * box.unit_bits // 8
    read = box.size_bytes
    entries = -(-PAGE_PREFETCH_BYTES // max(read, 1))
    return entries, low - box.src, span if read <= MOST_PREFETCHED_BYTES and span <= 2 * read else 0


def _entries(table: PairTable, index: Table) -> tuple[Table, Table]:
    """Offsets of both sides, contiguous in memory as kernels read them."""
    src, dst = (np.ascontiguousarray(offsets(index), np.int64) for offsets in (table.src, table.dst))
    return src, dst
