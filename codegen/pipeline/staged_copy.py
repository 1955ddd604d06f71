"""Stage a copy where two stages by way of the cache are faster than one pass."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Element
from codegen.maps.permuted import PermutedMap
from codegen.pipeline.calibrate import machine_thresholds
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions, PickCopy
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.faults import planned
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.staged import StagedProgram
from codegen.schedule.candidates import STAGES_TRIED, StageChoice
from codegen.schedule.choose_stages import LEAST_STAGED_BYTES
from codegen.support.locks import compiler_lock


def staged_copy(
    direct: CopyProgram,
    source: Element,
    target: Element,
    *,
    padding: bytes | None = None,
    threads: int = 1,
    packed_as: PermutedMap | None = None,
    unpacked_from: PermutedMap | None = None,
    pick: PickCopy | None = None,
) -> StagedProgram | None:
    """The same copy in two stages, block by block; None if one pass is as fast.

    direct         the copy in one pass, compiled with the same arguments; it does not swap bytes
    padding        one element of the padding value, or None to leave padding as it is
    packed_as      the destination as a permuted layout, if it is one
    unpacked_from  the source as a permuted layout, if it is one
    pick           picks one of the programs in one pass and in two; without it the choice is a guess
    """
    return planned(
        lambda: _staged(direct, source, target, padding, threads, packed_as, unpacked_from, pick),
        lambda: None,
        CopyRequest(direct.src, direct.dst, source, target),
    )


def _staged(
    direct: CopyProgram,
    source: Element,
    target: Element,
    padding: bytes | None,
    threads: int,
    packed_as: PermutedMap | None,
    unpacked_from: PermutedMap | None,
    pick: PickCopy | None,
) -> StagedProgram | None:
    how = direct, source, target, packed_as, unpacked_from
    src, dst = direct.src, direct.dst
    footprint, guess = footprint_bytes(src, dst), staged_by(*how)
    found = [guess]
    if pick and footprint >= LEAST_STAGED_BYTES:
        found += [staged_by(*how, choice) for choice in STAGES_TRIED]
    staged = [program for program in found if program]
    if staged and padding is not None:
        options = CopyOptions(threads=threads, thresholds=machine_thresholds(footprint))
        wanted = CopyRequest(src, dst, source, target, padding=padding, options=options, apart=True)
        apart = compile_copy(wanted)
        staged = [replace(program, pads=apart.pads_only()) for program in staged]
    if pick is None or not staged:
        return staged[0] if staged else None
    chosen = pick([staged[0], direct, *staged[1:]] if guess else [direct, *staged])
    return chosen if isinstance(chosen, StagedProgram) else None


def staged_by(
    direct: CopyProgram,
    source: Element,
    target: Element,
    packed_as: PermutedMap | None,
    unpacked_from: PermutedMap | None,
    choice: StageChoice | None = None,
) -> StagedProgram | None:
    """The copy of the elements; each kind is imported when needed, since few processes need more than one.

    choice: how it runs, whether or not two stages seem faster; None if it is a guess
    """
    permuted = packed_as or unpacked_from
    if permuted:
        with compiler_lock:
            from codegen.pipeline.stage_permuted import in_periods
        return in_periods(direct, source, permuted, packs=packed_as is not None, choice=choice)
    if source.name != target.name:
        with compiler_lock:
            from codegen.pipeline.stage_conversions import in_converted_blocks
        return in_converted_blocks(direct, source, target, choice)
    if direct.src.slots is None and direct.dst.slots is None:
        with compiler_lock:
            from codegen.pipeline.stage_digits import in_digits
        return in_digits(direct, source, choice)
    with compiler_lock:
        from codegen.pipeline.stage_boxes import in_boxes
    return in_boxes(direct, source, target, choice)
