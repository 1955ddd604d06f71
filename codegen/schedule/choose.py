"""Choose a schedule for a normalized box."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.choose_copy_strips import choose_copy_strips
from codegen.schedule.choose_inner import Selection, inner_loops, short_loops, streams_lines
from codegen.schedule.choose_interleave import around, grouped_axes, joined_axes
from codegen.schedule.choose_order import best_order, by_source
from codegen.schedule.choose_shuffle import shuffle_instead
from codegen.schedule.choose_transpose import misaligned_transpose, transpose_schedule
from codegen.schedule.directives import Reorder
from codegen.schedule.machine import ALIAS_BYTES, machine
from codegen.schedule.schedule import (
    MOST_LOOPS,
    PREFETCH_BYTES,
    Schedule,
    Transpose,
    VectorSize,
)
from codegen.schedule.thresholds import DEFAULT_THRESHOLDS, Thresholds
from codegen.schedule.transpose_box import TransposeBox
from codegen.schedule.transpose_loops import shares_sets

LONG_DIGIT = 1 << 13
"""Elements per block of a transpose's long digit: a multiple of a line for every element size."""

PACKED_PREFETCH_BYTES = 1024
"""Prefetch distance in the source of streamed packed bits."""

PREFETCH_COLUMNS = 256
"""The same for packed columns, in columns."""

EDGE_PART = 128
"""Boxes that write less than this part of the bytes read and written are edges: they use the kernels of
copies in cache, which boxes of small copies have as well. A copy of MAX_BOXES equal boxes has none."""

TRANSPOSED_SHARE, SHARING_SHARE = 3 / 4, 2 / 3
"""Transposes stream from this share of the threshold on; the second one if rows share cache sets."""

FAR_SHARE = 2 / 5
"""Shuffles prefetch from this share of the threshold on. Below, prefetches cost up to a quarter; above, most
shuffles are 1.2 to 2.6 times as fast with them (30 shuffles of 1 to 85 MB, Zen 4, 2026-11)."""

MOST_CACHED_ROWS = 32
"""Panels of up to this many rows, of a line or more, stay in cache if they fit there."""


def choose(
    box: StridedBox,
    *,
    threads: int = 1,
    footprint: int = 0,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    virtual_vector_size: VectorSize | None = None,
    shuffles: bool = True,
    into_cache: bool = False,
) -> Schedule:
    """The schedule for one box.

    If both sides are contiguous along the same loop, the copy uses runs, which are reversed if the source
    goes backwards there. If they are contiguous along different loops, it transposes or interleaves. Short
    chunks that together fill lines are copied by a table. Everything else is copied element by element along
    the destination's most minor loop. Where all this would move few bytes at a time, bytes are shuffled
    instead.

    `footprint` is the number of bytes that the complete copy reads and writes; `virtual_vector_size` counts
    elements of the box. Without `shuffles`, the schedule is that of the other methods. `into_cache` says that
    the destination is in cache and the source is not.
    """
    if box.blocks:
        block = box.one_block
        inside = choose(block, footprint=2 * block.size_bytes, thresholds=thresholds, shuffles=shuffles)
        return around_blocks(inside, box, threads)
    found = _without_shuffles(box, threads, footprint, thresholds, virtual_vector_size, into_cache)
    if not shuffles or virtual_vector_size:
        return found
    return shuffle_instead(box, found, threads, far=is_far(box, footprint, thresholds)) or found


def _without_shuffles(
    box: StridedBox,
    threads: int,
    footprint: int,
    thresholds: Thresholds,
    size: VectorSize | None,
    into_cache: bool,
) -> Schedule:
    """The schedule of a box by the other methods."""
    past_cache = goes_past_cache(box, footprint, thresholds)
    selection = inner_loops(box, past_cache=past_cache)
    mode, inner, interleave = selection
    if mode == "transpose" or (
        past_cache and interleave == "src" and len(inner) == 2 and _begins_inside_lines(box, inner[0])
    ):
        found = transpose_schedule(box, stream=past_cache, threads=threads, size=size)
        if not past_cache and streams_transposes(box, footprint, thresholds):
            streamed = transpose_schedule(box, stream=True, threads=threads, size=size)
            found = streamed if streamed and _gains_by_streaming(box, streamed) else found
        if found is not None and not (interleave and _leaves_registers_empty(found)):
            return replace(found, split=_has_long_digit(box))
    if mode == "transpose":
        selection = mode, inner, interleave = short_loops(box, inner)
    stream = past_cache and streams_lines(box, mode, inner, interleave)
    outer = outer_loops(box, inner)
    if stream:
        outer = best_order(box, outer, inner, reads_first=interleave == "dst" and _is_chunk(box, inner))
    elif into_cache and (mode == "run" or interleave == "src"):
        outer = by_source(outer)  # whose next lines are prefetched, while those of the block are near anyway
    return loop_schedule(box, selection, outer, threads, size, stream=stream)


