"""Stage a conversion that transposes: rows are converted into cache, and transposed from there."""

from __future__ import annotations

from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, strided_map
from codegen.maps.block_grid import Dims, Ends
from codegen.maps.windows import moved_map, tight_map
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.stages import box_schedules, compile_stage
from codegen.schedule.candidates import StageChoice
from codegen.schedule.choose_conversion import conversion_blocks
from codegen.schedule.choose_grid import block_bytes, block_strides
from codegen.schedule.schedule import TileSize


def in_converted_blocks(
    direct: CopyProgram, source: Element, target: Element, choice: StageChoice | None = None
) -> StagedProgram | None:
    """The conversion staged; None if one pass is as fast, or if no blocks fit. choice: as in `staged_by`.

    Rows are converted in one way only.
    """
    boxes = direct.boxed.boxes
    if len(boxes) != 1:
        return None
    (box,), widths = boxes, (source.bits // 8, target.bits // 8)
    transposes = [x.schedule.transpose for x in box_schedules(direct)]
    part = choice.part if choice else None
    found = conversion_blocks(box, widths, transposes, footprint_bytes(direct.src, direct.dst), part)
    if found is None:
        return None
    grid = found.grid
    strides = [tuple(e * d[side] for e, d in zip(grid.extents, found.digits, strict=True)) for side in (1, 2)]
    row, column = found.digits[-2:]
    rows, columns = grid.extents[-2:]
    programs: dict[Ends, tuple[CopyProgram, CopyProgram]] = {}
    for ends in grid.ends():
        _, extents = grid.box(ends)
        cut = extents[-2:]
        src = moved_map(_map(cut, (row[1], widths[0]), widths[0]), box.src_base)
        dst = moved_map(_map(cut, (widths[1], column[2]), widths[1]), box.dst_base)
        programs[ends] = _stages(src, dst, source, target, (rows, columns), choice.writes if choice else 0)
    size = max(block_bytes(grid.box(ends)[1][-2:], widths[1]) for ends in programs)
    return StagedProgram(
        *(None, grid, (strides[0], strides[1]), programs, direct.bounds, size),
        prefetches=True,
        inside_lines=direct if found.on_lines and not choice else None,
    )


def _map(cut: Dims, strides: Dims, width: int) -> AccessMap:
    return tight_map(strided_map(cut, strides, (0, 0), element_bits=8 * width))


def _stages(
    src: AccessMap,
    dst: AccessMap,
    source: Element,
    target: Element,
    block: tuple[int, int],
    candidate: int,
) -> tuple[CopyProgram, CopyProgram]:
    """Rows of the source converted, and columns of the block written past the cache."""
    narrow = dst.element_bits // 8
    cut = src.dims[0], src.dims[1]
    cached = _map(cut, block_strides(cut, narrow), narrow)
    moved = Element(f"u{8 * narrow}", 8 * narrow)
    inwards = compile_stage(src, cached, source, target, streams=False)
    outwards = compile_stage(
        cached, dst, moved, moved, streams=True, virtual_vector_size=TileSize(*block), candidate=candidate
    )
    return inwards, outwards
