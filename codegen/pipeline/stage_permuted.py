"""Stage a copy of a permuted layout: one stage copies the layout below, the other permutes periods."""

from __future__ import annotations

from math import prod

from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, strided_map
from codegen.maps.block_grid import Dims, Ends
from codegen.maps.digit_trees import Leaf
from codegen.maps.permuted import PermutedMap, block_digits, period_maps, unpermuted_map
from codegen.maps.windows import tight_map
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.stages import box_schedules, compile_stage, outgrows_caches
from codegen.schedule.candidates import StageChoice
from codegen.schedule.choose_permuted import goes_in_periods, packing_tile, permuted_grid
from codegen.support.lookups import Known


def in_periods(
    direct: CopyProgram,
    element: Element,
    layout: PermutedMap,
    *,
    packs: bool,
    choice: StageChoice | None = None,
) -> StagedProgram | None:
    """The copy between a strided array and a permuted layout staged; None if one pass is as fast.

    packs: whether the destination is the permuted side. choice: as in `staged_by`.
    """
    sides = direct.src, direct.dst
    array, storage = sides if packs else sides[::-1]
    strides = _strides(array)
    itemsize = element.bits // 8
    footprint = 2 * (storage.slots or storage.elements) * itemsize
    if strides is None:
        return None
    if choice is None and not goes_in_periods(box_schedules(direct), footprint, packs=packs):
        return None
    choice = choice or StageChoice()
    grid = permuted_grid(layout, array.dims, strides, itemsize, choice.part)
    far = _steps(layout, grid.extents, itemsize) if grid else None
    if grid is None or far is None:
        return None
    streams = outgrows_caches(footprint)
    programs: dict[Ends, tuple[CopyProgram, CopyProgram]] = {}
    for ends in grid.ends():
        made = _stages(layout, grid.box(ends)[1], strides, element, choice, packs=packs, streams=streams)
        if made is None:
            return None
        programs[ends] = made
    near = tuple(e * s for e, s in zip(grid.extents, strides, strict=True))
    steps = (near, far) if packs else (far, near)
    return StagedProgram(None, grid, steps, programs, direct.bounds, prod(grid.extents) * itemsize)


def _strides(array: AccessMap) -> Dims | None:
    """The strides in bytes of a strided array; None for another layout."""
    found = Known((r.dims, r.tree.stride) for r in array.roots if isinstance(r.tree, Leaf))
    if array.base or array.unit_bits != 8 or len(found) != len(array.dims):
        return None
    return tuple(found[(d,)] for d in range(len(array.dims)))


def _steps(layout: PermutedMap, extents: Dims, itemsize: int) -> Dims | None:
    """Bytes of the storage from one block to the next along each dimension; None if not complete periods."""
    out = []
    for mode, extent, grain in zip(layout.modes, extents, layout.grains(), strict=True):
        size, stride = mode[-1]
        step = extent // grain * stride if extent // grain < size else 0
        if step % layout.period:
            return None
        out.append(step * itemsize)
    return tuple(out)


def _stages(
    layout: PermutedMap,
    extents: Dims,
    strides: Dims,
    element: Element,
    choice: StageChoice,
    *,
    packs: bool,
    streams: bool,
) -> tuple[CopyProgram, CopyProgram] | None:
    """The stages of one kind of block."""
    digits = block_digits(layout, extents)
    if digits is None:
        return None
    array = tight_map(strided_map(extents, strides, (0, 0), element_bits=element.bits))
    cached = unpermuted_map(layout, extents, digits, element.bits)
    near, far = period_maps(layout, digits, element.bits)
    inwards, outwards = ((array, cached), (near, far)) if packs else ((far, near), (cached, array))
    size = packing_tile(element.bits // 8) if packs else None
    return (
        compile_stage(
            *inwards, element, element, streams=False, virtual_vector_size=size, candidate=choice.reads
        ),
        compile_stage(*outwards, element, element, streams=streams, candidate=choice.writes),
    )
