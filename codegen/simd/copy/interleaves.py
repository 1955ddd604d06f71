"""Interleaves: a few rows packed together element by element, and taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.ir.copies.tiles import LANE_BYTES, LINE_BYTES
from codegen.simd.copy.row_buffers import CHUNK_BYTES, LEAST_BYTES, ROW_PITCH, drain_row, row_buffer
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import (
    I64,
    load,
    move_u8,
    move_u16,
    move_u32,
    move_u64,
    statement,
    store,
    store_streaming,
    vector,
)
from codegen.simd.register.networks import LANES
from codegen.simd.register.shuffles import shuffle


def zip_rows(builder: Any, rows: list[Any]) -> Any:
    """One vector with lane c of each row side by side: r0[0] r1[0] … r0[1] r1[1] …"""
    if len(rows) == 1:
        return rows[0]
    even, odd = zip_rows(builder, rows[0::2]), zip_rows(builder, rows[1::2])
    lanes = even.type.count
    return shuffle(builder, even, odd, [k // 2 + (k % 2) * lanes for k in range(2 * lanes)])


def zip_three(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """Three lines to the three that hold their elements in turn: r0[0] r1[0] r2[0] r0[1] …

    Within lanes first, 16 bytes of each row to 48 in order; then lanes to their places.
    """
    n = LANE_BYTES // width
    parts = [
        _in_lanes(builder, rows, [((j * n + i) % 3, (j * n + i) // 3) for i in range(n)], width)
        for j in range(3)
    ]
    order = [(j, lane) for lane in range(LANES) for j in range(3)]
    return [_lanes_of(builder, parts, order[4 * k : 4 * k + 4]) for k in range(3)]


def unzip_three(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The rows that `zip_three` put together."""
    n = LANE_BYTES // width
    order = [(k, lane) for k in range(3) for lane in range(LANES)]
    parts = [_lanes_of(builder, lines, order[j::3]) for j in range(3)]
    return [
        _in_lanes(builder, parts, [((3 * i + r) // n, (3 * i + r) % n) for i in range(n)], width)
        for r in range(3)
    ]


def _in_lanes(builder: Any, three: list[Any], picks: list[tuple[int, int]], width: int) -> Any:
    """Items of three lines by (line, place within the lane), the same in each of the four lanes."""
    n, items = LANE_BYTES // width, vector(8 * width, LINE_BYTES // width)
    a, b, c = (builder.bitcast(line, items) for line in three)
    starts = range(0, items.count, n)
    two = [lane + place + (items.count if which == 1 else 0) for lane in starts for which, place in picks]
    all_ = [
        items.count + lane + place if which == 2 else lane + i
        for lane in starts
        for i, (which, place) in enumerate(picks)
    ]
    return shuffle(builder, shuffle(builder, a, b, two), c, all_)


def _lanes_of(builder: Any, three: list[Any], picks: list[tuple[int, int]]) -> Any:
    """A line of four lanes of three lines, by (line, lane)."""
    kind, words = three[0].type, vector(64, 8)
    a, b, c = (builder.bitcast(line, words) for line in three)
    two = [8 * (which == 1) + 2 * lane + half for which, lane in picks for half in (0, 1)]
    all_ = [
        8 + 2 * lane + half if which == 2 else 2 * i + half
        for i, (which, lane) in enumerate(picks)
        for half in (0, 1)
    ]
    return builder.bitcast(shuffle(builder, shuffle(builder, a, b, two), c, all_), kind)


def unzip_rows(builder: Any, zipped: Any, count: int) -> list[Any]:
    """The rows that `zip_rows` put together."""
    lanes = zipped.type.count // count
    return [shuffle(builder, zipped, zipped, [r + count * c for c in range(lanes)]) for r in range(count)]


def zipped_lines(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """The rows packed together, as lines, or as one vector where they make less than a line."""
    if len(rows) == 3:
        return zip_three(builder, rows, width)
    zipped, lanes = zip_rows(builder, rows), LINE_BYTES // width
    starts = range(0, zipped.type.count, lanes)
    return [
        shuffle(builder, zipped, zipped, list(range(k, min(k + lanes, zipped.type.count)))) for k in starts
    ]


def _unzipped(builder: Any, src: Any, count: int, width: int, row_bytes: int) -> list[Any]:
    if count != 3:
        return unzip_rows(builder, load(builder, src, vector(8 * width, count * row_bytes // width)), count)
    line = vector(8 * width, LINE_BYTES // width)
    places = [builder.add(src, ir.Constant(I64, LINE_BYTES * k)) for k in range(3)]
    return unzip_three(builder, [load(builder, place, line) for place in places], width)


def _interleave_block(rows: int, width: int, row_bytes: int = LINE_BYTES, *, stream: bool = False) -> Any:
    """So many bytes of each row, packed together; written a line at a time."""

    def emit(builder: Any, dst: Any, src: Any, row_step: Any) -> None:
        places = [builder.add(src, builder.mul(row_step, ir.Constant(I64, r))) for r in range(rows)]
        loaded = [load(builder, place, vector(8 * width, row_bytes // width)) for place in places]
        for k, line in enumerate(zipped_lines(builder, loaded, width)):
            at = builder.add(dst, ir.Constant(I64, k * LINE_BYTES))
            (store_streaming if stream else store)(builder, line, at)

    return statement(emit, 3, f"interleave_block_{rows}_{width}_{row_bytes}")


def _deinterleave_block(
    columns: int, width: int, row_bytes: int = LINE_BYTES, *, stream: bool = False
) -> Any:
    """So many bytes of each of `columns` destination rows."""

    def emit(builder: Any, dst: Any, src: Any, column_step: Any) -> None:
        for c, part in enumerate(_unzipped(builder, src, columns, width, row_bytes)):
            at = builder.add(dst, builder.mul(column_step, ir.Constant(I64, c)))
            (store_streaming if stream else store)(builder, part, at)

    return statement(emit, 3, f"deinterleave_block_{columns}_{width}_{row_bytes}")


def _whole_and_parts(make: Callable[..., Any], count: int, width: int) -> tuple[Any, Any, Any]:
    """Blocks of 64, 32 and 16 bytes a row; of three rows only the first, they fill no half line."""
    whole = make(count, width)
    if count == 3:
        return whole, whole, whole
    return whole, make(count, width, LINE_BYTES // 2), make(count, width, LANE_BYTES)


def _interleave(rows: int, width: int, move: Any) -> Callable[..., None]:
    block, half, quarter = _whole_and_parts(_interleave_block, rows, width)
    step = LINE_BYTES // width
    half_step, quarter_step = (step, step) if rows == 3 else (step // 2, step // 4)

    @for_kernels
    def interleave(dst, src, columns, row_step):
        """A last block that would reach over the edge begins earlier."""
        if columns >= step:
            last = columns - step
            for c in range(0, last, step):
                block(dst + c * (rows * width), src + c * width, row_step)
            block(dst + last * (rows * width), src + last * width, row_step)
        elif columns >= half_step:
            last = columns - half_step
            half(dst, src, row_step)
            if last:
                half(dst + last * (rows * width), src + last * width, row_step)
        elif columns >= quarter_step:
            last = columns - quarter_step
            quarter(dst, src, row_step)
            if last:
                quarter(dst + last * (rows * width), src + last * width, row_step)
        else:
            for c in range(columns):
                for r in range(rows):
                    move(dst + (c * rows + r) * width, src + r * row_step + c * width)

    return interleave


def _stream_interleave(rows: int, width: int, plain: Any) -> Callable[..., None]:
    block, step = _interleave_block(rows, width, stream=True), LINE_BYTES // width
    row_bytes = LINE_BYTES if rows == 3 else LINE_BYTES // 2
    half, half_step = _interleave_block(rows, width, row_bytes, stream=True), row_bytes // width
    part_bytes = LANE_BYTES if rows * LANE_BYTES % LINE_BYTES == 0 else row_bytes
    quarter, quarter_step = _interleave_block(rows, width, part_bytes, stream=True), part_bytes // width

    @for_kernels
    def stream_interleave(dst, src, columns, row_step):
        whole = 0
        if dst & 63 == 0:
            whole = columns // step * step
            for c in range(0, whole, step):
                block(dst + c * (rows * width), src + c * width, row_step)
            if columns - whole >= half_step:
                half(dst + whole * (rows * width), src + whole * width, row_step)
                whole += half_step
            if columns - whole >= quarter_step:
                quarter(dst + whole * (rows * width), src + whole * width, row_step)
                whole += quarter_step
        if whole < columns:
            plain(dst + whole * (rows * width), src + whole * width, columns - whole, row_step)

    return stream_interleave


def _deinterleave(columns: int, width: int, move: Any) -> Callable[..., None]:
    block, half, quarter = _whole_and_parts(_deinterleave_block, columns, width)
    step = LINE_BYTES // width
    half_step, quarter_step = (step, step) if columns == 3 else (step // 2, step // 4)

    @for_kernels
    def deinterleave(dst, src, rows, column_step):
        """A last block that would reach over the edge begins earlier."""
        if rows >= step:
            last = rows - step
            for r in range(0, last, step):
                block(dst + r * width, src + r * (columns * width), column_step)
            block(dst + last * width, src + last * (columns * width), column_step)
        elif rows >= half_step:
            last = rows - half_step
            half(dst, src, column_step)
            if last:
                half(dst + last * width, src + last * (columns * width), column_step)
        elif rows >= quarter_step:
            last = rows - quarter_step
            quarter(dst, src, column_step)
            if last:
                quarter(dst + last * width, src + last * (columns * width), column_step)
        else:
            for r in range(rows):
                for c in range(columns):
                    move(dst + c * column_step + r * width, src + (r * columns + c) * width)

    return deinterleave


def _stream_deinterleave(columns: int, width: int, plain: Any) -> Callable[..., None]:
    block, step = _deinterleave_block(columns, width, stream=True), LINE_BYTES // width
    packed, chunk, buffered = columns * width, CHUNK_BYTES // width, row_buffer(columns)

    @for_kernels
    def by_buffer(dst, src, rows, column_step):
        buffer = buffered()
        for r in range(0, rows, chunk):
            end = min(r + chunk, rows)
            plain(buffer, src + r * packed, end - r, ROW_PITCH)
            for c in range(columns):
                low, asked = dst + c * column_step + r * width, src + end * packed + c * CHUNK_BYTES
                high = low + (end - r) * width
                drain_row(low, high, buffer + c * ROW_PITCH, r == 0, end == rows, asked)

    @for_kernels
    def stream_deinterleave(dst, src, rows, column_step):
        whole = 0
        if (dst | column_step) & 63 == 0:
            whole = rows // step * step
            for r in range(0, whole, step):
                block(dst + r * width, src + r * packed, column_step)
        elif rows * width >= LEAST_BYTES:
            by_buffer(dst, src, rows, column_step)
            return
        if whole < rows:
            plain(dst + whole * width, src + whole * packed, rows - whole, column_step)

    return stream_deinterleave


def _family() -> dict[str, Any]:
    """Every interleave and its inverse, plain and streaming, by the name it has in kernels."""
    out: dict[str, Any] = {}
    for width, move in ((1, move_u8), (2, move_u16), (4, move_u32), (8, move_u64)):
        for count in (2, 3, 4, 8):
            name = f"interleave_{count}_u{8 * width}"
            out[name] = _interleave(count, width, move)
            out[f"stream_{name}"] = _stream_interleave(count, width, out[name])
            out[f"de{name}"] = _deinterleave(count, width, move)
            out[f"stream_de{name}"] = _stream_deinterleave(count, width, out[f"de{name}"])
    return out


INTERLEAVES = _family()
