"""Pick how a copy whose runs share lines is cut into segments, or leave it to its boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from codegen.frontend.lower_copy import LoweredCopy
from codegen.ir.copies.segments import MOST_OFFSET, MOVES, Part, Segments
from codegen.ir.copies.tiles import LINE_BYTES, Digit

MOST_MOVES_BYTES = 20 << 10
"""What moves of all parts may take beside a buffer and its source: rows of 64 bytes, swizzled, come out of
their tiles at 0.30 of memcpy by 22 KiB of moves, and at 0.75 by half as many (Zen 5, 2026-11)."""


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When gathering pays, and how it is cut.

    least_bytes, most_bytes  sizes of segments: buffer, source and moves share a first cache, of 32 KiB or
                             more
    most_parts               more parts than this are not worth a table
    least_move               bytes of a move, on the average, that gathering still gains with
    most_waste               bytes of the lines that segments read, for one that they take: others read the
                             rest again
    small_piece              bytes of pieces that every way of copying takes one by one: gathering may waste
    least_of_page            bytes that a segment takes of a page, on the average, if reading is to keep up
    short_run                longer runs are copied one by one, at no loss
    """

    least_bytes: int = 2 << 10
    most_bytes: int = 20 << 10
    most_parts: int = 64
    least_move: int = 8
    most_waste: float = 1.4
    small_piece: int = 8
    least_of_page: int = 96
    short_run: int = 256


SEGMENT_LIMITS = SegmentLimits()


@dataclass(frozen=True, slots=True)
class Whole:
    """A box or a box of padding, in bytes, runs of it taken together; `place` is from the lowest byte on."""

    src: int
    place: int
    run: int
    digits: tuple[Digit, ...]
    fills: bool


def segments_of(
    copy: LoweredCopy, *, padded: bool, limits: SegmentLimits = SEGMENT_LIMITS
) -> Segments | None:
    """The segments of a copy between storages counted in bytes; None where they gain nothing, or where
    what is written is not the same part of each of some rows, whole.
    """
    wholes = wholes_of(copy, limits.most_parts, padded=padded)
    stop = copy.dst.bounds[1] - copy.dst.bounds[0]
    if all(w.fills for w in wholes) or not _shares_lines(wholes, copy.dst.width, limits):
        return None
    written = sum(w.run * prod(d[0] for d in w.digits) for w in wholes)
    best: tuple[float, Segments] | None = None
    for length, row in _cuts(wholes, stop, limits):
        filled = _filled(written, row, stop)
        found = _cut_all(wholes, length, row, filled, limits.most_parts) if filled else None
        if found is None:
            continue
        made = Segments(found, length, row, filled, stop)
        cost = _cost(made)
        if best is None or cost < best[0]:
            best = cost, made
    return best[1] if best and _reads_well(best[1], limits) else None


def wholes_of(copy: LoweredCopy, most: int, *, padded: bool) -> list[Whole]:
    """Every box and, where padding is written, every box of it; none where one is no product of digits."""
    low, width = copy.dst.bounds[0], copy.dst.width
    if (padded and copy.fill_first) or any(box.tables for box in copy.boxes) or len(copy.boxes) > most:
        return []
    boxes = [(b.src_base, b.dst_base, b.digits, False) for b in copy.boxes if b.volume]
    if padded:
        pads = (p for p in copy.pads if p.volume)
        boxes += [(0, p.dst_base, tuple((n, 0, s) for n, s in p.digits), True) for p in pads]
    out = []
    for box in boxes:
        src, dst, digits, fills = _forward(*box)
        kept = sorted((d for d in digits if d[0] > 1), key=lambda d: d[2])
        run = width
        while kept and kept[0][2] == run and (fills or kept[0][1] == run):
            run *= kept.pop(0)[0]
        if any(d[2] <= 0 for d in kept):
            return []
        out.append(Whole(src, dst - low, run, tuple(kept), fills))
    return out


def _forward(
    src: int, dst: int, digits: tuple[Digit, ...], fills: bool
) -> tuple[int, int, tuple[Digit, ...], bool]:
    """The same box with no digit that walks the destination backwards."""
    for extent, src_step, dst_step in digits:
        if dst_step < 0:
            src, dst = src + (extent - 1) * src_step, dst + (extent - 1) * dst_step
    return src, dst, tuple((n, -s, -d) if d < 0 else (n, s, d) for n, s, d in digits), fills


def _shares_lines(wholes: list[Whole], width: int, limits: SegmentLimits) -> bool:
    """Whether runs of the copy, by bytes for the most part, are short, and share lines of the destination.

    Single elements are not runs: they are transposed in registers.
    """

    def short(whole: Whole) -> bool:
        places = whole.place, whole.run, *(d[2] for d in whole.digits)
        aligned = all(x % LINE_BYTES == 0 for x in places)
        return max(limits.least_move, width + 1) <= whole.run < limits.short_run and not aligned

    moved = [(w.run * prod(d[0] for d in w.digits), short(w)) for w in wholes if not w.fills]
    return 2 * sum(size for size, is_short in moved if is_short) > sum(size for size, _ in moved)


