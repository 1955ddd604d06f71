"""Stage a strided copy: blocks in cache have its digits in an order between those of its sides."""

from __future__ import annotations

from functools import partial

from codegen.frontend.box_copy import copied_box
from codegen.ir.strided_box import Digit, Element
from codegen.maps.access import AccessMap, strided_map
from codegen.maps.block_grid import BlockGrid, Dims, Ends
from codegen.maps.windows import tight_map
from codegen.pipeline.passes import NORMALIZE, run_passes
from codegen.pipeline.program import CopyProgram, footprint_bytes
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.stages import box_schedules, compile_stage, outgrows_caches
from codegen.schedule.call_limits import may_stage_digits
from codegen.schedule.candidates import StageChoice
from codegen.schedule.choose_digits import (
    Order,
    cached_strides,
    digit_grid,
    goes_in_digits,
    may_be_slow,
    order_in_cache,
    staged_cycles,
)
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect


def in_digits(
    direct: CopyProgram, element: Element, choice: StageChoice | None = None
) -> StagedProgram | None:
    """The copy between two strided arrays staged; None if one pass is as fast, or if no blocks fit.

    direct: the copy in one pass. choice: as in `staged_by`.
    """
    digits = _digits(direct, element)
    if not may_stage_digits(len(digits), footprint_bytes(direct.src, direct.dst)):
        return None
    in_one_pass = box_schedules(direct)
    if choice is None and not may_be_slow(in_one_pass):
        return None
    how, width = choice or StageChoice(), element.bits // 8
    grid = digit_grid(digits, width, how.part)
    if grid is None:
        return None
    stages = partial(_Stages, direct, element, digits, grid, how)
    order, cycles = order_in_cache(digits, width, lambda order: stages(order).cycles())
    if choice is None and not goes_in_digits(in_one_pass, digits, grid.extents, cycles):
        return None
    return stages(order).program()


def _digits(direct: CopyProgram, element: Element) -> tuple[Digit, ...]:
    """The digits of a copy of complete bytes, in the order of the destination; none with other strides."""
    boxes = direct.boxed.boxes
    if len(boxes) != 1 or boxes[0].tables or direct.dst.unit_bits != 8 or direct.src.base or direct.dst.base:
        return ()
    if any(n > 1 and (src <= 0 or dst <= 0) for n, src, dst in boxes[0].digits):
        return ()
    (box,) = run_passes(NORMALIZE, copied_box(direct.boxed, boxes[0], element, element), None)
    return tuple((axis.extent, axis.src, axis.dst) for axis in box.axes)


@dataclass(frozen=True, slots=True)
class _Stages:
    """A copy by way of blocks whose digits are in a certain order.

    direct   the copy in one pass
    element  what both arrays hold
    digits   of the copy
    grid     the blocks; its dimensions are the digits, in that order
    choice   as in `staged_by`
    order    of the digits in cache
    """

    direct: CopyProgram
    element: Element
    digits: tuple[Digit, ...]
    grid: BlockGrid
    choice: StageChoice
    order: Order

    def cycles(self) -> float:
        """Cycles per 16 bytes of both stages."""
        return staged_cycles(*map(box_schedules, self._of(expect(self.grid.ends(), "a block", self.grid))))

    def program(self) -> StagedProgram:
        """The copy."""
        grid, (_, size) = self.grid, self._cached
        src, dst = (
            tuple(e * x[side] for e, x in zip(grid.extents, self.digits, strict=True)) for side in (1, 2)
        )
        programs = {ends: self._of(ends) for ends in grid.ends()}
        return StagedProgram(None, grid, (src, dst), programs, self.direct.bounds, size)

    @property
    def _cached(self) -> tuple[Dims, int]:
        return cached_strides(self.digits, self.grid.extents, self.order, self.element.bits // 8)

    def _of(self, ends: Ends) -> tuple[CopyProgram, CopyProgram]:
        """The stages of a kind of block."""
        _, extents = self.grid.box(ends)
        element, (strides, _) = self.element, self._cached

        def strided(strides: Dims) -> AccessMap:
            return tight_map(strided_map(extents, strides, (0, 0), element_bits=element.bits))

        src, dst = (strided(tuple(x[side] for x in self.digits)) for side in (1, 2))
        streams, reads = outgrows_caches(footprint_bytes(self.direct.src, self.direct.dst)), self.choice.reads
        return (
            compile_stage(
                src, strided(strides), element, element, streams=False, candidate=reads, into_cache=True
            ),
            compile_stage(
                strided(strides), dst, element, element, streams=streams, candidate=self.choice.writes
            ),
        )
