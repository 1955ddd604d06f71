"""The chunks that make up each segment of a destination, as tables of offsets.

If rows begin inside lines, or runs are shorter than a line, several runs share a line. These runs may come
from several boxes of a copy and from its padding. A segment is a part of the destination that fits in the L1
cache. Its chunks are gathered in a buffer there by moves of 1 to 64 bytes, then written as full lines.
"""

from __future__ import annotations

from bisect import bisect_left
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Digit
from codegen.schedule.offset_tables import Table
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass

MOVES = (64, 32, 16, 8, 4, 2, 1)
"""Bytes per move, in the order in which a part's table lists its moves."""

HEAD = len(MOVES) + 1
"""Numbers before a part's moves: where the moves of each width end in the table; whether it is padding."""

HALF = 1 << 32
"""A move is one number: its offset in the segment times HALF, plus its source offset from the entry's SRC."""

SEGMENT_FIELDS = 5
"""Numbers in one entry of the table of segments."""
SRC, DST, PART, NEXT, BYTES = range(SEGMENT_FIELDS)

MOST_ENTRIES = 1 << 15
"""Up to this many entries are computed once; more are computed while the copy runs."""

MOST_OFFSET = 1 << 31
"""Maximum distance in bytes of one segment's chunks in the source, below HALF."""

_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class SegmentBox:
    """The bytes that one box contributes to each of its segments.

    src, dst      source and destination offsets of its first segment, in bytes
    offset         offset of the part's first byte in a segment
    run           bytes per chunk
    inner, outer  digits within a segment, and from one segment to another, most minor first
    fills         whether it is padding, which has no source
    """

    src: int
    dst: int
    offset: int
    run: int
    inner: tuple[Digit, ...]
    outer: tuple[Digit, ...]
    fills: bool

    @property
    def count(self) -> int:
        """The number of segments that it contributes to."""
        return prod(d[0] for d in self.outer)

    @property
    def bytes_each(self) -> int:
        """Bytes that it contributes to one segment."""
        return prod(d[0] for d in self.inner) * self.run

    @property
    def lowest(self) -> int:
        """The lowest source offset of its chunks, counted from the first chunk: negative or 0."""
        return sum((extent - 1) * min(src_step, 0) for extent, src_step, _ in self.inner)

    def start(self, index: int) -> int:
        """The destination offset of the segment with this index; it increases with the index."""
        at = self.dst
        for extent, _, dst in self.outer:
            index, k = divmod(index, extent)
            at += k * dst
        return at

    def starts(self, begin: int, end: int) -> _Pairs:
        """The source and destination offsets of the segments in a range of indices."""
        index = np.arange(begin, end)
        src, dst = np.full(len(index), self.src), np.full(len(index), self.dst)
        for extent, src_step, dst_step in self.outer:
            index, k = index // extent, index % extent
            src += k * src_step
            dst += k * dst_step
        return src, dst

    @lazy
    def moves(self) -> tuple[Table, ...]:
        """(source offset, offset in the segment) of every move; an array for each of MOVES, in source order.

        A remainder whose length is not one of MOVES takes two overlapping moves.
        """
        src, offset = np.zeros(1, np.int64), np.full(1, self.offset)
        for extent, src_step, dst_step in self.inner:
            k = np.arange(extent)[:, None]
            src, offset = (k * src_step + src).ravel(), (k * dst_step + offset).ravel()
        ends: dict[int, list[int]] = {width: [] for width in MOVES}
        full = self.run // LINE_BYTES * LINE_BYTES
        ends[LINE_BYTES] += range(0, full, LINE_BYTES)
        rest = self.run - full
        if rest:
            width = 1 << (rest.bit_length() - 1)
            ends[width] += sorted({full, self.run - width})
        return tuple(self._sorted(src, offset, ends[width]) for width in MOVES)

    def _sorted(self, src: Table, offset: Table, ends: list[int]) -> Table:
        if not ends:
            return np.zeros((0, 2), np.int64)
        at = np.concatenate([src + (0 if self.fills else k) for k in ends])
        to = np.concatenate([offset + k for k in ends])
        order = np.lexsort((to, at))
        return np.stack([at[order], to[order]], axis=1)


