"""Transposes of super-vectors in registers: [R, C] -> [C, R] for elements from 8 bits to a line.

Blocks whose rows are lines or lanes have networks of their own. Others, with rows up to a line, need none.
"""

from __future__ import annotations

from typing import Any

from numba.core.errors import TypingError

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.networks import join_lanes, transposed_lanes, transposed_lines, transposed_rows
from codegen.simd.register.shuffles import shuffle
from codegen.simd.register.super_vectors import (
    SuperVector,
    from_parts,
    lanes_as,
    parts_of,
    super_vector,
)


def _rule(value: Any) -> tuple[Any, Emit]:
    """transposed(value); the rows of the value and of the result are at most a line long."""
    given = super_vector(value, "transposed")
    width, rows, columns = given.bits // 8, given.rows, given.columns
    result = SuperVector(given.bits, columns, rows)
    if max(given.row_bytes, result.row_bytes) > LINE_BYTES:
        raise TypingError(f"transposed expected rows and columns of at most {LINE_BYTES} bytes, got {given}")

    def emit(builder: Any, operand: Any) -> Any:
        parts = parts_of(builder, operand)
        row_bytes = result.row_bytes, given.row_bytes
        if row_bytes == (LINE_BYTES, LINE_BYTES):
            out = transposed_lines(builder, parts, width)
        elif row_bytes == (LINE_BYTES, LANE_BYTES):
            out = _long_columns(builder, parts, width)
        elif row_bytes == (LANE_BYTES, LINE_BYTES):
            out = _short_columns(builder, parts, width)
        else:
            parts = [lanes_as(builder, part, given.bits) for part in parts]
            out = transposed_rows(builder, parts, columns)
        return from_parts(builder, result, out)

    return result(value), emit


def _long_columns(builder: Any, parts: list[Any], width: int) -> list[Any]:
    """Lines from rows of a lane each."""
    n = LANE_BYTES // width
    lanes = LINE_BYTES // LANE_BYTES
    joined = [join_lanes(builder, [parts[r + n * lane] for lane in range(lanes)]) for r in range(n)]
    return transposed_lanes(builder, joined, width)


def _short_columns(builder: Any, parts: list[Any], width: int) -> list[Any]:
    """Lanes from rows of a line each: lane l of line k holds result row k + n * l."""
    n = LANE_BYTES // width
    lines = transposed_lanes(builder, parts, width)
    out = []
    for c in range(LINE_BYTES // width):
        line = lines[c % n]
        first = c // n * LANE_BYTES
        line = builder.bitcast(line, parts[0].type)
        out.append(shuffle(builder, line, line, list(range(first, first + LANE_BYTES))))
    return out


transposed = routine("transposed", 1, _rule)
