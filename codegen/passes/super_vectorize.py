"""Rewrite loops to run as lanes of super-vectors, as a schedule says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.ir.nodes import Function
from codegen.ir.visit import Loop, loops_of
from codegen.passes.vector_values import widen
from codegen.schedule.choose_lanes import LaneSchedule
from codegen.support.errors import KernelError


def super_vectorize(function: Function, schedule: LaneSchedule) -> Function:
    """Run the scheduled loops as lanes of super-vectors, where each lane does what its iteration did.

    before:  for i in 0..n: for j in 0..m step 1:    C[i, j] = A[i, j] + B[i]          lanes {1: 256}
    after:   for i in 0..n: for j in 0..m step 256:  C[i, j] = A[i, j] + B[i]          vector<256xf32>

    `choose_lanes` has checked for this function that its loops may run as lanes. Loops that the schedule does
    not name are unchanged.

    Raises:
        KernelError: the schedule names a loop that the function lacks, or vector dimensions that are not
            nested in order.
    """
    if not schedule.dims:
        return function
    roots, choice = loops_of(function.body), schedule.choice
    missing = choice.keys() - {loop.number for root in roots for loop in root.all()}
    if missing:
        raise KernelError(f"{function.name} has no loop {min(missing)}, which the schedule runs as lanes")
    for root in roots:
        _check_order(root, choice, 0)
    return replace(function, body=widen(function.body, roots, schedule.lanes))


def _check_order(loop: Loop, choice: Mapping[int, int], dim: int) -> None:
    """Check that vector dimensions count from 0, from outer to inner loops."""
    if loop.number in choice:
        if choice[loop.number] != dim:
            raise KernelError(
                f"expected vector dimension {dim} for loop {loop.node.index}, got {choice[loop.number]}"
            )
        dim += 1
    for each in loop.inside:
        _check_order(each, choice, dim)