@dataclass(frozen=True)
class Segments:
    """How the bytes [0, stop) of a destination are split into segments and assembled.

    Rows begin `row` bytes apart. The first `filled` bytes of each row are split into segments of `length`;
    the last segment of a row may be shorter. The parts hold each of these bytes exactly once and no other
    bytes: gaps between rows are never written.
    """

    parts: tuple[SegmentBox, ...]
    length: int
    row: int
    filled: int
    stop: int

    def __str__(self) -> str:
        """The parts of each segment."""
        rows = f"rows of {self.filled}" + (f" every {self.row}" if self.filled < self.row else "")
        lines = [f"{self.stop} bytes in segments of {self.length}, {rows}"]
        for part in self.parts:
            source = "padding" if part.fills else f"from {part.src}"
            chunks = f"{part.bytes_each // part.run} chunks of {part.run} at {part.offset}"
            lines.append(f"    {part.count} times {chunks}, {source}")
        return "\n".join(lines)

    @property
    def count(self) -> int:
        """Units of work for threads: ranges of `length` bytes, each with the segments that begin in it."""
        return -(-self.stop // self.length)

    @property
    def buffer_bytes(self) -> int:
        """The size of a segment that begins anywhere in a line, plus a line on either side."""
        return self.length + 3 * LINE_BYTES

    @lazy
    def _tables(self) -> tuple[Table, tuple[int, ...]]:
        """The moves of all parts in one table, and the index in it at which each part begins."""
        tables, starts, at = [], [], 0
        for part in self.parts:
            ends = at + HEAD + np.cumsum([len(m) for m in part.moves])
            moves = np.concatenate(part.moves)
            packed = moves[:, 1] * HALF + moves[:, 0] - part.lowest
            tables.append(np.concatenate([ends, [int(part.fills)], packed]))
            starts.append(at)
            at += len(tables[-1])
        return np.concatenate(tables), tuple(starts)

    @property
    def moves(self) -> Table:
        """The moves of all parts. PART of an entry is the index of the part's HEAD numbers in there."""
        return self._tables[0]

    @property
    def heads(self) -> tuple[int, ...]:
        """The index in `moves` at which each part begins: PART of its entries."""
        return self._tables[1]

    @lazy
    def every_entry(self) -> Table | None:
        """All entries if there are at most MOST_ENTRIES, else None."""
        few = sum(part.count for part in self.parts) <= MOST_ENTRIES
        return self._entries(0, self.count) if few else None

    def entries(self, begin: int, end: int) -> Table:
        """The parts of segments in destination order.

        SRC is the lowest source offset of the part's chunks, NEXT the same in the part's next segment.
        BYTES is the segment's length in the entry of its last part, else 0.
        """
        every = self.every_entry
        if every is None:
            return self._entries(begin, end)
        first, last = np.searchsorted(every[:, DST], [begin * self.length, end * self.length])
        return every[first:last]

    def _entries(self, begin: int, end: int) -> Table:
        out = []
        for part, table in zip(self.parts, self.heads, strict=True):
            first, last = (
                bisect_left(range(part.count), at * self.length, key=part.start) for at in (begin, end)
            )
            src, dst = part.starts(first, min(last + 1, part.count))
            src += part.lowest
            entry = np.zeros((last - first, SEGMENT_FIELDS), np.int64)
            entry[:, SRC], entry[:, DST], entry[:, PART] = src[: last - first], dst[: last - first], table
            entry[:, NEXT] = entry[:, SRC]
            entry[: len(src) - 1, NEXT] = src[1:]
            out.append(entry)
        merged = np.concatenate(out)
        merged = merged[np.argsort(merged[:, DST], kind="stable")]
        at = merged[:, DST]
        size = np.minimum(np.minimum(self.length, self.filled - at % self.row), self.stop - at)
        merged[:, BYTES] = np.where(np.append(at[1:] != at[:-1], True), size, 0)
        return merged


SEGMENT_TABLES = "segments", "moves"
"""The arguments of a gather for the tables of entries and of moves."""

SEGMENT_PADDING = "pattern"
"""Its argument for a line of padding."""

SEGMENT_ARGUMENTS = (*SEGMENT_TABLES, SEGMENT_PADDING)
"""All of them."""
