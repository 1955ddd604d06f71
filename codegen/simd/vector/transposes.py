"""Transposes of square blocks in registers: the rows of one array are the columns of another."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.memory import I8
from codegen.simd.register.networks import by_exchanges, transposed_lines
from codegen.simd.vector.values import MASK, Vector, bits_of, lanes_like, number, routine_of


def transposed(name: str, dtype: str, lanes: int) -> Any:
    """`transposed_f32x16((a, b, …))`: lane k of vector r moves to lane r of vector k, for sixteen vectors.

    There are as many vectors as lanes. Returns None for one lane.
    """
    if lanes == 1:
        return None
    block = types.UniTuple(Vector(dtype, lanes), lanes)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = cgutils.unpack_tuple(builder, args[0], lanes)  # type: ignore[no-untyped-call]
        columns = _columns(builder, rows, dtype, lanes)
        return cgutils.pack_array(builder, columns)  # type: ignore[no-untyped-call]

    def rule(given: Any) -> Any:
        if given != block:
            raise TypingError(f"{name}: expected a tuple of {lanes} vectors of {dtype}, got {given}")
        return block(block), generate

    return routine_of(name, 1, rule)


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
