"""Decide which kernel calls hold the GIL: short ones."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.analysis.iterations import most_iterations
from codegen.ir.nodes import Function
from codegen.schedule.call_limits import LOOPS_HOLD_GIL_BYTES, LOOPS_HOLD_GIL_ITERATIONS


def loops_hold_gil(function: Function, size_bytes: int, values: Mapping[str, int]) -> bool:
    """Whether calls of a kernel hold the GIL: its arrays are small, and its loops known to be short.

    size_bytes: the bytes of its arrays
    values: the sizes and integer arguments
    """
    if size_bytes > LOOPS_HOLD_GIL_BYTES:
        return False
    iterations = most_iterations(function, values)
    return iterations is not None and iterations <= LOOPS_HOLD_GIL_ITERATIONS
