"""The schedule of registers: lanes, blocks, tails and streaming stores, and the emitter that follows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codegen.frontend.python_ast import read_function
from codegen.ir.dtypes import argument
from codegen.ir.index import index_symbol
from codegen.ir.nodes import Function
from codegen.pipeline.loops import loops_source, vectorize_function
from codegen.schedule.choose_registers import choose_registers
from codegen.schedule.registers import LoopPlan, TransposedLoops, VectorLoop
from codegen.support.errors import KernelError


def scaled(a, c):
    for i in range(a.shape[0]):
        c[i] = a[i] * 2


def in_place(a, c):
    for i in range(a.shape[0]):
        c[i] = c[i] + a[i]


def turned(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]


def wide(function: Callable[..., Any], rank: int, sizes: tuple[int, ...], dtype: str = "f4") -> Function:
    arrays = [argument(name, np.zeros((1,) * rank, dtype)) for name in "ac"]
    return vectorize_function(read_function(function).typed(arrays), sizes).function


@pytest.mark.parametrize(
    ("function", "size", "dtype", "tail", "plan"),
    [
        (scaled, 64, "f4", "mask", VectorLoop(8, 4, "mask")),
        (scaled, 20, "f4", "mask", VectorLoop(8, 2, "mask")),
        (scaled, 4, "f4", "mask", VectorLoop(4, 1, "mask")),
        (scaled, 64, "f8", "scalar", VectorLoop(4, 4, "scalar")),
        (scaled, 64, "f2", "mask", VectorLoop(8, 4, "mask")),
        (scaled, 64, "f4", "shift", VectorLoop(8, 4, "shift")),
        (in_place, 64, "f4", "shift", VectorLoop(8, 4, "mask")),
        (scaled, 64, "f4", "assume_divisible", VectorLoop(8, 4, "")),
        (scaled, 20, "f4", "assume_divisible", VectorLoop(8, 2, "scalar")),
    ],
)
def test_plans_of_one_loop(
    function: Callable[..., Any], size: int, dtype: str, tail: str, plan: LoopPlan
) -> None:
    """Halves are computed as f32, so a register has as many of them."""
    assert choose_registers(wide(function, 1, (size,), dtype), 32, tail).loops == (plan,)


def test_when_stores_are_streamed() -> None:
    """Only under a mask, and only arrays that are never read."""
    given = wide(scaled, 1, (64,))
    assert choose_registers(given, 64, stream=True).loops == (VectorLoop(16, 4, "mask", "c"),)
    assert choose_registers(given, 64, "shift", stream=True).loops == (VectorLoop(16, 4, "shift"),)
    assert choose_registers(wide(in_place, 1, (64,)), 64, stream=True).loops[0] == VectorLoop(16, 4, "mask")


def test_when_blocks_are_transposed() -> None:
    """The store is contiguous along the outer loop. Tails remain unless both loops fill blocks."""
    rest, place = VectorLoop(8, 2, "mask"), ("c", (index_symbol("j"), index_symbol("i")))
    plan = TransposedLoops(0, 8, frozenset({place}), rest, row_tail=True, lane_tail=True)
    given = wide(turned, 2, (8, 16))
    assert choose_registers(given, 32).loops == (plan, rest)
    filled = replace(plan, rest=replace(rest, tail=""), row_tail=False, lane_tail=False)
    assert choose_registers(given, 32, "assume_divisible").loops[0] == filled
    assert choose_registers(wide(turned, 2, (2, 16)), 32).loops[0] is None


def test_the_emitter_follows_the_schedule() -> None:
    """Other lanes than chosen, a plain loop over super-vectors, and a schedule that lacks a loop."""
    given = wide(turned, 2, (8, 16))
    chosen = choose_registers(given, 32)
    assert "transposed_f32x8" in loops_source(given, chosen).source
    rows = replace(chosen, loops=(None, VectorLoop(4, 1, "scalar")))
    source = loops_source(given, rows).source
    assert "transposed" not in source
    assert "load_f32x4(" in source
    assert "f32x8" not in source
    with pytest.raises(KernelError, match="turned has 2 loops, its schedule 1"):
        loops_source(given, replace(chosen, loops=chosen.loops[1:]))
