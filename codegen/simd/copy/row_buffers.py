"""Result rows that begin inside lines, by way of a buffer in the first cache: out of it go whole lines.

In the buffer a line stands in front of each row's place: there the bytes wait that fill no line yet.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from codegen.ir.copies.tiles import LINE_BYTES
from codegen.simd.copy.staging import drain_part
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import I8, I64, drain_64, drain_line, prefetch_line

CHUNK_BYTES = 256
"""Of each row so much is in the buffer at one time, or less than a line more."""

ROW_PITCH = CHUNK_BYTES + 2 * LINE_BYTES
"""From one row's place in the buffer to the next one's."""

LEAST_BYTES = 512
"""Rows shorter than this lose more at both ends than whole lines gain."""


def row_buffer(rows: int) -> Any:
    """A routine that gives the place of the first of so many rows in a buffer on the stack."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(I8, rows * ROW_PITCH))
            room.align = LINE_BYTES
        return builder.add(builder.ptrtoint(room, I64), ir.Constant(I64, LINE_BYTES))

    namespace = {"signature": types.int64(), "generate": generate}
    exec(f"def rows_{rows}(typing):\n    return signature, generate\n", namespace)
    return intrinsic(namespace[f"rows_{rows}"])


@for_kernels
def drain_row(low, high, buffer, first, last, asked):
    """A row's part [low, high) out of the buffer; whether it is the row's first, and its last one.

    Bytes that fill no line go out at the row's ends, and else in front of the row's place. Asks for the lines
    from `asked` on, one for each line written.
    """
    here, begin, end = buffer - low, low & ~63, high & ~63
    if first:
        begin = (low + 63) & ~63
        drain_part(low, low + here, begin - low)
    ahead = asked - begin
    for at in range(begin, end, 64):
        drain_line(at, at + here)
        prefetch_line(at + ahead)
    if last:
        drain_part(end, end + here, high - end)
    else:
        drain_64(low + here - 64, high + here - 64)
