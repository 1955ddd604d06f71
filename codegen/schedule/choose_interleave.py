"""Choose the loops of an interleave: rows shorter than a line are joined with the digits that follow them."""

from __future__ import annotations

from math import prod

from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Axis, Side, StridedBox, strip_axis
from codegen.schedule.directives import Tile
from codegen.schedule.loops import int_size
from codegen.schedule.schedule import Looped
from codegen.schedule.staged_block import MOST_GROUPED
from codegen.support.dataclasses import dataclass

SHORT_ROW_BYTES = 64
"""Rows up to this length are joined: separately, they are read or written in parts of a line."""

UNALIGNED_ROW_BYTES = 128
"""The same for streamed rows that begin inside lines: their ends share lines with tiles a page apart."""

CHUNK_BYTES = 512
"""Bytes of each row that are packed before the next rows, which fill the adjacent packed lines."""

MOST_LINES = 1 << 15
"""Maximum number of packed lines in one table: 256 KiB."""

PAGE_BYTES = 4096


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


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The groups of packed rows whose parts are in scratch at one time, so that the source is read in order.

    around  the loops around them, outermost first, with that over the tiles of an axis of the groups
    axes    the loops over the groups, outermost first; none if there is one group
    tiles   of the outermost of them, if scratch has no room for all of its iterations
    strips  of the rows that are contiguous in the source
    """

    around: tuple[Axis, ...]
    axes: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    strips: tuple[Tile, ...] = ()


def row_groups(box: StridedBox, inner: Looped, part: Tile, outer: list[Axis], threads: int) -> RowGroups:
    """The groups of the digits of `outer` between the packed lines of a row, as many as scratch has room for.

    There is one group if the loops outside would be too few for the threads.

    part  the tile of rows that is in scratch at one time
    """
    (columns,), (row, *joined) = inner.joined("column"), inner.joined("row")
    step, rows = abs(box.axis(joined[0]).src), box.axis(columns).extent
    around, axes, tiles = [*outer], list[str](), tuple[Tile, ...]()
    for loop in sorted(outer, key=lambda x: abs(x.src)):
        room = MOST_GROUPED // rows
        if abs(loop.src) >= step or room < 2 or tiles:
            break
        axes.insert(0, loop.name)
        rows *= loop.extent
        if loop.extent > room:
            tiles = (Tile(loop.name, room),)
            around[around.index(loop)] = strip_axis(loop, room, tiles[0].index)
        else:
            around.remove(loop)
    if not axes or 1 < threads > prod(x.extent for x in around) // 2:
        return RowGroups(tuple(outer))
    line, first = LINE_BYTES // box.width, box.axis(row).extent
    run = -(-line // first) * first // line * line
    strips = (Tile(part.axis, run, "strip"),) if run < int_size(part.size) else ()
    return RowGroups(tuple(around), tuple(axes), tiles, strips)


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
