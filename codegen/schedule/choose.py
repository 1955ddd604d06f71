"""Choose a schedule for a normalized box."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_copy_strips import choose_copy_strips
from codegen.schedule.choose_directives import InnerLoops, elements, later_entries, packed_rows, staged_rows
from codegen.schedule.choose_inner import inner_loops, short_loops
from codegen.schedule.choose_interleave import around, grouped_axes, joined_axes
from codegen.schedule.choose_order import best_order, by_source, shared_first
from codegen.schedule.choose_shuffle import shuffle_instead
from codegen.schedule.choose_transpose import misaligned_transpose, transpose_schedule
from codegen.schedule.conditions import DEFAULT_CONDITIONS, Conditions
from codegen.schedule.directives import Groups, Reorder, Tile
from codegen.schedule.machine import ALIAS_BYTES, NEVER_STREAM
from codegen.schedule.offset_tables import RowGroups
from codegen.schedule.schedule import MOST_LOOPS, STRIP, Cut, Joined, Schedule
from codegen.schedule.transpose_loops import crowding, shares_sets

LONG_DIGIT = 1 << 13
"""Elements per block of a transpose's long digit: a multiple of a line for every element size."""

TRANSPOSED_SHARE, SHARING_SHARE = 3 / 4, 2 / 3
"""Transposes stream from this share of the threshold on; the second one if rows share cache sets."""

CROWDED, BOTH_CROWDED, CROWDED_BYTES = 4, 2, 256 << 10
"""Transposes in cache that read and write at least so many bytes are staged from this crowding of source rows
on, or from this one of both sides if parts of result rows are staged.

Speed of 33 transposes with sides of 0.5 to 9 MB, staged as a multiple of in place, if the destination
begins at the same offset in a page as the source, then if not (Zen 4, 2026-11): at (2, 2) 1.8 to 3.2, then
1.1 to 1.5; at (4, 0) 1.5 to 1.7, then 1.4 to 1.8; at (8, 0) 2.0 to 2.1, then 2.0. At (1, 1), (2, 1) 0.9 to 2.1,
then 0.6 to 1.3; with complete rows at (2, 2) 1.1, then 0.5; below 0.5 to 1.2, then 0.4 to 1.0.
"""

MOST_CACHED_ROWS = 32
"""Staged tiles of up to this many rows, of a line or more, stay in cache if they fit there."""


def choose(box: StridedBox, when: Conditions = DEFAULT_CONDITIONS, *, shuffles: bool = True) -> Schedule:
    """The schedule for one box.

    If both sides are contiguous along the same loop, the copy uses runs, which are reversed if the source
    goes backwards there. If they are contiguous along different loops, it transposes or interleaves. Short
    chunks that together fill lines are copied by a table. Everything else is copied element by element along
    the destination's most minor loop. Where all this would move few bytes at a time, bytes are shuffled
    instead.

    Without `shuffles`, the schedule is that of the other methods.
    """
    if box.blocks:
        block = box.one_block
        return around_blocks(choose(block, when.of_block(block), shuffles=shuffles), box, when.threads)
    found = _without_shuffles(box, when)
    if not shuffles or when.size:
        return found
    return shuffle_instead(box, found, when) or found


def _without_shuffles(box: StridedBox, when: Conditions) -> Schedule:
    """The schedule of a box by the other methods."""
    past_cache = when.go_past_cache(box)
    inner = inner_loops(box, past_cache=past_cache)
    if inner is None or (past_cache and _begins_inside_lines(box, inner)):
        found = transpose_schedule(box, when, stream=past_cache)
        if not past_cache and (streams_transposes(box, when) or _is_crowded(box, when)):
            streamed = transpose_schedule(box, when, stream=True)
            found = streamed if streamed and _gains_by_streaming(box, streamed, when) else found
        if found is not None and not (inner and _leaves_registers_empty(found)):
            return replace(found, split=_has_long_digit(box))
    inner = inner or short_loops(box)
    stream, outer = past_cache and bool(inner.streams), outer_loops(box, inner.inner)
    if stream:
        outer = best_order(box, outer, inner.inner, reads_first=_packs_chunks(box, inner))
    elif when.into_cache and (inner.packed == "src" or (inner.moves_bytes and box.source)):
        outer = by_source(outer)  # whose next lines are prefetched, while those of the block are near anyway
    return loop_schedule(box, inner, outer, when, stream=stream)


def simplest(box: StridedBox) -> Schedule:
    """The schedule that fits every box: element by element along the last loop."""
    inner = elements(box)
    return Schedule(tuple(axis.name for axis in box.axes[:-1]), inner.loops, inner.directives)


def misaligned(schedule: Schedule, box: StridedBox, when: Conditions) -> Schedule | None:
    """The schedule for a destination that does not begin a line; None if it is the same."""
    if schedule.transposes:
        return misaligned_transpose(schedule, box, when)
    is_whole = not schedule.joined("groups") and not when.size
    if not schedule.stream or schedule.packed != "src" or not is_whole:
        return None
    column, row = (box.axis(schedule.joined(name)[0]) for name in ("column", "row"))
    joined = joined_axes(box, row, column, "src", past_cache=True, on_lines=False)
    inner = packed_rows(box, column, row, "src", joined)
    outer = best_order(box, outer_loops(box, inner.inner), inner.inner)
    found = loop_schedule(box, inner, outer, when, stream=True, on_lines=False)
    return found if found.joined("groups") else None


def around_blocks(inside: Schedule, box: StridedBox, threads: int) -> Schedule:
    """The schedule of a block with the loops around all blocks. Threads share the longest of these."""
    around = box.axes[: box.blocks]
    if threads > 1:
        around = tuple(sorted(around, key=lambda x: -x.extent))
    names = tuple(x.name for x in around)
    made = inside.changed(Reorder((*names, *inside.order))) if inside.order else inside
    return replace(made, outer=(*names, *inside.outer))


