"""Steps that run for every block of arrays: copies into the cache, a kernel, copies out of it.

    for block in blocks:  cached[...] = a[block];  kernel(cached, b[block], result);  out[block] = result

Each copy of each kind of block is a copy like any other, and other copies also use its kernels. One kernel
for each combination of two copies would mean fifteen times as many. So a share of blocks is a table of calls,
which is made for one block of each kind, and repeated for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.maps.block_grid import BlockGrid, Dims, Ends, Integers
from codegen.pipeline.program import CopyProgram
from codegen.runtime.call_tables import Bounds, CallTable, Group, call_table
from codegen.runtime.float_flags import watched
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import KernelCall, Launch
from codegen.runtime.step import Step
from codegen.runtime.threads import run_parts
from codegen.support.caching import Cache, lazy
from codegen.support.dataclasses import dataclass

MOST_TABLES = 16
"""Tables kept per program, for results that begin elsewhere in their lines; each lists all calls."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a grid.

    kind       the dimensions along which it is the last one
    following  the kind of the next block; None if there is none
    ahead      bytes from the block to the next one at the first address
    offsets    where it begins, in bytes from each address
    """

    kind: Ends
    following: Ends | None
    ahead: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockCopies:
    """The copy of each block from one address to another.

    programs  of each kind of block, for a block at the first position
    src, dst  the numbers of the addresses
    requests  whether the programs request the source of the next block instead of copying
    """

    programs: Mapping[Ends, CopyProgram]
    src: int
    dst: int
    requests: bool = False

    def group(self, block: Block) -> Group:
        """The launches for a block."""
        offsets = (self.src, block.offsets[self.src]), (self.dst, block.offsets[self.dst])
        if not self.requests:
            return [(self.programs[block.kind].launches, offsets)]
        if block.following is None:
            return []
        source = self.src, block.offsets[self.src] + block.ahead
        return [(self.programs[block.following].launches, (source, offsets[1]))]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all kinds of blocks."""
        return tuple(x.step for program in self.programs.values() for x in program.launches)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels that the copies call."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))


BlockCall: TypeAlias = tuple[KernelCall, tuple[int, ...]]
"""A call, and the numbers of the addresses of its operands."""


@dataclass(frozen=True, slots=True)
class BlockKernel:
    """The call of a kernel for each kind of block."""

    calls: Mapping[Ends, BlockCall]

    def group(self, block: Block) -> Group:
        """The call for a block."""
        call, operands = self.calls[block.kind]
        return [((call,), tuple((k, block.offsets[k]) for k in operands))]


BlockStep: TypeAlias = BlockCopies | BlockKernel


@dataclass(frozen=True)
class BlockProgram:
    """Steps that run one after the other for each block.

    grid    the blocks
    moves   of each address: bytes from one block to the next along each dimension
    bounds  of each address: the bytes that may be touched
    cached  sizes in bytes of the arrays in cache, whose addresses follow
    steps   what runs for a block
    """

    grid: BlockGrid
    moves: Sequence[Dims]
    bounds: Sequence[Bounds]
    cached: tuple[int, ...]
    steps: tuple[BlockStep, ...]

    def run(
        self,
        addresses: tuple[int, ...],
        threads: int,
        numbers: tuple[int, ...] = (),
        *,
        alive: object,
        flags: list[int] | None = None,
    ) -> None:
        """Run all blocks.

        addresses  of the operands
        numbers    the bits of the numbers among a kernel's arguments
        alive      kept referenced until the last thread has finished
        flags      receives the floating-point flags that each thread raises

        Raises:
            KernelError: as `prepare`.
        """
        self.prepare(addresses)  # once, before each thread makes the table

        def part(k: int, parts: int, held: object = alive) -> None:
            self.run_share(addresses, k, parts, numbers)

        run_parts(part if flags is None else watched(part, flags), threads if self.fills_bytes else 1)

    def prepare(self, addresses: tuple[int, ...]) -> None:
        """Make the table and the kernels for such addresses, before any byte is written.

        Raises:
            KernelError: a kernel could not be built, or a block would leave what may be touched.
        """
        self._table(addresses).prepare()

    def run_share(
        self, addresses: tuple[int, ...], part: int, parts: int, numbers: tuple[int, ...] = ()
    ) -> None:
        """Run one thread's share of the blocks."""
        first, last = (self.blocks * k // parts for k in (part, part + 1))
        self._table(addresses).run(addresses, numbers, first, last)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return prod(self.grid.counts)

    @property
    def copies(self) -> tuple[BlockCopies, ...]:
        """The steps that copy."""
        return tuple(x for x in self.steps if isinstance(x, BlockCopies))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of every kind of block."""
        return tuple(
            x for kind in self.grid.ends() for step in self.copies for x in step.programs[kind].launches
        )

    @property
    def fills_bytes(self) -> bool:
        """Whether blocks write full bytes only; packed elements of two blocks may share a byte."""
        return all(x.fills_bytes for step in self.copies for x in step.programs.values())

    @lazy
    def _tables(self) -> Cache[tuple[int | None, ...], CallTable]:
        return Cache(MOST_TABLES)

    def __getstate__(self) -> dict[str, object]:
        """The fields only: tables hold addresses of this process."""
        return {x.name: getattr(self, x.name) for x in fields(self)}

    def _table(self, addresses: tuple[int, ...]) -> CallTable:
        """The calls of all blocks, for addresses that copies write which begin in their lines where these do.

        Raises:
            KernelError: a block would leave the bounds of an address, or an array in cache.
        """
        written = {x.dst for x in self.copies}
        lines = tuple(at % LINE_BYTES if k in written else None for k, at in enumerate(addresses))
        known = self._tables.get(lines)
        return known if known is not None else self._tables.keep(lines, self._made(lines))

    def _made(self, lines: tuple[int | None, ...]) -> CallTable:
        grid = self.grid
        kinds, ends = grid.kinds(), (*grid.ends(), None)
        following = np.append(kinds[1:], len(ends) - 1)
        offsets = np.stack([*map(grid.offsets, self.moves), *(np.zeros_like(kinds) for _ in self.cached)])
        ahead = np.diff(offsets[0], append=offsets[0][-1:])
        on_line = [(k + x) % LINE_BYTES == 0 for k, x in zip(lines, offsets, strict=False) if k is not None]
        first, like = _like((kinds, following, ahead, *on_line))
        groups: list[Group] = []
        for k in first:
            kind, after = ends[kinds[k]], ends[following[k]]
            assert kind is not None
            block = Block(kind, after, int(ahead[k]), tuple(offsets[:, k].tolist()))
            groups.append([x for step in self.steps for x in step.group(block)])
        moved = offsets - offsets[:, first[like]]
        return call_table(groups, like, moved.T, lines, self.bounds, self.cached)


def _like(facts: Sequence[NDArray[Any]]) -> tuple[Integers, Integers]:
    """The first block of each kind that has the same facts, and the kind of each block.

    (0, 0, 1, 0), (5, 5, 5, 7) -> (0, 3, 2), (0, 0, 2, 1)
    """
    key = np.zeros(len(facts[0]), np.int64)
    for fact in facts:
        values = np.unique(fact)
        key = key * len(values) + np.searchsorted(values, fact)
    keys, first = np.unique(key, return_index=True)
    return first, np.searchsorted(keys, key)
