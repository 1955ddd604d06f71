"""The axes that rows and columns of a transpose join, and the register blocks that they fill."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from codegen.ir.blocks import TRANSPOSED_BLOCKS, Block, block_shape
from codegen.ir.lines import LANE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox
from codegen.schedule.directives import Directive, LanesBeyond, Tail, Vectorize

MOST_JOINED = 1 << 14
"""Maximum number of rows or columns in one table: 128 KiB."""

STAGED_COLUMNS = 256
"""Columns of a staged tile with parts of long result rows."""

STAGED_BYTES = 1 << 17
"""Bytes of a staged tile with complete result rows."""

SPECIAL_BYTES = 1 << 13
"""Boxes smaller than this, mostly at edges, are not worth separate kernels of 16x64 blocks and short rows.

u8[16384,6] transposed, 96 KiB: 17 times as fast with them; 300 shapes in 20 layouts: 3 kernels more."""

BACKWARD_BYTES = 1 << 17
"""The same for boxes that are read backward along some axis. Blocks whose lanes would end past the box are
then among other blocks, and the proof of bounds cannot tell them apart."""


def joined_rows(box: StridedBox) -> tuple[Axis, ...]:
    """The axes that rows may join, most minor first: they follow each other in the destination."""
    return _chain(box, "dst", (box.column,))


def joined_columns(box: StridedBox, rows: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes that columns may join, most minor first: they follow each other in the source."""
    return _chain(box, "src", rows)


def _chain(box: StridedBox, side: Side, without: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes that are contiguous on one side, `without` those of the other."""
    first, width = (box.row, box.width) if side == "dst" else (box.column, box.source_width)
    found, total = [first], first.extent
    while total <= MOST_JOINED:
        others = (x for x in box.axes if x not in without and x not in found)
        following = next((x for x in others if x.stride(side) == total * width), None)
        if following is None or total * following.extent > MOST_JOINED:
            break
        found.append(following)
        total *= following.extent
    return tuple(found)


def takes_special_blocks(box: StridedBox) -> bool:
    """Whether the box may use 16x64 blocks or short rows, neither of which converts."""
    least = BACKWARD_BYTES if any(x.src < 0 for x in box.axes) else SPECIAL_BYTES
    return not box.converts and box.size_bytes >= least


def has_short_rows(box: StridedBox, columns: int) -> bool:
    """Whether this many columns are short rows that are worth a transpose in registers."""
    return 1 < columns < LANE_BYTES // box.width and takes_special_blocks(box)


def block_for(box: StridedBox, rows: int, columns: int) -> Block | None:
    """The block for this many rows and columns; None if they do not fill registers."""
    if has_short_rows(box, columns):
        return "short" if rows >= box.per_line else None
    if columns >= box.per_line:
        few = rows * box.width <= 2 * LANE_BYTES and box.width in TRANSPOSED_BLOCKS["16x64"][2]
        return "16x64" if few and takes_special_blocks(box) else "64x64"
    return "64x16" if columns * box.width >= LANE_BYTES else None


def block_directives(width: int, block: Block) -> tuple[Directive, ...]:
    """The directives of blocks: those of source rows shorter than a lane have a lane of each row."""
    rows, columns = block_shape(width, "64x16" if block == "short" else block)
    lanes = Vectorize((("row", rows), ("column", columns))), Tail("row", "clamp")
    return (*lanes, LanesBeyond() if block == "short" else Tail("column", "clamp"))


def prefixes(axes: tuple[Axis, ...]) -> list[tuple[Axis, ...]]:
    """All prefixes of joined axes: the first, the first two, …"""
    return [axes[: k + 1] for k in range(len(axes))]


def size_of(axes: Iterable[Axis]) -> int:
    """The number of elements of all axes together."""
    return prod(x.extent for x in axes)
