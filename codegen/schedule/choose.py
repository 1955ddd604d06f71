"""Choose a schedule for a normalized box."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_copy_strips import choose_copy_strips
from codegen.schedule.choose_directives import InnerLoops, elements, later_entries
from codegen.schedule.choose_inner import inner_loops, short_loops
from codegen.schedule.choose_interleave import RowGroups, row_groups
from codegen.schedule.choose_order import best_order, shared_first
from codegen.schedule.choose_shuffle import shuffle_instead
from codegen.schedule.choose_transpose import misaligned_transpose, transpose_schedule
from codegen.schedule.conditions import DEFAULT_CONDITIONS, Conditions
from codegen.schedule.directives import Prefetch, Reorder, Tile
from codegen.schedule.machine import ALIAS_BYTES, NEVER_STREAM
from codegen.schedule.schedule import Schedule
from codegen.schedule.transpose_loops import crowding, shares_sets

TRANSPOSED_SHARE, SHARING_SHARE = 15 / 16, 2 / 3
"""Transposes stream from this share of the threshold on; the second one if rows share cache sets."""

CROWDED, BOTH_CROWDED, CROWDED_BYTES = 4, 2, 256 << 10
"""Transposes in cache that read and write at least so many bytes are staged from this crowding of source rows
on, or from this one of both sides if parts of result rows are staged.

