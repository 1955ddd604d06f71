"""What staged copies share: the copy in one pass as the decision sees it, and the copies of the stages."""

from __future__ import annotations

from functools import partial

from codegen.ir.strided_box import Element, StridedBox
from codegen.maps.access import AccessMap
from codegen.pipeline.calibrate import machine_thresholds
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.schedule.choose_stages import BoxSchedule
from codegen.schedule.schedule import Schedule, VectorSize
from codegen.schedule.thresholds import Thresholds

_ALWAYS, _NEVER = Thresholds(stream_bytes=0), Thresholds(stream_bytes=1 << 62)


def compile_stage(
    src: AccessMap,
    dst: AccessMap,
    source: Element,
    target: Element,
    *,
    streams: bool,
    virtual_vector_size: VectorSize | None = None,
    candidate: int = 0,
    into_cache: bool = False,
) -> CopyProgram:
    """The program of one part of a copy, or of one stage of that part.

    streams     whether it writes past the caches: never into a block that the next stage reads
    candidate   as in `StageChoice`
    into_cache  whether it copies from memory into a block
    """
    options = CopyOptions(
        thresholds=_ALWAYS if streams else _NEVER,
        virtual_vector_size=virtual_vector_size,
        into_cache=into_cache,
        pick=partial(_numbered, candidate) if candidate else None,
    )
    return compile_copy(CopyRequest(src, dst, source, target, options=options))


def _numbered(number: int, _: StridedBox, schedules: tuple[Schedule, ...]) -> Schedule:
    """The schedule with that number, or the first if there are fewer."""
    return schedules[number] if number < len(schedules) else schedules[0]


def box_schedules(program: CopyProgram) -> list[BoxSchedule]:
    """How a copy in one pass moves each of its boxes, padding aside."""
    moves = (x for x in program.launches if x.fill is None)
    return [BoxSchedule(x.step.box, x.step.schedule, x.tables) for x in moves]


def outgrows_caches(footprint: int) -> bool:
    """Whether a copy that reads and writes `footprint` bytes in total should write past the caches."""
    return footprint >= machine_thresholds(footprint).stream_bytes
