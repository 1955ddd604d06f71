"""Choose how to split a copy whose runs share lines into segments, or leave it as boxes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Digit
from codegen.maps.boxed_copy import BoxedCopy
from codegen.schedule.segments import MOST_OFFSET, MOVES, SegmentBox, Segments
from codegen.support.dataclasses import dataclass

MOST_MOVES_BYTES = 20 << 10
"""Limit on the table of moves of all parts, which shares the cache with the buffer and its source. Swizzled
rows of 64 bytes unpack at 0.30 of memcpy with 22 KiB of moves, and at 0.75 with half of that (Zen 5,
2026-11)."""


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When gathering pays, and the sizes of its segments.

    least_bytes, most_bytes  sizes of segments: buffer, source and moves share an L1 cache of 32 KiB or more
    most_parts               maximum number of parts that are worth a table
    least_move               minimum average bytes per move for gathering to pay
    most_waste               maximum bytes of source lines read per byte used; other segments reread the rest
    least_of_page            minimum average bytes that a segment uses of each page it reads
    short_run                runs of at least this size can be copied one by one without loss
    """

    least_bytes: int = 2 << 10
    most_bytes: int = 20 << 10
    most_parts: int = 64
    least_move: int = 8
    most_waste: float = 1.4
    least_of_page: int = 96
    short_run: int = 256


SEGMENT_LIMITS = SegmentLimits()


@dataclass(frozen=True, slots=True)
class RunBox:
    """A box of the copy, or of its padding, as runs.

    `offset` counts bytes from the lowest destination byte.
    """

    src: int
    offset: int
    run: int
    digits: tuple[Digit, ...]
    fills: bool


def segments_of(copy: BoxedCopy, *, padded: bool, limits: SegmentLimits = SEGMENT_LIMITS) -> Segments | None:
    """The segments of a copy between byte-addressed storages.

    None if they do not pay, or if the written bytes are not one full range at the same position in each row.
    """
    boxes = run_boxes_of(copy, limits.most_parts, padded=padded)
    stop = copy.dst.bounds[1] - copy.dst.bounds[0]
    if all(w.fills for w in boxes) or not _shares_lines(boxes, copy.dst.width, limits):
        return None
    written = sum(w.run * prod(d[0] for d in w.digits) for w in boxes)
    best: tuple[float, Segments] | None = None
    for length, row in _cuts(boxes, stop, limits):
        filled = _filled(written, row, stop)
        found = _cut_all(boxes, length, row, filled, limits.most_parts) if filled else None
        if found is None:
            continue
        made = Segments(found, length, row, filled, stop)
        cost = _cost(made)
        if best is None or cost < best[0]:
            best = cost, made
    return best[1] if best and _reads_well(best[1], limits) else None


def run_boxes_of(copy: BoxedCopy, most: int, *, padded: bool) -> list[RunBox]:
    """All boxes and, if padding is written, all boxes of padding; empty if one is not a product of digits."""
    low, width = copy.dst.bounds[0], copy.dst.width
    if (padded and copy.fill_first) or any(box.tables for box in copy.boxes) or len(copy.boxes) > most:
        return []
    boxes = [(b.src_base, b.dst_base, b.digits, False) for b in copy.boxes if b.volume]
    if padded:
        boxes += [(0, b.dst_base, b.digits, True) for b in copy.pads if b.volume]
    out = []
    for box in boxes:
        src, dst, digits, fills = _forward(*box)
        kept = sorted((d for d in digits if d[0] > 1), key=lambda d: d[2])
        run = width
        while kept and kept[0][2] == run and (fills or kept[0][1] == run):
            run *= kept.pop(0)[0]
        if any(d[2] <= 0 for d in kept):
            return []
        out.append(RunBox(src, dst - low, run, tuple(kept), fills))
    return out


def _forward(
    src: int, dst: int, digits: tuple[Digit, ...], fills: bool
) -> tuple[int, int, tuple[Digit, ...], bool]:
    """The same box with no negative destination stride."""
    for extent, src_step, dst_step in digits:
        if dst_step < 0:
            src, dst = src + (extent - 1) * src_step, dst + (extent - 1) * dst_step
    return src, dst, tuple((n, -s, -d) if d < 0 else (n, s, d) for n, s, d in digits), fills


def _shares_lines(boxes: list[RunBox], width: int, limits: SegmentLimits) -> bool:
    """Whether most bytes of the copy are in short runs that share lines of the destination.

    Single elements do not count as runs: they are transposed in registers.
    """

    def short(box: RunBox) -> bool:
        offsets = box.offset, box.run, *(d[2] for d in box.digits)
        aligned = all(x % LINE_BYTES == 0 for x in offsets)
        return max(limits.least_move, width + 1) <= box.run < limits.short_run and not aligned

    moved = [(w.run * prod(d[0] for d in w.digits), short(w)) for w in boxes if not w.fills]
    return 2 * sum(size for size, is_short in moved if is_short) > sum(size for size, _ in moved)


