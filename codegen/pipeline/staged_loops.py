"""Loop kernels over operands of which some go through the cache, block by block.

    for block in blocks:  cached[...] = a[block];  kernel(cached, b[block], result);  out[block] = result

Operands of any layout are copied into or out of cache; the kernel addresses strided arrays directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, map_range
from codegen.maps.block_grid import BlockGrid, Dims, Ends
from codegen.pipeline.block_table import Block, block_table
from codegen.pipeline.compile_staging import compile_stage, outgrows_caches
from codegen.pipeline.program import CopyProgram
from codegen.runtime.call_tables import (
    CALL_FIELDS,
    BufferOffsets,
    CallTable,
    Group,
    call_rows,
)
from codegen.runtime.kernel import Kernel
from codegen.runtime.loop_kernel import BoundKernel
from codegen.runtime.step import Step
from codegen.runtime.threads import run_parts
from codegen.schedule.choose_grid import block_bytes, block_strides, common_grid, pitched_map
from codegen.schedule.staging import StageCopy, block_map, bytes_held, held_element, steps_of
from codegen.support.caching import Cache
from codegen.support.dataclasses import dataclass

MOST_TABLES = 16
"""Tables kept per nest, for results that begin elsewhere in their lines; each has a call for every block."""

Bind: TypeAlias = Callable[[Dims, tuple[Dims, ...]], BoundKernel]
"""(extents of a block, strides in bytes of every operand) -> the kernel that computes the block."""


@dataclass(frozen=True, slots=True)
class StagedOperand:
    """An operand that goes through the cache: its layout, its elements, whether it is read and written."""

    access: AccessMap
    element: Element
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class BlockCopies:
    """Copies of each kind of block between an operand's storage and the cache."""

    programs: dict[Ends, CopyProgram]

    @property
    def fills_bytes(self) -> bool:
        """Whether two blocks never share a byte."""
        return all(program.fills_bytes for program in self.programs.values())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all kinds of blocks."""
        return tuple(step for program in self.programs.values() for step in program.steps)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels that the copies call."""
        return tuple(dict.fromkeys(x for program in self.programs.values() for x in program.kernels))


def staged_loops(dims: Dims, operands: tuple[StagedOperand | Dims, ...], bind: Bind) -> StagedLoops | None:
    """The kernel over arrays of extents `dims`, staged; None if no blocks stay in cache.

    operands: in the order of the kernel's arguments; strides in bytes if it addresses one directly.
    """
    staged = {k: x for k, x in enumerate(operands) if isinstance(x, StagedOperand)}
    itemsize = sum(bytes_held(x.element) for x in staged.values())
    grid = common_grid(dims, [x.access for x in staged.values()], itemsize)
    if grid is None:
        return None
    direct = {k: x for k, x in enumerate(operands) if not isinstance(x, StagedOperand)}
    return StagedLoops(grid, staged, direct, bind)


