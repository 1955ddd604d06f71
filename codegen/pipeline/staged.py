"""Copies in two stages: block by block into an array in cache, and from there to the destination.

    for block in blocks:  cached[...] = src[block];  dst[block] = cached[...]

Each stage of each kind of block is a copy like any other, and other copies also use its kernels. One kernel
for each combination of two stages would mean fifteen times as many. So a share of blocks is a table of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import Any

from codegen.analysis.ranges import check_disjoint
from codegen.ir.lines import LINE_BYTES
from codegen.maps.block_grid import Ends
from codegen.pipeline.block_table import Block, block_table
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.steps import with_prefetch
from codegen.runtime.call_tables import Bounds, BufferOffsets, CallTable, Group
from codegen.runtime.float_flags import watched
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch
from codegen.runtime.step import Step
from codegen.runtime.threads import run_parts
from codegen.schedule.staging import Staging
from codegen.support.dataclasses import dataclass

SOURCE, DESTINATION, BLOCK = range(3)
"""The addresses that a block's calls get."""


@dataclass(frozen=True, slots=True)
class StagedProgram:
    """A copy in two stages, block by block.

    direct    the copy in one pass
    staging   the blocks, and how each of them is copied
    programs  the stages of each kind of block, for a block at the first position
    requests  two launches, or fewer, that request the source of each kind of block: they run after each
              stage of the block before
    pads      writes the padding; None if there is none to write
    tables    the calls of all blocks, by where in a line a destination begins; made when first needed
    """

    direct: CopyProgram
    staging: Staging
    programs: Mapping[Ends, tuple[CopyProgram, CopyProgram]]
    requests: Mapping[Ends, tuple[Launch, ...]]
    pads: CopyProgram | None = None
    tables: dict[int, CallTable] = field(default_factory=dict, compare=False, repr=False)

    @property
    def bounds(self) -> tuple[Bounds, Bounds]:
        """The bytes of source and destination that may be touched."""
        return self.direct.bounds

    def run(
        self, src: int, dst: int, threads: int = 1, *, alive: object = None, flags: list[int] | None = None
    ) -> None:
        """Copy between two addresses; `alive` is kept referenced until the last thread has finished.

        `flags` receives the floating-point flags that each thread raises.

        Raises:
            KernelError: the storages overlap, or a block would leave them; nothing has been written.
        """
        if other := self._other(dst):
            other.run(src, dst, threads, alive=alive, flags=flags)
            return
        (src_low, src_stop), (dst_low, dst_stop) = self.bounds
        check_disjoint((src + src_low, src + src_stop), (dst + dst_low, dst + dst_stop))
        self.prepare(dst)  # once, before each thread makes the table
        if self.pads:
            self.pads.run(src, dst, threads, alive=alive)

        def part(k: int, parts: int, held: object = alive) -> None:
            self.run_share(src, dst, k, parts)

        work = part if flags is None else watched(part, flags)
        run_parts(work, threads if self.fills_bytes else 1)

    def prepare(self, dst: int) -> None:
        """Build the table and the kernels of a copy to that address, before any byte is written.

        Raises:
            KernelError: a kernel could not be built, or a block would leave what may be touched.
        """
        if other := self._other(dst):
            other.prepare(dst)
        else:
            self.table(dst).prepare()

    def run_share(self, src: int, dst: int, part: int, parts: int) -> None:
        """Run one thread's share of the blocks; the caller has checked the addresses."""
        if other := self._other(dst):
            other.run_share(src, dst, part, parts)
            return
        first, last = (self.blocks * k // parts for k in (part, part + 1))
        self.table(dst).run((src, dst), 2 * first, 2 * last)

    def _other(self, dst: int) -> CopyProgram | None:
        """The program that runs instead for a destination."""
        return self.direct if self.staging.on_lines and dst % LINE_BYTES else None

    def table(self, dst: int) -> CallTable:
        """The calls of every block, for a destination that begins in its line where this one does.

        Raises:
            KernelError: a block would leave the source, the destination or the array in cache.
        """
        line = dst % LINE_BYTES
        if line not in self.tables:
            self.tables[line] = self._table(line)
        return self.tables[line]

    def _table(self, line: int) -> CallTable:
        staging = self.staging
        return block_table(
            *(staging.grid, staging.steps, (0, line), self.bounds, (staging.block_bytes,), self._calls)
        )

    def _calls(self, block: Block) -> tuple[Group, Group]:
        """The launches of both stages of a block, each before a part of those that request the next block."""
        inwards, outwards = self.programs[block.kind]
        requests = self.requests.get(block.following, ()) if block.following else ()
        src, dst = block.offsets
        later = BufferOffsets(SOURCE, src + block.ahead, BLOCK, 0)
        into, out = BufferOffsets(SOURCE, src, BLOCK, 0), BufferOffsets(BLOCK, 0, DESTINATION, dst)
        return (
            [(self._reading(inwards, block.ahead), into), (requests[:1], later)],
            [(outwards.launches, out), (requests[1:], later)],
        )

    def _reading(self, inwards: CopyProgram, ahead: int) -> tuple[Launch, ...]:
        launches = inwards.launches
        return tuple(with_prefetch(x, ahead) for x in launches) if self.staging.ahead == "rows" else launches

    def __reduce__(self) -> tuple[Any, ...]:
        """The fields without the tables, which hold addresses of this process."""
        return StagedProgram, (self.direct, self.staging, self.programs, self.requests, self.pads)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return prod(self.staging.grid.counts)

    @property
    def fills_bytes(self) -> bool:
        """Whether blocks write full bytes only; packed elements of two blocks may share a byte."""
        return all(outwards.fills_bytes for _, outwards in self.programs.values())

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of both stages of each kind of block."""
        return tuple(
            launch
            for inwards, outwards in self.programs.values()
            for launch in (*self._reading(inwards, 0), *outwards.launches)
        ) + tuple(launch for launches in self.requests.values() for launch in launches)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels that blocks call."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The nests of both stages of each kind of block, at all stages of compilation."""
        return tuple(launch.step for launch in self.launches)
