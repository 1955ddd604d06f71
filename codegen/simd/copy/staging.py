"""Staged transposes: a panel goes through a buffer in cache, which is drained in full aligned lines.

They are for result rows that are not aligned to lines or are shorter than a line. For each line written, one
source line of the next panel is prefetched.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from codegen.ir.copies.tiles import Block
from codegen.ir.lines import LINE_BYTES
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


@for_kernels
def row_lines(row, row_bytes):
    """The first line of a source row, and where the row ends."""
    return row & ~63, row + row_bytes


def _fill_panel(element: Moved, kind: Block, *, in_order: bool = False) -> Any:
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

    @for_kernels
    def fill_in_order(buffer, src, row_offsets, rows, buffer_offsets, columns, open_rows):
        """The same, one band of rows at a time: the few lines of its blocks stay in the L1 cache."""
        r = 0
        while r < rows:
            r = max(min(r, rows - rows_step), 0)
            c = 0
            while c < columns:
                c = min(c, columns - columns_step)
                move(buffer + r * width, src + c * source_width, row_offsets + 8 * r, buffer_offsets + 8 * c)
                c += columns_step
            r += rows_step

    return fill_in_order if kind == "band" and in_order else fill_panel


@cache
def staged_rows(element: Moved, kind: Block) -> Any:
    """Tiles of long result rows."""
    width, source_width, fill_panel = (
        element.width,
        element.source_width,
        _fill_panel(element, kind, in_order=True),
    )

    @for_kernels
    def by_rows(
        dst,
        src,
        row_offsets,
        rows,
        column_offsets,
        columns,
        open_rows,
        buffer,
        buffer_offsets,
        lines,
        next_src,
        next_rows,
    ):
        """Long result rows at any alignment, `lines` lines of each at a time.

        The bytes after the last full line wait in front of the buffer's row for the next lines.
        """
        row_bytes, chunk = columns * source_width, lines * (LINE_BYTES // width)
        r1 = 0
        while r1 < rows:  # a range with a variable step would raise on zero
            r0, r1 = r1, min(r1 + chunk, rows)
            opened = max(min(open_rows, r1) - r0, 0)
            fill_panel(buffer + 64, src, row_offsets + 8 * r0, r1 - r0, buffer_offsets, columns, opened)
            ahead_src, ahead_rows, ahead_row = src, row_offsets + 8 * r1, 0
            if r1 == rows:
                ahead_src, ahead_rows = next_src, next_rows
            next_line, next_end = row_lines(ahead_src + int64_at(ahead_rows, 0), row_bytes)
            if lines == 1 and r0 and r1 < rows:  # Nearly all panels: one line of each row.
                for c in range(columns):
                    at = dst + int64_at(column_offsets, c) + r0 * width
                    here = buffer + 64 + int64_at(buffer_offsets, c) - (at & 63)
                    at &= ~63
                    drain_line(at, here)
                    prefetch_line(next_line)
                    next_line += 64
                    if next_line >= next_end:
                        ahead_row = min(ahead_row + 1, chunk - 1)
                        next_line, next_end = row_lines(
                            ahead_src + int64_at(ahead_rows, ahead_row), row_bytes
                        )
                    here = buffer + int64_at(buffer_offsets, c)
                    drain_64(here, here + 64)
                continue
            for c in range(columns):
                begin = dst + int64_at(column_offsets, c) + r0 * width
                end = begin + (r1 - r0) * width
                here = buffer + 64 + int64_at(buffer_offsets, c) - begin
                first = begin & ~63
                if r0 == 0:
                    first = min((begin + 63) & ~63, end)
                    drain_part(begin, begin + here, first - begin)
                last = end & ~63
                for at in range(first, last, 64):
                    drain_line(at, at + here)
                    prefetch_line(next_line)
                    next_line += 64
                    if next_line >= next_end:
                        ahead_row = min(ahead_row + 1, chunk - 1)
                        next_line, next_end = row_lines(
                            ahead_src + int64_at(ahead_rows, ahead_row), row_bytes
                        )
                if r1 < rows:
                    drain_64(begin + here - 64, end + here - 64)
                elif max(first, last) < end:
                    last = max(first, last)
                    drain_part(last, last + here, end - last)

    return by_rows


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
