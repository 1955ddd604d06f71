"""Interleaving a few rows element by element, and deinterleaving them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
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
    """Interleave rows into one vector: r0[0] r1[0] … r0[1] r1[1] …"""
    if len(rows) == 1:
        return rows[0]
    even, odd = zip_rows(builder, rows[0::2]), zip_rows(builder, rows[1::2])
    lanes = even.type.count
    return shuffle(builder, even, odd, [k // 2 + (k % 2) * lanes for k in range(2 * lanes)])


def zip_three(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """Interleave three lines into three: r0[0] r1[0] r2[0] r0[1] …

    First within lanes: 16 bytes of each row become 48 bytes in order. Then the lanes are put in order.
    """
    n = LANE_BYTES // width
    triples = [
        _in_lanes(builder, rows, [((j * n + i) % 3, (j * n + i) // 3) for i in range(n)], width)
        for j in range(3)
    ]
    order = [(j, lane) for lane in range(LANES) for j in range(3)]
    return [_lanes_of(builder, triples, order[4 * k : 4 * k + 4]) for k in range(3)]


def unzip_three(builder: Any, lines: list[Any], width: int) -> list[Any]:
    """The rows that `zip_three` interleaved."""
    n = LANE_BYTES // width
    order = [(k, lane) for k in range(3) for lane in range(LANES)]
    triples = [_lanes_of(builder, lines, order[j::3]) for j in range(3)]
    return [
        _in_lanes(builder, triples, [((3 * i + r) // n, (3 * i + r) % n) for i in range(n)], width)
        for r in range(3)
    ]


def _in_lanes(builder: Any, three: list[Any], selection: list[tuple[int, int]], width: int) -> Any:
    """Items of three lines by (line, index within the lane), the same in each of the four lanes."""
    n, items = LANE_BYTES // width, vector(8 * width, LINE_BYTES // width)
    a, b, c = (builder.bitcast(line, items) for line in three)
    starts = range(0, items.count, n)
    two = [lane + index + (items.count if which == 1 else 0) for lane in starts for which, index in selection]
    all_ = [
        items.count + lane + index if which == 2 else lane + i
        for lane in starts
        for i, (which, index) in enumerate(selection)
    ]
    return shuffle(builder, shuffle(builder, a, b, two), c, all_)


def _lanes_of(builder: Any, three: list[Any], selection: list[tuple[int, int]]) -> Any:
    """A line of four lanes selected from three lines, by (line, lane)."""
    kind, words = three[0].type, vector(64, 8)
    a, b, c = (builder.bitcast(line, words) for line in three)
    two = [8 * (which == 1) + 2 * lane + half for which, lane in selection for half in (0, 1)]
    all_ = [
        8 + 2 * lane + half if which == 2 else 2 * i + half
        for i, (which, lane) in enumerate(selection)
        for half in (0, 1)
    ]
    return builder.bitcast(shuffle(builder, shuffle(builder, a, b, two), c, all_), kind)


def unzip_rows(builder: Any, zipped: Any, count: int) -> list[Any]:
    """The rows that `zip_rows` interleaved."""
    lanes = zipped.type.count // count
    return [shuffle(builder, zipped, zipped, [r + count * c for c in range(lanes)]) for r in range(count)]


def zipped_lines(builder: Any, rows: list[Any], width: int) -> list[Any]:
    """The interleaved rows as lines, or as one vector if they fill less than a line."""
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
    addresses = [builder.add(src, ir.Constant(I64, LINE_BYTES * k)) for k in range(3)]
    return unzip_three(builder, [load(builder, address, line) for address in addresses], width)


def _interleave_block(rows: int, width: int, row_bytes: int = LINE_BYTES, *, stream: bool = False) -> Any:
    """Interleave `row_bytes` bytes of each row, and write them line by line."""

    def emit(builder: Any, dst: Any, src: Any, row_step: Any) -> None:
        addresses = [builder.add(src, builder.mul(row_step, ir.Constant(I64, r))) for r in range(rows)]
        loaded = [load(builder, address, vector(8 * width, row_bytes // width)) for address in addresses]
        for k, line in enumerate(zipped_lines(builder, loaded, width)):
            at = builder.add(dst, ir.Constant(I64, k * LINE_BYTES))
            (store_streaming if stream else store)(builder, line, at)

    return statement(emit, 3, f"interleave_block_{rows}_{width}_{row_bytes}")


def _deinterleave_block(
    columns: int, width: int, row_bytes: int = LINE_BYTES, *, stream: bool = False
) -> Any:
    """Deinterleave `row_bytes` bytes of each of `columns` destination rows."""

    def emit(builder: Any, dst: Any, src: Any, column_step: Any) -> None:
        for c, row in enumerate(_unzipped(builder, src, columns, width, row_bytes)):
            at = builder.add(dst, builder.mul(column_step, ir.Constant(I64, c)))
            (store_streaming if stream else store)(builder, row, at)

    return statement(emit, 3, f"deinterleave_block_{columns}_{width}_{row_bytes}")


def _full_and_partial(make: Callable[..., Any], count: int, width: int) -> tuple[Any, Any, Any]:
    """Blocks of 64, 32 and 16 bytes per row. Three rows only use the first: they cannot fill half a line."""
    full = make(count, width)
    if count == 3:
        return full, full, full
    return full, make(count, width, LINE_BYTES // 2), make(count, width, LANE_BYTES)


def _interleave(rows: int, width: int, move: Any) -> Callable[..., None]:
    block, half, quarter = _full_and_partial(_interleave_block, rows, width)
    step = LINE_BYTES // width
    half_step, quarter_step = (step, step) if rows == 3 else (step // 2, step // 4)

    @for_kernels
    def interleave(dst, src, columns, row_step):
        """A last block that would cross the edge begins earlier."""
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
    quarter_bytes = LANE_BYTES if rows * LANE_BYTES % LINE_BYTES == 0 else row_bytes
    quarter, quarter_step = _interleave_block(rows, width, quarter_bytes, stream=True), quarter_bytes // width

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
    block, half, quarter = _full_and_partial(_deinterleave_block, columns, width)
    step = LINE_BYTES // width
    half_step, quarter_step = (step, step) if columns == 3 else (step // 2, step // 4)

    @for_kernels
    def deinterleave(dst, src, rows, column_step):
        """A last block that would cross the edge begins earlier."""
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
                low, ahead = dst + c * column_step + r * width, src + end * packed + c * CHUNK_BYTES
                high = low + (end - r) * width
                drain_row(low, high, buffer + c * ROW_PITCH, r == 0, end == rows, ahead)

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
    """Every interleave and its inverse, plain and streaming, by its name in kernels."""
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
