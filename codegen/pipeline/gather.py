"""Copy all boxes in one launch, so that a line shared by several runs is assembled and written once."""

from __future__ import annotations

from math import prod

from codegen.analysis.ranges import affine_range, check_range
from codegen.frontend.lower_copy import LoweredCopy, copied_box, padding_box
from codegen.ir.strided_box import Element
from codegen.maps.refine import Box
from codegen.passes.pad_rank import pad_rank
from codegen.pipeline.steps import Observer, kernel_of, trips_of
from codegen.runtime.copy_calls import Pattern, PlainCall, SegmentCalls
from codegen.runtime.kernel import Step
from codegen.runtime.launch import Launch
from codegen.schedule.choose import padded_rank
from codegen.schedule.choose_segments import SEGMENT_LIMITS, segments_of
from codegen.schedule.choose_swizzle import ChunkTable, chunk_table_of
from codegen.schedule.offset_tables import LINE_TABLE, OffsetTable
from codegen.schedule.schedule import Schedule
from codegen.schedule.segments import SEGMENT_ARGUMENTS, Segments
from codegen.schedule.transfers import CopyChunks, Gather, Loop, TransferNest


def gathered(
    copy: LoweredCopy, element: Element, pattern: Pattern | None, observe: Observer
) -> Launch | None:
    """The launch of a complete copy without conversions; None where it is better to move boxes one by one.

    `pattern` is the padding as two eight-byte numbers, or None to leave padding as it is.
    """
    segments = segments_of(copy, padded=pattern is not None, limits=SEGMENT_LIMITS)
    if segments is None:
        return None
    _check_boxes(copy)
    _check_segments(copy, segments)
    largest, *others = sorted(copy.boxes, key=lambda b: -b.volume)
    boxes = [copied_box(copy, box, element, element) for box in (largest, *(b for b in others if b.volume))]
    for pad in copy.pads if pattern is not None else ():
        digits = tuple((n, 0, step) for n, step in pad.digits)
        if prod(n for n, _, _ in digits):
            boxes.append(padding_box(copy, Box(0, pad.dst_base, digits), element))
    for box in boxes:
        observe("box", box)
    nest = TransferNest((), Gather(segments))
    observe("gathered", nest)
    kernel, _ = kernel_of(nest, SEGMENT_ARGUMENTS, observe)
    step = Step(boxes[0], Schedule("gather", (), (), stream=True), nest, kernel, (), tuple(boxes[1:]))
    calls, bounds = SegmentCalls(segments, pattern), (copy.src.byte_bounds, copy.dst.byte_bounds)
    return Launch(step, calls, 0, copy.dst.bounds[0], segments.count, bounds, pattern)


def chunked(
    copy: LoweredCopy,
    element: Element,
    pattern: Pattern | None,
    observe: Observer,
    *,
    stream: bool,
    threads: int,
) -> Launch | None:
    """The launch of a copy whose boxes repeatedly write the same chunks side by side, read by one table.

    None where they do not, where padding is written too, or where a streaming copy would read distant chunks.
    """
    found = chunk_table_of(copy)
    pads = pattern is not None and (copy.fill_first or any(p.volume for p in copy.pads))
    if found is None or pads or (stream and not found.is_near):
        return None
    _check_boxes(copy)
    _check_chunks(copy, found)
    boxes = [copied_box(copy, box, element, element) for box in copy.boxes if box.volume]
    for box in boxes:
        observe("box", box)
    loops = tuple(Loop(f"d{k}", *digit) for k, digit in enumerate(found.outer))
    transfer = CopyChunks(found.width, len(found.offsets), OffsetTable(listed=found.offsets), stream)
    axes = tuple(loop.axis for loop in loops)
    rank, shared = padded_rank(len(axes), threads), threads > 1
    schedule = Schedule("chunks", axes, (), rank=rank, stream=stream, shared=shared)
    nest = pad_rank(TransferNest(loops, transfer), schedule)
    observe("chunked", nest)
    kernel, sizes = kernel_of(nest, (LINE_TABLE,), observe)
    step = Step(boxes[0], schedule, nest, kernel, sizes, tuple(boxes[1:]))
    bounds = copy.src.byte_bounds, copy.dst.byte_bounds
    return Launch(step, PlainCall(), found.src, found.dst, trips_of(nest), bounds)


def _check_segments(copy: LoweredCopy, segments: Segments) -> None:
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


def _check_chunks(copy: LoweredCopy, table: ChunkTable) -> None:
    """Prove the same for chunks that are read at every offset of `outer` and written there side by side."""
    low, high = affine_range(table.src, [(n, step) for n, step, _ in table.outer])
    nearest, farthest = min(table.offsets), max(table.offsets) + table.width
    check_range("source", low + nearest, high + farthest, copy.src.bounds)
    low, high = affine_range(table.dst, [(n, step) for n, _, step in table.outer])
    check_range("destination", low, high + table.bytes_each, copy.dst.bounds)


def _check_boxes(copy: LoweredCopy) -> None:
    """Prove that every box stays within the storages."""
    for box in copy.boxes:
        for side, base, k, access in (
            ("source", box.src_base, 1, copy.src),
            ("destination", box.dst_base, 2, copy.dst),
        ):
            low, high = affine_range(base, [(d[0], d[k]) for d in box.digits])
            check_range(side, low, high + access.width, access.bounds)
