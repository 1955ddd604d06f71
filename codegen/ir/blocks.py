"""The menu of register blocks, from which transposes are declared, and the rows that interleaves pack."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from codegen.ir.lines import LANE_BYTES, LINE_BYTES, WIDTHS

Block: TypeAlias = Literal["64x64", "64x16", "short", "16x64"]
"""The shape of a register block: bytes of a result row x bytes of a source row. "short" is 64 x the whole
source row, if that is shorter than 16 bytes. Such a row is loaded as a full 16-byte lane: the block reads
beyond its row, but not beyond the last byte of the box."""

TRANSPOSED_BLOCKS: Mapping[Block, tuple[int, int, tuple[int, ...]]] = MappingProxyType(
    {
        "64x64": (LINE_BYTES, LINE_BYTES, WIDTHS),
        "64x16": (LINE_BYTES, LANE_BYTES, WIDTHS),
        "16x64": (LANE_BYTES, LINE_BYTES, (1, 2, 4, 8)),
    }
)
"""The blocks that are transposed: bytes of a result row and of a source row, and the bytes of an element."""

BLOCK_SIDES = (4, 8, 16)
"""Rows, and lanes of each row, of the square blocks of kernels."""

INTERLEAVED_ROWS = (2, 3, 4, 8)
"""How many rows can be packed together in registers."""


def block_shape(width: int, block: Block) -> tuple[int, int]:
    """Rows and columns of a block of elements of `width` bytes; for "short", the minimum number of columns.

    1, "64x64" -> 64, 64    1, "64x16" -> 64, 16    1, "short" -> 64, 1    1, "16x64" -> 16, 64
    """
    if block == "short":
        return LINE_BYTES // width, 1
    result_bytes, source_bytes, _ = TRANSPOSED_BLOCKS[block]
    return result_bytes // width, max(source_bytes // width, 1)


def transposed_shapes(width: int) -> tuple[tuple[int, int], ...]:
    """The shapes of all blocks on the menu for elements of `width` bytes.

    16 -> (4, 4), (4, 1)    8 -> (8, 8), (8, 2), (2, 8)
    """
    blocks = (block for block, (*_, widths) in TRANSPOSED_BLOCKS.items() if width in widths)
    return tuple(dict.fromkeys(block_shape(width, block) for block in blocks))


def converted_shapes(width: int) -> tuple[tuple[int, int], ...]:
    """The same for blocks that are also converted: those whose result rows are full lines.

    16 -> (4, 4), (4, 1)    8 -> (8, 8), (8, 2)
    """
    return tuple(shape for shape in transposed_shapes(width) if shape[0] * width == LINE_BYTES)