def _cuts(boxes: list[RunBox], stop: int, limits: SegmentLimits) -> Iterator[tuple[int, int]]:
    """Candidate (segment length, row length) pairs: strides of digits, and multiples of them."""
    steps = sorted({d[2] for w in boxes for d in w.digits} | {stop})
    least, most, seen = limits.least_bytes, limits.most_bytes, set()
    for row in steps:
        if row < least:
            continue
        if row <= most:
            seen.add((row, row))
        for step in steps:
            for times in (1, 2, 3, 4, 6, 8, 16, 32):
                length = step * times
                if least <= length <= min(most, row):
                    seen.add((length, row))
    yield from sorted(seen)


def _filled(written: int, row: int, stop: int) -> int:
    """The number of bytes written in each row if it is the same for all rows, else 0.

    The last row may be shorter only if rows have no gaps. Counting bytes suffices, because boxes write
    nothing twice, and `_cut` refuses boxes that go past the end of a row.
    """
    if written == stop:
        return row
    others = (stop - 1) // row
    filled = stop - others * row
    return filled if written == (others + 1) * filled else 0


def _cut_all(
    boxes: list[RunBox], length: int, row: int, filled: int, most: int
) -> tuple[SegmentBox, ...] | None:
    parts: list[SegmentBox] = []
    todo = list(boxes)
    while todo:
        if len(parts) + len(todo) > most:
            return None
        box = todo.pop()
        cut = _cut(box, length, row, filled)
        if cut is None:
            return None
        if isinstance(cut, SegmentBox):
            parts.append(cut)
        else:
            todo += cut
    return tuple(parts)


def _cut(box: RunBox, length: int, row: int, filled: int) -> SegmentBox | list[RunBox] | None:
    """The box as one part of its segments, or as boxes to try next; None if segments split its runs."""
    within = box.offset % row
    offset = within % length
    reach = box.run
    if offset + reach > length:
        return None
    inner: list[Digit] = []
    outer: list[Digit] = []
    for k, (extent, src, dst) in enumerate(box.digits):
        far = reach + (extent - 1) * dst
        if dst % row == 0:
            outer.append((extent, src, dst))
        elif offset + far <= length:
            inner.append((extent, src, dst))
            reach = far
        elif dst % length == 0:
            outer.append((extent, src, dst))
        else:
            return _divided(box, k, length, offset + reach)
    src_span = sum((n - 1) * abs(src) for n, src, _ in inner) + reach
    dst_span = within + reach + sum((n - 1) * d for n, _, d in outer if d % row)
    if dst_span > filled or src_span >= MOST_OFFSET or not _in_order(outer):
        return None
    return SegmentBox(box.src, box.offset - offset, offset, box.run, tuple(inner), tuple(outer), box.fills)


def _divided(box: RunBox, at: int, length: int, used: int) -> list[RunBox] | None:
    """The box split along one digit, so that the remainder begins a segment and consists of full segments."""
    extent, src, dst = box.digits[at]
    if length % dst:
        return None
    each, first = length // dst, (length - used) // dst + 1
    others = box.digits[:at], box.digits[at + 1 :]

    def part(begin: int, *digits: Digit) -> RunBox:
        kept = tuple(sorted((*others[0], *(d for d in digits if d[0] > 1), *others[1]), key=lambda d: d[2]))
        return RunBox(box.src + begin * src, box.offset + begin * dst, box.run, kept, box.fills)

    if first < each:
        return [part(0, (first, src, dst)), part(first, (extent - first, src, dst))]
    times, rest = divmod(extent, each)
    out = [part(0, (each, src, dst), (times, src * each, dst * each))]
    return [*out, part(times * each, (rest, src, dst))] if rest else out


def _in_order(outer: list[Digit]) -> bool:
    """Whether segments begin later as the index increases."""
    reach = 0
    for extent, _, dst in outer:
        if dst <= reach:
            return False
        reach += (extent - 1) * dst
    return True


def _cost(made: Segments) -> float:
    """The cost of lines and pages read, moves, and parts of segments, in approximate nanoseconds.

    The move tables of all parts compete for the L1 cache; if they do not fit, each move takes far longer.
    """
    lines, pages = _touched(made)
    moves = sum(sum(map(len, part.moves)) * part.count for part in made.parts)
    entries = sum(part.count for part in made.parts)
    each = 0.7 if made.moves.nbytes <= MOST_MOVES_BYTES else 3
    return 2 * lines + 5 * pages + each * moves + 30 * entries


def _reads_well(made: Segments, limits: SegmentLimits) -> bool:
    """Whether segments use most of the lines that they read, and enough of each page."""
    lines, pages = _touched(made)
    moved = sum(p.bytes_each * p.count for p in made.parts if not p.fills)
    return lines * LINE_BYTES <= limits.most_waste * moved and moved >= limits.least_of_page * pages


def _touched(made: Segments) -> tuple[int, int]:
    """The numbers of source lines and pages that the segments read, counted for each segment separately.

    Parts of the same segment share lines.
    """
    together: dict[object, list[SegmentBox]] = {}
    for part in made.parts:
        if not part.fills:
            together.setdefault((part.dst, part.outer), []).append(part)
    lines = pages = 0
    for parts in together.values():
        read = [
            (part.src + of[:, 0] + end) >> 6
            for part in parts
            for width, of in zip(MOVES, part.moves, strict=True)
            for end in (0, width - 1)
        ]
        line = np.unique(np.concatenate(read))
        lines += len(line) * parts[0].count
        pages += len(np.unique(line >> 6)) * parts[0].count
    return lines, pages
