"""The steps from a function of loops to its source: super-vectorize it, lower super-vectors, print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from codegen.analysis.outcomes import pairs_to_check, report_loops
from codegen.analysis.report import LoopReport
from codegen.emit.abi import kernel_head
from codegen.emit.source import body_of
from codegen.ir.nodes import Function
from codegen.ir.summary import summary_of
from codegen.passes.fit_lines import fit_lines
from codegen.passes.name_bounds import name_bounds
from codegen.passes.order_arguments import order_arguments
from codegen.passes.python_names import name_for_python
from codegen.passes.super_vectorize import super_vectorize
from codegen.passes.tile import tile
from codegen.pipeline.observer import verified
from codegen.pipeline.passes import lower
from codegen.runtime.loop_kernel import LoopKernel, LoopsSource
from codegen.schedule.check_loops import (
    check_lanes,
    check_loops,
    check_nests,
    read_loop_directives,
    with_tails,
)
from codegen.schedule.choose_lanes import LaneSchedule, choose_lanes, given_lanes
from codegen.schedule.choose_registers import choose_registers, tail_once
from codegen.schedule.directives import Directive, lanes_of
from codegen.schedule.loop_groups import lane_directives, orders_without_tiles
from codegen.schedule.loop_schedule import LoopSchedule
from codegen.schedule.machine import machine
from codegen.schedule.read_directives import pointing
from codegen.support.dataclasses import dataclass
from codegen.support.settings import settings

MOST_OF_A_NAME = 80
"""Maximum number of characters of the function's name in the kernel's source."""


@dataclass(frozen=True, slots=True)
class Vectorized:
    """The result of super-vectorizing a function.

    function    the new function; roots that could not be vectorized are unchanged
    loops       the report of each loop, in source order
    checks      pairs of arrays that were assumed not to overlap: if a pair overlaps, the caller must run the
                scalar function
    directives  how its loops run, and their tails
    """

    function: Function
    loops: tuple[LoopReport, ...]
    checks: tuple[tuple[str, str], ...] = ()
    directives: tuple[Directive, ...] = ()


def vectorize_function(
    function: Function,
    sizes: tuple[int, ...],
    fastest_varying: tuple[int, ...] | None = None,
    reductions: bool = False,
    tail: str = "mask",
    scans: bool = False,
) -> Vectorized:
    """Choose the loops to run as lanes of super-vectors, run them so, and report on each loop.

    The arguments are those of `choose_lanes`. `tail` is the requested handling of the last iterations; the
    directives have legal ones.

    Raises:
        KernelError: as `choose_lanes`.
    """
    schedule = choose_lanes(function, sizes, fastest_varying, reductions, tail, scans)
    reports = _reports(function, schedule)
    return _vectorized(function, schedule, reports, lane_directives(function, reports))


def schedule_function(
    function: Function, text: str, reductions: bool = False, scans: bool = False
) -> Vectorized:
    """Order the loops of a function and run them as lanes, as a text says, and report on each loop.

    `loop_kernel` obeys the other directives.

    Raises:
        ScheduleError: the text is not a schedule of this function.
    """
    directives = read_loop_directives(text)
    with pointing(text, directives):
        check_loops(function, directives)
        function = tile(function, LoopSchedule(orders_without_tiles(directives)))
        schedule = given_lanes(function, lanes_of(directives), reductions, scans)
        check_lanes(function, schedule, directives)
        reports, with_all = _reports(function, schedule), with_tails(function, directives)
        made = _vectorized(function, schedule, reports, with_all)
        check_nests(function, made.function, directives)
    return made


def _reports(function: Function, schedule: LaneSchedule) -> tuple[LoopReport, ...]:
    return report_loops(function, schedule.request, schedule.choice, schedule.refusals, tail_once())


def _vectorized(
    function: Function,
    schedule: LaneSchedule,
    reports: tuple[LoopReport, ...],
    directives: tuple[Directive, ...],
) -> Vectorized:
    wide = verified(super_vectorize(name_bounds(function), LoopSchedule(directives)))
    return Vectorized(wide, reports, pairs_to_check(function, schedule.choice), directives)


def loop_kernel(
    function: Function, directives: Sequence[Directive] = (), *, fast: bool = False
) -> LoopKernel:
    """A loop function, scalar or super-vectorized, as a kernel for this machine.

    directives  the tiles of its loops, their order, their tails, and whether they bypass the cache
    fast        whether float vector operations may be contracted and reassociated
    """
    tiled = in_tiles(function, directives)
    return LoopKernel(tiled, loops_source(tiled, directives, machine().register_bytes, fast=fast))


def verify_calls(
    kernel: LoopKernel,
    shapes: Mapping[str, Sequence[int]],
    strides: Mapping[str, Sequence[int]],
    integers: Mapping[str, int],
) -> None:
    """With TILEJIT_VERIFY, prove that no call with arrays of these shapes and strides (in bytes) leaves them.

    Raises:
        KernelError: an access may be outside of its array, or has no rule.
    """
    if settings().verify:
        from codegen.pipeline.proofs import prove_loops

        prove_loops(kernel, shapes, strides, integers)


def in_tiles(function: Function, directives: Sequence[Directive]) -> Function:
    """The function in tiles; its summary is that of the loops without tiles, which directives name."""
    function = name_bounds(function)
    return verified(tile(replace(function, summary=summary_of(function)), LoopSchedule(tuple(directives))))


def loops_source(
    function: Function, directives: Sequence[Directive], register_bytes: int, *, fast: bool = False
) -> LoopsSource:
    """The source of a function that `in_tiles` returns, in registers of `register_bytes` bytes.

    Raises:
        KernelError: no kernel can express the function.
    """
    schedule = choose_registers(function, register_bytes, directives, fast=fast)
    lowered = order_arguments(lower(function, schedule))
    title = function.name[:MOST_OF_A_NAME]
    # Names may contain anything, even quotation marks and statements; directives name loops only.
    what = re.sub(r"[^ -~…]|[\"\\]", "_", f"{title}: {function.summary}")
    how = ", ".join(map(str, directives)) or "Element by element"
    summary = f"{what}. {how}. Registers of {register_bytes} bytes."
    body = body_of(replace(name_for_python(fit_lines(lowered)), summary=summary))
    digest = sha256(body.encode()).hexdigest()[:12]
    plain = re.sub(r"[^0-9A-Za-z_]", "_", title).strip("_") or "loops"
    name = f"{plain}_{digest}"
    return LoopsSource(
        name,
        f"{kernel_head(name)}\n{body}",
        lowered,
        tuple(value.dtype for value in function.results),
        schedule.streamed,
        schedule.blocks,
    )
