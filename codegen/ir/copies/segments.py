"""The pieces that make each segment of a destination, as tables of offsets.

Where rows begin inside lines, or runs are shorter than a line, several runs share a line, and they may come
from several boxes of a copy and from its padding. A segment is a part of the destination that fits the first
cache: pieces of it are gathered in a buffer there, by moves of 1 to 64 bytes, and whole lines go out.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.copies.tiles import LINE_BYTES, Digit, Table
from codegen.support.caching import lazy

MOVES = (64, 32, 16, 8, 4, 2, 1)
"""Bytes that one move takes, in the order in which the moves of a part stand in its table."""

HEAD = len(MOVES) + 1
"""Numbers in front of a part's moves: how many there are of each width, and whether they are padding."""

SEGMENT_FIELDS = 5
"""Numbers in one entry of the table of segments."""
SRC, DST, CHUNKS, NEXT, BYTES = range(SEGMENT_FIELDS)

MOST_ENTRIES = 1 << 15
"""Entries that are worked out once; more are made while the copy runs, so many at one time."""

MOST_OFFSET = 1 << 31
"""Bytes that the pieces of one segment lie apart in the source: offsets have 32 bits in the table."""

_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Part:
    """What one box puts into its segments.

    src, dst      where its first segment reads, and begins, in bytes
    place         where the part's first byte is in a segment
    run           bytes of each piece
    inner, outer  digits within a segment, and from one segment to another, the most minor first
    fills         whether it is padding, which has no source
    """

    src: int
    dst: int
    place: int
    run: int
    inner: tuple[Digit, ...]
    outer: tuple[Digit, ...]
    fills: bool

    @property
    def count(self) -> int:
        """Segments that it has a part in."""
        return prod(d[0] for d in self.outer)

    @property
    def bytes_each(self) -> int:
        """Bytes that it puts into one segment."""
        return prod(d[0] for d in self.inner) * self.run

    def start(self, index: int) -> int:
        """Where the segment of an index begins; a larger index begins later."""
        at = self.dst
        for extent, _, dst in self.outer:
            index, k = divmod(index, extent)
            at += k * dst
        return at

    def starts(self, begin: int, end: int) -> _Pairs:
        """Where the segments of a range of indices read, and begin."""
        index = np.arange(begin, end)
        src, dst = np.full(len(index), self.src), np.full(len(index), self.dst)
        for extent, src_step, dst_step in self.outer:
            index, k = index // extent, index % extent
            src += k * src_step
            dst += k * dst_step
        return src, dst

    @lazy
    def moves(self) -> tuple[Table, ...]:
        """(source offset, place) of every move, an array for each of MOVES, in the order of the source.

        A piece that no single move is as long as takes two that overlap.
        """
        src, place = np.zeros(1, np.int64), np.full(1, self.place)
        for extent, src_step, dst_step in self.inner:
            k = np.arange(extent)[:, None]
            src, place = (k * src_step + src).ravel(), (k * dst_step + place).ravel()
        ends: dict[int, list[int]] = {width: [] for width in MOVES}
        whole = self.run // LINE_BYTES * LINE_BYTES
        ends[LINE_BYTES] += range(0, whole, LINE_BYTES)
        rest = self.run - whole
        if rest:
            width = 1 << (rest.bit_length() - 1)
            ends[width] += sorted({whole, self.run - width})
        return tuple(self._sorted(src, place, ends[width]) for width in MOVES)

    def _sorted(self, src: Table, place: Table, ends: list[int]) -> Table:
        if not ends:
            return np.zeros((0, 2), np.int64)
        at = np.concatenate([src + (0 if self.fills else k) for k in ends])
        to = np.concatenate([place + k for k in ends])
        order = np.lexsort((to, at))
        return np.stack([at[order], to[order]], axis=1)


@dataclass(frozen=True)
class Segments:
    """How the bytes [0, stop) behind a place of the destination are cut and put together.

    Rows begin `row` bytes apart; the first `filled` bytes of each are cut into segments of `length`, of
    which the last one in a row may be shorter. The parts hold each of these bytes once, and no other: what
    lies between rows is never written.
    """

    parts: tuple[Part, ...]
    length: int
    row: int
    filled: int
    stop: int

    @property
    def count(self) -> int:
        """What is shared among threads: so many times `length` bytes, with the segments that begin there."""
        return -(-self.stop // self.length)

    @lazy
    def _tables(self) -> tuple[Table, tuple[int, ...]]:
        """The moves of all parts, and how many bytes into it the table of each part begins."""
        tables, starts, at = [], [], 0
        for part in self.parts:
            head = [*(len(m) for m in part.moves), int(part.fills)]
            moves = np.concatenate(part.moves)
            tables.append(np.concatenate([head, moves[:, 1] << 32 | moves[:, 0] & 0xFFFFFFFF]))
            starts.append(at)
            at += tables[-1].nbytes
        return np.concatenate(tables), tuple(starts)

    @property
    def pieces(self) -> Table:
        """The moves that CHUNKS of an entry points into: the place above 32 bits of source offset."""
        return self._tables[0]

    @lazy
    def every_entry(self) -> Table | None:
        """All entries, where they are few."""
        few = sum(part.count for part in self.parts) <= MOST_ENTRIES
        return self._entries(0, self.count) if few else None

    def entries(self, begin: int, end: int) -> Table:
        """Parts of segments in the destination's order; BYTES, the segment's length, with its last part.

        NEXT is where the same part of a later segment reads.
        """
        every = self.every_entry
        if every is None:
            return self._entries(begin, end)
        first, last = np.searchsorted(every[:, DST], [begin * self.length, end * self.length])
        return every[first:last]

    def _entries(self, begin: int, end: int) -> Table:
        out = []
        for part, table in zip(self.parts, self._tables[1], strict=True):
            first, last = (
                bisect_left(range(part.count), at * self.length, key=part.start) for at in (begin, end)
            )
            src, dst = part.starts(first, min(last + 1, part.count))
            entry = np.zeros((last - first, SEGMENT_FIELDS), np.int64)
            entry[:, SRC], entry[:, DST], entry[:, CHUNKS] = src[: last - first], dst[: last - first], table
            entry[:, NEXT] = entry[:, SRC]
            entry[: len(src) - 1, NEXT] = src[1:]
            out.append(entry)
        merged = np.concatenate(out)
        merged = merged[np.argsort(merged[:, DST], kind="stable")]
        at = merged[:, DST]
        size = np.minimum(np.minimum(self.length, self.filled - at % self.row), self.stop - at)
        merged[:, BYTES] = np.where(np.append(at[1:] != at[:-1], True), size, 0)
        return merged


SEGMENT_TABLES = ("segments", "pieces", "scratch", "pattern")
"""What a kernel gets of them, by the names of its arguments."""
