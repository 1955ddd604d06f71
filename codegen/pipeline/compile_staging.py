"""Compile the stages of copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from codegen.ir.strided_box import StridedBox
from codegen.maps.block_grid import Ends
from codegen.pipeline.block_program import BlockCopies, BlockProgram
from codegen.pipeline.calibrate import streamed_from
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.steps import launch_of, step_of
from codegen.runtime.launch import Launch
from codegen.schedule.choose_requests import request_boxes, request_schedule
from codegen.schedule.machine import ALWAYS_STREAM, NEVER_STREAM
from codegen.schedule.schedule import Schedule
from codegen.schedule.staging import StageCopy, Staging

SOURCE, DESTINATION, CACHED = range(3)
"""The addresses of a copy in two stages."""


def compile_staging(staging: Staging, direct: CopyProgram) -> StagedProgram:
    """The program of a copy in two stages. direct: the copy in one pass."""
    inwards = {ends: compile_stage(x) for ends, (x, _) in staging.kinds.items()}
    outwards = {ends: compile_stage(x) for ends, (_, x) in staging.kinds.items()}
    into, out = BlockCopies(inwards, SOURCE, CACHED), BlockCopies(outwards, CACHED, DESTINATION)
    steps: tuple[BlockCopies, ...] = into, out
    if staging.ahead:
        first, second = _requests(inwards)
        steps = into, first, out, second
    blocks = BlockProgram(staging.grid, staging.steps, direct.bounds, (staging.block_bytes,), steps)
    return StagedProgram(direct, staging, blocks)


def compile_stage(stage: StageCopy) -> CopyProgram:
    """The program of a stage."""
    options = CopyOptions(
        stream_bytes=ALWAYS_STREAM if stage.streams else NEVER_STREAM,
        tile=stage.tile,
        pick=partial(_numbered, stage.candidate) if stage.candidate else None,
    )
    return compile_copy(CopyRequest(stage.src, stage.dst, stage.source, stage.target, options=options))


def _numbered(number: int, _: StridedBox, schedules: tuple[Schedule, ...]) -> Schedule:
    """The schedule with that number, or the first if there are fewer."""
    return schedules[number] if number < len(schedules) else schedules[0]


def _requests(inwards: Mapping[Ends, CopyProgram]) -> Iterator[BlockCopies]:
    """Requests of what the largest box of the next block reads, one part of them after each stage."""
    launches = {ends: _request_launches(x) for ends, x in inwards.items()}
    for part in (slice(1), slice(1, None)):
        programs = {ends: replace(x, launches=launches[ends][part]) for ends, x in inwards.items()}
        yield BlockCopies(programs, SOURCE, CACHED, requests=True)


def _request_launches(inwards: CopyProgram) -> tuple[Launch, ...]:
    """The launches that request what the largest box of a program reads."""
    if not inwards.launches:
        return ()
    largest = max(inwards.launches, key=lambda launch: launch.step.box.size_bytes)
    boxes = request_boxes(largest.step.box)
    return tuple(launch_of(step_of(x, request_schedule(x)), (largest.bounds[0], (0, 1))) for x in boxes)


def outgrows_caches(footprint: int) -> bool:
    """Whether a copy that reads and writes `footprint` bytes in total should write past the caches."""
    return footprint >= streamed_from(footprint)
