"""One box of a copy ready to run: a kernel, its arguments, and where the offsets of tables come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from codegen.kernel import Step
from codegen.refine import PairTable
from codegen.verify import check_bounds

TABLE_CHUNK = 1 << 12
"""Entries of an offset table that exist at one time: the memory of a copy stays flat."""

SMALL_TABLE = 1 << 12
"""Tables up to this extent are worked out once, not chunk by chunk."""


@dataclass(frozen=True)
class Launch:
    """One box ready to run: a kernel, its arguments, and its table of offsets where it has one."""

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

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The table of arguments; the offset tables' addresses come in front when it has them."""
        front = [0, 0] if self.tables else []
        values = [*front, *(self.fill or ()), *(value for _, value in self.step.sizes)]
        return np.array([v - (1 << 64) if v >= 1 << 63 else v for v in values], np.int64)

    @cached_property
    def _units(self) -> tuple[int, int]:
        """Units an address counts on either side: 1 for bytes, 8 for bits."""
        by_name = {b.name: 8 // b.unit_bits for b in self.step.vectorised.buffers}
        return by_name.get("src", 1), by_name["dst"]

    def run(self, src: int, dst: int, part: int, parts: int) -> None:
        """Do one part of `parts` of the box."""
        if self.serial and parts > 1:
            if part:
                return
            part, parts = 0, 1
        begin, end = self.trips * part // parts, self.trips * (part + 1) // parts
        if begin == end:
            return
        src, dst = src * self._units[0] + self.src_offset, dst * self._units[1] + self.dst_offset
        if not self.tables:
            self.step.kernel.call(src, dst, self.sizes.ctypes.data, begin, end)
            return
        sizes = self.sizes.copy()
        for src_table, dst_table in self._chunks(begin, end):
            self._check_tables(src_table, dst_table)
            sizes[0], sizes[1] = src_table.ctypes.data, dst_table.ctypes.data
            self.step.kernel.call(src, dst, sizes.ctypes.data, 0, len(src_table))

    def _chunks(self, begin: int, end: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        small = {
            id(t): (t.src(np.arange(t.extent)), t.dst(np.arange(t.extent)))
            for t in self.tables
            if t.extent <= SMALL_TABLE
        }
        for start in range(begin, end, TABLE_CHUNK):
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
