"""Choose the loops of an interleave: rows shorter than a line are joined with the digits that follow them."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from codegen.ir.copies.nodes import For, LoopNest, Side, refs
from codegen.ir.copies.rewriting import int_size
from codegen.ir.copies.tiles import MOST_GROUPED
from codegen.ir.lines import LINE_BYTES
from codegen.schedule.schedule import STRIP

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


def joined_axes(nest: LoopNest, long: For, short: For, packed: Side, *, past_cache: bool) -> tuple[str, ...]:
    """The digits that follow `long` without a gap on the side with separate rows, most minor first.

    The rows of `short` are packed together on the side `packed` ("dst" or "src"). The packed lines are then
    not contiguous, but each is full. The result is empty if the first digit does not fill lines, or if all
    digits together do not fill one line of a row.
    """
    src, dst = refs(nest.innermost)
    if src is None:
        raise AssertionError("an interleave has a source")
    together, apart = (dst, src) if packed == "dst" else (src, dst)
    width = nest.buffer("dst").element.bits // 8
    total, count = int_size(long.extent), int_size(short.extent)
    if total * count * width % LINE_BYTES:
        return ()
    unaligned = int_size(apart.stride(short.axis)) % LINE_BYTES != 0
    most = UNALIGNED_ROW_BYTES if unaligned and past_cache else SHORT_ROW_BYTES
    joined: list[For] = []
    full_rows = packed == "src" and unaligned and past_cache
    while full_rows or total * width < CHUNK_BYTES:
        following = next((x for x in nest.loops if apart.stride(x.axis) == total * width), None)
        if following is None or int_size(together.stride(following.axis)) % LINE_BYTES:
            break
        near = abs(int_size(together.stride(following.axis))) < PAGE_BYTES
        if not full_rows and not joined and total * width > (SHORT_ROW_BYTES if near else most):
            break
        if total * int_size(following.extent) * count * width > MOST_LINES * LINE_BYTES:
            break
        joined.append(following)
        total *= int_size(following.extent)
    return tuple(x.axis for x in joined) if total * width >= LINE_BYTES else ()


def grouped_axes(nest: LoopNest, inner: tuple[str, ...], outer: list[For], threads: int) -> Groups:
    """(groups, together): the digits of `outer` between the packed lines of a row, and a limit for the last.

    With these digits in the transfer, the source is read in order. `together` iterations of the last digit
    fit in the buffer; None means all of them. `groups` is None if result rows are aligned and need no buffer,
    and empty if the loops outside would be too few for the threads.
    """
    src, dst = refs(nest.innermost)
    loops = {x.axis: int_size(x.extent) for x in nest.loops}
    columns, _, *joined = inner
    if src is None or not joined or int_size(dst.stride(columns)) % LINE_BYTES == 0:
        return None, None
    step, rows = abs(int_size(src.stride(joined[0]))), loops[columns]
    groups: list[str] = []
    together: int | None = None
    for loop in sorted(outer, key=lambda x: abs(int_size(src.stride(x.axis)))):
        room, extent = MOST_GROUPED // rows, int_size(loop.extent)
        if abs(int_size(src.stride(loop.axis))) >= step or room < 2:
            break
        groups.append(loop.axis)
        rows *= extent
        if extent > room:
            together = room
            break
    left = prod(int_size(x.extent) for x in around(outer, tuple(groups), together))
    return ((), None) if 1 < threads > left // 2 else (tuple(groups), together)


def around(outer: list[For], groups: tuple[str, ...], together: int | None) -> list[For]:
    """The loops that remain outside the groups; the last group is strip-mined by `together`, if given."""
    out = []
    for loop in outer:
        if groups and loop.axis == groups[-1] and together:
            out.append(For(STRIP, int_size(loop.extent) // together, loop.body))
        elif loop.axis not in groups:
            out.append(loop)
    return out


def chunk_of(nest: LoopNest, inner: tuple[str, ...]) -> int | None:
    """Iterations of the last joined digit per transfer, so that adjacent packed lines are written soon.

    None if a transfer takes all of them, or if every chunk size leaves a remainder shorter than a line.
    """
    loops = {x.axis: int_size(x.extent) for x in nest.loops}
    columns, _, *joined = inner
    width = nest.buffer("dst").element.bits // 8
    step = prod(loops[axis] for axis in (columns, *joined[:-1])) * width
    extent, least = loops[joined[-1]], -(-CHUNK_BYTES // step)
    if extent < 2 * least:
        return None

    def fits(chunk: int) -> bool:
        return extent % chunk == 0 or extent % chunk * step >= LINE_BYTES

    return next((chunk for chunk in range(least, 2 * least) if fits(chunk)), None)
