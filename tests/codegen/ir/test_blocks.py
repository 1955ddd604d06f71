"""The menu of register blocks: transposes and conversions support each block that is added to it."""

from __future__ import annotations

import pytest

from codegen.ir.blocks import converted_shapes, transposed_shapes
from codegen.ir.instructions import instruction, takes_block
from codegen.ir.lines import WIDTHS
from tests.tools.oracle import run_python

ADDED = """
from types import MappingProxyType
import numpy as np
from codegen.ir import blocks

blocks.TRANSPOSED_BLOCKS = MappingProxyType({**blocks.TRANSPOSED_BLOCKS, "64x32": (64, 32, (8,))})
from codegen.schedule.transpose_box import TransposeBox

TransposeBox.block = lambda self, rows, columns: "64x32"
import tilejit as tj
from tests.tools.oracle import run_python

values = np.arange(40 * 50).reshape(40, 50)
for source, target in (">u8", "u8"), ("f4", "f8"), ("i8", "f8"):
    out, x = np.zeros((50, 40), target), values.astype(source)
    plan = tj.plan_copy(out, x.T)
    assert any(step.schedule.transpose.block == "64x32" for step in plan._program.steps)
    plan(out, x.T)
    assert (out == values.T).all(), (source, target)
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_converted_blocks_are_transposed(width: int) -> None:
    assert set(converted_shapes(width)) <= set(transposed_shapes(width))
    assert transposed_shapes(width) == instruction("transposed").shapes[8 * width]


@pytest.mark.parametrize(("swapped", "width"), [("u16", 2), ("u32", 4), ("u64", 8)])
def test_swaps_support_every_converted_block(swapped: str, width: int) -> None:
    assert all(takes_block(f"swap {swapped}", swapped, shape) for shape in converted_shapes(width))


@pytest.mark.full
def test_a_block_that_is_added_is_also_converted() -> None:
    """A schedule needs only a block that is on the menu and chosen."""
    done = run_python(ADDED)
    assert done.returncode == 0, done.stderr
