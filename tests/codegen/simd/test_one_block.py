"""Rows deinterleaved into adjacent lines: between guard pages, at every alignment and CPU level."""

from __future__ import annotations

from itertools import product

import pytest

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.instructions import instruction, takes
from tests.codegen.simd.forced import PLACES, check, lowered
from tests.codegen.simd.levels import AtLevels

LINE = 64
BLOCKS = [
    (width, count, length)
    for width in (1, 2, 4, 8)
    for count, length in instruction("interleaved").shapes[8 * width]
    if count * length * width % LINE == 0 and length not in INTERLEAVED_ROWS
]


@pytest.mark.parametrize(("width", "count", "length"), BLOCKS)
def test_every_block(width: int, count: int, length: int) -> None:
    """Blocks are separate on both sides. Full lines are streamed if the destination begins a line."""
    if not takes(f"deinterleaved_{count}", 8 * width):
        pytest.skip("other levels only")
    size = count * length * width
    for stream, gap, hole in product((False, True), (0, width), (0, LINE, width)):
        digits = (
            (5, size + gap, size + hole),
            (count, width, length * width),
            (length, count * width, width),
        )
        program = lowered(digits, width, stream=stream)
        source = program.kernels[0].source
        assert f"deinterleaved_{count}(" in source
        assert " & 63" not in source or stream
        assert ("stream_u" in source) == stream
        assert "rows" not in program.kernels[0].arguments, "sizes of blocks are literals"
        check(program, digits, width, (*PLACES, (False, True, width), (True, False, 16)))


def at_lower_levels() -> AtLevels:
    """A block of each width."""
    few = {width: f"test_every_block[{width}-{count}-{length}]" for width, count, length in BLOCKS}
    return AtLevels(__file__, list(few.values()), len(few))
