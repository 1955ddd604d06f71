"""List the schedules of a box that are worth measuring: what `choose` guesses, tune=True can search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

from codegen.ir.blocks import TRANSPOSED_BLOCKS, block_shape, transposed_shapes
from codegen.ir.instructions import takes_block
from codegen.ir.lines import LANE_BYTES
from codegen.ir.streams import Stream
from codegen.ir.strided_box import StridedBox, in_bytes
from codegen.maps.boxed_copy import BoxedCopy
from codegen.schedule.choose import (
    choose,
    loop_schedule,
    outer_loops,
)
from codegen.schedule.choose_directives import InnerLoops, elements, packed_rows
from codegen.schedule.choose_inner import inner_loops, short_loops
from codegen.schedule.choose_joined import JoinedBoxes, choose_joined, in_chunks, in_segments
from codegen.schedule.choose_order import by_source
from codegen.schedule.choose_shuffle import shuffle_beside
from codegen.schedule.choose_swizzle import ChunkTable
from codegen.schedule.choose_transpose import methods
from codegen.schedule.conditions import Conditions
from codegen.schedule.directives import Prefetch, Reorder, Stage, Tile, Vectorize
from codegen.schedule.loops import int_size
from codegen.schedule.schedule import MOST_LOOPS, Schedule
from codegen.schedule.transpose_loops import FAR_PREFETCH_BYTES, in_blocks, scheduled

MOST_CANDIDATES = 24
"""Each candidate may need a kernel, which takes a second to compile at most."""

STAGED_LINES_TRIED = 1, 2, 4
PREFETCH_BYTES_TRIED = 0, FAR_PREFETCH_BYTES, 2 * FAR_PREFETCH_BYTES
RUN_PREFETCH_BYTES_TRIED = 0, 512, 1024
PREFETCH_CHUNKS_TRIED = 32, 128, 256

LEAST_RUN_BYTES = 16
"""Runs that were widened to elements of at least this size are also measured as runs."""


def candidates(box: StridedBox, when: Conditions) -> tuple[Schedule, ...]:
    """At most MOST_CANDIDATES distinct schedules, the most promising first; the first is that of `choose`.

    Other methods come first: stores, staging, inner loops. Then each decision is changed separately. Fills
    and copies with offset tables have no other schedule.
    """
    first, plain = choose(box, when), choose(box, when, shuffles=False)
    if box.source is None or box.entries:
        return (first,)
    found = (_transposes if plain.transposes else _inner_loops)(box, plain, when)
    shuffle = None if when.size else shuffle_beside(box, plain, when)
    shuffles = [shuffle] if shuffle else []
    return tuple(dict.fromkeys([first, plain, *shuffles, *found]))[:MOST_CANDIDATES]


def joined_candidates(
    copy: BoxedCopy, largest: Callable[[], StridedBox | None], when: Conditions, *, padded: bool
) -> tuple[JoinedBoxes | None, ...]:
    """How to run all boxes of a copy, as far as it is worth measuring; the first is that of `choose_joined`.

    One launch that gathers segments, or one that copies chunks with either kind of stores, which may
    prefetch at other distances; None is a launch for each box, whose schedules are `candidates`.
    """
    first = choose_joined(copy, largest, when, padded=padded)
    found = [first, None, in_segments(copy, padded=padded)]
    chunks = [in_chunks(copy, padded=padded, stream=stream) for stream in (False, True)]
    found += chunks
    for joined in chunks:
        if joined and isinstance(joined.table, ChunkTable):
            tried = _distances(joined.schedule, len(joined.table.offsets))
            found += [replace(joined, schedule=other) for other in tried]
    return tuple(dict.fromkeys(found))


def _inner_loops(box: StridedBox, first: Schedule, when: Conditions) -> Iterator[Schedule]:
    """Other orders of the loops and other stores, then other inner loops and strips."""
    past_cache = when.go_past_cache(box)
    inner = inner_loops(box, past_cache=past_cache) or short_loops(box)
    yield from _orders(box, inner, when)
    yield from _distances(first, prod(box.axis(name).extent for name in first.inner if name in box.extents))
    if inner.joined("row"):
        if inner.joins_rows:
            column, row = (box.axis(inner.joined(name)[0]) for name in ("column", "row"))
            yield from _orders(box, packed_rows(box, column, row, inner.packed, ()), when)
        if first.staged and first.joins_rows:
            outer = outer_loops(box, inner.inner)
            yield loop_schedule(box, inner, outer, when, stream=True, grouped=False)
        for stream in (False, True):
            for cut in methods(box, when, stream=stream):
                yield scheduled(box, cut, when)
    if any(x.table for x in inner.loops):
        yield from _orders(box, elements(box), when)
    full_bytes = first.moves_elements and not inner.joined("row") and not box.converts and box.unit_bits == 8
    if full_bytes and box.width >= LEAST_RUN_BYTES and len(box.axes) <= MOST_LOOPS:
        narrow = in_bytes(box)
        runs = inner_loops(narrow, past_cache=past_cache) or short_loops(narrow)
        for schedule in _orders(narrow, runs, when):
            yield replace(schedule, in_bytes=True)


def _orders(box: StridedBox, inner: InnerLoops, when: Conditions) -> Iterator[Schedule]:
    """Inner loops with the outer ones in the order of either side, with both kinds of stores."""
    outer = outer_loops(box, inner.inner)
    for order in (outer, by_source(outer)):
        for stream in (False, True) if inner.streams else (False,):
            yield loop_schedule(box, inner, order, when, stream=stream)


def _distances(schedule: Schedule, count: int) -> Iterator[Schedule]:
    """Other distances of prefetches, if the copy requests lines. count: of the chunks in a table."""
    requests = schedule.obeying(Prefetch)
    for x in (x for x in requests if x.loop in schedule.lanes):
        others = [y for y in requests if y != x]
        tried: tuple[int, ...] = RUN_PREFETCH_BYTES_TRIED
        if "code" in schedule.lanes:
            tried = 0, int_size(x.distance) // 2, 2 * int_size(x.distance)
        for distance in tried:
            yield schedule.changed(
                *[replace(x, distance=distance)] * bool(distance), *others, without=(Prefetch,)
            )
        for chunks in PREFETCH_CHUNKS_TRIED if 0 < x.chunks < count else ():
            yield schedule.changed(replace(x, chunks=chunks), *others)


def _transposes(box: StridedBox, first: Schedule, when: Conditions) -> Iterator[Schedule]:
    """Other methods, then other tiles, blocks, orders and distances of the chosen one."""
    for stream in (True, False):
        for method in methods(box, when, stream=stream):
            yield scheduled(box, method, when)
    if first.stream and (first.stages_rows or not first.staged):
        kept = [Stream("aligned")] * first.stages_rows
        yield scheduled(box, first.changed(*kept, without=(Stream,)), when)
    if min(first.counts(box.extents)) < LANE_BYTES // box.width:
        inner = short_loops(box)
        yield loop_schedule(box, inner, outer_loops(box, inner.inner), when, stream=False)
    for changed in (*([] if when.size else _tiles(first, box.per_line)), *_blocks(box, first)):
        yield scheduled(box, changed, when)
    yield from _details(first)


def _tiles(cut: Schedule, side: int) -> Iterator[Schedule]:
    """Half and double the size in each direction; more or fewer lines and layers per tile."""
    for axis in ("column", "row", "layer"):
        joined = axis == "column" and (cut.layers or (cut.staged and len(cut.columns) > 1))
        for x in () if joined else cut.tiles(axis):
            sizes: tuple[int, ...] = (int_size(x.size) // 2, 2 * int_size(x.size))
            if axis == "row" and cut.staged:
                sizes = tuple(lines * side for lines in STAGED_LINES_TRIED)
            for size in filter(None, sizes):
                yield cut.changed(*(replace(y, size=size) if y is x else y for y in cut.obeying(Tile)))


def _blocks(box: StridedBox, cut: Schedule) -> Iterator[Schedule]:
    """Other register blocks that have no more rows and columns than the box."""
    if cut.short or cut.layers:
        return
    rows, columns = cut.counts(box.extents)
    for block in TRANSPOSED_BLOCKS:
        shape = block_shape(box.width, block)
        fits = shape[1] <= columns and (shape[0] <= rows or cut.stages_rows)
        taken = shape in transposed_shapes(box.width) and _fills_lines(cut, rows, shape[0])
        if fits and taken and (box.conversion is None or takes_block(*box.conversion, shape)):
            yield cut.changed(Vectorize((("row", shape[0]), ("column", shape[1]))))


def _fills_lines(cut: Schedule, rows: int, block: int) -> bool:
    """Whether blocks of so many rows suit the stream of a cut, if lines go from registers past the cache."""
    forms = [] if cut.staged else [x.form for x in cut.obeying(Stream)]
    in_lines = not {"headed", "carried"}.isdisjoint(forms)
    return not ((in_lines and block != cut.lanes["row"]) or ("given" in forms and rows % block))


def _details(cut: Schedule) -> Iterator[Schedule]:
    """Other orders of blocks and of tiles, other distances, and the other addressing of staged rows."""
    for stage in cut.obeying(Stage) if cut.stages_rows else ():
        yield cut.changed(Stage(separate=not stage.separate))
    if cut.stages_rows and cut.obeying(Prefetch):
        yield cut.changed(without=(Prefetch,))
    if cut.staged or cut.short or cut.carried:
        return
    rows, columns = (cut.tiles(axis) for axis in ("row", "column"))
    outer = cut.order[: -len(rows) - len(columns)]
    yield in_blocks(cut, outer)
    yield in_blocks(cut, outer, along_rows=True)
    yield in_blocks(cut, outer, diagonal=True)
    for distance in () if cut.stream else PREFETCH_BYTES_TRIED:
        yield cut.changed(*[Prefetch("column", distance)] * bool(distance), without=(Prefetch,))
    swapped = {rows[0].index: columns[0].index, columns[0].index: rows[0].index}
    yield cut.changed(Reorder((*(swapped.get(x, x) for x in outer), *cut.order[len(outer) :])))
