"""The steps that super-vectorize a function of loops: choose the lanes, rewrite, report."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.analysis.outcomes import pairs_to_check, report_loops
from codegen.analysis.report import LoopReport
from codegen.ir.nodes import Function
from codegen.passes.super_vectorize import super_vectorize
from codegen.schedule.choose_lanes import choose_lanes


@dataclass(frozen=True, slots=True)
class Vectorized:
    """The result of super-vectorizing a function.

    function   the new function; roots that could not be vectorized are unchanged
    loops      the report of each loop, in source order
    checks     pairs of arrays that were assumed not to overlap: if a pair overlaps, the caller must run the
               scalar function
    """

    function: Function
    loops: tuple[LoopReport, ...]
    checks: tuple[tuple[str, str], ...] = ()


def vectorize_function(
    function: Function,
    sizes: tuple[int, ...],
    fastest_varying: tuple[int, ...] | None = None,
    reductions: bool = False,
    tail: str = "mask",
) -> Vectorized:
    """Choose the loops to run as lanes of super-vectors, run them so, and report on each loop.

    The arguments are those of `choose_lanes`. `tail` is the requested handling of the last iterations;
    LoopReport.tail is the one that is legal.

    Raises:
        KernelError: a size is not positive, there are not one to three sizes, fastest_varying has a different
            length, or tail is unknown.
    """
    schedule = choose_lanes(function, sizes, fastest_varying, reductions, tail)
    choice = schedule.choice
    return Vectorized(
        super_vectorize(function, schedule),
        report_loops(function, schedule.request, choice, schedule.refusals),
        pairs_to_check(function, choice),
    )
