"""Transposes of blocks in registers: [R, C] -> [C, R] for elements from 8 bits to a line.

Blocks whose rows are lines or lanes have networks of their own. Others need none.
"""

from __future__ import annotations

from typing import Any

from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.simd.register.intrinsics import Emit, routine
from codegen.simd.register.networks import transposed_lanes, transposed_lines, transposed_rows
from codegen.simd.register.shuffles import concatenated, cut
from codegen.simd.register.values import (
    MASK,
    Vector,
    all_rows,
    from_bytes,
    from_rows,
    lanes_as,
    to_bytes,
    vector_type,
)


def _rule(kind: Any) -> tuple[Any, Emit]:
    """transposed(block): lane k of row r moves to lane r of row k."""
    given = vector_type(kind, "transposed")
    result = Vector(given.dtype, given.rows, given.lanes)

    def emit(builder: Any, block: Any) -> Any:
        rows = all_rows(builder, block)
        if given.dtype == MASK:
            columns = _columns(builder, [to_bytes(builder, row) for row in rows], given, result)
            return from_rows(builder, [from_bytes(builder, column) for column in columns])
        columns = _columns(builder, rows, given, result)
        return from_rows(builder, [builder.bitcast(column, result.row) for column in columns])

    return result(kind), emit


def _columns(builder: Any, rows: list[Any], given: Vector, result: Vector) -> list[Any]:
    """The rows of the result as vectors of integers, by the network for the shape."""
    width = given.element_bytes
    lines = [lanes_as(builder, row, 8) for row in rows]
    sides = result.row_bytes, given.row_bytes
    if sides == (LINE_BYTES, LINE_BYTES):
        return transposed_lines(builder, lines, width)
    if sides == (LINE_BYTES, LANE_BYTES):
        return _long_columns(builder, lines, width)
    if sides == (LANE_BYTES, LINE_BYTES):
        return _short_columns(builder, lines, width)
    return transposed_rows(builder, [lanes_as(builder, row, 8 * width) for row in rows], given.lanes)


def _long_columns(builder: Any, parts: list[Any], width: int) -> list[Any]:
    """Lines from rows of a lane each."""
    n = LANE_BYTES // width
    lanes = LINE_BYTES // LANE_BYTES
    joined = [concatenated(builder, [parts[r + n * lane] for lane in range(lanes)]) for r in range(n)]
    return transposed_lanes(builder, joined, width)


def _short_columns(builder: Any, parts: list[Any], width: int) -> list[Any]:
    """Lanes from rows of a line each: lane l of line k holds result row k + n * l."""
    n = LANE_BYTES // width
    lines = [lanes_as(builder, line, 8) for line in transposed_lanes(builder, parts, width)]
    return [cut(builder, lines[c % n], c // n * LANE_BYTES, LANE_BYTES) for c in range(LINE_BYTES // width)]


transposed = routine("transposed", 1, _rule)
