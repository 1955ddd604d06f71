"""Where a transpose of rows shorter than a lane may read full lanes, which extend past the row."""

from __future__ import annotations

from math import prod

from codegen.ir.lines import LANE_BYTES
from codegen.schedule.loops import LaneReads
from codegen.schedule.offset_tables import OffsetTable


def lane_reads(
    rows: list[tuple[int, int]], columns: int, others: list[tuple[int, int]], width: int, block_rows: int
) -> LaneReads:
    """The blocks of rows whose lanes stay inside the source box.

    64 rows of 9 bytes, 9 apart -> the block from row 0 on is closed: its last lane ends 7 bytes after the box

    Args:
        rows: the digits of a row, (count, source stride), most minor first.
        columns: elements of a row, which are contiguous: together fewer bytes than a lane.
        others: the same of the digits that are neither rows nor columns.
        width: bytes of an element.
        block_rows: rows of a block; there are at least as many rows.

    A row begins at `other + row`: the offset of the other digits plus its own. The box ends `columns * width`
    bytes after the last row begins, `last_other + last_row`. So a lane stays inside the box if

        other + row + 16 <= last_other + last_row + columns * width

    As row <= last_row, every row satisfies this if other <= last_other - (16 - columns * width). As
    other <= last_other, a row satisfies it for all other digits if row <= last_row - (16 - columns * width).
    The remaining rows are closed, and so are the blocks that contain them.
    """
    missing = LANE_BYTES - columns * width
    if missing <= 0:
        raise AssertionError(f"expected rows shorter than a lane, got {columns} elements of {width} bytes")
    count, (first, last) = prod(n for n, _ in rows), _closed_rows(rows, missing)
    # The last block begins at count - block_rows; blocks before it begin at multiples of block_rows.
    is_last = last >= count - block_rows
    stop = count if is_last else (last // block_rows + 1) * block_rows
    last_other = sum(max(0, (n - 1) * src) for n, src in others)
    return LaneReads(first // block_rows * block_rows, stop, last_other - missing + 1)


def _closed_rows(rows: list[tuple[int, int]], missing: int) -> tuple[int, int]:
    """The first and the last row whose offset is less than `missing` bytes before the last offset."""
    if len(rows) > 1:
        offsets = OffsetTable(tuple(rows)).offsets
        closed = (offsets > offsets.max() - missing).nonzero()[0]
        return int(closed[0]), int(closed[-1])
    ((count, step),) = rows
    few = min(count, -(-missing // abs(step))) if step else count
    return (count - few, count - 1) if step > 0 else (0, few - 1)
