"""Copies that convert and transpose, block by block: rows converted into cache, and transposed from there.

Blocks of registers that hold wide elements and narrow ones at one time spill. What is converted along the
source's rows needs no blocks, and what is transposed then is narrow; while rows are converted, the lines of
the next block are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from codegen import (
    ALIAS_BYTES,
    Bounds,
    BufferOffsets,
    CallTable,
    CopyProgram,
    Digit,
    Element,
    Kernel,
    Launch,
    Step,
    footprint_bytes,
    with_prefetch,
)
from tilejit.block_grid import block_bytes, block_strides
from tilejit.blocks import BETWEEN, DESTINATION, SOURCE, Blockwise, Calls
from tilejit.memory import bytes_map
from tilejit.moves import Move
from tilejit.programs import compiled_part

BLOCK = (192, 256)
"""Rows and columns of the source in a block. f32[4096,6144] to bf16, of memcpy (Zen 5, 2026-11): 64x256 0.75,
128x256 0.87, 192x192 0.89, 192x256 0.89, 256x256 0.91, 128x512 0.78, 128x1024 0.62; f64[4001,6001] to f32:
128x256 0.63, 192x192 0.69, 192x256 0.68, 256x256 0.59."""

LEAST = (64, 192)
"""Shorter digits make too little of a block."""

SHORT_ROWS = 384
"""Rows below which a transpose in place is as fast, if they share no sets of the cache: f32[64,C,56,56] to
NHWC, C 64 and 256: blocks 0.7 of memcpy, in one pass 0.9 and 0.77."""

LEAST_BYTES = 24 << 20
"""Smaller copies are as fast in one pass: their source is in the last cache."""

MOST_BLOCKS = 1 << 16
"""More of them would need a table of some MiB."""

Cut = tuple[int, int]
Block = tuple[Cut, int, int]
"""Rows and columns of a block, and where it begins, in bytes of the source and of the destination."""


@dataclass(frozen=True, slots=True)
class ConvertedBlocks(Blockwise):
    """Copies of blocks by way of narrow elements in cache.

    row, column  the digits along which the destination, and the source, are contiguous
    others       the digits around them
    starts       offsets in bytes of the first element, of the source and of the destination
    block        rows and columns of those inside
    programs     there and back, for each extent of a block
    """

    row: Digit
    column: Digit
    others: tuple[Digit, ...]
    starts: tuple[int, int]
    block: Cut
    programs: dict[Cut, tuple[Launch, Launch]]
    bounds: tuple[Bounds, Bounds]
    block_bytes: int
    tables: dict[int, CallTable] = field(default_factory=dict, compare=False, repr=False)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """What blocks are made of: of the first one there and back, then of those at the edges."""
        return tuple(launch for pair in self.programs.values() for launch in pair)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The nests of `launches`, with all their stages."""
        return tuple(launch.step for launch in self.launches)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the copy calls, each once."""
        return tuple(dict.fromkeys(step.kernel for step in self.steps))

    @property
    def blocks(self) -> int:
        """How many there are."""
        return prod(n for n, _, _ in self.others) * prod(len(x) for x in self._cuts())

    def __str__(self) -> str:
        rows, columns = next(iter(self.programs))
        return f"{self.blocks} of {rows}x{columns}, converted into cache and transposed from there"

    def __reduce__(self) -> tuple[Any, ...]:
        """All but the tables: they hold addresses of this process's own."""
        cuts = self.row, self.column, self.others, self.starts, self.block
        return ConvertedBlocks, (*cuts, self.programs, self.bounds, self.block_bytes)

    def _cuts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return _shares(self.row[0], self.block[0]), _shares(self.column[0], self.block[1])

    def _places(self) -> Iterator[Block]:
        """The blocks in the order of the source: bands of rows, along their columns."""
        rows, columns = self._cuts()
        bands = [range(n) for n, _, _ in self.others]
        for numbers in product(*bands, range(len(rows)), range(len(columns))):
            *around, r, c = numbers
            at = [
                start
                + sum(k * digit[side] for k, digit in zip(around, self.others, strict=True))
                + r * self.block[0] * self.row[side]
                + c * self.block[1] * self.column[side]
                for start, side in zip(self.starts, (1, 2), strict=True)
            ]
            yield (rows[r], columns[c]), at[0], at[1]

    def calls(self) -> Iterator[Calls]:
        """The launches there and back of each block; what is asked for meanwhile is the block after it."""
        asking: dict[tuple[Cut, int], Launch] = {}
        places = list(self._places())
        for (cut, src, dst), (_, following, _) in zip(places, places[1:] + places[-1:], strict=True):
            there, back = self.programs[cut]
            key = cut, following - src
            if key not in asking:
                asking[key] = with_prefetch(there, following - src)
            yield (
                ((asking[key],), BufferOffsets(SOURCE, src, BETWEEN, 0)),
                ((back,), BufferOffsets(BETWEEN, 0, DESTINATION, dst)),
            )


