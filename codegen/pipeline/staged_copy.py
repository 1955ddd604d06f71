"""Stage a copy where two stages by way of the cache are faster than one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from codegen.frontend.box_copy import copied_box
from codegen.ir.strided_box import Element
from codegen.maps.permuted import PermutedMap
from codegen.pipeline.calibrate import streamed_from
from codegen.pipeline.compile_staging import compile_stage, compile_staging, outgrows_caches
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions, PickCopy
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.faults import planned
from codegen.pipeline.passes import NORMALIZE, run_passes
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.staged import StagedProgram
from codegen.schedule.staging import STAGES_TRIED, BoxSchedule, SinglePass, Staging
from codegen.support.locks import compiler_lock


def staged_copy(
    direct: CopyProgram,
    source: Element,
    target: Element,
    *,
    padding: bytes | None = None,
    threads: int = 1,
    permuted: PermutedMap | None = None,
    pick: PickCopy | None = None,
) -> StagedProgram | None:
    """The same copy in two stages, block by block; None if one pass is as fast.

    direct    the copy in one pass, compiled with the same arguments; it does not swap bytes, and is large
              enough for `may_stage`
    padding   one element of the padding value, or None to leave padding as it is
    permuted  the layout of one side if it is a permuted one, and the other side an array
    pick      picks one of the programs in one pass and in two; without it the choice is a guess
    """
    src, dst = direct.src, direct.dst
    options = CopyOptions(threads=threads, stream_bytes=streamed_from(footprint_bytes(src, dst)))
    request = CopyRequest(src, dst, source, target, padding=padding, options=options, apart=True)
    return planned(lambda: _staged(direct, request, permuted, pick), lambda: None, request)


def _staged(
    direct: CopyProgram, request: CopyRequest, permuted: PermutedMap | None, pick: PickCopy | None
) -> StagedProgram | None:
    """The same copy in two stages. request: of a copy in one pass with launches of their own for padding."""
    src, dst = direct.src, direct.dst
    footprint = footprint_bytes(src, dst)
    boxes, streams = box_schedules(direct), outgrows_caches(footprint)
    copy = SinglePass(src, dst, request.source, request.target, boxes, footprint, streams)
    staging_of = _chooser(direct, copy, permuted)
    guess = staging_of(copy)
    found = [guess, *(staging_of(replace(copy, choice=choice)) for choice in STAGES_TRIED if pick)]
    staged = [compile_staging(each, direct) for each in found if each]
    if staged and request.padding is not None:
        pads = compile_copy(request).pads_only()
        staged = [replace(program, pads=pads) for program in staged]
    if pick is None or not staged:
        return staged[0] if staged else None
    chosen = pick([staged[0], direct, *staged[1:]] if guess else [direct, *staged])
    return chosen if isinstance(chosen, StagedProgram) else None


def _chooser(
    direct: CopyProgram, copy: SinglePass, permuted: PermutedMap | None
) -> Callable[[SinglePass], Staging | None]:
    """The function that chooses the stages of such a copy, imported when a process needs it."""
    with compiler_lock:
        if permuted:
            from codegen.schedule.choose_permuted import period_staging

            return partial(period_staging, layout=permuted)
        converts = copy.source.name != copy.target.name
        if not converts and not (copy.src.slots is None and copy.dst.slots is None):
            from codegen.schedule.choose_stages import box_staging

            return box_staging
        boxes = direct.boxed.boxes
        if converts or len(boxes) != 1 or boxes[0].tables or copy.dst.unit_bits != 8:
            return lambda _: None
        (box,) = run_passes(NORMALIZE, copied_box(direct.boxed, boxes[0], copy.source, copy.target), None)
        digits = tuple((axis.extent, axis.src, axis.dst) for axis in box.axes)
        from codegen.schedule.choose_digits import digit_staging

        return partial(
            digit_staging, digits=digits, schedules=lambda stage: box_schedules(compile_stage(stage))
        )


def box_schedules(program: CopyProgram) -> list[BoxSchedule]:
    """How a copy in one pass moves each of its boxes, padding aside."""
    moves = (x for x in program.launches if x.fill is None)
    return [BoxSchedule(x.step.box, x.step.schedule, x.tables) for x in moves]
