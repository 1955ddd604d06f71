"""Staged transposes: a panel goes through a buffer in cache, which is drained in full aligned lines.

They are for short result rows, which are contiguous in the buffer. For each line written, one source line of
the next panel is prefetched.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from codegen.ir.copies.tiles import Block
from codegen.simd.copy.runs import drain_part
from codegen.simd.copy.transposes import Moved, block, block_columns, block_rows, part_transpose
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    drain_64,
    drain_line,
    int64_at,
    prefetch_line,
)


@for_kernels
def prefetches(row_bytes):
    """Lines to prefetch per line written: short source rows touch more lines than they fill."""
    touched = (row_bytes + 63) // 64 + 1
    return (touched * 64 + row_bytes // 2) // row_bytes


def _fill_panel(element: Moved, kind: Block) -> Any:
    if kind == "part":
        return part_transpose(element, stream=False)
    width, source_width, move = element.width, element.source_width, block(element, kind, stream=False)
    rows_step, columns_step = block_rows(width, kind), block_columns(width, kind)

    @for_kernels
    def fill_panel(buffer, src, row_offsets, rows, buffer_offsets, columns, open_rows):
        """A last block begins earlier. Blocks read on after too few rows: the table repeats the last one.

        All rows are open here: no block reads beyond the columns.
        """
        c = 0
        while c < columns:
            c = min(c, columns - columns_step)
            r = 0
            while r < rows:
                r = max(min(r, rows - rows_step), 0)
                move(buffer + r * width, src + c * source_width, row_offsets + 8 * r, buffer_offsets + 8 * c)
                r += rows_step
            c += columns_step

    return fill_panel


@cache
def staged_dense(element: Moved, kind: Block, *, stream: bool) -> Any:
    """Tiles of short result rows."""
    width, source_width, fill_panel = element.width, element.source_width, _fill_panel(element, kind)
    drain = drain_line if stream else drain_64

    @for_kernels
    def in_runs(
        dst,
        src,
        row_offsets,
        rows,
        column_offsets,
        columns,
        open_rows,
        buffer,
        buffer_offsets,
        segments,
        segment_columns,
        layers,
        layer_src,
        next_src,
        next_rows,
    ):
        """Short, adjacent result rows: the panel is one run of the destination, or several."""
        dst += int64_at(column_offsets, 0)
        together = segment_columns if segment_columns else columns
        run = rows * together * width
        for layer in range(layers):
            above, at = buffer + layer * run, src + layer * layer_src
            fill_panel(above, at, row_offsets, rows, buffer_offsets, columns, open_rows)
        run *= layers
        row_bytes = columns * source_width
        per_line, ahead, ahead_row, ahead_layer = prefetches(row_bytes), 0, 0, 0
        next_start = next_src + int64_at(next_rows, 0)
        for segment in range(columns // together):
            begin = dst + int64_at(segments, 2 * segment)
            here = buffer + int64_at(segments, 2 * segment + 1) - begin
            end = begin + run
            first = min((begin + 63) & ~63, end)
            last = max(end & ~63, first)
            drain_part(begin, begin + here, first - begin)
            for at in range(first, last, 64):
                drain(at, at + here)
                for _ in range(per_line):
                    prefetch_line(next_start + min(ahead, row_bytes - 1))
                    ahead += 64
                    if ahead >= row_bytes + 63:
                        ahead = 0
                        ahead_row += 1
                        if ahead_row == rows:
                            ahead_row = 0
                            ahead_layer = min(ahead_layer + 1, layers - 1)
                        next_start = next_src + ahead_layer * layer_src + int64_at(next_rows, ahead_row)
            drain_part(last, last + here, end - last)

    return in_runs
