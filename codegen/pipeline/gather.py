"""Copy all boxes in one launch, so that a line shared by several runs is assembled and written once."""

from __future__ import annotations

from codegen.analysis.ranges import affine_range, check_range
from codegen.frontend.box_copy import copied_box, padding_box
from codegen.ir.strided_box import Element, StridedBox
from codegen.maps.boxed_copy import BoxedCopy
from codegen.pipeline.observer import Observer
from codegen.pipeline.passes import JOIN, run_passes
from codegen.pipeline.steps import first_arguments, kernel_of, proven
from codegen.runtime.calls import Pattern, PlainCall
from codegen.runtime.copy_calls import SegmentCalls
from codegen.runtime.launch import Launch
from codegen.runtime.step import Step
from codegen.schedule.choose_joined import JoinedBoxes
from codegen.schedule.choose_swizzle import ChunkTable
from codegen.schedule.segments import Segments


def joined_launch(
    copy: BoxedCopy, joined: JoinedBoxes, element: Element, pattern: Pattern | None, observe: Observer
) -> Launch:
    """The launch of a complete copy without conversions, as `choose_joined` decided.

    `pattern` is the padding as two eight-byte numbers, or None to leave padding as it is.

    Raises:
        KernelError: a box or its table leaves the storages.
    """
    schedule, table = joined.schedule, joined.table
    _check_boxes(copy)
    boxes = _boxes(copy, element, padded=pattern is not None and isinstance(table, Segments))
    for box in boxes:
        observe("box", box)
    observe("choose_joined", schedule)
    (nest,) = run_passes(JOIN, boxes[0], joined, observe)
    bounds = copy.src.byte_bounds, copy.dst.byte_bounds
    kernel, sizes = kernel_of(nest, first_arguments(nest), observe)
    step = Step(boxes[0], schedule, nest, kernel, sizes, tuple(boxes[1:]))
    if isinstance(table, Segments):
        _check_segments(copy, table)
        calls = SegmentCalls(table, pattern)
        return proven(Launch(step, calls, 0, copy.dst.bounds[0], table.count, bounds, pattern))
    _check_chunks(copy, table)
    return proven(Launch(step, PlainCall(), table.src, table.dst, nest.trips, bounds))


def _boxes(copy: BoxedCopy, element: Element, *, padded: bool) -> list[StridedBox]:
    """All boxes, the largest one first, and those of the padding if it is written."""
    by_size = sorted(copy.boxes, key=lambda b: -b.volume)
    boxes = [copied_box(copy, box, element, element) for box in by_size if box.volume]
    for pad in copy.pads if padded else ():
        if pad.volume:
            boxes.append(padding_box(copy, pad, element, element.bits // 8))
    return boxes


def _check_segments(copy: BoxedCopy, segments: Segments) -> None:
    """Prove that the segment tables stay within the source, the buffer and the destination.

    The runs of a part are read from `src`, stored in the buffer at `offset`, and written at `dst`.
    """
    for part in segments.parts:
        digits = (*part.inner, *part.outer)
        low, high = affine_range(part.src, [(n, step) for n, step, _ in digits])
        if not part.fills:
            check_range("source", low, high + part.run, copy.src.bounds)
        low, high = affine_range(part.offset, [(n, step) for n, _, step in part.inner])
        check_range("buffer of a segment", low, high + part.run, (0, segments.length))
        at, last = affine_range(part.dst, [(n, step) for n, _, step in part.outer])
        check_range("destination", at + low, last + high + part.run, (0, segments.stop))
        along = sum((n - 1) * step for n, _, step in part.outer if step % segments.row)
        at = part.dst % segments.row
        check_range("row of segments", at + low, at + along + high + part.run, (0, segments.filled))
    low, stop = copy.dst.bounds
    check_range("destination", low, low + segments.stop, (low, stop))


def _check_chunks(copy: BoxedCopy, table: ChunkTable) -> None:
    """Prove the same for chunks that are read at every offset of `outer` and written there side by side."""
    low, high = affine_range(table.src, [(n, step) for n, step, _ in table.outer])
    nearest, farthest = min(table.offsets), max(table.offsets) + table.width
    check_range("source", low + nearest, high + farthest, copy.src.bounds)
    low, high = affine_range(table.dst, [(n, step) for n, _, step in table.outer])
    check_range("destination", low, high + table.bytes_each, copy.dst.bounds)


def _check_boxes(copy: BoxedCopy) -> None:
    """Prove that every box stays within the storages."""
    for box in copy.boxes:
        for side, base, k, access in (
            ("source", box.src_base, 1, copy.src),
            ("destination", box.dst_base, 2, copy.dst),
        ):
            low, high = affine_range(base, [(d[0], d[k]) for d in box.digits])
            check_range(side, low, high + access.width, access.bounds)
