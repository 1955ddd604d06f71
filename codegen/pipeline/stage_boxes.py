"""Stage a copy between two layouts: each block of the array is unpacked into cache, and packed from there.

Blocks are boxes after which both layouts repeat, so a few programs serve all of them. The same bytes move
through memory as in one pass, because the array in cache is small.
"""

from __future__ import annotations

from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, strided_map
from codegen.maps.block_grid import BlockGrid, Dims, Ends, block_offset
from codegen.maps.windows import moved_map, tight_map, window_map
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.stages import box_schedules, compile_stage, outgrows_caches
from codegen.pipeline.steps import launch_of, step_of
from codegen.runtime.launch import Launch
from codegen.schedule.candidates import StageChoice
from codegen.schedule.choose_grid import (
    block_bytes,
    block_strides,
    common_grid,
    stays_in_cache,
    stays_near,
)
from codegen.schedule.choose_requests import request_boxes, request_schedule
from codegen.schedule.choose_stages import goes_in_boxes


def in_boxes(
    direct: CopyProgram, source: Element, target: Element, choice: StageChoice | None = None
) -> StagedProgram | None:
    """The copy of elements as they are, staged; None if one pass is as fast, or if no blocks fit.

    direct: the copy in one pass. The padding is not written. choice: as in `staged_by`.
    """
    src, dst = direct.src, direct.dst
    footprint = footprint_bytes(src, dst)
    if choice is None and not goes_in_boxes(box_schedules(direct), footprint):
        return None
    choice = choice or StageChoice()
    itemsize = bytes_held(source)
    streams = outgrows_caches(footprint)
    grid = common_grid(src.dims, (src, dst), itemsize, choice.part, far=streams)
    if grid is None or not stays_in_cache(grid.extents, itemsize):
        return None
    strides = grid.steps(src), grid.steps(dst)
    assert strides[0] is not None
    assert strides[1] is not None
    programs = {
        ends: (
            box_stage(src, source, grid, ends, reads=True, streams=False, candidate=choice.reads),
            box_stage(dst, target, grid, ends, reads=False, streams=streams, candidate=choice.writes),
        )
        for ends in grid.ends()
    }
    size = block_bytes(grid.extents, itemsize)
    near = streams and stays_near(grid.extents, itemsize)
    requests = {ends: _requests(inwards) if near else () for ends, (inwards, _) in programs.items()}
    return StagedProgram(
        None, grid, (strides[0], strides[1]), programs, direct.bounds, size, requests=requests
    )


def _requests(inwards: CopyProgram) -> tuple[Launch, ...]:
    """The launches that request what the largest box of a program reads."""
    if not inwards.launches:
        return ()
    largest = max(inwards.launches, key=lambda launch: launch.step.box.size_bytes)
    boxes = request_boxes(largest.step.box)
    return tuple(launch_of(step_of(x, request_schedule(x)), (largest.bounds[0], (0, 1))) for x in boxes)


def bytes_held(element: Element) -> int:
    """Bytes per element in a block: full ones, also for packed elements."""
    return -(-element.bits // 8)


def box_stage(
    access: AccessMap,
    element: Element,
    grid: BlockGrid,
    ends: Ends,
    *,
    reads: bool,
    streams: bool,
    candidate: int = 0,
) -> CopyProgram:
    """The copy between a storage and a block in cache, for the first position of the grid.

    reads      whether the storage is read into the block, instead of written from it
    candidate  as in `StageChoice`
    """
    starts, extents = grid.box(ends)
    steps = grid.steps(access)
    if steps is None:
        raise AssertionError("box_stage: blocks begin inside a byte")
    back = -8 * block_offset(grid.first(ends), steps) // access.unit_bits
    there = moved_map(tight_map(window_map(access, starts, (1,) * len(extents), extents)), back)
    itemsize = bytes_held(element)
    held = Element(element.name, 8 * itemsize)
    cached = cached_map(extents, itemsize)
    if reads:
        return compile_stage(
            there, cached, element, held, streams=streams, candidate=candidate, into_cache=True
        )
    return compile_stage(cached, there, held, element, streams=streams, candidate=candidate)


def cached_map(extents: Dims, itemsize: int) -> AccessMap:
    """The array in cache that holds a block."""
    strides = block_strides(extents, itemsize)
    return tight_map(strided_map(extents, strides, (0, 0), element_bits=8 * itemsize))
