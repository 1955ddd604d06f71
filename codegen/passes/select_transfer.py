"""Replace the innermost loops by the transfer that the schedule selects."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from codegen.ir.blocks import block_shape
from codegen.ir.element_types import INTEGER_TYPES
from codegen.ir.instructions import instruction
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.packed_bits import COLUMNS
from codegen.ir.streams import Stream
from codegen.ir.strided_box import Axis, Element, Side, StridedBox
from codegen.passes.lane_reads import lane_reads
from codegen.passes.select_panels import in_panels
from codegen.schedule.directives import (
    REST,
    Ahead,
    CopyBlock,
    Directive,
    Prefetch,
    Request,
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
from codegen.schedule.offset_tables import MOST_GROUPED, PREFETCH_ELEMENTS, OffsetTable, RowGroups
from codegen.schedule.schedule import Schedule, TransposeSchedule
from codegen.schedule.shuffles import NOT_COPIED, Shuffle, period_offsets, register_parts
from codegen.schedule.transfer_loops import Loop, int_size
from codegen.schedule.transfers import (
    Interleave,
    Moves,
    Transfer,
    TransferNest,
)
from codegen.schedule.transposes import Transpose, TransposeTiles

BYTE = Element("u8", 8)

WORD_BYTES = 8
"""Packed bytes of the super-vectors after the last full line."""

LEAST_CONVERTED, MOST_CONVERTED = 16, 32
"""Elements that are converted together: a line or more on one side."""


def select_transfer(box: StridedBox, schedule: Schedule) -> TransferNest:
    """Select the transfer that replaces the loops named in `schedule.inner`.

    before:  for i in 9: for j in 128:  dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9: dst += 512, src += 1200:
               for x in 512: dst[x] = src[x]        Vectorize(x=64), Tail("x", "shift", sizes=("rest",))
    """
    outer = tuple(box.axis(name) for name in schedule.outer)
    inner = tuple(box.axis(name) for name in schedule.inner)
    unit_bits = box.unit_bits
    match schedule.mode:
        case "run":
            transfer: Transfer = _run(box, inner[0], schedule)
        case "chunks":
            table = OffsetTable(tuple((x.extent, x.src) for x in inner))
            transfer = chunks(box.width, prod(x.extent for x in inner), table, schedule)
        case "reverse":
            transfer = _reversed(box, inner, stream=schedule.stream)
        case "request":
            lines = Vectorize((("x", LINE_BYTES),))
            transfer = Moves(_bytes_of(box, inner[0]), BYTE, BYTE, None, (Request(), lines))
        case "fill":
            transfer, unit_bits = _filled(inner[0].extent * box.target.bits // 8), 8
        case "interleave" if not schedule.interleave:
            transfer = _small_transpose(box, inner)
        case "interleave" if len(inner) > 2:
            transfer = _interleave(box, inner, schedule)
        case "interleave":
            transfer = _packed_rows(box, inner, schedule)
        case "shuffle":
            transfer = _shuffle(box, schedule)
        case "transpose":
            outer, transfer = (), _transpose(box, schedule)
        case "elements":
            transfer = _elements(box, inner[0] if inner else Axis("", 1, 0, 0), prefetch=schedule.prefetch)
        case "pack bits" | "unpack bits":
            transfer, unit_bits = _codes(box, inner, schedule), 8
        case mode:
            raise AssertionError(f"select_transfer: no rule for {mode}")
    scale = unit_bits // box.unit_bits  # packed boxes count in bits, their transfers in bytes
    loops = tuple(Loop(x.name, x.extent, x.src // scale, x.dst // scale) for x in outer)
    return TransferNest(loops, transfer, box.entries, unit_bits)


def chunks(width: int, count: int, table: OffsetTable, schedule: Schedule) -> Moves:
    """Chunks of a line that follow each other in the destination; a table holds their source offsets."""
    element, how = Element(f"u{8 * width}", 8 * width), schedule.runs
    lines = (
        Vectorize((("x", LINE_BYTES // width),)),
        Tail("x", "narrow", sizes=(1,)),
        Ahead(how.prefetch_bytes),
    )
    full = Stream("full", prefetch_bytes=how.prefetch_bytes, entries_ahead=how.prefetch_chunks)
    streams = (full,) if schedule.stream else ()
    return Moves((Loop("x", count, 0, width, table),), element, element, None, (*lines, *streams))


def _moves(box: StridedBox, loops: tuple[Loop, ...], *directives: Directive) -> Moves:
    """Elements that are moved as they are, by directives."""
    return Moves(loops, box.target, box.source, None, directives)


def _run(box: StridedBox, axis: Axis, schedule: Schedule) -> Moves:
    """The bytes of elements that are contiguous on both sides, a line at a time.

    Runs of full lines are often adjacent; others need a size worth their ends. Runs at table entries have one
    form, in which later entries are prefetched.
    """
    streams: tuple[Directive, ...] = (CopyBlock(RUN_LONG_BYTES),)
    if schedule.stream:
        full = Stream("full", prefetch_bytes=schedule.runs.prefetch_bytes)
        streams = (full, Stream("headed", RUN_SHORT_BYTES))
        streams = (Stream("headed"),) if box.entries else streams
    lines = Vectorize((("x", LINE_BYTES),)), Tail("x", "shift", sizes=(REST,))
    return Moves(_bytes_of(box, axis), BYTE, BYTE, None, (*lines, *streams))


def _bytes_of(box: StridedBox, axis: Axis) -> tuple[Loop, ...]:
    """The loop over the bytes of elements along a contiguous axis."""
    return (Loop("x", axis.extent * box.width, 1, 1),)


def _filled(size_bytes: int) -> Moves:
    """A multiple of the repeated element, a line at a time; a line in the middle of it would not do."""
    lines = Vectorize((("x", LINE_BYTES),)), Tail("x", "narrow", sizes=(REST,))
    return Moves((Loop("x", size_bytes, 0, 1),), BYTE, None, None, lines)


def _reversed(box: StridedBox, inner: tuple[Axis, ...], *, stream: bool) -> Moves:
    """A run that is read backward; or short ones that follow each other, as many as fill a lane.

    A super-vector that ends with a part of a run is stored completely. The next one overwrites that part.
    """
    line, lane = LINE_BYTES // box.width, LANE_BYTES // box.width
    length, *groups = inner
    elements = Loop("x", length.extent, length.src, length.dst)
    if not groups or groups[0].extent == 1:
        lines = Vectorize((("x", line),)), Tail("x", "shift", sizes=(lane, 1) if lane > 1 else (1,))
        streams = (Stream("headed", REVERSAL_STREAMED_BYTES // box.width),) if stream else ()
        return _moves(box, (elements,), *lines, *streams)
    (group,) = groups
    loops = Loop("group", group.extent, group.src, group.dst), elements
    full = lane // length.extent
    lanes = Vectorize((("group", full), ("x", length.extent)))
    tails = [Tail("group", "narrow", sizes=(1,))] * (lane > length.extent)
    return _moves(box, loops, lanes, *tails)


def _packed_rows(box: StridedBox, inner: tuple[Axis, ...], schedule: Schedule) -> Moves:
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
        return _moves(box, loops, whole, *[Stream("full")] * schedule.stream)
    line, *narrower = (columns for rows, columns in shapes if rows == count)
    streams = [Stream("begun")] * schedule.stream
    if schedule.stream and schedule.interleave == "src":
        streams.append(Stream("staged", ROW_BUFFER_BYTES // box.width))
    lines = Vectorize(((long, line), (short, count))), Tail(long, "shift", (*narrower, 1))
    return _moves(box, loops, *lines, *streams)


def _small_transpose(box: StridedBox, inner: tuple[Axis, ...]) -> Moves:
    """Digits that are too short for registers, in blocks of 64 bytes of 64 source rows that stay in cache."""
    columns, rows = (
        Loop(name, x.extent, x.src, x.dst) for name, x in zip(("column", "row"), inner, strict=True)
    )
    wide = max(LINE_BYTES // box.width, SMALL_LEAST_COLUMNS)
    return _moves(box, (columns, rows), Tile("column", wide), Tile("row", SMALL_ROWS))


def _interleave(box: StridedBox, inner: tuple[Axis, ...], schedule: Schedule) -> Interleave:
    """Join the inner digits after columns and rows to the long digit, the one that is not packed."""
    columns, rows, *joined = inner
    row_count, column_count = rows.extent, columns.extent
    packed: Side = "dst" if schedule.interleave == "dst" else "src"
    first = row_count * column_count * box.width // LINE_BYTES
    lines = OffsetTable(((first, LINE_BYTES), *((x.extent, x.stride(packed)) for x in joined)))
    times = prod(x.extent for x in joined)
    if schedule.interleave == "dst":
        column_count *= times
    else:
        row_count *= times
    return Interleave(
        box.width,
        row_count,
        column_count,
        rows.src,
        columns.dst,
        schedule.interleave,
        lines,
        schedule.stream,
        _groups(box, schedule),
    )


def _shuffle(box: StridedBox, schedule: Schedule) -> Shuffle:
    """Blocks of periods along the axis, and the tables that all periods share."""
    how = schedule.shuffle
    if how is None:
        raise AssertionError("a shuffle has a ShuffleSchedule")
    offsets = period_offsets(box, how.period, how.axis, how.steps)
    begins, orders = register_parts(offsets, how.register)
    if begins.shape[1] > how.parts:
        raise AssertionError(f"expected at most {how.parts} parts, got {begins.shape[1]}")
    axis = box.axis(how.axis) if how.axis else Axis("", how.steps, 0, 0)
    block_steps = how.steps * how.together
    more = how.parts - begins.shape[1]
    begins = np.pad(begins, ((0, 0), (0, more)), mode="edge")
    orders = np.pad(orders, ((0, 0), (0, more), (0, 0)), constant_values=NOT_COPIED)
    return Shuffle(
        how.register,
        how.ahead,
        how.parts,
        how.together,
        registers=len(begins),
        last_register=len(offsets) - how.register,
        blocks=-(-axis.extent // block_steps),
        block_steps=block_steps,
        last_step=axis.extent - block_steps,
        step_src=axis.src,
        step_dst=axis.dst,
        src_pitch=how.steps * axis.src,
        dst_pitch=how.steps * axis.dst,
        offsets=OffsetTable(listed=tuple(begins.ravel().tolist())),
        orders=OffsetTable(listed=tuple(orders.ravel().view("<i8").tolist())),
    )


def _groups(box: StridedBox, schedule: Schedule) -> RowGroups | None:
    """The groups that are deinterleaved at the same time; at least a line of each row is contiguous.

    Scratch has room for MOST_GROUPED rows.
    """
    if schedule.groups is None:
        return None
    columns, first = (box.axis(name).extent for name in schedule.inner[:2])
    run = -(-LINE_BYTES // box.width // first) * first
    digits = box.digits(schedule.groups) or ((1, 0, 0),)
    rows = columns * prod(n for n, _, _ in digits)
    if rows > MOST_GROUPED:
        raise AssertionError(f"expected at most {MOST_GROUPED} grouped rows, got {rows}")
    return RowGroups(digits, columns, box.width, run)


def _in_tiles(cut: TransposeSchedule, box: StridedBox) -> TransposeTiles:
    """Loops over tiles and blocks; a joined side gets a table of offsets."""
    rows, columns = box.digits(cut.rows), box.digits(cut.columns)
    row_count, column_count = (prod(n for n, _, _ in side) for side in (rows, columns))
    tile, block, lanes = cut.tile, block_shape(box.width, cut.block), None
    how = cut.of_tiles
    if row_count < block[0] or column_count < block[1]:
        raise AssertionError(f"expected {block} rows and columns or more, got {row_count, column_count}")
    others = {name: box.digits((name,))[0] for name in cut.loops if name in box.extents}
    if cut.block == "short":
        block = block_shape(box.width, "64x16")
        tile = tile[0], block[1]
        how = replace(how, strips=tile if how.strips else None)
        lanes = lane_reads(rows, column_count, tuple(others.values()), box.width, block[0])
    most = max(tile[0], min(cut.strips[0], row_count)) if cut.strips else tile[0]
    next_tile = 2 * most  # prefetches of the next tile read entries beyond the last row
    return TransposeTiles(
        box.source_width,
        box.width,
        row_count,
        column_count,
        rows[0][1] if len(rows) == 1 else _joined([(n, s) for n, s, _ in rows], more=next_tile),
        columns[0][2] if len(columns) == 1 else _joined([(n, d) for n, _, d in columns]),
        tuple(Loop(name, *others.get(name, ())) for name in cut.loops),
        tile,
        block,
        how,
        lanes,
        box.conversion,
    )


def _joined(digits: list[tuple[int, int]], more: int = 0) -> OffsetTable:
    return OffsetTable(tuple(digits), more=more)


def _transpose(box: StridedBox, schedule: Schedule) -> Transpose:
    """The transfer takes all loops and determines the order of its tiles itself."""
    cut = schedule.transpose
    if cut is None:
        raise AssertionError("a transpose has a TransposeSchedule")
    return in_panels(cut, box) if cut.stage == "dense" else _in_tiles(cut, box)


def _elements(box: StridedBox, axis: Axis, *, prefetch: bool) -> Moves:
    """Single elements; super-vectors of them if they are contiguous and more than resized."""
    loops = (Loop("x", axis.extent, axis.src if box.source else 0, axis.dst),)
    how: list[Directive] = []
    if _converts_in_registers(box, axis):
        narrowest = min(box.width, box.source_width)
        lanes = min(max(LINE_BYTES // narrowest, LEAST_CONVERTED), MOST_CONVERTED)
        how += [Vectorize((("x", lanes),)), Tail("x", "shift", sizes=(8, 1))]
    if prefetch:
        how.append(Prefetch("x", PREFETCH_ELEMENTS))
    return Moves(loops, box.target, box.source, box.conversion, tuple(how))


def _converts_in_registers(box: StridedBox, axis: Axis) -> bool:
    """Whether elements are contiguous on both sides and converted; LLVM vectorizes integers by itself."""
    if box.swap or box.conversion is None or {*box.conversion} <= {*INTEGER_TYPES} or box.unit_bits == 1:
        return False
    return (axis.src, axis.dst) == (box.source_width, box.width)


def _codes(box: StridedBox, inner: tuple[Axis, ...], schedule: Schedule) -> Moves:
    """Codes of a few bits in bytes: contiguous, some bytes apart, or in columns that follow each other.

    The packed loop is last in `inner`; a loop before it runs over the columns.
    """
    *columns, packed = inner
    packs, bits = schedule.mode == "pack bits", min(box.source_width, box.width)
    group, step = 8 // bits, packed.stride("src" if packs else "dst") // 8
    column_bytes = packed.extent // group
    loose, code = Element("u8", 8), Element(f"u{bits}", bits)

    def moves(count: int, far: int, near: int, codes: int, *directives: Directive) -> Moves:
        """`count` times `codes` codes, `far` loose bytes and `near` packed bytes apart."""
        x = Loop("x", count, *((far, near) if packs else (near, far)))
        within = Loop("code", codes, *((step, 0) if packs else (0, step)))
        return Moves((x, within), *((code, loose) if packs else (loose, code)), None, directives)

    ahead, stream = schedule.runs.prefetch_bytes, schedule.stream
    if columns:
        _, few, many = COLUMNS
        streams = [Stream("begun", prefetch_bytes=ahead)] * stream
        streams += [Stream("staged", ROW_BUFFER_BYTES)] * (stream and not packs)
        blocks = Vectorize((("x", many), ("code", packed.extent))), Tail("x", "clamp", sizes=(few, 1))
        return moves(columns[0].extent, 1, column_bytes, packed.extent, *blocks, *streams)
    if step != 1:
        return moves(column_bytes, group * step, 1, group, Vectorize((("x", 1), ("code", group))))
    line = LINE_BYTES if packs else LINE_BYTES // group
    sizes = (WORD_BYTES, REST) if line > WORD_BYTES else (REST,)
    lines = Vectorize((("x", line), ("code", group))), Tail("x", "shift", sizes)
    headed = Stream("headed", PACKED_SHORT_BYTES // (1 if packs else group), ahead)
    return moves(column_bytes, group, 1, group, *lines, *[headed] * stream)
