"""Transposes of square blocks in registers: the rows of one array are the columns of another."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.errors import TypingError

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.intrinsics import routine
from codegen.simd.register.memory import I8
from codegen.simd.register.networks import by_exchanges, transposed_lines
from codegen.simd.vector.values import (
    MASK,
    Vector,
    bits_of,
    from_rows,
    lanes_like,
    number,
    row_of,
)


def transposed(name: str, dtype: str, lanes: int, _: int) -> Any:
    """`transposed_f32x16x16(block)`: lane k of row r moves to lane r of row k."""

    def emit(builder: Any, block: Any) -> Any:
        rows = [row_of(builder, block, k) for k in range(lanes)]
        return from_rows(builder, _columns(builder, rows, dtype, lanes))

    def rule(given: Any) -> Any:
        if given != Vector(dtype, lanes, lanes):
            raise TypingError(f"{name}: expected {dtype}x{lanes}x{lanes}, got {given}")
        return given(given), emit

    return routine(name, 1, rule)


def _columns(builder: Any, rows: list[Any], dtype: str, lanes: int) -> list[Any]:
    if dtype == MASK:
        bytes_ = [builder.zext(row, lanes_like(row, I8)) for row in rows]
        columns = by_exchanges(builder, bytes_)
        return [builder.icmp_unsigned("!=", column, number(column.type, 0)) for column in columns]
    kind, line = rows[0].type, ir.VectorType(I8, LINE_BYTES)
    width = bits_of(dtype) // 8
    if width * lanes != LINE_BYTES:
        return by_exchanges(builder, rows)
    done = transposed_lines(builder, [builder.bitcast(row, line) for row in rows], width)
    return [builder.bitcast(row, kind) for row in done]
