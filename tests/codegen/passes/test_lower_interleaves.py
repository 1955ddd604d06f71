"""Every lowered interleave, at the highest rank."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

from codegen.emit.source import LINE_LENGTH
from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.pipeline.lower_nest import lower_nest
from codegen.runtime.kernel import Kernel
from codegen.schedule.offset_tables import GROUP_ARGUMENTS, LINE_TABLE, OffsetTable, RowGroups
from codegen.schedule.schedule import OUTER_RANKS, PackedSide
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import Interleave, TransferNest

AXES = "abcdefgh"[: OUTER_RANKS[-1]]
VARIANTS: list[tuple[PackedSide, bool, str]] = [
    *product(("dst", "src"), (False, True), ("", "lines")),  # type: ignore[list-item]
    ("src", True, "groups"),
    ("", False, ""),
]


def kernel(width: int, count: int, side: PackedSide, stream: bool, tables: str) -> Kernel:
    """A kernel with the largest number of loops, whose sizes are all arguments."""
    moved = Interleave(
        width,
        count if side == "dst" else "rows",
        count if side == "src" else "columns",
        count * width if side == "src" else "row_step",
        count * width if side == "dst" else "column_step",
        side,
        stream,
        OffsetTable() if tables else None,
        RowGroups() if tables == "groups" else None,
    )
    loops = tuple(Loop(a, f"{a}_extent", f"{a}_src", f"{a}_dst") for a in AXES)
    steps = [f"{a}_{name}" for name in ("dst", "src", "extent") for a in AXES]
    arguments = (LINE_TABLE, *GROUP_ARGUMENTS, "row_step", "column_step", "rows", "columns", *steps)
    return Kernel("interleave", "", arguments, partial(lower_nest, TransferNest(loops, moved), arguments))


@pytest.mark.parametrize(("side", "stream", "tables"), VARIANTS)
def test_lines_are_short(side: PackedSide, stream: bool, tables: str) -> None:
    for width, count in product((1, 2, 4, 8), INTERLEAVED_ROWS):
        source = kernel(width, count, side, stream, tables).source
        compile(source, "kernel", "exec")
        assert max(map(len, source.splitlines())) <= LINE_LENGTH
        assert ("stream_fence()" in source) == stream