def in_converted_blocks(direct: CopyProgram, move: Move) -> ConvertedBlocks | None:
    """The copy block by block, where elements become narrower and are transposed past the cache.

    f64 to f32 gains a twentieth, f32 to bf16 a half; elements that become wider are as fast in one pass.
    """
    enough = footprint_bytes(direct.lowered.src, direct.lowered.dst) >= LEAST_BYTES
    narrower = not move.swap and move.units == 1 and move.target.bits < move.source.bits
    launches = [x for x in direct.launches if x.fill is None]
    boxes = direct.lowered.boxes
    if not (enough and narrower) or len(boxes) != 1 or boxes[0].tables or not launches:
        return None
    schedules = [x.step.schedule.transpose for x in launches]
    if not all(x and x.stream for x in schedules):
        return None
    widths = move.source.bits // 8, move.target.bits // 8
    digits = _joined([d for d in boxes[0].digits if d[0] > 1])
    row = next((d for d in digits if d[2] == widths[1]), None)
    column = next((d for d in digits if d[1] == widths[0]), None)
    if row is None or column is None or row is column or row[0] < LEAST[0] or column[0] < LEAST[1]:
        return None
    in_place = not any(x and x.stage for x in schedules)
    if in_place and row[0] < SHORT_ROWS and row[1] % ALIAS_BYTES:
        return None
    others = tuple(d for d in digits if d not in (row, column))
    cuts = dict.fromkeys(product(_shares(row[0], BLOCK[0]), _shares(column[0], BLOCK[1])))
    programs = {cut: _programs(row[1], column[2], cut, move) for cut in cuts}
    size = max(block_bytes(cut, widths[1]) for cut in programs)
    starts = boxes[0].src_base, boxes[0].dst_base
    found = ConvertedBlocks(row, column, others, starts, BLOCK, programs, direct.bounds, size)
    return found if found.blocks <= MOST_BLOCKS else None


def _joined(digits: list[Digit]) -> list[Digit]:
    """Digits that follow each other on both sides as one, the most minor of the destination first."""
    out: list[Digit] = []
    for extent, src, dst in sorted(digits, key=lambda d: abs(d[2])):
        if out and (src, dst) == (out[-1][0] * out[-1][1], out[-1][0] * out[-1][2]):
            extent, src, dst = out[-1][0] * extent, *out.pop()[1:]
        out.append((extent, src, dst))
    return out


def _shares(extent: int, block: int) -> tuple[int, ...]:
    """Blocks along a digit; the last one takes what is left, up to two."""
    count = max(extent // block, 1)
    return (block,) * (count - 1) + (extent - (count - 1) * block,)


def _programs(src_row: int, dst_column: int, cut: Cut, move: Move) -> tuple[Launch, Launch]:
    """Rows of the source converted, and columns of those written past the cache."""
    wide, narrow = move.source.bits // 8, move.target.bits // 8
    between = bytes_map(cut, block_strides(cut, narrow), narrow)
    loose = Element(f"u{8 * narrow}", 8 * narrow)
    src, dst = bytes_map(cut, (src_row, wide), wide), bytes_map(cut, (narrow, dst_column), narrow)
    there = compiled_part(src, between, move.source, move.target, streams=False)
    back = compiled_part(between, dst, loose, loose, streams=True, virtual_vector_size=cut)
    return with_prefetch(there.launches[0], 0), back.launches[0]
