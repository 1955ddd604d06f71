"""Deinterleaving several groups of rows at the same time, so that the source is read in order.

Result rows are not aligned to lines, so they go through a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.ir.copies.tiles import MOST_GROUPED
from codegen.ir.lines import LINE_BYTES
from codegen.simd.copy.joined_rows import LINE_INTERLEAVES
from codegen.simd.copy.row_buffers import CHUNK_BYTES, LEAST_BYTES, ROW_PITCH, drain_row, row_buffer
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import int64_at


def _fill(columns: int, width: int, plain: Any) -> Any:
    step = LINE_BYTES // width

    @for_kernels
    def fill_groups(buffer, src, count, run, lines, group_offsets, groups):
        """Buffer `count` elements of each row in source order, by runs of at least a line."""
        p = 0
        while p < count:
            end = p + run if count - p >= run + step else count
            for g in range(groups):
                group, at = buffer + g * (columns * ROW_PITCH), src + int64_at(group_offsets, 2 * g)
                plain(group + p * width, at, end - p, ROW_PITCH, lines + 8 * (p * columns // step))
            p = end

    return fill_groups


def _deinterleave(columns: int, width: int, plain: Any) -> Callable[..., None]:
    step, most, fill = LINE_BYTES // width, CHUNK_BYTES // width, _fill(columns, width, plain)
    buffered = row_buffer(MOST_GROUPED)

    @for_kernels
    def drain_groups(dst, rows, begin, end, column_step, group_offsets, groups, run, buffer, src, lines):
        """Drain elements [begin, end) of each row, and prefetch those after them in source order."""
        together, most_lines = groups * columns * run * width, rows * columns // step - 1
        ahead, within, row = end, 0, buffer
        for g in range(groups):
            low = dst + int64_at(group_offsets, 2 * g + 1) + begin * width
            for _ in range(columns):
                next_line = src + int64_at(lines, min(ahead * columns // step, most_lines)) + within
                drain_row(low, low + (end - begin) * width, row, begin == 0, end == rows, next_line)
                within += CHUNK_BYTES
                while within >= together:
                    within -= together
                    ahead += run
                low += column_step
                row += ROW_PITCH

    @for_kernels
    def stream_deinterleave_groups(dst, src, rows, column_step, line_offsets, group_offsets, groups, run):
        """`run` elements, at least a line, are contiguous; a rest below a line belongs to the run before."""
        if rows * width < LEAST_BYTES:
            for g in range(groups):
                to, at = dst + int64_at(group_offsets, 2 * g + 1), src + int64_at(group_offsets, 2 * g)
                plain(to, at, rows, column_step, line_offsets)
            return
        buffer, run, begin = buffered(), min(run, most), 0
        chunk = most // run * run
        while begin < rows:
            end = begin + chunk if rows - begin >= chunk + step else rows
            lines = line_offsets + 8 * (begin * columns // step)
            fill(buffer, src, end - begin, run, lines, group_offsets, groups)
            drain_groups(
                dst,
                rows,
                begin,
                end,
                column_step,
                group_offsets,
                groups,
                run,
                buffer,
                src,
                line_offsets,
            )
            begin = end

    return stream_deinterleave_groups


def _family() -> dict[str, Any]:
    """Each of them by its name in kernels."""
    out: dict[str, Any] = {}
    for width in (1, 2, 4, 8):
        for count in (2, 3, 4, 8):
            name = f"deinterleave_lines_{count}_u{8 * width}"
            grouped = f"stream_deinterleave_groups_{count}_u{8 * width}"
            out[grouped] = _deinterleave(count, width, LINE_INTERLEAVES[name])
    return out


ROW_GROUPS = _family()
