"""Copies in two stages: block by block into an array in cache, and from there to the destination.

for block in blocks:  cached[...] = src[block];  dst[block] = cached[...]
"""

from __future__ import annotations

from codegen.analysis.ranges import check_disjoint
from codegen.pipeline.block_program import BlockProgram
from codegen.pipeline.program import CopyProgram
from codegen.runtime.call_tables import Bounds
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch
from codegen.runtime.step import Step
from codegen.schedule.staging import Staging
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StagedProgram:
    """A copy in two stages, block by block.

    direct   the copy in one pass
    staging  the blocks, and how each of them is copied
    blocks   both stages, and requests of the source of the next block after each
    pads     writes the padding; None if there is none to write
    """

    direct: CopyProgram
    staging: Staging
    blocks: BlockProgram
    pads: CopyProgram | None = None

    @property
    def bounds(self) -> tuple[Bounds, Bounds]:
        """The bytes of source and destination that may be touched."""
        return self.direct.bounds

    def run(
        self,
        src: int,
        dst: int,
        threads: int = 1,
        *,
        alive: object = None,
        flags: list[int] | None = None,
        disjoint: bool = False,
    ) -> None:
        """Copy between two addresses; `alive` is kept referenced until the last thread has finished.

        `flags` receives the floating-point flags that each thread raises.

        Raises:
            KernelError: the storages overlap, or a block would leave them; nothing has been written.
        """
        if not disjoint:
            (src_low, src_stop), (dst_low, dst_stop) = self.bounds
            check_disjoint((src + src_low, src + src_stop), (dst + dst_low, dst + dst_stop))
        if self.pads:
            self.prepare(dst)
            self.pads.run(src, dst, threads, alive=alive)
        self.blocks.run((src, dst), threads, alive=alive, flags=flags)

    def prepare(self, dst: int) -> None:
        """Build the table and the kernels of a copy to that address, before any byte is written.

        Raises:
            KernelError: a kernel could not be built, or a block would leave what may be touched.
        """
        self.blocks.prepare((0, dst))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of both stages of each kind of block."""
        return self.blocks.launches

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels that blocks call."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The nests of both stages of each kind of block, at all stages of compilation."""
        return tuple(launch.step for launch in self.launches)
