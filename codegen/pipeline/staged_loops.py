"""Loop kernels over operands of which some go through the cache, block by block.

Operands of any layout are copied into or out of cache; the kernel addresses strided arrays directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from codegen.analysis.ranges import affine_range
from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, map_range
from codegen.maps.block_grid import BlockGrid, Dims, Ends
from codegen.pipeline.block_program import BlockCall, BlockCopies, BlockKernel, BlockProgram
from codegen.pipeline.compile_staging import compile_stage, outgrows_caches
from codegen.pipeline.program import CopyProgram
from codegen.runtime.call_tables import Bounds
from codegen.runtime.launch import KernelCall
from codegen.runtime.loop_kernel import BoundKernel
from codegen.schedule.choose_grid import block_bytes, block_strides, common_grid, pitched_map
from codegen.schedule.staging import StageCopy, block_map, bytes_held, held_element, steps_of
from codegen.support.dataclasses import dataclass

Bind: TypeAlias = Callable[[Dims, tuple[Dims, ...]], BoundKernel]
"""(extents of a block, strides in bytes of every operand) -> the kernel that computes the block."""


@dataclass(frozen=True, slots=True)
class StagedOperand:
    """An operand that goes through the cache: its layout, its elements, whether it is read and written."""

    access: AccessMap
    element: Element
    reads: bool
    writes: bool


Operands: TypeAlias = Sequence[StagedOperand | Dims]
"""Those that the kernel addresses directly have strides in bytes."""


def staged_loops(dims: Dims, operands: Operands, bind: Bind) -> BlockProgram | None:
    """The kernel over arrays of extents `dims`, block by block; None if no blocks stay in cache.

    operands: in the order of the kernel's arguments.
    """
    staged = {k: x for k, x in enumerate(operands) if isinstance(x, StagedOperand)}
    itemsize = sum(bytes_held(x.element) for x in staged.values())
    grid = common_grid(dims, [x.access for x in staged.values()], itemsize)
    if grid is None:
        return None
    cached = {k: len(operands) + n for n, k in enumerate(staged)}
    reads = (BlockCopies(_stage(x, grid, reads=True), k, cached[k]) for k, x in staged.items() if x.reads)
    writes = (BlockCopies(_stage(x, grid, reads=False), cached[k], k) for k, x in staged.items() if x.writes)
    addresses = [cached.get(k, k) for k in range(len(operands))]
    calls = {ends: _call(operands, addresses, bind, extents) for ends, extents in _kinds(grid)}
    return BlockProgram(
        grid,
        [_moves(x, grid) for x in operands],
        [x.access.byte_bounds if isinstance(x, StagedOperand) else _starts(dims, x) for x in operands],
        tuple(block_bytes(grid.extents, bytes_held(x.element)) for x in staged.values()),
        (*reads, BlockKernel(calls), *writes),
    )


def _moves(operand: StagedOperand | Dims, grid: BlockGrid) -> Dims:
    """Bytes from one block of an operand to the next along each dimension."""
    if isinstance(operand, StagedOperand):
        return steps_of(grid, operand.access)
    return tuple(e * s for e, s in zip(grid.extents, operand, strict=True))


def _starts(extents: Dims, strides: Dims) -> Bounds:
    """Where elements of an array begin, [low, stop) in bytes from its address."""
    low, high = affine_range(0, [*zip(extents, strides, strict=True)])
    return low, high + 1


def _call(operands: Operands, addresses: Sequence[int], bind: Bind, extents: Dims) -> BlockCall:
    """The call of the kernel for a block of these extents, whose operands have these addresses."""
    strides, bounds = zip(*(_in_block(x, extents) for x in operands), strict=True)
    bound = bind(extents, strides)
    assert bound.trips is not None, "an elementwise kernel has a loop that threads can share"
    call = KernelCall(
        bound.kernel,
        np.array(bound.table, np.int64),
        *(0, bound.trips),
        ((1, 0),) * len(bound.operands),
        tuple(bounds[k] for k in bound.operands),
        slots=tuple((slot, which - len(operands)) for slot, which in bound.slots),
    )
    return call, tuple(addresses[k] for k in bound.operands)


def _in_block(operand: StagedOperand | Dims, extents: Dims) -> tuple[Dims, Bounds]:
    """The strides of an operand in a block of these extents, and the bytes that it has there."""
    if not isinstance(operand, StagedOperand):
        return operand, _starts(extents, operand)
    size = bytes_held(operand.element)
    return block_strides(extents, size), (0, block_bytes(extents, size))


def _kinds(grid: BlockGrid) -> Iterator[tuple[Ends, Dims]]:
    """Every kind of block, and its extents."""
    return ((ends, grid.box(ends)[1]) for ends in grid.ends())


def _stage(operand: StagedOperand, grid: BlockGrid, *, reads: bool) -> dict[Ends, CopyProgram]:
    """The copies of each kind of block into the cache, or out of it."""
    access, element, held = operand.access, operand.element, held_element(operand.element)
    low, high = map_range(access)
    streams = outgrows_caches(2 * ((high - low) * access.unit_bits // 8))

    def stage(ends: Ends, extents: Dims) -> StageCopy:
        there, cached = block_map(access, grid, ends), pitched_map(extents, element)
        if reads:
            return StageCopy(there, cached, element, held)
        return StageCopy(cached, there, held, element, streams)

    return {ends: compile_stage(stage(ends, extents)) for ends, extents in _kinds(grid)}
