"""Choose the order of the outer loops by the number of pages touched per window of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox, cut_axis, long_axis
from codegen.schedule.schedule import Cut

WINDOW_BYTES = 1 << 16
PAGE_BYTES = 1 << 12
LONG_RUN_BYTES = 256

CUT_RUN_BYTES = 1024
"""Streamed runs shorter than this that begin or end inside lines are read in order.

Their first and last lines go through the cache, which stalls the streamed ones beside them. From 4 rows on,
runs of 270 to 520 bytes are 1.2 to 1.7 times as fast as in the order of the destination, runs of 800 bytes
as fast (Zen 4, 2026-11)."""

READ_BYTES = 1 << 12
"""Size of the source window that is read at a time if its chunks go to distant offsets."""

FAR_BYTES = 1 << 16
"""Page-aligned chunks this far apart, or further, share L2 cache sets."""

LEAST_CUT_BYTES = 4 << 20
"""Boxes smaller than this touch few pages in any order."""

WORTH_WINDOWS = 0.5
"""Windows pay if they touch less than this share of the pages that either side's order touches."""


def best_order(
    box: StridedBox, outer: list[Axis], inner: tuple[str, ...], *, reads_first: bool = False
) -> list[Axis]:
    """The order of the source or of the destination, whichever touches fewer pages within a window.

    Reading in order is worth a fifth if runs are long, because the hardware prefetches it. Short runs of full
    lines are always read in order: the lines that they prefetch are read next, and their stores never wait.
    Loops that were split for source windows run by windows; with `reads_first`, so do all loops for which
    this order touches no more pages.
    """
    if box.source is None:
        return outer
    in_source = by_source(outer)
    if box.unit_bits == 1:
        # The side with one byte per element has nearly all the bytes.
        return in_source if box.target.bits < 8 else outer
    run = prod(axis.extent for axis in box.axes if axis.name in inner) * box.width
    if run < LONG_RUN_BYTES and not reads_first and not _is_cut(outer) and _full_lines(outer, run):
        return in_source
    if len(inner) == 1 and LONG_RUN_BYTES <= run < CUT_RUN_BYTES and not _full_lines(outer, run):
        return in_source

    def pages(order: list[Axis]) -> int:
        return _pages_touched(order, "src", run) + _pages_touched(order, "dst", run)

    weight = 0.5 if run >= LONG_RUN_BYTES else 1.0
    one_side = in_source if pages(in_source) * weight < pages(outer) else outer
    windows = _by_windows(outer)
    worth = WORTH_WINDOWS * min(pages(outer), pages(in_source))
    if reads_first and pages(windows) <= pages(one_side):
        return windows
    return windows if _is_cut(outer) and pages(windows) < worth else one_side


def _full_lines(outer: list[Axis], run: int) -> bool:
    """Whether all runs of the destination are full, aligned lines if the first one is aligned."""
    return all(step % LINE_BYTES == 0 for step in (run, *(x.dst for x in outer)))


def by_source(outer: list[Axis]) -> list[Axis]:
    """The order that reads the source without stepping back."""
    return sorted(outer, key=lambda loop: -abs(loop.src))


def shared_first(loops: Sequence[Axis], shared: Sequence[Axis], threads: int) -> tuple[str, ...]:
    """The order of some loops. If the first one is too short for the threads, they share the longest one.

    shared  the loops that may become the first one
    """
    if threads == 1 or not loops or loops[0].extent >= 2 * threads:
        return tuple(x.name for x in loops)
    first = max((loops[0], *shared), key=lambda loop: loop.extent)
    return tuple(x.name for x in (first, *(x for x in loops if x is not first)))


def window_cut(box: StridedBox, inner: tuple[str, ...]) -> Cut | None:
    """The cut by which the source is read by windows; None if no gain.

    In the order of one side, chunks that are far apart on the other side touch a page each. A window of a few
    KiB of the source, read in order, touches few pages on both sides. This pays if those pages share cache
    sets; otherwise the order of one side is as fast as a plain copy.
    """
    if box.source is None or box.entries or box.size_bytes < LEAST_CUT_BYTES:
        return None
    far = [abs(loop.src) for loop in box.axes if loop.name not in inner]
    if not any(step >= FAR_BYTES and step % PAGE_BYTES == 0 for step in far):
        return None
    for loop in box.axes:
        step, extent = loop.src, loop.extent
        if loop.name in inner or not 0 < step <= READ_BYTES // 2 or step * extent < 4 * READ_BYTES:
            continue
        cut = Cut(loop.name, READ_BYTES // step, long_axis(loop.name))
        blocks, *_ = cut_axis(box, cut.axis, cut.block, cut.outer)
        outer = [x for x in blocks.axes if x.name not in inner]
        found = best_order(blocks, outer, inner)
        if found == _by_windows(outer) and found not in (outer, by_source(outer)):
            return cut
    return None


def _by_windows(outer: list[Axis]) -> list[Axis]:
    """Loops inside a source window in source order; the windows themselves in destination order."""
    near = [x for x in outer if abs(x.src) * x.extent <= READ_BYTES]
    return [x for x in outer if x not in near] + by_source(near)


def _is_cut(outer: list[Axis]) -> bool:
    axes = {loop.name for loop in outer}
    return any(long_axis(axis) in axes for axis in axes)


def _pages_touched(order: list[Axis], side: Side, run: int) -> int:
    """The number of pages that one side touches while the innermost loops move a window of bytes."""
    offsets = np.zeros(1, np.int64)
    for loop in reversed(order):
        missing = max(1, -(-WINDOW_BYTES // (run * len(offsets))))
        steps = np.arange(min(loop.extent, missing)) * loop.stride(side)
        offsets = (steps[:, None] + offsets[None, :]).ravel()
    pages = np.sort(offsets // PAGE_BYTES)  # np.unique would import numpy.ma
    return 1 + int(np.count_nonzero(pages[1:] != pages[:-1]))
