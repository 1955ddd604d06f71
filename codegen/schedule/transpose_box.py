"""A transposed copy as digits: those along which its sides are contiguous, and the blocks that they fill."""

from __future__ import annotations

from math import prod

from codegen.ir.blocks import TRANSPOSED_BLOCKS, Block, block_shape
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox
from codegen.schedule.directives import Directive, LanesBeyond, Tail, Vectorize
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

MOST_JOINED = 1 << 14
"""Maximum number of rows or columns in one table: 128 KiB."""

PANEL_COLUMNS = 256
"""Columns of a panel that is staged by long result rows."""

DENSE_BYTES = 1 << 17
"""Bytes of a panel that is staged by short result rows."""

SPECIAL_BYTES = 1 << 13
"""Boxes smaller than this, mostly at edges, are not worth separate kernels of 16x64 blocks and short rows.

u8[16384,6] transposed, 96 KiB: 17 times as fast with them; 300 shapes in 20 layouts: 3 kernels more."""

BACKWARD_BYTES = 1 << 17
"""The same for boxes that are read backward along some axis. Blocks whose lanes would end past the box are
then among other blocks, and the proof of bounds cannot tell them apart."""


@dataclass(frozen=True, slots=True)
class TransposeBox:
    """A nest as digits, with the row and column that are contiguous in dst and src; widths in bytes."""

    axes: tuple[Axis, ...]
    row: Axis
    column: Axis
    width: int
    source_width: int
    converts: bool
    special: bool

    @classmethod
    def of(cls, box: StridedBox, *, special: bool = False) -> TransposeBox:
        """The digits of a box whose sides are both contiguous along some loop.

        special  whether the box may have a kernel that few others share, although it is small
        """
        width, source_width = box.width, box.source_width
        row = expect((x for x in box.axes if x.dst == width), "a contiguous row", box)
        column = expect((x for x in box.axes if x.src == source_width), "a contiguous column", box)
        return cls(box.axes, row, column, width, source_width, box.converts, special)

    @property
    def side(self) -> int:
        """Elements per line."""
        return LINE_BYTES // self.width

    @property
    def extents(self) -> dict[str, int]:
        """The extent of each digit."""
        return {x.name: x.extent for x in self.axes}

    def axis(self, name: str) -> Axis:
        """The digit with that name."""
        return expect((x for x in self.axes if x.name == name), f"axis {name}", self.axes)

    def chain(self, first: Axis, on: Side, without: tuple[Axis, ...]) -> list[Axis]:
        """The digits that are contiguous with `first` on one side, most minor first."""
        width = self.width if on == "dst" else self.source_width
        chain, total = [first], first.extent
        while total <= MOST_JOINED:
            following = [
                x
                for x in self.axes
                if getattr(x, on) == total * width and x not in without and x not in chain
            ]
            if not following or total * following[0].extent > MOST_JOINED:
                break
            chain.append(following[0])
            total *= following[0].extent
        return chain

    @property
    def is_special(self) -> bool:
        """Whether the box may use 16x64 blocks or short rows, neither of which converts."""
        least = BACKWARD_BYTES if any(x.src < 0 for x in self.axes) else SPECIAL_BYTES
        return not self.converts and (self.special or size_of(self.axes) * self.width >= least)

    def has_short_rows(self, columns: int) -> bool:
        """Whether this many columns are short rows that are worth a transpose in registers."""
        return 1 < columns < LANE_BYTES // self.width and self.is_special

    def block(self, rows: int, columns: int) -> Block | None:
        """The block for this many rows and columns; None if they do not fill registers."""
        if self.has_short_rows(columns):
            return "short" if rows >= self.side else None
        if columns >= self.side:
            few = rows * self.width <= 2 * LANE_BYTES and self.width in TRANSPOSED_BLOCKS["16x64"][2]
            return "16x64" if few and self.is_special else "64x64"
        return "64x16" if columns * self.width >= LANE_BYTES else None

    def blocks(self, block: Block) -> tuple[Directive, ...]:
        """The directives of blocks: those of source rows shorter than a lane have a lane of each row."""
        rows, columns = block_shape(self.width, "64x16" if block == "short" else block)
        lanes = Vectorize((("row", rows), ("column", columns))), Tail("row", "clamp")
        return (*lanes, LanesBeyond() if block == "short" else Tail("column", "clamp"))


def prefixes(chain: list[Axis]) -> list[tuple[Axis, ...]]:
    """All prefixes of a chain: the first digit, the first two, …"""
    return [tuple(chain[: k + 1]) for k in range(len(chain))]


def size_of(axes: tuple[Axis, ...] | list[Axis]) -> int:
    """The number of elements of all digits together."""
    return prod(x.extent for x in axes)


def axes_of(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """The names of the digits' loops."""
    return tuple(x.name for x in axes)
