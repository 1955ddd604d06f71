"""The steps from a function of loops to its source: super-vectorize it, lower super-vectors, print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Literal

from codegen.analysis.bodies import shared_loop
from codegen.analysis.outcomes import pairs_to_check, report_loops
from codegen.analysis.report import LoopReport
from codegen.emit.abi import kernel_head
from codegen.emit.source import body_of
from codegen.ir.nodes import Function
from codegen.ir.summary import summary_of
from codegen.passes.name_bounds import name_bounds
from codegen.passes.python_names import name_for_python
from codegen.passes.strip_loops import strip_loops
from codegen.passes.super_vectorize import super_vectorize
from codegen.passes.tile import TiledLoops, tile_loops
from codegen.pipeline.observer import Observer, nobody, verified, verifying
from codegen.pipeline.passes import run_passes, vector_passes
from codegen.runtime.loop_kernel import LoopKernel, LoopsSource
from codegen.schedule.choose_lanes import choose_lanes
from codegen.schedule.choose_registers import choose_registers
from codegen.schedule.choose_strips import choose_strips
from codegen.schedule.choose_tiles import choose_tiles
from codegen.schedule.machine import machine
from codegen.schedule.registers import RegisterSchedule
from codegen.support.dataclasses import dataclass

MOST_OF_A_NAME = 80
"""Maximum number of characters of the function's name in the kernel's source."""


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
    scans: bool = False,
    axes: tuple[str, ...] = (),
) -> Vectorized:
    """Choose the loops to run as lanes of super-vectors, run them so, and report on each loop.

    The arguments are those of `choose_lanes`. `tail` is the requested handling of the last iterations;
    LoopReport.tail is the one that is legal.

    Raises:
        KernelError: as `choose_lanes`.
    """
    schedule = choose_lanes(function, sizes, fastest_varying, reductions, tail, scans, axes)
    choice = schedule.choice
    return Vectorized(
        verified(super_vectorize(name_bounds(function), schedule)),
        report_loops(function, schedule.request, choice, schedule.refusals),
        pairs_to_check(function, choice),
    )


def tile_function(function: Function, lanes: Mapping[int, int]) -> TiledLoops:
    """The function whose nests run tile by tile; `lanes` as in `choose_tiles`."""
    return tile_loops(function, choose_tiles(function, lanes))


def loop_kernel(
    function: Function,
    tail: str = "mask",
    *,
    strips: bool = False,
    tiles: bool = False,
    stream: bool = False,
    fast: bool = False,
) -> LoopKernel:
    """A loop function, scalar or super-vectorized, as a kernel for this machine.

    strips   whether super-vectors of more than one block of registers become loops of their own
    tiles    the same, whose size the compiler chose
    stream   whether arrays that are only written bypass the cache, where that pays off
    fast     whether float vector operations may be contracted and reassociated
    """
    function = name_bounds(function)
    if strips or tiles:
        function, tail = strip_mined(function, machine().register_bytes, tail, "tile" if tiles else "strip")
    schedule = choose_registers(function, machine().register_bytes, tail, stream=stream, fast=fast)
    return LoopKernel(function, loops_source(function, schedule))


def strip_mined(
    function: Function, register_bytes: int, tail: str = "mask", index: Literal["strip", "tile"] = "strip"
) -> tuple[Function, str]:
    """A super-vectorized function in strips of its super-vectors, and the tail that its loops have.

    Blocks of registers may leave iterations of a strip even if strips leave none.
    """
    schedule = choose_strips(function, register_bytes, index)
    leaves = tail == "assume_divisible" and schedule.ragged
    return verified(strip_loops(function, schedule)), "scalar" if leaves else tail


def loops_source(function: Function, schedule: RegisterSchedule, observe: Observer = nobody) -> LoopsSource:
    """The source of a function, scalar or super-vectorized, whose loops run as the schedule says.

    `observe` sees the function after each pass.

    Raises:
        KernelError: no kernel can express the function, or the schedule is that of another function.
    """
    lowered = lower_vectors(function, schedule, observe)
    streamed = tuple(dict.fromkeys(p.streamed for p in schedule.vector_loops if p.streamed))
    title = function.name[:MOST_OF_A_NAME]
    past = f", lines of {' and '.join(streamed)} past the cache" if streamed else ""
    how = f"Registers of {schedule.register_bytes} bytes, tail {schedule.tail}{past}"
    # Names may contain anything, even quotation marks and statements.
    summary = re.sub(r"[^ -~…]|[\"\\]", "_", f"{title}: {summary_of(function)}. {how}.")
    body = body_of(replace(name_for_python(lowered), summary=summary))
    digest = sha256(body.encode()).hexdigest()[:12]
    plain = re.sub(r"[^0-9A-Za-z_]", "_", function.name[:MOST_OF_A_NAME]).strip("_") or "loops"
    name = f"{plain}_{digest}"
    return LoopsSource(
        name,
        f"{kernel_head(name)}\n{body}",
        tuple(argument.name for argument in lowered.arguments),
        tuple(value.dtype for value in function.results),
        shared_loop(function) is not None,
        streamed,
    )


def lower_vectors(function: Function, schedule: RegisterSchedule, observe: Observer = nobody) -> Function:
    """The function in registers of the schedule, on addresses in bytes."""
    lowered: Function
    (lowered,) = run_passes(vector_passes(), function, schedule, verifying(observe))
    return lowered
