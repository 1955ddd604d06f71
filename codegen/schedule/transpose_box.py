"""A transposed copy as digits: those along which its sides are contiguous, and the blocks that they fill."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from codegen.ir.copies.tiles import Block
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.strided_box import Side, StridedBox
from codegen.schedule.schedule import TransposeSchedule

MOST_JOINED = 1 << 14
"""Maximum number of rows or columns in one table: 128 KiB."""

SPECIAL_BYTES = 1 << 17
"""Boxes smaller than this, mostly at edges, are not worth separate kernels for parts and bands."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop of the nest, strides in bytes."""

    axis: str
    extent: int
    src: int
    dst: int


@dataclass(frozen=True, slots=True)
class TransposeBox:
    """A nest as digits, with the row and column that are contiguous in dst and src; widths in bytes."""

    walks: tuple[Walk, ...]
    row: Walk
    column: Walk
    width: int
    source_width: int
    converts: bool

    @classmethod
    def of(cls, box: StridedBox) -> TransposeBox:
        """The digits of a box whose sides are both contiguous along some loop."""
        walks = [Walk(x.name, x.extent, x.src, x.dst) for x in box.axes]
        width, source_width = box.width, box.source_width
        row = next(w for w in walks if w.dst == width)
        column = next(w for w in walks if w.src == source_width)
        return cls(tuple(walks), row, column, width, source_width, box.converts)

    @property
    def side(self) -> int:
        """Elements per line."""
        return LINE_BYTES // self.width

    def counts(self, cut: TransposeSchedule) -> tuple[int, int]:
        """The numbers of joined rows and of joined columns."""
        extents = {w.axis: w.extent for w in self.walks}
        return prod(extents[a] for a in cut.rows), prod(extents[a] for a in cut.columns)

    def chain(self, first: Walk, on: Side, without: tuple[Walk, ...]) -> list[Walk]:
        """The digits that are contiguous with `first` on one side, most minor first."""
        width = self.width if on == "dst" else self.source_width
        chain, total = [first], first.extent
        while total <= MOST_JOINED:
            following = [
                w
                for w in self.walks
                if getattr(w, on) == total * width and w not in without and w not in chain
            ]
            if not following or total * following[0].extent > MOST_JOINED:
                break
            chain.append(following[0])
            total *= following[0].extent
        return chain

    @property
    def is_special(self) -> bool:
        """Whether the box may use parts or bands, neither of which converts."""
        return not self.converts and earns_special(size_of(self.walks) * self.width)

    def is_part(self, columns: int) -> bool:
        """Whether this many columns are a part of a lane that is worth a transpose in registers."""
        return 1 < columns < LANE_BYTES // self.width and self.is_special

    def block(self, rows: int, columns: int) -> Block | None:
        """The block for this many rows and columns; None if they do not fill registers."""
        if self.is_part(columns):
            return "part" if rows >= self.side else None
        if columns >= self.side:
            return "band" if rows * self.width <= LANE_BYTES and self.is_special else "line"
        return "lane" if columns * self.width >= LANE_BYTES else None


def earns_special(size_bytes: int) -> bool:
    """Whether a box of this many bytes is worth a kernel that few other boxes share."""
    return size_bytes >= SPECIAL_BYTES


def prefixes(chain: list[Walk]) -> list[tuple[Walk, ...]]:
    """All prefixes of a chain: the first digit, the first two, …"""
    return [tuple(chain[: k + 1]) for k in range(len(chain))]


def size_of(walks: tuple[Walk, ...] | list[Walk]) -> int:
    """The number of elements of all digits together."""
    return prod(w.extent for w in walks)


def axes_of(walks: tuple[Walk, ...]) -> tuple[str, ...]:
    """The names of the digits' loops."""
    return tuple(w.axis for w in walks)
