"""Interleaves with a table of offsets of packed lines, for rows joined from digits shorter than a line.

Line k of the packed side begins at byte `line_offsets[k]`. Rows are contiguous and at least a line long. A
last block that would cross their end begins earlier and moves some elements again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.ir.lines import LINE_BYTES
from codegen.simd.copy.interleaves import unzip_rows, unzip_three, zipped_lines
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import I64, load, pointer, statement, store, store_streaming, vector
from codegen.simd.register.shuffles import shuffle


def _addresses(builder: Any, base: Any, table: Any, count: int) -> list[Any]:
    """The addresses given by the first `count` offsets of a table."""
    entries = [builder.add(table, ir.Constant(I64, 8 * k)) for k in range(count)]
    return [builder.add(base, builder.load(pointer(builder, entry, I64))) for entry in entries]


def _steps(builder: Any, base: Any, step: Any, count: int) -> list[Any]:
    return [builder.add(base, builder.mul(step, ir.Constant(I64, k))) for k in range(count)]


def _joined(builder: Any, lines: list[Any]) -> Any:
    """Concatenate lines into one vector."""
    while len(lines) > 1:
        both = range(2 * lines[0].type.count)
        lines = [
            shuffle(builder, low, high, list(both)) for low, high in zip(lines[::2], lines[1::2], strict=True)
        ]
    return lines[0]


def _interleave_block(rows: int, width: int, *, stream: bool) -> Any:
    """Interleave a line of each row into as many lines."""
    put, line = store_streaming if stream else store, vector(8 * width, LINE_BYTES // width)

    def emit(builder: Any, dst: Any, src: Any, row_step: Any, table: Any) -> None:
        loaded = [load(builder, address, line) for address in _steps(builder, src, row_step, rows)]
        addresses = _addresses(builder, dst, table, rows)
        for address, packed in zip(addresses, zipped_lines(builder, loaded, width), strict=True):
            put(builder, packed, address)

    return statement(emit, 4, f"interleave_lines_{rows}_{width}")


def _deinterleave_block(columns: int, width: int, *, stream: bool) -> Any:
    """Deinterleave as many packed lines as there are destination rows into a line of each row."""
    put, line = store_streaming if stream else store, vector(8 * width, LINE_BYTES // width)

    def emit(builder: Any, dst: Any, src: Any, column_step: Any, table: Any) -> None:
        loaded = [load(builder, address, line) for address in _addresses(builder, src, table, columns)]
        rows = (
            unzip_three(builder, loaded, width)
            if columns == 3
            else unzip_rows(builder, _joined(builder, loaded), columns)
        )
        for address, row in zip(_steps(builder, dst, column_step, columns), rows, strict=True):
            put(builder, row, address)

    return statement(emit, 4, f"deinterleave_lines_{columns}_{width}")


def _interleave(rows: int, width: int) -> Callable[..., None]:
    block = _interleave_block(rows, width, stream=False)
    return _lines(block, rows, width, dst_step=0, src_step=width)


def _deinterleave(columns: int, width: int) -> Callable[..., None]:
    block = _deinterleave_block(columns, width, stream=False)
    return _lines(block, columns, width, dst_step=width, src_step=0)


def _lines(block: Any, count: int, width: int, *, dst_step: int, src_step: int) -> Callable[..., None]:
    """The routine that traverses `count` rows by element steps, and the lines that they are packed in."""
    step = LINE_BYTES // width

    @for_kernels
    def lines(dst, src, length, row_step, line_offsets):
        k = 0
        while k < length:
            k = min(k, length - step)
            block(dst + k * dst_step, src + k * src_step, row_step, line_offsets + 8 * (k * count // step))
            k += step

    return lines


def _stream_interleave(rows: int, width: int, plain: Any) -> Callable[..., None]:
    block = _interleave_block(rows, width, stream=True)
    streamed = _lines(block, rows, width, dst_step=0, src_step=width)

    @for_kernels
    def stream_interleave_lines(dst, src, columns, row_step, line_offsets):
        """Packed lines are either all aligned or all unaligned: their offsets are multiples of a line."""
        if dst & 63:
            plain(dst, src, columns, row_step, line_offsets)
        else:
            streamed(dst, src, columns, row_step, line_offsets)

    return stream_interleave_lines


def _stream_deinterleave(columns: int, width: int, plain: Any) -> Callable[..., None]:
    stream, step = _deinterleave_block(columns, width, stream=True), LINE_BYTES // width
    block = _deinterleave_block(columns, width, stream=False)

    @for_kernels
    def stream_deinterleave_lines(dst, src, rows, column_step, line_offsets):
        if (dst | column_step) & 63:
            plain(dst, src, rows, column_step, line_offsets)
            return
        whole = rows // step * step
        for r in range(0, whole, step):
            stream(dst + r * width, src, column_step, line_offsets + 8 * (r * columns // step))
        if whole < rows:
            last = rows - step
            block(dst + last * width, src, column_step, line_offsets + 8 * (last * columns // step))

    return stream_deinterleave_lines


def _family() -> dict[str, Any]:
    """Each of them, plain and streaming, by its name in kernels."""
    out: dict[str, Any] = {}
    for width in (1, 2, 4, 8):
        for count in (2, 3, 4, 8):
            name = f"interleave_lines_{count}_u{8 * width}"
            out[name] = _interleave(count, width)
            out[f"stream_{name}"] = _stream_interleave(count, width, out[name])
            out[f"de{name}"] = _deinterleave(count, width)
            out[f"stream_de{name}"] = _stream_deinterleave(count, width, out[f"de{name}"])
    return out


LINE_INTERLEAVES = _family()
