"""Square blocks of lanes transposed in registers: what is a row of one array is a column of the other."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from codegen.ir.copies.tiles import LINE_BYTES
from codegen.simd.register.memory import I8, I32
from codegen.simd.register.networks import transposed_lines
from codegen.simd.vector.values import MASK, Vector, bits_of, lanes_like, number, routine_of


def transposed(name: str, dtype: str, lanes: int) -> Any:
    """`transposed_f32x16((a, b, …))`: lane k of vector r goes to lane r of vector k, of sixteen vectors.

    As many vectors as each has lanes; None for one lane.
    """
    if lanes == 1:
        return None
    block = types.UniTuple(Vector(dtype, lanes), lanes)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = cgutils.unpack_tuple(builder, args[0], lanes)  # type: ignore[no-untyped-call]
        columns = _turned(builder, rows, dtype, lanes)
        return cgutils.pack_array(builder, columns)  # type: ignore[no-untyped-call]

    def rule(given: Any) -> Any:
        if given != block:
            raise TypingError(f"{name} takes a tuple of {lanes} vectors of {dtype}, not {given}")
        return block(block), generate

    return routine_of(name, 1, rule)


def _turned(builder: Any, rows: list[Any], dtype: str, lanes: int) -> list[Any]:
    if dtype == MASK:
        bytes_ = [builder.zext(row, lanes_like(row, I8)) for row in rows]
        return [
            builder.icmp_unsigned("!=", row, number(row.type, 0)) for row in _by_exchanges(builder, bytes_)
        ]
    kind, line = rows[0].type, ir.VectorType(I8, LINE_BYTES)
    width = bits_of(dtype) // 8
    if width * lanes != LINE_BYTES:
        return _by_exchanges(builder, rows)
    done = transposed_lines(builder, [builder.bitcast(row, line) for row in rows], width)
    return [builder.bitcast(row, kind) for row in done]


def _by_exchanges(builder: Any, rows: list[Any]) -> list[Any]:
    """Eklundh's way: rows half a block apart exchange half of their lanes, then a quarter apart, and on."""
    lanes, far = len(rows), len(rows) // 2
    rows = list(rows)
    while far:
        for r in range(lanes):
            if not r & far:
                upper, lower = rows[r], rows[r + far]
                picks = (
                    [k if not k & far else lanes + k - far for k in range(lanes)],
                    [k + far if not k & far else lanes + k for k in range(lanes)],
                )
                rows[r], rows[r + far] = (
                    builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(I32, lanes), pick))
                    for pick in picks
                )
        far //= 2
    return rows
