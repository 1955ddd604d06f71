"""The blocks of elements that instructions transpose, interleave and take apart in registers."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen.ir.lines import LANE_BYTES, LINE_BYTES

Block: TypeAlias = Literal["64x64", "64x16", "short", "16x64"]
"""The shape of a register block: bytes of a result row x bytes of a source row. "short" is 64 x the whole
source row, if that is shorter than 16 bytes. Such a row is loaded as a full 16-byte lane: the block reads
beyond its row, but not beyond the last byte of the box."""

INTERLEAVED_ROWS = (2, 3, 4, 8)
"""How many rows can be packed together in registers."""


def block_shape(width: int, block: Block) -> tuple[int, int]:
    """Rows and columns of a block of elements of `width` bytes; for "short", the minimum number of columns.

    1, "64x64" -> 64, 64    1, "64x16" -> 64, 16    1, "short" -> 64, 1    1, "16x64" -> 16, 64
    """
    line, lane = LINE_BYTES // width, max(LANE_BYTES // width, 1)
    return {"64x64": (line, line), "64x16": (line, lane), "short": (line, 1), "16x64": (lane, line)}[block]
