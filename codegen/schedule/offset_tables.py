"""The tables of offsets that kernels of copies read, and the names of the arguments that hold them."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass

Table: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class OffsetTable:
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


def _joined(digits: list[tuple[int, int]]) -> Table:
    offsets = np.zeros(1, np.int64)
    for extent, stride in digits:
        offsets = (np.arange(extent)[:, None] * stride + offsets[None, :]).ravel()
    return offsets


def _repeated(offsets: Table, more: int) -> Table:
    return np.concatenate([offsets, np.full(more, offsets[-1])])


OFFSET_TABLES = "src_offsets", "dst_offsets"
"""The arguments of a kernel that loops over table entries: the offsets of each entry on both sides."""

LINE_TABLE = "line_offsets"
"""The argument of a kernel for the table of packed lines."""

PART_TABLES = PART_OFFSETS, PART_ORDERS = "part_offsets", "part_orders"
"""The arguments of a kernel for parts of the source: where each begins, and the orders of their bytes."""

ENTRIES_ARGUMENT = "prefetch_entries"
"""The argument of a kernel for the distance of prefetches that calls pass, in entries."""
