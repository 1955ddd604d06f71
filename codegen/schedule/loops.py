"""The loops of a nest, and sizes, which `parametrize` turns from numbers into names of arguments."""

from __future__ import annotations

from typing import TypeAlias

from codegen.ir.strided_box import Side
from codegen.schedule.offset_tables import OffsetTable
from codegen.support.dataclasses import dataclass

Size: TypeAlias = int | str
"""A number, or the name of an argument of the kernel."""


def int_size(size: Size) -> int:
    """The size, which must be a number still."""
    if not isinstance(size, int):
        raise AssertionError(f"expected a number before parametrize, got {size}")
    return size


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop with its strides on both sides, in the units of the nest.

    Where several digits are joined, a table of offsets replaces the stride of a side.

    fixed  as in `Axis`
    """

    axis: str
    extent: Size = 1
    src: Size = 0
    dst: Size = 0
    src_table: OffsetTable | None = None
    dst_table: OffsetTable | None = None
    fixed: bool = False

    @property
    def table_name(self) -> str:
        """The argument of a kernel for its table of offsets; a loop has at most one."""
        return f"{self.axis}_offsets"

    def stride(self, side: Side) -> Size:
        """The stride of a side."""
        return self.src if side == "src" else self.dst

    def table(self, side: Side) -> OffsetTable | None:
        """The table of offsets of a side; None if it has a stride."""
        return self.src_table if side == "src" else self.dst_table


@dataclass(frozen=True, slots=True)
class LaneReads:
    """Which blocks may read a full lane of each row, although rows are shorter.

    A lane that begins at the end of the source reads beyond it. While the source offset of the other digits
    is less than `open_offset`, every block may. Elsewhere, blocks that begin at a row in
    [`closed_start`, `closed_stop`) may not.
    """

    closed_start: Size
    closed_stop: Size
    open_offset: Size