def outer_loops(box: StridedBox, inner: tuple[str, ...]) -> list[Axis]:
    """The loops around those named in `inner`, in the order of the box."""
    return [loop for loop in box.axes if loop.name not in inner]


def _has_long_digit(box: StridedBox) -> bool:
    """Whether a digit along which a side is contiguous is long, which would make long tables of offsets."""
    digits = box.contiguous("dst"), box.contiguous("src")
    is_long = any(axis and axis.extent > 2 * LONG_DIGIT for axis in digits)
    return is_long and box.unit_bits == 8 and len(box.axes) + len(digits) <= MOST_LOOPS


def streams_transposes(box: StridedBox, when: Conditions) -> bool:
    """Whether streaming pays for a transpose that would fit in cache: it visits each line several times.

    The threshold counts as half of the last cache if it is more than that, which one core seldom has alone.
    Rows that share cache sets are evicted even sooner. Measured on 45 random transposes of 3 to 14 MiB
    (Zen 4, 2026-11): most are faster from these shares on, whether or not a call before left them in cache.
    """
    share = SHARING_SHARE if shares_sets(box, ALIAS_BYTES) else TRANSPOSED_SHARE
    return when.go_past_share(box, share)


def _is_crowded(box: StridedBox, when: Conditions) -> bool:
    """Whether a transpose in cache may lose lines of its register blocks before all of their bytes are used."""
    if when.stream_bytes == NEVER_STREAM or box.converts or box.entries or crowding(box)[0] < BOTH_CROWDED:
        return False
    return replace(when, stream_bytes=CROWDED_BYTES).go_past_cache(box)


def _leaves_registers_empty(schedule: Schedule) -> bool:
    """Whether a transpose has source rows of a part of a lane, or staged tiles of few columns."""
    return schedule.short or not _fills_blocks(schedule)


def _fills_blocks(cut: Schedule) -> bool:
    """Whether a transpose has full blocks. Staging few columns costs more than lines that are evicted."""
    return not cut.stages_rows or (not cut.short and cut.lanes["column"] >= cut.lanes["row"])


def _gains_by_streaming(box: StridedBox, schedule: Schedule, when: Conditions) -> bool:
    """Whether streaming pays for a transpose that the cache could hold: result rows are long, or narrow.

    One that would stay in the cache is only staged, if register blocks lose lines otherwise. Staged rows of 9 to 31 elements of eight bytes, or of 31 of four, are up to 1.7 times as fast through the
    cache. Those of 57 elements, of 31 of two bytes, or of 15 of four, are up to 1.7 times as fast past it
    (17 MB, Zen 4, 2026-11).
    """
    if schedule.short or not _fills_blocks(schedule):
        return False
    if not streams_transposes(box, when):
        source, result = crowding(box)
        both = min(source, result) >= BOTH_CROWDED and not schedule.stages_rows
        return schedule.staged and (source >= CROWDED or both)
    rows, _ = schedule.tile(box.extents)
    return not schedule.stages_rows or rows * box.width < LINE_BYTES or rows > MOST_CACHED_ROWS


def _packs_chunks(box: StridedBox, inner: InnerLoops) -> bool:
    """Whether rows that are packed together in the destination begin at most a line apart in the source."""
    if inner.packed != "dst" or inner.joins_rows or box.source is None:
        return False
    return 0 < box.axis(inner.joined("row")[0]).src <= LINE_BYTES


def _begins_inside_lines(box: StridedBox, inner: InnerLoops) -> bool:
    """Whether the destination's rows, one for each column of the source, may begin inside a line."""
    if inner.packed != "src" or inner.joins_rows:
        return False
    return box.axis(inner.joined("column")[0]).dst % LINE_BYTES != 0


def loop_schedule(
    box: StridedBox,
    inner: InnerLoops,
    outer: list[Axis],
    when: Conditions,
    *,
    stream: bool,
    on_lines: bool = True,
    grouped: bool = True,
) -> Schedule:
    """The schedule of inner loops inside `outer` ones, outermost first, or in strips of the caller's size.

    `on_lines` says whether the destination begins a line; `grouped`, whether groups of rows move together.
    """
    strips = choose_copy_strips(box, inner, outer, when)
    in_strips = any(x.axis == inner.loops[0].name for x in strips.tiles)
    directives = inner.directed(stream=stream, in_strips=in_strips)
    loops, groups, together = inner.loops, None, None
    around_inner, shared, cuts = strips.around, strips.shared, inner.cuts
    if stream and inner.packed == "src" and when.size is None:
        groups, together = grouped_axes(box, inner, outer, when.threads, on_lines=on_lines)
        groups = () if groups and not grouped else groups
    if groups is not None:
        directives = *inner.directives, Groups(RowGroups()), *staged_rows(box.width)
        loops = *loops, Joined("groups", groups)
    if groups:
        around_inner = shared = tuple(around(outer, groups, together))
        cuts = (Cut(groups[-1], together, STRIP),) if together else ()
    order = shared_first(around_inner, shared, when.threads)
    over_strips = {x.index for x in strips.tiles}
    if strips.tiles:
        names = (*order, *(x.index for x in inner.obeying(Tile)), *(x.name for x in loops))
        directives = *strips.tiles, Reorder(names), *directives
    axes = tuple(name for name in order if name not in over_strips)
    made = Schedule(axes, loops, directives, cuts, strips.sized)
    return replace(made, directives=(*directives, *later_entries(box, made)))
