"""Every lowered interleave, at the highest rank."""

from __future__ import annotations

from itertools import product

import pytest

from codegen.emit.source import LINE_LENGTH
from codegen.ir.copies.nodes import Buffer, Element, For, Interleave, LoopNest, PackedSide, Param, Ref, wrap
from codegen.ir.copies.tiles import GROUP_ARGUMENTS, INTERLEAVED_ROWS, LINE_TABLE, PackedLines, RowGroups
from codegen.runtime.kernel import Kernel
from codegen.schedule.schedule import OUTER_RANKS

AXES = "abcdefgh"[: OUTER_RANKS[-1]]
VARIANTS: list[tuple[PackedSide, bool, str]] = [
    *product(("dst", "src"), (False, True), ("", "lines")),  # type: ignore[list-item]
    ("src", True, "groups"),
    ("", False, ""),
]


def kernel(width: int, count: int, side: PackedSide, stream: bool, tables: str) -> Kernel:
    """A kernel of as many loops as any has, all sizes being arguments."""
    dst, src = (Ref(b, 0, tuple((a, Param(f"{a}_{b}")) for a in AXES)) for b in ("dst", "src"))
    moved = Interleave(
        dst,
        src,
        width,
        count if side == "dst" else Param("rows"),
        count if side == "src" else Param("columns"),
        Param("row_step"),
        Param("column_step"),
        side,
        stream,
        PackedLines() if tables else None,
        RowGroups() if tables == "groups" else None,
    )
    loops = tuple(For(axis, Param(f"{axis}_extent"), moved) for axis in AXES)
    element = Element(f"u{8 * width}", 8 * width)
    nest = LoopNest((Buffer("src", element, 8), Buffer("dst", element, 8)), wrap(loops, None, moved))
    steps = [f"{a}_{name}" for name in ("dst", "src", "extent") for a in AXES]
    sizes = ["row_step", "column_step", "rows", "columns"]
    return Kernel(nest, (LINE_TABLE, *GROUP_ARGUMENTS, *sizes, *steps))


@pytest.mark.parametrize(("side", "stream", "tables"), VARIANTS)
def test_lines_are_short(side: PackedSide, stream: bool, tables: str) -> None:
    for width, count in product((1, 2, 4, 8), INTERLEAVED_ROWS):
        source = kernel(width, count, side, stream, tables).source
        compile(source, "kernel", "exec")
        assert max(map(len, source.splitlines())) <= LINE_LENGTH
        assert ("stream_fence()" in source) == stream