def simplest(box: StridedBox) -> Schedule:
    """The schedule that fits every box: element by element along the last loop."""
    *outer, last = (*(axis.name for axis in box.axes),) or ("",)
    inner = (last,) if last else ()
    return Schedule("elements", tuple(outer), inner)


def misaligned(schedule: Schedule, box: StridedBox, size: VectorSize | None, threads: int) -> Schedule | None:
    """The schedule for a destination that does not begin a line; None if it is the same.

    `size` is the caller's size of super-vectors.
    """
    if schedule.transpose:
        return misaligned_transpose(schedule, box, size, threads)
    if not schedule.stream or schedule.interleave != "src" or schedule.groups or schedule.strip or size:
        return None
    column, row = (box.axis(name) for name in schedule.inner[:2])
    joined = joined_axes(box, row, column, "src", past_cache=True, on_lines=False)
    inner = column.name, row.name, *joined
    outer = best_order(box, outer_loops(box, inner), inner)
    found = loop_schedule(
        box, ("interleave", inner, "src"), outer, threads, None, stream=True, on_lines=False
    )
    return found if found.groups else None


def around_blocks(inside: Schedule, box: StridedBox, threads: int) -> Schedule:
    """The schedule of a block with the loops around all blocks. Threads share the longest of these."""
    around = box.axes[: box.blocks]
    if threads > 1:
        around = tuple(sorted(around, key=lambda x: -x.extent))
    names = tuple(x.name for x in around)
    outer = *names, *inside.outer
    cut = inside.transpose
    cut = cut and cut.changed(Reorder((*names, *cut.order)))
    return replace(inside, outer=outer, transpose=cut)


def outer_loops(box: StridedBox, inner: tuple[str, ...]) -> list[Axis]:
    """The loops around those named in `inner`, in the order of the box."""
    return [loop for loop in box.axes if loop.name not in inner]


def _has_long_digit(box: StridedBox) -> bool:
    """Whether a digit along which a side is contiguous is long, which would make long tables of offsets."""
    digits = box.contiguous("dst"), box.contiguous("src")
    is_long = any(axis and axis.extent > 2 * LONG_DIGIT for axis in digits)
    return is_long and box.unit_bits == 8 and len(box.axes) + len(digits) <= MOST_LOOPS


def goes_past_cache(box: StridedBox, footprint: int, thresholds: Thresholds) -> bool:
    """Whether the copy is too large for the cache, and the box more than an edge of it."""
    is_edge = not box.entries and EDGE_PART * box.size_bytes < footprint
    return footprint >= thresholds.stream_bytes and not is_edge


def streams_transposes(box: StridedBox, footprint: int, thresholds: Thresholds) -> bool:
    """Whether streaming pays for a transpose that would fit in cache: it visits each line several times.

    The threshold counts as half of the last cache if it is more than that, which one core seldom has alone.
    Rows that share cache sets are evicted even sooner. Measured on 45 random transposes of 3 to 14 MiB
    (Zen 4, 2026-11): most are faster from these shares on, whether or not a call before left them in cache.
    """
    share = SHARING_SHARE if shares_sets(TransposeBox.of(box), ALIAS_BYTES) else TRANSPOSED_SHARE
    return goes_past_cache(box, footprint, share_of_cache(thresholds, share))


def is_far(box: StridedBox, footprint: int, thresholds: Thresholds) -> bool:
    """Whether most lines that a shuffle reads are not in the second cache, so that prefetches pay."""
    return goes_past_cache(box, footprint, share_of_cache(thresholds, FAR_SHARE))


