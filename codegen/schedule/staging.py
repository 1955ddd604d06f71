"""How a copy runs in two stages: block by block into an array in cache, and from there to the destination.

    for block in blocks:  cached[...] = src[block];  dst[block] = cached[...]

`choose_permuted` and `choose_digits` choose the blocks of some kinds of copies, and
`choose_stages` those of other copies without conversion. Each returns `Staging`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from codegen.ir.strided_box import Digit, Element, StridedBox
from codegen.maps.access import AccessMap, strided_map
from codegen.maps.block_grid import BlockGrid, Dims, Ends, block_offset
from codegen.maps.refine import PairTable
from codegen.maps.windows import moved_map, tight_map, window_map
from codegen.schedule.schedule import Schedule
from codegen.support.dataclasses import dataclass

Tiles: TypeAlias = tuple[int, int]
"""Rows and columns of the tiles of a transpose."""

Cached: TypeAlias = Callable[[Dims], AccessMap]
"""The map in cache of a block of some extents."""


@dataclass(frozen=True, slots=True)
class StageChoice:
    """How a copy in two stages runs.

    part             blocks have 1/part of the largest size that stays in cache
    reads, writes    the number of the `candidates` that the boxes of the stage into the cache take, and those
                     of the stage out of it; the first if there are fewer
    """

    part: int = 1
    reads: int = 0
    writes: int = 0


STAGES_TRIED = (
    StageChoice(),
    StageChoice(part=2),
    *(choice for k in range(1, 4) for choice in (StageChoice(reads=k), StageChoice(writes=k))),
)
"""The most promising first: the largest blocks and half of them, then other schedules of one stage."""


@dataclass(frozen=True, slots=True)
class StageCopy:
    """One part of a copy, or one stage of that part: a copy like any other.

    tile        rows and columns of the tiles of a transpose; None: the compiler's own
    streams     whether it writes past the caches: never into a block that the next stage reads
    candidate   as in `StageChoice`
    """

    src: AccessMap
    dst: AccessMap
    source: Element
    target: Element
    streams: bool = False
    tile: Tiles | None = None
    candidate: int = 0


@dataclass(frozen=True, slots=True)
class Staging:
    """A copy in two stages.

    grid   the blocks
    steps  bytes from one block to the next along each dimension, of the source and of the destination
    kinds  the stages of each kind of block, for a block at the first position
    ahead  whether launches of their own request the source of the next block
    """

    grid: BlockGrid
    steps: tuple[Dims, Dims]
    kinds: Mapping[Ends, tuple[StageCopy, StageCopy]]
    ahead: bool = False

    @property
    def block_bytes(self) -> int:
        """The size of the array in cache."""
        return max(inwards.dst.byte_bounds[1] for inwards, _ in self.kinds.values())

    def __str__(self) -> str:
        _, extents = self.grid.box(next(iter(self.kinds)))
        cut = "x".join(str(n) for n in extents if n > 1) or "1"
        past = " past the caches" if any(outwards.streams for _, outwards in self.kinds.values()) else ""
        ahead = "; lines of the next block are prefetched" if self.ahead else ""
        count, size = prod(self.grid.counts), self.block_bytes
        return f"{count} of {cut}, each copied into {size} bytes in cache and from there{past}{ahead}"


@dataclass(frozen=True, slots=True)
class BoxSchedule:
    """A box of the copy in one pass, its schedule, and the tables of offsets around it."""

    box: StridedBox
    schedule: Schedule
    tables: tuple[PairTable, ...]

    @property
    def bytes_moved(self) -> int:
        """Bytes that the box writes at all entries of the tables."""
        return prod(t.extent for t in self.tables) * self.box.size_bytes

    @property
    def width(self) -> int:
        """Full bytes per element; 0 for packed elements."""
        return self.box.target.bits // 8


@dataclass(frozen=True, slots=True)
class SinglePass:
    """The copy in one pass, which two stages may replace.

    boxes      how it moves each box, padding aside
    footprint  bytes that it reads and writes
    streams    whether a copy of that many bytes writes past the caches
    choice     how two stages run, whether or not they seem faster; None if all that is a guess
    """

    src: AccessMap
    dst: AccessMap
    source: Element
    target: Element
    boxes: Sequence[BoxSchedule]
    footprint: int
    streams: bool
    choice: StageChoice | None = None

    @property
    def part(self) -> int:
        """As in `StageChoice`."""
        return self.choice.part if self.choice else 1

    def over(self, digits: Sequence[Digit]) -> SinglePass:
        """The same copy of an array that has these digits as dimensions."""
        dims, *strides = zip(*digits, strict=True)
        src, dst = (
            tight_map(strided_map(dims, steps, (0, 0), element_bits=x.element_bits))
            for x, steps in zip((self.src, self.dst), strides, strict=True)
        )
        return replace(self, src=src, dst=dst)

    def stages(
        self,
        inwards: tuple[AccessMap, AccessMap],
        outwards: tuple[AccessMap, AccessMap],
        tile: Tiles | None = None,
    ) -> tuple[StageCopy, StageCopy]:
        """The stages of a kind of block, whose elements are full bytes in cache.

        tile: of the transpose into the cache
        """
        held, choice = held_element(self.target), self.choice or StageChoice()
        into = StageCopy(*inwards, self.source, held, tile=tile, candidate=choice.reads)
        return into, StageCopy(*outwards, held, self.target, self.streams, candidate=choice.writes)

    def through(self, grid: BlockGrid, ends: Ends, cached: Cached) -> tuple[StageCopy, StageCopy]:
        """The stages of a kind of block."""
        src, dst = (block_map(x, grid, ends) for x in (self.src, self.dst))
        block = cached(grid.box(ends)[1])
        return self.stages((src, block), (block, dst))

    def in_blocks(self, grid: BlockGrid, cached: Cached, *, ahead: bool = False) -> Staging:
        """The copy in two stages; ahead: as in `Staging`."""
        kinds = {ends: self.through(grid, ends, cached) for ends in grid.ends()}
        return Staging(grid, (steps_of(grid, self.src), steps_of(grid, self.dst)), kinds, ahead)


def held_element(element: Element) -> Element:
    """The element as a block holds it: in full bytes."""
    return Element(element.name, 8 * bytes_held(element))


def bytes_held(element: Element) -> int:
    """Bytes per element in a block: full ones, also for packed elements."""
    return -(-element.bits // 8)


def steps_of(grid: BlockGrid, access: AccessMap) -> Dims:
    """Bytes from one block to the next along each dimension."""
    steps = grid.steps(access)
    if steps is None:
        raise AssertionError("expected blocks that begin with a byte")
    return steps


def block_map(access: AccessMap, grid: BlockGrid, ends: Ends) -> AccessMap:
    """The elements of a kind of block, for a block at the first position of the grid."""
    starts, extents = grid.box(ends)
    back = -8 * block_offset(grid.first(ends), steps_of(grid, access)) // access.unit_bits
    return moved_map(tight_map(window_map(access, starts, (1,) * len(extents), extents)), back)


def cached_map(extents: Dims, strides: Dims, element: Element) -> AccessMap:
    """A block in cache, with strides in bytes."""
    bits = held_element(element).bits
    return tight_map(strided_map(extents, strides, (0, 0), element_bits=bits))
