"""Choose the loops of an interleave: rows shorter than a line are joined with the digits that follow them."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox
from codegen.schedule.offset_tables import MOST_GROUPED
from codegen.schedule.schedule import STRIP, Looped

SHORT_ROW_BYTES = 64
"""Rows up to this length are joined: separately, they are read or written in parts of a line."""

UNALIGNED_ROW_BYTES = 128
"""The same for streamed rows that begin inside lines: their ends share lines with tiles a page apart."""

CHUNK_BYTES = 512
"""Bytes of each row that are packed before the next rows, which fill the adjacent packed lines."""

MOST_LINES = 1 << 15
"""Maximum number of packed lines in one table: 256 KiB."""

PAGE_BYTES = 4096

Groups: TypeAlias = tuple[tuple[str, ...] | None, int | None]


def joined_axes(
    box: StridedBox, long: Axis, short: Axis, packed: Side, *, past_cache: bool, on_lines: bool = True
) -> tuple[str, ...]:
    """The digits that follow `long` without a gap on the side with separate rows, most minor first.

    The rows of `short` are packed together on the side `packed` ("dst" or "src"). The packed lines are then
    not contiguous, but each is full. The result is empty if the first digit does not fill lines, or if all
    digits together do not fill one line of a row. `on_lines` says whether the first row begins a line.
    """
    apart: Side = "src" if packed == "dst" else "dst"
    width = box.width
    total, count = long.extent, short.extent
    if total * count * width % LINE_BYTES:
        return ()
    unaligned = short.stride(apart) % LINE_BYTES != 0 or not on_lines
    most = UNALIGNED_ROW_BYTES if unaligned and past_cache else SHORT_ROW_BYTES
    joined: list[Axis] = []
    full_rows = packed == "src" and unaligned and past_cache
    while full_rows or total * width < CHUNK_BYTES:
        following = next((x for x in box.axes if x.stride(apart) == total * width), None)
        if following is None or following.stride(packed) % LINE_BYTES:
            break
        near = abs(following.stride(packed)) < PAGE_BYTES
        if not full_rows and not joined and total * width > (SHORT_ROW_BYTES if near else most):
            break
        if total * following.extent * count * width > MOST_LINES * LINE_BYTES:
            break
        joined.append(following)
        total *= following.extent
    return tuple(x.name for x in joined) if total * width >= LINE_BYTES else ()


def grouped_axes(
    box: StridedBox, inner: Looped, outer: list[Axis], threads: int, *, on_lines: bool = True
) -> Groups:
    """(groups, together): the digits of `outer` between the packed lines of a row, and a limit for the last.

    With these digits inside, the source is read in order. `together` iterations of the last digit
    fit in the buffer; None means all of them. `groups` is None if result rows are aligned and need no buffer,
    and empty if the loops outside would be too few for the threads.

    `on_lines` says whether the destination begins a line. If it doesn't, the schedule is the alternative of
    one launch, so it has to be one launch as well: no iterations of the last digit are left over.
    """
    (columns,), (_, *joined) = inner.joined("column"), inner.joined("row")
    if box.source is None or not joined or (on_lines and box.axis(columns).dst % LINE_BYTES == 0):
        return None, None
    step, rows = abs(box.axis(joined[0]).src), box.axis(columns).extent
    groups: list[str] = []
    together: int | None = None
    for loop in sorted(outer, key=lambda x: abs(x.src)):
        room, extent = MOST_GROUPED // rows, loop.extent
        if not on_lines:
            room = max((n for n in range(1, room + 1) if extent % n == 0), default=0)
        if abs(loop.src) >= step or room < 2:
            break
        groups.append(loop.name)
        rows *= extent
        if extent > room:
            together = room
            break
    left = prod(x.extent for x in around(outer, tuple(groups), together))
    return ((), None) if 1 < threads > left // 2 else (tuple(groups), together)


def around(outer: list[Axis], groups: tuple[str, ...], together: int | None) -> list[Axis]:
    """The loops that remain outside the groups; the last group has blocks of `together`, if given."""
    out = []
    for loop in outer:
        if groups and loop.name == groups[-1] and together:
            out.append(Axis(STRIP, loop.extent // together, loop.src * together, loop.dst * together))
        elif loop.name not in groups:
            out.append(loop)
    return out


def least_block(rows: int, width: int) -> int:
    """The fewest elements of each of that many rows that are interleaved in registers, not one by one."""
    return min(columns for count, columns in instruction("interleaved").shapes[8 * width] if count == rows)


def strip_of_joined(box: StridedBox, row: tuple[str, ...], size_bytes: int = CHUNK_BYTES) -> int | None:
    """Iterations of the last digit of a row so that it has at least that many bytes.

    None if one strip has all of them, or if every chunk size leaves a remainder shorter than a line.
    """
    extents, size_bytes = box.extents, max(size_bytes, LINE_BYTES)
    step = prod(extents[axis] for axis in row[:-1]) * box.width
    extent, least = extents[row[-1]], -(-size_bytes // step)
    if extent < 2 * least:
        return None

    def fits(chunk: int) -> bool:
        return extent % chunk == 0 or extent % chunk * step >= LINE_BYTES

    return next((chunk for chunk in range(least, 2 * least) if fits(chunk)), None)
