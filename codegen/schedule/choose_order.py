"""Choose the order of the outer loops by the number of pages touched per window of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox

WINDOW_BYTES = 1 << 16
PAGE_BYTES = 1 << 12
LONG_RUN_BYTES = 256

CUT_RUN_BYTES = 1024
"""Streamed runs shorter than this that begin or end inside lines are read in order.

Their first and last lines go through the cache, which stalls the streamed ones beside them. From 4 rows on,
runs of 270 to 520 bytes are 1.2 to 1.7 times as fast as in the order of the destination, runs of 800 bytes
as fast (Zen 4, 2026-11)."""


def best_order(box: StridedBox, outer: list[Axis], inner: tuple[str, ...], *, stream: bool) -> list[Axis]:
    """The order of the source or of the destination, whichever touches fewer pages within a window.

    Past the caches, reading in order is worth a fifth if runs are long, because the hardware prefetches it.
    Short runs of full lines are always read in order there: the lines that they prefetch are read next, and
    their stores never wait.
    """
    if box.source is None:
        return outer
    in_source = by_source(outer)
    if box.unit_bits == 1:
        # The side with one byte per element has nearly all the bytes.
        return in_source if box.target.bits < 8 else outer
    run = prod(axis.extent for axis in box.axes if axis.name in inner) * box.width
    if stream and run < LONG_RUN_BYTES and _full_lines(outer, run):
        return in_source
    if stream and len(inner) == 1 and LONG_RUN_BYTES <= run < CUT_RUN_BYTES and not _full_lines(outer, run):
        return in_source

    def pages(order: list[Axis]) -> int:
        return _pages_touched(order, "src", run) + _pages_touched(order, "dst", run)

    weight = 0.5 if stream and run >= LONG_RUN_BYTES else 1.0
    return in_source if pages(in_source) * weight < pages(outer) else outer


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


def _pages_touched(order: list[Axis], side: Side, run: int) -> int:
    """The number of pages that one side touches while the innermost loops move a window of bytes."""
    offsets = np.zeros(1, np.int64)
    for loop in reversed(order):
        missing = max(1, -(-WINDOW_BYTES // (run * len(offsets))))
        steps = np.arange(min(loop.extent, missing)) * loop.stride(side)
        offsets = (steps[:, None] + offsets[None, :]).ravel()
    pages = np.sort(offsets // PAGE_BYTES)  # np.unique would import numpy.ma
    return 1 + int(np.count_nonzero(pages[1:] != pages[:-1]))