def _cuts(wholes: list[Whole], stop: int, limits: SegmentLimits) -> Iterator[tuple[int, int]]:
    """(length of a segment, of a row) that are worth a look: steps of digits, and multiples of them."""
    steps = sorted({d[2] for w in wholes for d in w.digits} | {stop})
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
    """How much of each row is written, if that is the same of all; 0 where it is not.

    The last row may end sooner only where rows have no gaps. As boxes write nothing twice, counting tells:
    `_cut` takes none that goes past the end of a row.
    """
    if written == stop:
        return row
    others = (stop - 1) // row
    filled = stop - others * row
    return filled if written == (others + 1) * filled else 0


def _cut_all(wholes: list[Whole], length: int, row: int, filled: int, most: int) -> tuple[Part, ...] | None:
    parts: list[Part] = []
    todo = list(wholes)
    while todo:
        if len(parts) + len(todo) > most:
            return None
        whole = todo.pop()
        cut = _cut(whole, length, row, filled)
        if cut is None:
            return None
        if isinstance(cut, Part):
            parts.append(cut)
        else:
            todo += cut
    return tuple(parts)


def _cut(whole: Whole, length: int, row: int, filled: int) -> Part | list[Whole] | None:
    """The box as one part of its segments, or as boxes that may be, or None where segments cut its runs."""
    within = whole.place % row
    place = within % length
    reach = whole.run
    if place + reach > length:
        return None
    inner: list[Digit] = []
    outer: list[Digit] = []
    for k, (extent, src, dst) in enumerate(whole.digits):
        far = reach + (extent - 1) * dst
        if dst % row == 0:
            outer.append((extent, src, dst))
        elif place + far <= length:
            inner.append((extent, src, dst))
            reach = far
        elif dst % length == 0:
            outer.append((extent, src, dst))
        else:
            return _divided(whole, k, length, place + reach)
    ahead = sum((n - 1) * abs(src) for n, src, _ in inner) + reach
    spread = within + reach + sum((n - 1) * d for n, _, d in outer if d % row)
    if spread > filled or ahead >= MOST_OFFSET or not _in_order(outer):
        return None
    return Part(whole.src, whole.place - place, place, whole.run, tuple(inner), tuple(outer), whole.fills)


def _divided(whole: Whole, at: int, length: int, used: int) -> list[Whole] | None:
    """The box cut along one digit, so that what is left begins a segment and has whole segments of it."""
    extent, src, dst = whole.digits[at]
    if length % dst:
        return None
    each, first = length // dst, (length - used) // dst + 1
    others = whole.digits[:at], whole.digits[at + 1 :]

    def part(begin: int, *digits: Digit) -> Whole:
        kept = tuple(sorted((*others[0], *(d for d in digits if d[0] > 1), *others[1]), key=lambda d: d[2]))
        return Whole(whole.src + begin * src, whole.place + begin * dst, whole.run, kept, whole.fills)

    if first < each:
        return [part(0, (first, src, dst)), part(first, (extent - first, src, dst))]
    times, rest = divmod(extent, each)
    out = [part(0, (each, src, dst), (times, src * each, dst * each))]
    return [*out, part(times * each, (rest, src, dst))] if rest else out


def _in_order(outer: list[Digit]) -> bool:
    """Whether a larger index always begins a later segment."""
    reach = 0
    for extent, _, dst in outer:
        if dst <= reach:
            return False
        reach += (extent - 1) * dst
    return True


def _cost(made: Segments) -> float:
    """Lines and pages read, moves, and parts of segments, weighed by about the nanoseconds each takes.

    Moves of many parts take turns in the first cache; where they leave no room there, each takes far longer.
    """
    lines, pages = _touched(made)
    moves = sum(sum(map(len, part.moves)) * part.count for part in made.parts)
    entries = sum(part.count for part in made.parts)
    each = 0.7 if made.pieces.nbytes <= MOST_MOVES_BYTES else 3
    return 2 * lines + 5 * pages + each * moves + 30 * entries


def _reads_well(made: Segments, limits: SegmentLimits) -> bool:
    """Whether a segment takes most of the lines that it reads, and reads on within pages.

    Small pieces gain even where lines are read again for later segments: any other way is as slow.
    """
    lines, pages = _touched(made)
    largest = max((p for p in made.parts if not p.fills), key=lambda p: p.bytes_each * p.count)
    moved = sum(p.bytes_each * p.count for p in made.parts if not p.fills)
    whole = lines * LINE_BYTES <= limits.most_waste * moved or largest.run <= limits.small_piece
    return whole and moved >= limits.least_of_page * pages


def _touched(made: Segments) -> tuple[int, int]:
    """Lines, and pages, of the source that the segments read, each segment by itself.

    Parts of the same segments share lines.
    """
    together: dict[object, list[Part]] = {}
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