Speed of 33 transposes with sides of 0.5 to 9 MB, staged as a multiple of in place, if the destination
begins at the same offset in a page as the source, then if not (Zen 4, 2026-11): at (2, 2) 1.8 to 3.2, then
1.1 to 1.5; at (4, 0) 1.5 to 1.7, then 1.4 to 1.8; at (8, 0) 2.0 to 2.1, then 2.0. At (1, 1) and (2, 1) 0.9 to
2.1, then 0.6 to 1.3; with complete rows at (2, 2) 1.1, then 0.5; below 0.5 to 1.2, then 0.4 to 1.0.
"""


def choose(box: StridedBox, when: Conditions = DEFAULT_CONDITIONS, *, shuffles: bool = True) -> Schedule:
    """The schedule for one box.

    If both sides are contiguous along the same loop, the copy uses runs, which are reversed if the source
    goes backwards there. If they are contiguous along different loops, it transposes or interleaves. Short
    chunks that together fill lines are copied by a table. Everything else is copied element by element along
    the destination's most minor loop. Where all this would move few bytes at a time, bytes are shuffled
    instead.

    Without `shuffles`, the schedule is that of the other methods.
    """
    found = _without_shuffles(box, when)
    if not shuffles or when.size:
        return found
    return shuffle_instead(box, found, when) or found


def _without_shuffles(box: StridedBox, when: Conditions) -> Schedule:
    """The schedule of a box by the other methods."""
    past_cache = when.go_past_cache(box)
    inner = inner_loops(box, past_cache=past_cache)
    if inner is None:
        if found := transposed(box, when):
            return found
        inner = short_loops(box)
    stream = past_cache and bool(inner.streams)
    outer = best_order(box, outer_loops(box, inner.inner), inner.inner, stream=stream)
    return loop_schedule(box, inner, outer, when, stream=stream)


def transposed(box: StridedBox, when: Conditions) -> Schedule | None:
    """The schedule of a transpose, past the cache or in it; None if its digits are too short."""
    past_cache = when.go_past_cache(box)
    found = transpose_schedule(box, when, stream=past_cache)
    if not past_cache and (_streams(box, when) or _is_crowded(box, when)):
        streamed = transpose_schedule(box, when, stream=True)
        return streamed if streamed and _gains_by_streaming(box, streamed, when) else found
    return found


def simplest(box: StridedBox) -> Schedule:
    """The schedule that fits every box: element by element along the last loop."""
    inner = elements(box)
    return Schedule(tuple(axis.name for axis in box.axes[:-1]), inner.loops, inner.directives)


def misaligned(schedule: Schedule, box: StridedBox, when: Conditions) -> Schedule | None:
    """The schedule for a destination that does not begin a line; None if it is the same."""
    if schedule.transposes:
        return misaligned_transpose(schedule, box, when)
    inner = inner_loops(box, past_cache=True, on_lines=False)
    if not schedule.stream or schedule.staged or inner is None or not inner.in_parts:
        return None
    outer = best_order(box, outer_loops(box, inner.inner), inner.inner, stream=True)
    found = loop_schedule(box, inner, outer, when, stream=True, on_lines=False)
    return found if found.staged else None


def outer_loops(box: StridedBox, inner: tuple[str, ...]) -> list[Axis]:
    """The loops around those named in `inner`, in the order of the box."""
    return [loop for loop in box.axes if loop.name not in inner]


def _streams(box: StridedBox, when: Conditions) -> bool:
    """Whether streaming pays for a transpose that would fit in cache: it visits each line several times.

    The threshold counts as half of the last cache if it is more than that, which one core seldom has alone.
    Rows that share cache sets are evicted even sooner. These shares cost the
    least in record-zen-4-avx512 and record-zen-4-avx2 (2026-12).
    """
    share = SHARING_SHARE if shares_sets(box, ALIAS_BYTES) else TRANSPOSED_SHARE
    return when.go_past_share(box, share)


def _is_crowded(box: StridedBox, when: Conditions) -> bool:
    """Whether a transpose in cache may lose lines of register blocks before all of their bytes are used."""
    if when.stream_bytes == NEVER_STREAM or box.converts or box.entries or box.row.src % ALIAS_BYTES == 0:
        return False  # rows that are exactly a multiple apart have blocks of their own
    if crowding(box)[0] < BOTH_CROWDED:
        return False
    return replace(when, stream_bytes=CROWDED_BYTES).go_past_cache(box)


def _fills_blocks(cut: Schedule) -> bool:
    """Whether a transpose has full blocks. Staging few columns costs more than lines that are evicted."""
    return not cut.stages_rows or (not cut.short and cut.lanes["column"] >= cut.lanes["row"])


def _gains_by_streaming(box: StridedBox, schedule: Schedule, when: Conditions) -> bool:
    """Whether streaming pays for a transpose that the cache could hold.

    One that would stay in the cache is only staged, if register blocks lose lines otherwise.
    """
    if schedule.short or not _fills_blocks(schedule):
        return False
    source, result = crowding(box)
    both = min(source, result) >= BOTH_CROWDED and not schedule.stages_rows
    return _streams(box, when) or (schedule.staged and (source >= CROWDED or both))


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
    directives, groups = inner.directed(stream=stream, in_strips=in_strips), RowGroups(strips.around)
    staged = stream and not in_strips and bool(inner.in_parts) and not (on_lines and _fills_lines(box, inner))
    if staged:
        directives = tuple(x for x in inner.in_parts if not (strips.tiles and isinstance(x, Prefetch)))
    own = [x for x in directives if isinstance(x, Tile)]
    if staged and grouped and inner.joins_rows and not strips.tiles:
        groups = row_groups(box, inner, own[0], outer, when.threads)
    order = shared_first(groups.around, groups.around if groups.axes else strips.shared, when.threads)
    tiles = *strips.tiles, *groups.tiles
    if tiles or staged:
        own += groups.strips
        names = *order, *(x.index for x in own), *groups.axes, *(x.name for x in inner.loops)
        others = (x for x in directives if not isinstance(x, Tile))
        directives = *tiles, *own, Reorder(names), *others
    over_tiles = {x.index for x in tiles}
    axes = *(name for name in order if name not in over_tiles), *groups.axes
    made = Schedule(axes, inner.loops, directives, inner.cuts, strips.sized)
    return replace(made, directives=(*directives, *later_entries(box, made)))


def _fills_lines(box: StridedBox, inner: InnerLoops) -> bool:
    """Whether all rows of the destination begin lines if the first one does."""
    steps = (x.dst for x in box.axes if x.name not in inner.loops[0].axes)
    return all(step * box.unit_bits % (8 * LINE_BYTES) == 0 for step in steps)
