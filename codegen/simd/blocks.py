"""Interleaves: a few rows packed together element by element, and taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit

from codegen.simd.memory import (
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
from codegen.simd.shuffles import shuffle

LINE_BYTES = 64


def zip_rows(builder: Any, rows: list[Any]) -> Any:
    """One vector with lane c of each row side by side: r0[0] r1[0] … r0[1] r1[1] …"""
    if len(rows) == 1:
        return rows[0]
    even, odd = zip_rows(builder, rows[0::2]), zip_rows(builder, rows[1::2])
    lanes = even.type.count
    return shuffle(builder, even, odd, [k // 2 + (k % 2) * lanes for k in range(2 * lanes)])


def unzip_rows(builder: Any, zipped: Any, count: int) -> list[Any]:
    """The rows that `zip_rows` put together."""
    lanes = zipped.type.count // count
    return [shuffle(builder, zipped, zipped, [r + count * c for c in range(lanes)]) for r in range(count)]


def _interleave_block(rows: int, width: int, stream: bool) -> Any:
    """`rows` rows of one line each, packed together; written a line at a time."""
    columns = LINE_BYTES // width

    def emit(builder: Any, dst: Any, src: Any, row_step: Any) -> None:
        loaded = [
            load(
                builder,
                builder.add(src, builder.mul(row_step, ir.Constant(I64, r))),
                vector(8 * width, columns),
            )
            for r in range(rows)
        ]
        zipped = zip_rows(builder, loaded)
        for k in range(rows):
            line = shuffle(builder, zipped, zipped, list(range(k * columns, (k + 1) * columns)))
            at = builder.add(dst, ir.Constant(I64, k * LINE_BYTES))
            (store_streaming if stream else store)(builder, line, at)

    return statement(emit, 3, f"interleave_block_{rows}_{width}")


def _deinterleave_block(columns: int, width: int, stream: bool) -> Any:
    """One line of each of `columns` destination rows."""
    rows = LINE_BYTES // width

    def emit(builder: Any, dst: Any, src: Any, column_step: Any) -> None:
        zipped = load(builder, src, vector(8 * width, rows * columns))
        for c, part in enumerate(unzip_rows(builder, zipped, columns)):
            at = builder.add(dst, builder.mul(column_step, ir.Constant(I64, c)))
            (store_streaming if stream else store)(builder, part, at)

    return statement(emit, 3, f"deinterleave_block_{columns}_{width}")


def _interleave(rows: int, width: int, move: Any) -> Callable[..., None]:
    block, step = _interleave_block(rows, width, False), LINE_BYTES // width

    @njit(error_model="numpy")
    def interleave(dst, src, columns, row_step):
        whole = columns // step * step
        for c in range(0, whole, step):
            block(dst + c * (rows * width), src + c * width, row_step)
        for c in range(whole, columns):
            for r in range(rows):
                move(dst + (c * rows + r) * width, src + r * row_step + c * width)

    return interleave


def _stream_interleave(rows: int, width: int, plain: Any) -> Callable[..., None]:
    block, step = _interleave_block(rows, width, True), LINE_BYTES // width

    @njit(error_model="numpy")
    def stream_interleave(dst, src, columns, row_step):
        whole = 0
        if dst & 63 == 0:
            whole = columns // step * step
            for c in range(0, whole, step):
                block(dst + c * (rows * width), src + c * width, row_step)
        plain(dst + whole * (rows * width), src + whole * width, columns - whole, row_step)

    return stream_interleave


def _deinterleave(columns: int, width: int, move: Any) -> Callable[..., None]:
    block, step = _deinterleave_block(columns, width, False), LINE_BYTES // width

    @njit(error_model="numpy")
    def deinterleave(dst, src, rows, column_step):
        whole = rows // step * step
        for r in range(0, whole, step):
            block(dst + r * width, src + r * (columns * width), column_step)
        for r in range(whole, rows):
            for c in range(columns):
                move(dst + c * column_step + r * width, src + (r * columns + c) * width)

    return deinterleave


def _stream_deinterleave(columns: int, width: int, plain: Any) -> Callable[..., None]:
    block, step = _deinterleave_block(columns, width, True), LINE_BYTES // width

    @njit(error_model="numpy")
    def stream_deinterleave(dst, src, rows, column_step):
        whole = 0
        if (dst | column_step) & 63 == 0:
            whole = rows // step * step
            for r in range(0, whole, step):
                block(dst + r * width, src + r * (columns * width), column_step)
        plain(dst + whole * width, src + whole * (columns * width), rows - whole, column_step)

    return stream_deinterleave


def _family() -> dict[str, Any]:
    """Every interleave and its inverse, plain and streaming, by the name it has in kernels."""
    out: dict[str, Any] = {}
    for width, move in ((1, move_u8), (2, move_u16), (4, move_u32), (8, move_u64)):
        for count in (2, 4, 8):
            name = f"interleave_{count}_u{8 * width}"
            out[name] = _interleave(count, width, move)
            out[f"stream_{name}"] = _stream_interleave(count, width, out[name])
            out[f"de{name}"] = _deinterleave(count, width, move)
            out[f"stream_de{name}"] = _stream_deinterleave(count, width, out[f"de{name}"])
    return out


INTERLEAVES = _family()
