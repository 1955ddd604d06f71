"""Choose the directives of each kind of copy: super-vectors, tails and streams."""

from __future__ import annotations

from math import prod

from codegen.ir.element_types import INTEGER_TYPES
from codegen.ir.instructions import instruction
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.packed_bits import COLUMNS
from codegen.ir.streams import Stream
from codegen.ir.strided_box import Axis, Element, Side, StridedBox
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    REST,
    Ahead,
    CopyBlock,
    Directive,
    Groups,
    Prefetch,
    Request,
    Table,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.limits import (
    PACKED_SHORT_BYTES,
    REVERSAL_STREAMED_BYTES,
    ROW_BUFFER_BYTES,
    RUN_LONG_BYTES,
    RUN_SHORT_BYTES,
    SMALL_LEAST_COLUMNS,
    SMALL_ROWS,
)
from codegen.schedule.loops import Loop, int_size
from codegen.schedule.offset_tables import MOST_GROUPED, PREFETCH_ELEMENTS, OffsetTable, RowGroups
from codegen.schedule.schedule import Schedule

BYTE = Element("u8", 8)

WORD_BYTES = 8
"""Packed bytes of the super-vectors after the last full line."""

LEAST_CONVERTED, MOST_CONVERTED = 16, 32
"""Elements that are converted together: a line or more on one side."""


