"""The loops around a transfer, and sizes, which `parametrize` turns from numbers into names of arguments."""

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
    """A loop around a transfer, with its strides on both sides, in bytes or bits as the nest counts.

    A transpose also has loops inside: over other digits, and over tiles of "rows" or "columns", which have no
    extent and no strides here. In `TransposeRuns`, the extent of "columns" and of "layers" is the number of
    panels, and the strides of "layers" are those of a layer.

    With a `table` of offsets in the source, there is no stride on that side.
    """

    axis: str
    extent: Size = 1
    src: Size = 0
    dst: Size = 0
    table: OffsetTable | None = None

    def stride(self, side: Side) -> Size:
        """The stride of a side."""
        return self.src if side == "src" else self.dst
