"""Copies in two stages: block by block into an array in cache, and from there to the destination.

    for block in blocks:  cached[...] = src[block];  dst[block] = cached[...]

Each stage of each sort of block is a copy like any other, and other copies also use its kernels. One kernel
for each combination of two stages would mean fifteen times as many. So a share of blocks is a table of calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from math import prod
from typing import Any

from codegen.analysis.ranges import check_disjoint
from codegen.ir.lines import LINE_BYTES
from codegen.maps.block_grid import BlockGrid, Dims, Ends, block_offset
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.steps import with_prefetch
from codegen.runtime.call_tables import Bounds, BufferOffsets, CallTable, Group, call_table
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch
from codegen.runtime.step import Step
from codegen.runtime.threads import run_parts
from codegen.support.dataclasses import dataclass

SOURCE, DESTINATION, BLOCK = range(3)
"""The addresses that a block's calls get."""


@dataclass(frozen=True, slots=True)
class StagedProgram:
    """A copy in two stages, block by block.

    pads         writes the padding; None if there is none to write
    grid         the blocks
    strides      bytes from one block to the next along each dimension, of the source and of the destination
    programs     the stages of each sort of block, for a block at the first position
    bounds       the bytes of source and destination that may be touched
    block_bytes  the size of the array in cache
    prefetches   whether each block prefetches the source of the next one
    tables       the calls of all blocks, by where in a line a destination begins; made when first needed
    """

    pads: CopyProgram | None
    grid: BlockGrid
    strides: tuple[Dims, Dims]
    programs: Mapping[Ends, tuple[CopyProgram, CopyProgram]]
    bounds: tuple[Bounds, Bounds]
    block_bytes: int
    prefetches: bool = False
    tables: dict[int, CallTable] = field(default_factory=dict, compare=False, repr=False)

    def run(self, src: int, dst: int, threads: int = 1, *, alive: object = None) -> None:
        """Copy between two addresses; `alive` is kept referenced until the last thread has finished.

        Raises:
            KernelError: the storages overlap, or a block would leave them; nothing has been written.
        """
        (src_low, src_stop), (dst_low, dst_stop) = self.bounds
        check_disjoint((src + src_low, src + src_stop), (dst + dst_low, dst + dst_stop))
        self.prepare(dst)  # once, before each thread makes the table
        if self.pads:
            self.pads.run(src, dst, threads, alive=alive)

        def part(k: int, parts: int, held: object = alive) -> None:
            self.run_share(src, dst, k, parts)

        run_parts(part, threads if self.fills_bytes else 1)

    def prepare(self, dst: int) -> None:
        """Build the table and the kernels of a copy to that address, before any byte is written.

        Raises:
            KernelError: a kernel could not be built, or a block would leave what may be touched.
        """
        self.table(dst).prepare()

    def run_share(self, src: int, dst: int, part: int, parts: int) -> None:
        """Run one thread's share of the blocks; the caller has checked the addresses."""
        first, last = (self.blocks * k // parts for k in (part, part + 1))
        self.table(dst).run((src, dst), first, last)

    def table(self, dst: int) -> CallTable:
        """The calls of every block, for a destination that begins in its line where this one does.

        Raises:
            KernelError: a block would leave the source, the destination or the array in cache.
        """
        line = dst % LINE_BYTES
        if line not in self.tables:
            self.tables[line] = call_table(self.calls(), (0, line), self.bounds, (self.block_bytes,))
        return self.tables[line]

    def calls(self) -> Iterator[Group]:
        """The launches of both stages of each block, in C order."""
        blocks = list(self.grid.blocks())
        reading: dict[tuple[Ends, int], tuple[Launch, ...]] = {}
        for (place, ends), (following, _) in pairwise([*blocks, *blocks[-1:]]):
            src, dst = (block_offset(place, strides) for strides in self.strides)
            inwards, outwards = self.programs[ends]
            ahead = block_offset(following, self.strides[0]) - src if self.prefetches else 0
            if (ends, ahead) not in reading:
                reading[ends, ahead] = self._reading(inwards, ahead)
            yield (
                (reading[ends, ahead], BufferOffsets(SOURCE, src, BLOCK, 0)),
                (outwards.launches, BufferOffsets(BLOCK, 0, DESTINATION, dst)),
            )

    def _reading(self, inwards: CopyProgram, ahead: int) -> tuple[Launch, ...]:
        launches = inwards.launches
        return tuple(with_prefetch(x, ahead) for x in launches) if self.prefetches else launches

    def __str__(self) -> str:
        _, extents = self.grid.box(next(iter(self.programs)))
        cut = "x".join(str(n) for n in extents if n > 1) or "1"
        return f"{self.blocks} of {cut}, each copied into {self.block_bytes} bytes in cache and from there"

    def __reduce__(self) -> tuple[Any, ...]:
        """The fields without the tables, which hold addresses of this process."""
        kept = self.pads, self.grid, self.strides, self.programs, self.bounds, self.block_bytes
        return StagedProgram, (*kept, self.prefetches)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return prod(self.grid.counts)

    @property
    def fills_bytes(self) -> bool:
        """Whether blocks write full bytes only; packed elements of two blocks may share a byte."""
        return all(outwards.fills_bytes for _, outwards in self.programs.values())

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of both stages of each sort of block."""
        return tuple(
            launch
            for inwards, outwards in self.programs.values()
            for launch in (*self._reading(inwards, 0), *outwards.launches)
        )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels that blocks call."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The nests of both stages of each sort of block, at all stages of compilation."""
        return tuple(launch.step for launch in self.launches)