def chunk_nest(width: int, count: int, table: OffsetTable, schedule: Schedule) -> CopyNest:
    """Chunks of a line that follow each other in the destination; a table holds their source offsets."""
    element, ahead = Element(f"u{8 * width}", 8 * width), schedule.prefetch_bytes
    lines = (
        Vectorize((("x", LINE_BYTES // width),)),
        Tail("x", "narrow", sizes=(1,)),
        Ahead(ahead),
    )
    full = Stream("full", prefetch_bytes=ahead, entries_ahead=schedule.prefetch_chunks)
    streams = (full,) if schedule.stream else ()
    chunks = Loop("x", count, 0, width, src_table=table)
    return CopyNest((chunks,), element, element, None, (*lines, *streams))


def _copying(box: StridedBox, loops: tuple[Loop, ...], *directives: Directive) -> CopyNest:
    """A nest that moves elements as they are."""
    return CopyNest(loops, box.target, box.source, None, directives)


def run_nest(box: StridedBox, axis: Axis, schedule: Schedule) -> CopyNest:
    """The bytes of elements that are contiguous on both sides, a line at a time.

    Runs of full lines are often adjacent; others need a size worth their ends. Runs at table entries have one
    form, in which later entries are prefetched.
    """
    streams: tuple[Directive, ...] = (CopyBlock(RUN_LONG_BYTES),)
    if schedule.stream:
        full = Stream("full", prefetch_bytes=schedule.prefetch_bytes)
        streams = (full, Stream("headed", RUN_SHORT_BYTES))
        streams = (Stream("headed"),) if box.entries else streams
    lines = Vectorize((("x", LINE_BYTES),)), Tail("x", "shift", sizes=(REST,))
    return CopyNest(_bytes_of(box, axis), BYTE, BYTE, None, (*lines, *streams))


def request_nest(box: StridedBox, axis: Axis) -> CopyNest:
    """The lines of elements that are contiguous in the source, which a later copy reads."""
    return CopyNest(_bytes_of(box, axis), BYTE, BYTE, None, (Request(), Vectorize((("x", LINE_BYTES),))))


def _bytes_of(box: StridedBox, axis: Axis) -> tuple[Loop, ...]:
    """The loop over the bytes of elements along a contiguous axis."""
    return (Loop("x", axis.extent * box.width, 1, 1),)


def fill_nest(size_bytes: int) -> CopyNest:
    """A multiple of the repeated element, a line at a time; a line in the middle of it would be wrong."""
    lines = Vectorize((("x", LINE_BYTES),)), Tail("x", "narrow", sizes=(REST,))
    return CopyNest((Loop("x", size_bytes, 0, 1),), BYTE, None, None, lines)


def reversed_nest(box: StridedBox, inner: tuple[Axis, ...], *, stream: bool) -> CopyNest:
    """A run that is read backward; or short ones that follow each other, as many as fill a lane.

    A super-vector that ends with a part of a run is stored completely. The next one overwrites that part.
    """
    line, lane = LINE_BYTES // box.width, LANE_BYTES // box.width
    length, *groups = inner
    elements = Loop("x", length.extent, length.src, length.dst)
    if not groups or groups[0].extent == 1:
        lines = Vectorize((("x", line),)), Tail("x", "shift", sizes=(lane, 1) if lane > 1 else (1,))
        streams = (Stream("headed", REVERSAL_STREAMED_BYTES // box.width),) if stream else ()
        return _copying(box, (elements,), *lines, *streams)
    (group,) = groups
    loops = Loop("group", group.extent, group.src, group.dst), elements
    full = lane // length.extent
    lanes = Vectorize((("group", full), ("x", length.extent)))
    tails = [Tail("group", "narrow", sizes=(1,))] * (lane > length.extent)
    return _copying(box, loops, lanes, *tails)


def packed_row_nest(box: StridedBox, inner: tuple[Axis, ...], schedule: Schedule) -> CopyNest:
    """A few rows that are packed together on one side: blocks of a line of each, then narrower ones.

    Deinterleaved rows that do not begin lines go through scratch, unless they are short. If all rows fit in a
    block, they fill lines one after the other.
    """
    columns, rows = (
        Loop(name, x.extent, x.src, x.dst) for name, x in zip(("column", "row"), inner, strict=True)
    )
    loops = (columns, rows) if schedule.interleave == "dst" else (rows, columns)
    (long, length), (short, count) = ((x.axis, int_size(x.extent)) for x in loops)
    shapes = instruction("interleaved").shapes[8 * box.width]
    size = length * box.width
    in_lines = schedule.interleave == "src" and columns.dst == size and count * size % LINE_BYTES == 0
    if in_lines and (count, length) in shapes:
        whole = Vectorize(((long, length), (short, count)))
        return _copying(box, loops, whole, *[Stream("full")] * schedule.stream)
    line, *narrower = (columns for rows, columns in shapes if rows == count)
    streams = [Stream("begun")] * schedule.stream
    if schedule.stream and schedule.interleave == "src":
        streams.append(Stream("staged", ROW_BUFFER_BYTES // box.width))
    lines = Vectorize(((long, line), (short, count))), Tail(long, "shift", (*narrower, 1))
    return _copying(box, loops, *lines, *streams)


def joined_row_nest(box: StridedBox, inner: tuple[Axis, ...], schedule: Schedule) -> CopyNest:
    """Interleaved rows that join several digits, and are at least a line long.

    The digits after the first two in `inner` are joined to the long one. The packed side, where they leave
    gaps between lines, has a table of the lines' offsets.
    """
    columns, rows, *joined = inner
    side: Side = "dst" if schedule.interleave == "dst" else "src"
    long, short = (columns, rows) if side == "dst" else (rows, columns)
    first = rows.extent * columns.extent * box.width // LINE_BYTES
    lines = OffsetTable(((first, LINE_BYTES), *((x.extent, x.stride(side)) for x in joined)))
    count = long.extent * prod(x.extent for x in joined)
    names = ("column", "row") if side == "dst" else ("row", "column")
    loops = (
        Loop(names[0], count, long.src, long.dst),
        Loop(names[1], short.extent, short.src, short.dst),
    )
    lanes = Vectorize(((names[0], LINE_BYTES // box.width), (names[1], short.extent)))
    how = (lanes, Tail(names[0], "clamp"), Table(side, lines))
    if schedule.groups is not None:
        groups = Groups(_groups(box, schedule.groups, *inner[:2]))
        return _copying(box, loops, *how, groups, Stream("staged", ROW_BUFFER_BYTES // box.width))
    streams = [Stream("full" if side == "dst" else "begun")] * schedule.stream
    return _copying(box, loops, *how, *streams)


def _groups(box: StridedBox, names: tuple[str, ...], columns: Axis, first: Axis) -> RowGroups:
    """The groups that are deinterleaved at the same time; at least a line of each row is contiguous.

    Scratch has room for MOST_GROUPED rows.
    """
    run = -(-LINE_BYTES // box.width // first.extent) * first.extent
    digits = box.digits(names) or ((1, 0, 0),)
    rows = columns.extent * prod(n for n, _, _ in digits)
    if rows > MOST_GROUPED:
        raise AssertionError(f"expected at most {MOST_GROUPED} grouped rows, got {rows}")
    return RowGroups(digits, columns.extent, box.width, run)


def small_transpose_nest(box: StridedBox, inner: tuple[Axis, ...]) -> CopyNest:
    """Digits that are too short for registers, in blocks of 64 bytes of 64 source rows that stay in cache."""
    columns, rows = (
        Loop(name, x.extent, x.src, x.dst) for name, x in zip(("column", "row"), inner, strict=True)
    )
    wide = max(LINE_BYTES // box.width, SMALL_LEAST_COLUMNS)
    return _copying(box, (columns, rows), Tile("column", wide), Tile("row", SMALL_ROWS))


def element_nest(box: StridedBox, axis: Axis, *, prefetch: bool) -> CopyNest:
    """Single elements; super-vectors of them if they are contiguous and need more than resizing."""
    loops = (Loop("x", axis.extent, axis.src if box.source else 0, axis.dst),)
    how: list[Directive] = []
    if _converts_in_registers(box, axis):
        narrowest = min(box.width, box.source_width)
        lanes = min(max(LINE_BYTES // narrowest, LEAST_CONVERTED), MOST_CONVERTED)
        how += [Vectorize((("x", lanes),)), Tail("x", "shift", sizes=(8, 1))]
    if prefetch:
        how.append(Prefetch("x", PREFETCH_ELEMENTS))
    return CopyNest(loops, box.target, box.source, box.conversion, tuple(how))


def _converts_in_registers(box: StridedBox, axis: Axis) -> bool:
    """Whether elements are contiguous on both sides and converted; LLVM vectorizes integers by itself."""
    if box.swap or box.conversion is None or {*box.conversion} <= {*INTEGER_TYPES} or box.unit_bits == 1:
        return False
    return (axis.src, axis.dst) == (box.source_width, box.width)


def code_nest(box: StridedBox, inner: tuple[Axis, ...], schedule: Schedule) -> CopyNest:
    """Codes of a few bits in bytes: contiguous, some bytes apart, or in columns that follow each other.

    The packed loop is last in `inner`; a loop before it runs over the columns.
    """
    *columns, packed = inner
    packs, bits = schedule.mode == "pack bits", min(box.source_width, box.width)
    group, step = 8 // bits, packed.stride("src" if packs else "dst") // 8
    column_bytes = packed.extent // group
    loose, code = Element("u8", 8), Element(f"u{bits}", bits)

    def codes_of(count: int, far: int, near: int, codes: int, *directives: Directive) -> CopyNest:
        """`count` times `codes` codes, `far` loose bytes and `near` packed bytes apart."""
        x = Loop("x", count, *((far, near) if packs else (near, far)))
        within = Loop("code", codes, *((step, 0) if packs else (0, step)))
        return CopyNest((x, within), *((code, loose) if packs else (loose, code)), None, directives)

    ahead, stream = schedule.prefetch_bytes, schedule.stream
    if columns:
        _, few, many = COLUMNS
        streams = [Stream("begun", prefetch_bytes=ahead)] * stream
        streams += [Stream("staged", ROW_BUFFER_BYTES)] * (stream and not packs)
        blocks = Vectorize((("x", many), ("code", packed.extent))), Tail("x", "clamp", sizes=(few, 1))
        return codes_of(columns[0].extent, 1, column_bytes, packed.extent, *blocks, *streams)
    if step != 1:
        return codes_of(column_bytes, group * step, 1, group, Vectorize((("x", 1), ("code", group))))
    line = LINE_BYTES if packs else LINE_BYTES // group
    sizes = (WORD_BYTES, REST) if line > WORD_BYTES else (REST,)
    lines = Vectorize((("x", line), ("code", group))), Tail("x", "shift", sizes)
    headed = Stream("headed", PACKED_SHORT_BYTES // (1 if packs else group), ahead)
    return codes_of(column_bytes, group, 1, group, *lines, *[headed] * stream)