class StagedLoops:
    """A loop kernel over operands of certain layouts, some of which go through the cache; `run` computes.

    grid     the blocks
    staged   the operands that go through the cache, by their number
    direct   the strides in bytes of the other ones

    Attributes:
        reads: the copies of blocks into the cache, by the number of their operand.
        writes: the copies of blocks out of the cache.
    """

    def __init__(
        self, grid: BlockGrid, staged: Mapping[int, StagedOperand], direct: Mapping[int, Dims], bind: Bind
    ) -> None:
        self._grid, self._staged, self._direct = grid, staged, direct
        self._count = len(staged) + len(direct)
        # Calls get the addresses of the operands, followed by those of the blocks in cache.
        self._cached = {k: self._count + n for n, k in enumerate(staged)}
        steps = {k: steps_of(grid, x.access) for k, x in staged.items()}
        steps |= {k: tuple(e * s for e, s in zip(grid.extents, x, strict=True)) for k, x in direct.items()}
        self._steps = [steps[k] for k in range(self._count)]
        self._offsets = {k: grid.offsets(steps[k]) for k in direct}
        self.reads = {k: _stage(x, grid, reads=True) for k, x in staged.items() if x.reads}
        self.writes = {k: _stage(x, grid, reads=False) for k, x in staged.items() if x.writes}
        self._fills_bytes = all(copies.fills_bytes for copies in self.writes.values())
        self._kernels = [bind(extents, self._strides(extents)) for _, extents in _kinds(grid)]
        self._kinds, self._tables = grid.kinds(), Cache[Dims, CallTable](MOST_TABLES)

    @property
    def extents(self) -> Dims:
        """The elements of a block along each dimension."""
        return self._grid.extents

    def _strides(self, extents: Dims) -> tuple[Dims, ...]:
        """The strides of every operand as the kernel of one kind of block sees it."""
        cached = {k: block_strides(extents, bytes_held(x.element)) for k, x in self._staged.items()}
        return tuple(cached[k] if k in cached else self._direct[k] for k in range(self._count))

    def run(
        self, addresses: tuple[int, ...], numbers: tuple[int, ...], threads: int, *, alive: object
    ) -> None:
        """Compute.

        addresses  of the operands
        numbers    the bits of the numbers among the kernel's arguments
        alive      kept referenced until the last thread has finished
        """
        if not self._fills_bytes:
            threads = 1
        run_parts(partial(self._part, addresses, numbers, alive), threads)

    def _part(
        self, addresses: tuple[int, ...], numbers: tuple[int, ...], _: object, part: int, parts: int
    ) -> None:
        count = prod(self._grid.counts)
        first, last = count * part // parts, count * (part + 1) // parts
        if first == last:
            return
        table = self._table(addresses)
        copies = table.rows(addresses, 2 * first, 2 * last)
        at = (*addresses, *copies.blocks)
        held: list[object] = []
        computed = np.zeros((last - first, CALL_FIELDS), np.int64)
        for kind, kernel in enumerate(self._kernels):
            which = first + np.flatnonzero(self._kinds[first:last] == kind)
            trips = kernel.trips
            assert trips is not None
            if not len(which):
                continue
            operands, sizes = kernel.tables(self._addresses(which, at, numbers))
            held += operands, sizes
            rest = sizes.ctypes.data, 0, trips
            computed[which - first] = call_rows(kernel.address, operands, *rest)
        starts = table.starts[2 * first : 2 * last] - table.starts[2 * first]
        # A block is computed after its reads and before its writes.
        copies.call(np.insert(copies.numbers, starts[1::2], computed, axis=0))

    def _addresses(
        self, which: NDArray[np.int64], at: tuple[int, ...], numbers: tuple[int, ...]
    ) -> NDArray[np.int64]:
        """For each of these blocks the address of every operand, then the numbers."""
        out = np.empty((len(which), self._count + len(numbers)), np.int64)
        for k in range(self._count):
            direct = k in self._direct
            out[:, k] = at[k] + self._offsets[k][which] if direct else at[self._cached[k]]
        out[:, self._count :] = numbers
        return out

    def _table(self, addresses: tuple[int, ...]) -> CallTable:
        """The copies of all blocks, for results that begin in their lines where these do."""
        lines = tuple(at % LINE_BYTES if k in self.writes else 0 for k, at in enumerate(addresses))
        known = self._tables.get(lines)
        if known is not None:
            return known
        staged = {k: x.access.byte_bounds for k, x in self._staged.items()}
        bounds = [staged.get(k, (0, 0)) for k in range(self._count)]  # no copy may touch the other operands
        sizes = [block_bytes(self._grid.extents, bytes_held(x.element)) for x in self._staged.values()]
        made = block_table(self._grid, self._steps, lines, bounds, sizes, self._calls)
        return self._tables.keep(lines, made)

    def _calls(self, block: Block) -> tuple[Group, Group]:
        """The copies that read a block, and those that write it."""
        at, cached = block.offsets, self._cached
        return (
            [
                (x.programs[block.kind].launches, BufferOffsets(k, at[k], cached[k], 0))
                for k, x in self.reads.items()
            ],
            [
                (x.programs[block.kind].launches, BufferOffsets(cached[k], 0, k, at[k]))
                for k, x in self.writes.items()
            ],
        )


def _kinds(grid: BlockGrid) -> Iterator[tuple[Ends, Dims]]:
    """Every kind of block, and its extents."""
    return ((ends, grid.box(ends)[1]) for ends in grid.ends())


def _stage(operand: StagedOperand, grid: BlockGrid, *, reads: bool) -> BlockCopies:
    access, element, held = operand.access, operand.element, held_element(operand.element)
    low, high = map_range(access)
    streams = outgrows_caches(2 * ((high - low) * access.unit_bits // 8))

    def stage(ends: Ends, extents: Dims) -> StageCopy:
        there, cached = block_map(access, grid, ends), pitched_map(extents, element)
        if reads:
            return StageCopy(there, cached, element, held, into_cache=True)
        return StageCopy(cached, there, held, element, streams)

    return BlockCopies({ends: compile_stage(stage(ends, extents)) for ends, extents in _kinds(grid)})
