"""Unaligned result rows: they go through a buffer in the L1 cache, which is drained in full lines.

In the buffer each row follows a spare line, which holds the bytes that do not fill a line yet.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from codegen.ir.lines import LINE_BYTES
from codegen.simd.copy.runs import drain_part
from codegen.simd.register.decorator import for_kernels
from codegen.simd.register.memory import I8, I64, drain_64, drain_line, prefetch_line

CHUNK_BYTES = 256
"""Bytes of each row in the buffer at one time; there may be less than a line more."""

ROW_PITCH = CHUNK_BYTES + 2 * LINE_BYTES
"""Bytes from one row in the buffer to the next."""

LEAST_BYTES = 512
"""Rows shorter than this lose more at both ends than full lines gain."""


def row_buffer(rows: int) -> Any:
    """A routine that returns the address of the first of `rows` rows in a buffer on the stack."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(I8, rows * ROW_PITCH))
            room.align = LINE_BYTES
        return builder.add(builder.ptrtoint(room, I64), ir.Constant(I64, LINE_BYTES))

    namespace = {"signature": types.int64(), "generate": generate}
    exec(f"def rows_{rows}(typing):\n    return signature, generate\n", namespace)
    return intrinsic(namespace[f"rows_{rows}"])


@for_kernels
def drain_row(low, high, buffer, first, last, next_line):
    """Drain the range [low, high) of a row from the buffer; `first` and `last` mark the row's first and last.

    Bytes that do not fill a line are stored at the row's ends, and elsewhere wait in the spare line. For each
    line written, one line is prefetched, from `next_line` on.
    """
    here, begin, end = buffer - low, low & ~63, high & ~63
    if first:
        begin = (low + 63) & ~63
        drain_part(low, low + here, begin - low)
    ahead = next_line - begin
    for at in range(begin, end, 64):
        drain_line(at, at + here)
        prefetch_line(at + ahead)
    if last:
        drain_part(end, end + here, high - end)
    else:
        drain_64(low + here - 64, high + here - 64)