def share_of_cache(thresholds: Thresholds, share: float) -> Thresholds:
    """Thresholds at a share of these, or of half of the last cache if that is less."""
    most = min(thresholds.stream_bytes, machine().last_cache_bytes // 2 or thresholds.stream_bytes)
    return Thresholds(int(most * share))


def _leaves_registers_empty(schedule: Schedule) -> bool:
    """Whether a transpose has source rows of a part of a lane, or panels of few columns."""
    cut = schedule.transpose
    return cut is not None and (cut.short or not _fills_blocks(cut))


def _fills_blocks(cut: Transpose) -> bool:
    """Whether a transpose has full blocks. Panels of few columns cost more than lines that are evicted."""
    return not cut.dense or (not cut.short and cut.lanes["column"] >= cut.lanes["row"])


def _gains_by_streaming(box: StridedBox, schedule: Schedule) -> bool:
    """Whether streaming pays for a transpose that the cache could hold: result rows are long, or narrow.

    Panels of 9 to 31 rows of eight bytes, or of 31 rows of four, are up to 1.7 times as fast through the
    cache. Panels of 57 rows, of 31 rows of two bytes, or of 15 of four, are up to 1.7 times as fast past it
    (17 MB, Zen 4, 2026-11).
    """
    cut = schedule.transpose
    if cut is None or cut.short or not _fills_blocks(cut):
        return False
    rows, _ = cut.tile(box.extents)
    return not cut.dense or rows * box.width < LINE_BYTES or rows > MOST_CACHED_ROWS


def _is_chunk(box: StridedBox, inner: tuple[str, ...]) -> bool:
    """Whether the source rows that an interleave packs together begin at most a line apart."""
    return box.source is not None and len(inner) == 2 and 0 < box.axis(inner[1]).src <= LINE_BYTES


def _begins_inside_lines(box: StridedBox, columns: str) -> bool:
    """Whether the destination's rows, one for each column, may begin inside a line."""
    return box.axis(columns).dst % LINE_BYTES != 0


def loop_schedule(
    box: StridedBox,
    selection: Selection,
    outer: list[Axis],
    threads: int,
    size: VectorSize | None,
    *,
    stream: bool,
    on_lines: bool = True,
) -> Schedule:
    """The schedule of a selection inside `outer` loops, outermost first, or in strips of the caller's size.

    `on_lines` says whether the destination begins a line.
    """
    mode, inner, interleave = selection
    strips = choose_copy_strips(box, selection, outer, size)
    strip, groups, together = strips.strip, None, None
    if stream and interleave == "src":
        groups, together = grouped_axes(box, inner, outer, threads, on_lines=on_lines)
        groups = () if groups and (strip or strips.row) else groups
    if groups:
        outer, strip = around(outer, groups, together), together
    else:
        outer = strips.around(box, selection, outer)
    # Threads share complete super-vectors if there are loops around them.
    outside = outer[: outer.index(strips.row)] or outer if strips.row else outer
    if threads > 1 and outer and outer[0].extent < 2 * threads:
        widest = max(outside, key=lambda loop: loop.extent)
        if widest.extent > outer[0].extent:
            outer.remove(widest)
            outer.insert(0, widest)
    axes = tuple(loop.name for loop in outer)
    return Schedule(
        *(mode, axes, inner, interleave, stream),
        strip=strip,
        row=strips.row.name if strips.row else "",
        rows=strips.rows,
        groups=groups,
        sized=strips.sized,
        prefetch_bytes=_prefetch_bytes(box, selection) if stream else PREFETCH_BYTES,
    )


def _prefetch_bytes(box: StridedBox, selection: Selection) -> int:
    """How far ahead streamed runs and packed bits request lines."""
    mode, inner, _ = selection
    if mode not in ("pack bits", "unpack bits"):
        return PREFETCH_BYTES
    if len(inner) == 1:
        return PACKED_PREFETCH_BYTES
    rows, bits = box.axis(inner[-1]).extent, min(e.bits for e in (box.source, box.target) if e)
    return PREFETCH_COLUMNS * (1 if mode == "pack bits" else rows * bits // 8)
