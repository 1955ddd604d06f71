"""Stage a copy where two stages by way of the cache are faster than one pass."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Element
from codegen.maps.permuted import PermutedMap
from codegen.pipeline.calibrate import machine_thresholds
from codegen.pipeline.copies import CopyProgram, compile_copy, footprint_bytes
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.staged import StagedProgram
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
) -> StagedProgram | None:
    """The same copy in two stages, block by block; None if one pass is as fast.

    direct         the copy in one pass, compiled with the same arguments; it does not swap bytes
    padding        one element of the padding value, or None to leave padding as it is
    packed_as      the destination as a permuted layout, if it is one
    unpacked_from  the source as a permuted layout, if it is one
    """
    found = _without_padding(direct, source, target, packed_as, unpacked_from)
    if found is None or padding is None:
        return found
    src, dst = direct.boxed.src, direct.boxed.dst
    thresholds = machine_thresholds(footprint_bytes(src, dst))
    apart = compile_copy(
        src,
        dst,
        source,
        target,
        padding=padding,
        apart=True,
        options=CopyOptions(threads=threads, thresholds=thresholds),
    )
    return replace(found, pads=apart.pads_only())


def _without_padding(
    direct: CopyProgram,
    source: Element,
    target: Element,
    packed_as: PermutedMap | None,
    unpacked_from: PermutedMap | None,
) -> StagedProgram | None:
    """The copy of the elements; each kind is imported when needed, since few processes need more than one."""
    permuted = packed_as or unpacked_from
    if permuted:
        with compiler_lock:
            from codegen.pipeline.stage_permuted import in_periods
        return in_periods(direct, source, permuted, packs=packed_as is not None)
    if source.name != target.name:
        with compiler_lock:
            from codegen.pipeline.stage_conversions import in_converted_blocks
        return in_converted_blocks(direct, source, target)
    with compiler_lock:
        from codegen.pipeline.stage_boxes import in_boxes
    return in_boxes(direct, source, target)
