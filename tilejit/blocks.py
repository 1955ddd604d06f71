"""relayout block by block: each block unpacked into memory that stays in cache, and packed from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import lcm, prod
from typing import Any

import numpy as np

from codegen.access import AccessMap, logical_roots, map_offset
from codegen.call_tables import CallTable, Place, call_table
from codegen.digit_trees import Leaf, Tree, ceil_div, coalesce, cuts, split
from codegen.ir import Element
from codegen.launch import Launch
from codegen.passes.normalise import int_size
from codegen.pipeline import CopyProgram, footprint_bytes
from codegen.threads import run_parts
from codegen.windows import tight_map, window_map
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.memory import LINE_BYTES, address, bytes_map, empty
from tilejit.programs import buffer_element, compiled_part, outgrows_caches

BLOCK_BYTES = 384 << 10
"""What a block takes as an array: with what is read and written beside it, no more than a second cache."""

LEAST_BYTES = 1 << 20
"""Smaller copies are over before many blocks would be."""

MOST_DENSE_BYTES = 4
"""Wider elements are staged in panels fast enough."""

SHORT_PART_BYTES = 4
"""Transposes of source rows up to this length read again and again the lines that those share."""

SHORT_ROW_BYTES = LINE_BYTES
"""Rows below this are taken apart into parts of lines: to write those costs more than a way through cache."""

SMALL_TILE_BYTES = 1024
"""Tiles of a transpose up to which a page is touched for each of them."""

SHORT_PACKED = 4
"""Elements of rows that an interleave makes too little of."""

MOST_PROGRAMS = 16

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockProgram:
    """Copies of blocks by way of an array in cache.

    pads        writes the padding
    counts      blocks along each dimension
    short       whether the last block along a dimension is cut off
    steps       bytes from one block to the next along each dimension, of the source and of the destination
    programs    there and back, for each choice of dimensions along which the block is the last, cut off
    tables      the calls of all blocks, made when a destination first begins where it does within a line
    """

    pads: CopyProgram
    counts: Dims
    short: tuple[bool, ...]
    steps: tuple[Dims, Dims]
    programs: dict[tuple[bool, ...], tuple[CopyProgram, CopyProgram]]
    block_bytes: int
    tables: dict[int, CallTable] = field(default_factory=dict, compare=False, repr=False)

    def run(self, src: int, dst: int, threads: int = 1, *, alive: object = None) -> None:
        """Copy between two addresses; `alive` is held until the last thread is done with them."""
        self.pads.run(src, dst, threads, alive=alive)
        table = self._table(dst % LINE_BYTES)
        run_parts(partial(self._part, table, src, dst, alive), threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """All but the tables: they hold addresses of this process's own."""
        kept = self.pads, self.counts, self.short, self.steps, self.programs, self.block_bytes
        return BlockProgram, kept

    def _part(self, table: CallTable, src: int, dst: int, alive: object, part: int, parts: int) -> None:
        between, count = empty((self.block_bytes,), np.uint8), prod(self.counts)
        table.run((src, dst, address(between)), count * part // parts, count * (part + 1) // parts)

    def _table(self, within: int) -> CallTable:
        """Every block's calls, for a destination that begins so many bytes inside a line."""
        if within not in self.tables:
            blocks = (self._block(number) for number in range(prod(self.counts)))
            self.tables[within] = call_table(
                blocks, lambda place: place.dst == BETWEEN or (within + place.dst_offset) % LINE_BYTES == 0
            )
        return self.tables[within]

    def _block(self, number: int) -> tuple[tuple[tuple[Launch, ...], Place], ...]:
        """The launches there and back of one block."""
        place = block_place(number, self.counts)
        last = tuple(s and k == n - 1 for s, k, n in zip(self.short, place, self.counts, strict=True))
        src_at, dst_at = (
            sum(k * step for k, step, cut in zip(place, steps, last, strict=True) if not cut)
            for steps in self.steps
        )
        there, back = self.programs[last]
        return (
            (there.launches, Place(SOURCE, src_at, BETWEEN, 0)),
            (back.launches, Place(BETWEEN, 0, DESTINATION, dst_at)),
        )


SOURCE, DESTINATION, BETWEEN = range(3)
"""The addresses that a block's calls are given."""


def block_place(number: int, counts: Dims) -> Dims:
    """Where a block stands in the grid of blocks, by its number in C order."""
    out = []
    for count in reversed(counts):
        number, k = divmod(number, count)
        out.append(k)
    return tuple(reversed(out))


def in_blocks(
    direct: CopyProgram, pads: Callable[[], CopyProgram], source: Spec, target: Spec
) -> BlockProgram | None:
    """The copy block by block, where the direct one moves a few bytes at a time and blocks can be cut.

    Blocks are boxes of the array after whose extents both sides repeat themselves, so that a few programs
    serve all of them; `pads` makes the program of the padding. What moves through memory is the same: a
    block's array stays in the second cache.
    """
    src, dst = access_map(source), access_map(target)
    little = _moves_little(direct)
    if footprint_bytes(src, dst) < LEAST_BYTES or not (little or _moves_small_tiles(direct)):
        return None
    grains = block_common(block_grains(src), block_grains(dst))
    extents = block_extents(source.dimensions, grains, source.dtype.itemsize) if grains else None
    steps = (block_steps(src, extents), block_steps(dst, extents)) if extents else (None, None)
    if extents is None or steps[0] is None or steps[1] is None:
        return None
    counts = tuple(ceil_div(n, e) for n, e in zip(source.dimensions, extents, strict=True))
    short = tuple(n % e != 0 for n, e in zip(source.dimensions, extents, strict=True))
    size = block_strides((1, *extents), source.dtype.itemsize)[0]
    if 1 << sum(short) > MOST_PROGRAMS or size > 2 * BLOCK_BYTES:
        return None
    programs = {
        last: _programs(source, target, extents, last)
        for last in product(*((False, True) if s else (False,) for s in short))
        if all(k or n > 1 or not s for k, n, s in zip(last, counts, short, strict=True))
    }
    if not little and not _ends_in_runs(programs):
        return None
    return BlockProgram(pads(), counts, short, (steps[0], steps[1]), programs, size)


def _moves_small_tiles(program: CopyProgram) -> bool:
    """Whether most bytes move in transposed tiles of a KiB or two, far apart on both sides.

    That runs at 0.28 to 0.45 of memcpy, blocks that end in runs at 0.33 to 0.56, others at 0.28 to 0.45.
    """
    launches = [x for x in program.launches if x.fill is None]
    largest = max(launches, key=_bytes_of) if launches else None
    cut = largest.step.schedule.transpose if largest else None
    if largest is None or largest.tables or cut is None or cut.block != "lane" or not cut.stream:
        return False
    extents = {x.axis: int_size(x.extent) for x in largest.step.scalar.loops}
    tile = prod(extents[axis] for axis in (*cut.rows, *cut.columns))
    return tile * largest.step.scalar.buffer("dst").element.bits // 8 <= SMALL_TILE_BYTES


def _ends_in_runs(programs: dict[tuple[bool, ...], tuple[CopyProgram, CopyProgram]]) -> bool:
    """Whether blocks go back in runs, most of their bytes."""
    backs = (max(back.launches, key=_bytes_of, default=None) for _, back in programs.values())
    return all(x is not None and x.step.schedule.mode == "run" for x in backs)


def _moves_little(program: CopyProgram) -> bool:
    """Whether most bytes move a few at a time, through a table of places or as parts of lines.

    That runs at 0.02 to 0.45 of memcpy, blocks at 0.4 to 0.75 (Zen 5, 2026-11).
    """
    launches = [x for x in program.launches if x.fill is None]
    if not launches:
        return False
    largest = max(launches, key=_bytes_of)
    return bool(largest.tables or largest.step.schedule.stream) and _is_short(largest)


def _bytes_of(launch: Launch) -> int:
    nest = launch.step.scalar
    entries = prod(t.extent for t in launch.tables)
    return entries * prod(int_size(x.extent) for x in nest.loops) * nest.buffer("dst").element.bits // 8


def _is_short(launch: Launch) -> bool:
    schedule, width = launch.step.schedule, launch.step.scalar.buffer("dst").element.bits // 8
    cut = schedule.transpose
    if cut and cut.block == "part":
        return cut.tile[1] * width <= SHORT_PART_BYTES
    if cut:
        return cut.stage == "dense" and width <= MOST_DENSE_BYTES
    if schedule.mode == "interleave" and schedule.stream:
        apart = schedule.interleave == "src"
        long = _extent(launch, schedule.inner[apart])
        is_short = long * width < SHORT_ROW_BYTES if apart else long <= SHORT_PACKED
        return is_short and len(schedule.inner) == 2
    return schedule.mode in ("elements", "interleave")


def _extent(launch: Launch, axis: str) -> int:
    return next(int_size(x.extent) for x in launch.step.scalar.loops if x.axis == axis)


def block_grains(access: AccessMap) -> Dims | None:
    """The fewest elements along each dimension after which the offsets repeat themselves."""
    trees = {r.dims: r.tree for r in logical_roots(access)}
    found = tuple(_grain(trees[(d,)]) if (d,) in trees else None for d in range(len(access.dims)))
    return None if None in found else tuple(g for g in found if g is not None)


def _grain(tree: Tree) -> int | None:
    if isinstance(tree, Leaf):
        return 1
    for tile in sorted(cuts(tree)):
        pair = split(tree, tile)
        if pair and isinstance(coalesce(pair[0]), Leaf):
            return tile
    return None


def block_common(a: Dims | None, b: Dims | None) -> Dims | None:
    """The least grains that are whole in both; None where one has none."""
    return a and b and tuple(lcm(x, y) for x, y in zip(a, b, strict=True))


def block_extents(dims: Dims, grains: Dims, itemsize: int) -> Dims | None:
    """Whole inner dimensions as long as they fit, the outer ones cut to whole grains."""
    out = [min(n, g) for n, g in zip(dims, grains, strict=True)]
    if prod(out) * itemsize > BLOCK_BYTES:
        return None
    for d in reversed(range(len(dims))):
        room = BLOCK_BYTES // (prod(out) * itemsize)
        out[d] = min(dims[d], out[d] * room)
    return tuple(out)


def block_steps(access: AccessMap, extents: Dims) -> Dims | None:
    """Bytes from one block to the next along each dimension; None where they begin inside bytes."""
    zero = (0,) * len(extents)
    first, out = map_offset(access, zero), []
    for d, (n, extent) in enumerate(zip(access.dims, extents, strict=True)):
        there = map_offset(access, (*zero[:d], extent, *zero[d + 1 :])) if extent < n else first
        out.append(int(there - first) * access.unit_bits)
    return None if any(step % 8 for step in out) else tuple(step // 8 for step in out)


def _programs(
    source: Spec, target: Spec, extents: Dims, last: tuple[bool, ...]
) -> tuple[CopyProgram, CopyProgram]:
    """Of the first block, or of the last one along those dimensions: there, in cache, and back."""
    dims, itemsize = source.dimensions, source.dtype.itemsize
    starts = tuple((n - 1) // e * e if k else 0 for n, e, k in zip(dims, extents, last, strict=True))
    cut = tuple(min(e, n - s) for n, e, s in zip(dims, extents, starts, strict=True))
    maps = access_map(source), access_map(target)
    src, dst = (tight_map(window_map(m, starts, (1,) * len(dims), cut)) for m in maps)
    between = bytes_map(cut, block_strides(cut, itemsize), itemsize)
    loose = Element(source.primitive_type, 8 * itemsize)
    streams = outgrows_caches(footprint_bytes(*maps))
    there = compiled_part(src, between, buffer_element(source), loose, streams=False)
    back = compiled_part(between, dst, loose, buffer_element(target), streams=streams)
    return there, back


def block_strides(extents: Dims, itemsize: int) -> Dims:
    """Rows that begin on lines, an odd number of them apart: they share no sets of a cache."""
    row = (-(-extents[-1] * itemsize // LINE_BYTES) | 1) * LINE_BYTES
    return (*(row * prod(extents[d + 1 : -1]) for d in range(len(extents) - 1)), itemsize)
