"""Blocks of transposes: registers can transpose every chosen block, at every pitch."""

from __future__ import annotations

import pytest

from codegen.ir.blocks import block_shape
from codegen.ir.instructions import instruction
from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.schedule.choose import choose
from codegen.schedule.thresholds import Thresholds


def transpose(width: int, rows: int, columns: int, pitch: int) -> StridedBox:
    """rows x columns elements, `pitch` elements from one source row to the next."""
    element = Element(f"u{width}", 8 * width)
    axes = Axis("d0", columns, width, rows * width), Axis("d1", rows, pitch * width, width)
    return StridedBox(axes, 0, 0, element, element)


@pytest.mark.parametrize("stream", [False, True], ids=["through the cache", "streamed"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("more", [-1, 0, 1, 24])
def test_registers_can_transpose_the_chosen_block(width: int, more: int, stream: bool) -> None:
    thresholds = Thresholds(stream_bytes=0 if stream else 1 << 40)
    for rows in (16, 100, 1000, 4096, 4097):
        for columns in (5, 24, 64, 300):
            box = transpose(width, rows, columns, max(columns, 4096 // width + more))
            cut = choose(box, footprint=1 << 26, thresholds=thresholds).transpose
            if cut is not None and cut.block != "short":
                shape = block_shape(width, cut.block)
                assert shape in instruction("transposed").shapes[8 * width], (rows, columns, str(cut))


@pytest.mark.parametrize(
    ("columns", "rows", "order"), [(4112, 4096, "columns"), (4112, 3632, "rows"), (4352, 4096, "rows")]
)
def test_lines_of_result_rows_that_share_sets_follow_each_other(columns: int, rows: int, order: str) -> None:
    """Blocks go down the columns if result rows share sets of the first cache, and source rows do not."""
    always = Thresholds(stream_bytes=0)
    cut = choose(transpose(4, rows, columns, columns), footprint=1 << 26, thresholds=always).transpose
    assert cut is not None
    assert (cut.order, cut.stage) == (order, "")
