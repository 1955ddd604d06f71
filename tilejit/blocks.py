"""relayout block by block: each block unpacked into memory that stays in cache, and packed from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    Bounds,
    BufferOffsets,
    CallTable,
    CopyProgram,
    Element,
    Launch,
    call_table,
    check_disjoint,
    footprint_bytes,
    run_parts,
    tight_map,
    window_map,
)
from tilejit.block_choice import moves_little, moves_small_tiles
from tilejit.block_grid import (
    BlockGrid,
    Dims,
    Ends,
    block_bytes,
    block_offset,
    block_strides,
    common_grid,
    stays_in_cache,
)
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.memory import LINE_BYTES, address, bytes_map, empty
from tilejit.programs import buffer_element, compiled_part, outgrows_caches

LEAST_BYTES = 1 << 20
"""Smaller copies are over before many blocks would be."""

SOURCE, DESTINATION, BETWEEN = range(3)
"""The addresses that a block's calls are given."""

Calls: TypeAlias = tuple[tuple[tuple[Launch, ...], BufferOffsets], ...]
"""Launches, and where they read and write: of one block, into cache and out of it."""


class Blockwise(ABC):
    """A copy made block by block by way of an array in cache, and the table of all its calls.

    bounds       the bytes of source and destination that may be touched
    block_bytes  what that array takes
    tables       the calls of all blocks, made when a destination first begins where it does within a line
    """

    __slots__ = ()
    bounds: tuple[Bounds, Bounds]
    block_bytes: int
    tables: dict[int, CallTable]

    @property
    @abstractmethod
    def blocks(self) -> int:
        """How many there are."""

    @abstractmethod
    def calls(self) -> Iterator[Calls]:
        """The launches there and back of each block."""

    def prepare(self, dst: int) -> None:
        """Have the table and the kernels of a copy to that address, before a byte of it is written.

        Raises:
            KernelError: a kernel could not be built, or a block would leave what may be touched.
        """
        self.table(dst).prepare()

    def run_share(self, src: int, dst: int, part: int, parts: int) -> None:
        """One thread's share of the copy between two addresses."""
        between, count = empty((self.block_bytes,), np.uint8), self.blocks
        addresses = src, dst, address(between)
        self.table(dst).run(addresses, count * part // parts, count * (part + 1) // parts)

    def table(self, dst: int) -> CallTable:
        """Every block's calls, for a destination that begins where this one does within a line.

        Raises:
            KernelError: a block would leave the source, the destination or the array in cache.
        """
        within = dst % LINE_BYTES
        if within not in self.tables:

            def aligned(place: BufferOffsets) -> bool:
                return place.dst == BETWEEN or (within + place.dst_offset) % LINE_BYTES == 0

            self.tables[within] = call_table(self.calls(), aligned, (*self.bounds, (0, self.block_bytes)))
        return self.tables[within]


@dataclass(frozen=True, slots=True)
class BlockProgram(Blockwise):
    """Copies of the blocks of a grid.

    pads        writes the padding
    steps       bytes from one block to the next along each dimension, of the source and of the destination
    programs    there and back, for each sort of block
    """

    pads: CopyProgram
    grid: BlockGrid
    steps: tuple[Dims, Dims]
    programs: dict[Ends, tuple[CopyProgram, CopyProgram]]
    bounds: tuple[Bounds, Bounds]
    block_bytes: int
    tables: dict[int, CallTable] = field(default_factory=dict, compare=False, repr=False)

    def run(self, src: int, dst: int, threads: int = 1, *, alive: object = None) -> None:
        """Copy between two addresses; `alive` is held until the last thread is done with them.

        Raises:
            KernelError: the storages overlap, or a block would leave them; nothing has been written.
        """
        (src_low, src_stop), (dst_low, dst_stop) = self.bounds
        check_disjoint((src + src_low, src + src_stop), (dst + dst_low, dst + dst_stop))
        self.prepare(dst)  # once, before each thread makes the table
        self.pads.run(src, dst, threads, alive=alive)
        if not all(back.fills_bytes for _, back in self.programs.values()):
            threads = 1  # blocks of packed elements may meet in a byte

        def part(k: int, parts: int, held: object = alive) -> None:
            self.run_share(src, dst, k, parts)

        run_parts(part, threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """All but the tables: they hold addresses of this process's own."""
        kept = self.pads, self.grid, self.steps, self.programs, self.bounds, self.block_bytes
        return BlockProgram, kept

    @property
    def blocks(self) -> int:
        """How many there are."""
        return prod(self.grid.counts)

    def calls(self) -> Iterator[Calls]:
        """The launches there and back of each block, in C order."""
        for place, ends in self.grid.blocks():
            there, back = self.programs[ends]
            src_at, dst_at = (block_offset(place, ends, steps) for steps in self.steps)
            yield (
                (there.launches, BufferOffsets(SOURCE, src_at, BETWEEN, 0)),
                (back.launches, BufferOffsets(BETWEEN, 0, DESTINATION, dst_at)),
            )


def in_blocks(
    direct: CopyProgram, pads: Callable[[], CopyProgram], source: Spec, target: Spec
) -> BlockProgram | None:
    """The copy block by block, where the direct one moves a few bytes at a time and blocks can be cut.

    Blocks are boxes of the array after whose extents both sides repeat themselves, so that a few programs
    serve all of them; `pads` makes the program of the padding. What moves through memory is the same: a
    block's array stays in the second cache.
    """
    src, dst = access_map(source), access_map(target)
    if footprint_bytes(src, dst) < LEAST_BYTES or not (moves_little(direct) or moves_small_tiles(direct)):
        return None
    itemsize = source.dtype.itemsize
    grid = common_grid(source.dimensions, (src, dst), itemsize)
    if grid is None or not stays_in_cache(grid.extents, itemsize):
        return None
    programs = {ends: _programs(source, target, grid, ends) for ends in grid.ends()}
    steps = grid.steps(src), grid.steps(dst)
    assert steps[0] is not None
    assert steps[1] is not None
    size = block_bytes(grid.extents, itemsize)
    return BlockProgram(pads(), grid, (steps[0], steps[1]), programs, direct.bounds, size)


def _programs(source: Spec, target: Spec, grid: BlockGrid, ends: Ends) -> tuple[CopyProgram, CopyProgram]:
    """Of one sort of block: there, in cache, and back."""
    starts, cut = grid.box(ends)
    itemsize = source.dtype.itemsize
    maps = access_map(source), access_map(target)
    src, dst = (tight_map(window_map(m, starts, (1,) * len(cut), cut)) for m in maps)
    between = bytes_map(cut, block_strides(cut, itemsize), itemsize)
    loose = Element(source.primitive_type, 8 * itemsize)
    streams = outgrows_caches(footprint_bytes(*maps))
    there = compiled_part(src, between, buffer_element(source), loose, streams=False)
    back = compiled_part(between, dst, loose, buffer_element(target), streams=streams)
    return there, back
